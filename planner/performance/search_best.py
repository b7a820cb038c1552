"""The fastest layout that fits, per (device row, node count): every layout of the grid is evaluated or ruled out.

Three steps, each for all machines with equally many accelerators at once:

1. memory of every layout at the three recompute levels; each layout takes the least recompute that fits;
2. a lower bound of the step: a pipeline of p stages cannot take less than 1/p of the whole model's work per
   micro-batch (work is conserved), nor fill and drain for free. The whole model is evaluated once per distinct
   (tp, cp, ep, micro-batch, recompute), without a pipeline and without data parallelism;
3. the layout with the least bound is evaluated per cell; whatever has a bound above that time is left out, the rest
   is evaluated.

Step 3 never drops the best layout as long as step 2 is a lower bound; tests compare with the search without it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import Bounds, Grid, grid
from planner.performance.search_job import LEVELS, Ints, Job, memory_levels, step_of
from planner.performance.work import Floats
from planner.records import record

Bools = npt.NDArray[np.bool_]
_CHUNK = 8192
# Bounds are compared with this much to spare, for rounding only.
_ROUNDING = 1.0 - 1e-9


@record(frozen=True, eq=False)
class Winners:
    """The best layout per cell (device row x node count, device-major).

    Attributes:
        cells: cells that some layout fits, ascending, shape `(n_found,)`.
        layout: their best layouts, shape `(n_found,)`.
        least_need: least memory of any layout at the fullest recompute allowed, GiB, NaN without any, per cell.
        listed: whether any layout divides cluster and batch, per cell; `shards`: cluster alone.
        fitting: layouts that fit, over all cells; `evaluated`: of these, whose time was worked out.
    """

    cells: Ints
    layout: Layouts
    least_need: Floats
    listed: Bools
    shards: Bools
    fitting: int
    evaluated: int


def find_best(job: Job, nodes: Ints, open_cells: Bools, bounds: Bounds, *, prune: bool = True) -> Winners:
    """Search all cells.

    Args:
        job: the job; one device row per distinct machine.
        nodes: node counts, shape `(n_nodes,)`.
        open_cells: cells worth searching, shape `(n_devices, n_nodes)`.
        bounds: what may vary.
        prune: rule layouts out by their lower bound; without it all are evaluated, with the same result.
    """
    shape = open_cells.shape
    least = np.full(shape, np.nan)
    listed, shards = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    cells: list[Ints] = []
    layouts: list[Layouts] = []
    fitting = evaluated = 0
    counts = job.devices.count.astype(np.int64)
    for count in sorted(set(counts[open_cells.any(axis=1)].tolist())):
        members = np.flatnonzero((counts == count) & open_cells.any(axis=1))
        made = grid(count, tuple(nodes.tolist()), bounds)
        listed[members], shards[members] = made.listed, made.shards
        if not made.layout.n_rows:
            continue
        needs = memory_levels(job, made.layout)
        least[np.ix_(members, np.flatnonzero(made.listed))] = np.minimum.reduceat(needs[-1], made.heads)
        pairs = _fitting(job, made, members, open_cells, needs)
        if not len(pairs.row):
            continue
        best, timed = _best_rows(job, made, pairs, len(nodes), prune)
        fitting, evaluated = fitting + len(pairs.row), evaluated + timed
        cells.append(pairs.cell(made, len(nodes))[best])
        layouts.append(pairs.take(best).layout(made))
    order = np.argsort(np.concatenate(cells)) if cells else np.zeros(0, dtype=np.int64)
    found = np.concatenate(cells)[order] if cells else order
    joined = Layouts.concat(layouts).take(order) if cells else Layouts.empty()
    return Winners(found, joined, least.ravel(), listed.ravel(), shards.ravel(), fitting, evaluated)


@record(frozen=True, eq=False)
class Pairs:
    """Layouts that fit on devices: device row, row of the grid, recompute level; by device, then by row."""

    device: Ints
    row: Ints
    level: Ints

    def take(self, index: Ints | Bools) -> Pairs:
        """Return pairs `index`."""
        return Pairs(self.device[index], self.row[index], self.level[index])

    def cell(self, made: Grid, n_nodes: int) -> Ints:
        """Position of each pair in the table of device rows x node counts."""
        return self.device * n_nodes + made.at[self.row]

    def layout(self, made: Grid) -> Layouts:
        """The layouts of the pairs."""
        return replace(
            made.layout.take(self.row), hardware=self.device, recompute=self.level.astype(np.float64)
        )


def _fitting(
    job: Job, made: Grid, members: Ints, open_cells: Bools, needs: tuple[Floats, Floats, Floats]
) -> Pairs:
    """All pairs of device and layout that fit, at the least recompute that does."""
    pinned = job.training.layout.recompute
    budgets = job.budget_gib[members]
    by_budget: dict[float, tuple[Ints, Ints]] = {}
    parts: list[Pairs] = []
    for device, budget in zip(members.tolist(), budgets.tolist(), strict=True):
        if budget not in by_budget:
            rows = np.flatnonzero(needs[2] <= budget)
            level = (needs[0][rows] > budget).astype(np.int64) + (needs[1][rows] > budget)
            by_budget[budget] = rows, level if pinned is None else np.full(len(rows), LEVELS[pinned])
        rows, level = by_budget[budget]
        if not open_cells[device].all():
            allowed = open_cells[device][made.at[rows]]
            rows, level = rows[allowed], level[allowed]
        parts.append(Pairs(np.full(len(rows), device, dtype=np.int64), rows, level))
    return Pairs(
        np.concatenate([part.device for part in parts]), np.concatenate([part.row for part in parts]),
        np.concatenate([part.level for part in parts]),
    )  # fmt: skip


def _best_rows(job: Job, made: Grid, pairs: Pairs, n_nodes: int, prune: bool) -> tuple[Ints, int]:
    """Position of the fastest pair of each cell, and the number of pairs that were timed.

    Ties go to the earlier layout (smaller tp, pp, micro-batch).
    """
    cell = pairs.cell(made, n_nodes)
    if not prune:
        return _first_least(_times(job, made, pairs), cell), len(cell)
    bound = lower_bounds(job, made, pairs) * _ROUNDING
    # One layout per cell and tensor degree: the limit is then near the optimum, whichever degree wins.
    promising = _first_least(bound, cell * 1024 + made.layout.tp[pairs.row].astype(np.int64))
    limit = np.full(int(cell[-1]) + 1, np.inf)
    np.fmin.at(limit, cell[promising], _times(job, made, pairs.take(promising)))
    left = np.flatnonzero(~(bound > limit[cell]))
    best = left[_first_least(_times(job, made, pairs.take(left)), cell[left])]
    return best, len(promising) + len(left)


def _first_least(value: Floats, cell: Ints) -> Ints:
    """Per cell (ascending) the position of the first least value."""
    heads = np.flatnonzero(np.r_[True, cell[1:] != cell[:-1]])
    least = np.fmin.reduceat(value, heads)
    reached = np.flatnonzero(value == np.repeat(least, np.diff(np.r_[heads, len(cell)])))
    return reached[np.r_[True, cell[reached][1:] != cell[reached][:-1]]]


def _times(job: Job, made: Grid, pairs: Pairs) -> Floats:
    """Step times in s, in chunks so that memory stays small."""
    parts = [
        step_of(job, pairs.take(np.arange(start, min(start + _CHUNK, len(pairs.row)))).layout(made)).total
        for start in range(0, len(pairs.row), _CHUNK)
    ]
    return np.concatenate(parts)


def lower_bounds(job: Job, made: Grid, pairs: Pairs) -> Floats:
    """Least time in s that each pair can take: its share of the model's work, with fill and drain of the pipeline."""
    layout, first = made.layout, made.first
    key = (pairs.device * len(first) + made.kind[pairs.row]) * 3 + pairs.level
    used = np.zeros(len(job.devices.count) * len(first) * 3, dtype=np.bool_)
    used[key] = True
    keys = np.flatnonzero(used)
    probes = Pairs(keys // (3 * len(first)), first[keys // 3 % len(first)], keys % 3)
    whole = np.empty(len(used))
    whole[keys] = _whole_model_s(job, probes.layout(made))
    fill = (layout.pp - 1.0) / layout.interleave * job.constants.get("pp.bubble_ratio", 0.0)
    result: Floats = ((layout.micro_batches + fill) / layout.pp)[pairs.row] * whole[key]
    return result


def _whole_model_s(job: Job, layout: Layouts) -> Floats:
    """Work of one micro-batch through the whole model on one tensor and context parallel group, s."""
    one = np.ones(layout.n_rows)
    # The fewest replicas that expert parallelism allows: every layout of this kind has a multiple of them.
    dp = layout.ep / np.gcd(layout.ep.astype(np.int64), layout.cp.astype(np.int64))
    nodes = np.maximum(layout.tp * layout.cp * dp / job.devices.count[layout.hardware], 1.0)
    alone = replace(layout, nodes=nodes, pp=one, dp=dp, zero=0.0 * one, micro_batches=one, interleave=one)
    # A batch of nothing: neither the roofline of the whole batch nor its loading counts here.
    small = replace(job, work=replace(job.work, global_batch=np.full(1, 1e-9)))
    parts = [
        step_of(small, alone.take(np.arange(start, min(start + _CHUNK, layout.n_rows)))).parts
        for start in range(0, layout.n_rows, _CHUNK)
    ]
    return np.concatenate([part["compute_s"] + part["memory_bound_s"] + part["tp_comm_s"] for part in parts])
