"""The fastest layout that fits, per (device row, node count): every layout of the grid is timed or ruled out.

Three steps, each for all machines at once:

1. memory of every layout at the three recompute levels; each layout takes the least recompute that fits;
2. a lower bound of the step: a pipeline of p stages cannot take less than 1/p of the whole model's work per
   micro-batch (work is conserved), nor fill and drain for free. The whole model is timed once per distinct
   (tp, cp, ep, micro-batch, recompute), without a pipeline and without data parallelism;
3. per cell, tp and pp the layout with the least bound is timed; layouts whose bound is above the best of these times
   are left out, the rest is timed.

Where the model cannot tell layouts apart, one that was measured as the fastest is taken (`measured_layouts`): those
are timed whatever their bound. Step 3 never drops the best layout as long as step 2 is a lower bound; tests compare
with the search without it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import Bounds, Grid, grid
from planner.performance.measured_layouts import nearby, preferred, with_measured
from planner.performance.search_job import (
    LEVELS,
    Job,
    Layer,
    generations_on,
    memory_levels,
    model_layer,
    place_of,
    training_step_of,
)
from planner.performance.search_timed import (
    ROUNDING,
    Pairs,
    Probes,
    changes,
    chunks,
    first_least,
    first_least_between,
    generate,
    most_s,
    steps_at,
    totals,
    train,
)
from planner.performance.step import Step
from planner.records import record


@record(frozen=True, eq=False)
class Winners:
    """The best layout per cell (device row x node count, device-major).

    Attributes:
        cells: cells that some layout fits, ascending, shape `(n_found,)`.
        layout: their best layouts, shape `(n_found,)`; `need`: the memory that these need, GiB, of the same shape.
        least_need: least memory of any layout at the fullest recompute allowed, GiB, NaN without any, per cell.
        listed: whether any layout divides cluster and batch, per cell; `shards`: cluster alone.
        fitting: layouts that fit, over all cells; `evaluated`: of these, whose time was worked out.
        step: the step of the best layouts; None without any.
    """

    cells: Ints
    layout: Layouts
    need: Floats
    least_need: Floats
    listed: Bools
    shards: Bools
    fitting: int
    evaluated: int
    step: Step | None = None


def find_best(job: Job, nodes: Ints, open_cells: Bools, bounds: Bounds, *, prune: bool = True) -> Winners:
    """Search all cells.

    Args:
        job: the job; one device row per distinct machine.
        nodes: node counts, shape `(n_nodes,)`.
        open_cells: cells worth searching, shape `(n_devices, n_nodes)`.
        bounds: what may vary.
        prune: rule layouts out by their lower bound; without it all are evaluated, with the same result.
    """
    active = np.flatnonzero(open_cells.any(axis=1))
    least = np.full(open_cells.shape, np.nan)
    listed, shards = np.zeros(least.shape, dtype=np.bool_), np.zeros(least.shape, dtype=np.bool_)
    if not len(active):
        none = np.zeros(0, dtype=np.int64)
        layout, need = Layouts.empty(), np.zeros(0)
        return Winners(none, layout, need, least.ravel(), listed.ravel(), shards.ravel(), 0, 0)
    sizes = job.devices.count[active].astype(np.int64)
    counts = sorted(set(sizes.tolist()))
    size = np.searchsorted(counts, sizes)
    layouts = grid(tuple(counts), tuple(nodes.tolist()), bounds)
    listed[active], shards[active] = layouts.listed[size], layouts.shards[size]
    needs = memory_levels(job, layouts.layout)
    of_size = np.full(layouts.listed.shape, np.nan)
    of_size[layouts.listed] = np.minimum.reduceat(needs[-1], layouts.heads) if len(layouts.heads) else np.nan
    least[active] = of_size[size]
    groups = _groups(job, layouts, active, size, open_cells, needs)
    fitting = sum(len(group.devices) * len(group.rows) for group in groups)
    every = Combined(groups)
    pairs, timed, probes = (
        _hopeful(job, layouts, every, open_cells.shape)
        if prune and groups
        else (every.pairs(every.all()), 0, None)
    )
    timed += len(pairs.row)
    steps = train(job, layouts, pairs, probes)
    pairs, steps = generate(job, layouts, pairs, steps, probes, open_cells.shape)
    cell = pairs.device * len(nodes) + layouts.at[pairs.row]
    best = np.sort(_chosen(job, layouts, pairs, cell, totals(steps)))
    rank = np.argsort(cell[best])
    chosen = pairs.take(best[rank])
    need = np.choose(chosen.level, [level[chosen.row] for level in needs])
    return Winners(
        cell[best[rank]], chosen.layout(layouts), need, least.ravel(), listed.ravel(), shards.ravel(), fitting,
        timed, steps_at(steps, best).take(rank) if steps else None,
    )  # fmt: skip


@record(frozen=True, eq=False)
class Group:
    """Devices for which the same layouts fit at the same recompute levels: rows of the grid and their levels."""

    devices: Ints
    rows: Ints
    level: Ints


def _chosen(job: Job, grid: Grid, pairs: Pairs, cell: Ints, times: Floats) -> Ints:
    """The position of each cell's best pair."""
    best = first_least(times, cell)
    known = nearby(job.model, job.training)
    if not known or not job.devices.measured[pairs.device].any():
        return best
    layout = pairs.layout(grid)
    clusters = layout.nodes * job.devices.count[pairs.device]
    codes = job.devices.measured[pairs.device]
    return with_measured(known, layout, clusters, codes, times, cell, best)


def _measured(job: Job, grid: Grid, group: Group) -> Bools:
    """Which layouts of a group were measured as the fastest elsewhere; shape `(n_devices, n_rows)`."""
    codes = job.devices.measured[group.devices]
    mask = np.zeros((len(codes), len(group.rows)), dtype=np.bool_)
    known = nearby(job.model, job.training) if codes.any() else []
    if known:
        layout = replace(grid.layout.take(group.rows), recompute=group.level.astype(np.float64))
        for row in np.flatnonzero(codes):
            clusters = layout.nodes * job.devices.count[group.devices[row]]
            mask[row] = preferred(known, layout, clusters, np.full(layout.n_rows, codes[row]))
    return mask


def _groups(
    job: Job, grid: Grid, active: Ints, size: Ints, open_cells: Bools, needs: tuple[Floats, Floats, Floats]
) -> list[Group]:
    """Group devices by node size, memory and open node counts; layouts that need too much memory are left out."""
    members: dict[tuple[int, float, bytes], list[int]] = {}
    for device, own, budget in zip(
        active.tolist(), size.tolist(), job.budget_gib[active].tolist(), strict=True
    ):
        members.setdefault((own, budget, open_cells[device].tobytes()), []).append(device)
    pinned = job.training.layout.recompute
    groups: list[Group] = []
    for (own, budget, _), devices in members.items():
        block = slice(int(grid.start[own]), int(grid.start[own + 1]))
        fits = (needs[2][block] <= budget) & open_cells[devices[0]][grid.at[block]]
        rows = np.flatnonzero(fits) + block.start
        if pinned is None:
            level = (needs[0][rows] > budget).astype(np.int64) + (needs[1][rows] > budget)
        else:
            level = np.full(len(rows), LEVELS[pinned], dtype=np.int64)
        if len(rows):
            groups.append(Group(np.asarray(devices, dtype=np.int64), rows, level))
    return groups


class Combined:
    """Every device of each group with every layout, by group, device and layout: positions of one long list."""

    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups
        self._widths = np.asarray([len(group.rows) for group in groups], dtype=np.int64)
        sizes = np.asarray([len(group.devices) for group in groups], dtype=np.int64) * self._widths
        self.starts = np.cumsum(sizes) - sizes
        self.size = int(sizes.sum())

    def all(self) -> Ints:
        """All positions."""
        return np.arange(self.size)

    def pairs(self, at: Ints) -> Pairs:
        """The pairs at some positions, ascending."""
        none = np.zeros(0, dtype=np.int64)
        edges = np.searchsorted(at, np.append(self.starts, self.size)).tolist()
        device, row, level = [none], [none], [none]
        for number, group in enumerate(self.groups):
            own = at[edges[number] : edges[number + 1]] - self.starts[number]
            of_device = own // self._widths[number]
            of_row = own - of_device * self._widths[number]
            device.append(group.devices[of_device])
            row.append(group.rows[of_row])
            level.append(group.level[of_row])
        return Pairs(np.concatenate(device), np.concatenate(row), np.concatenate(level))

    def first_least(self, bounds: list[Floats], family: Ints) -> Ints:
        """Where each device's first least bound of each family is."""
        heads = [np.zeros(0, dtype=np.int64)]
        for group, start, width in zip(self.groups, self.starts.tolist(), self._widths.tolist(), strict=True):
            firsts = start + np.arange(len(group.devices)) * width
            heads.append((firsts[:, None] + changes(family[group.rows])).ravel())
        return first_least_between(np.concatenate([bound.ravel() for bound in bounds]), np.concatenate(heads))


def _hopeful(job: Job, grid: Grid, every: Combined, shape: tuple[int, ...]) -> tuple[Pairs, int, Probes]:
    """The pairs that may be the fastest of their cell, how many layouts were timed to find them, and the probes."""
    bounds, probes = lower_bounds(job, grid, every.groups)
    first = every.pairs(every.first_least(bounds, grid.family))
    nodes = grid.layout.nodes[first.row]
    probes = replace(probes, generations=generations_on(job, first.device, nodes))
    cell = first.device * shape[1] + grid.at[first.row]
    steps = train(job, grid, first, probes)
    of_cell = most_s(job, grid, first, steps, probes.generations, cell, complete=False)
    limit = np.full(int(np.prod(shape)), np.inf)
    limit[: len(of_cell)] = of_cell
    limit = limit.reshape(shape)
    masks = [
        bound > limit[group.devices][:, grid.at[group.rows]]
        for group, bound in zip(every.groups, bounds, strict=True)
    ]
    if probes.generations is not None:  # steps that never end are all alike: the first is taken
        for mask, group in zip(masks, every.groups, strict=True):
            mask[:, changes(grid.at[group.rows])] = False
    if job.devices.measured.any() and nearby(job.model, job.training):
        masks = [mask & ~_measured(job, grid, group) for group, mask in zip(every.groups, masks, strict=True)]
    masks = [mask.ravel() for mask in masks]
    return every.pairs(np.flatnonzero(~np.concatenate(masks))), probes.number + len(first.row), probes


def lower_bounds(job: Job, grid: Grid, groups: list[Group]) -> tuple[list[Floats], Probes]:
    """Least step time in s of each group's layouts, shape `(n_devices, n_rows)`, and the models timed for it."""
    keys = [grid.kind[group.rows] * 3 + group.level for group in groups]
    used = [np.flatnonzero(np.bincount(key)) for key in keys]
    pairs = [
        (np.repeat(group.devices, len(key)), np.tile(key, len(group.devices)))
        for group, key in zip(groups, used, strict=True)
    ]
    device, key = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
    probes = Pairs(device, grid.first[key // 3], key % 3)
    seconds, layer = _whole_model(job, probes.layout(grid))
    at = np.zeros((len(job.devices.count), 3 * len(grid.first)), dtype=np.int64)
    at[device, key] = np.arange(len(key))
    layout = grid.layout
    fill = (layout.pp - 1.0) / layout.interleave * job.constants.get("pp.bubble_ratio", 0.0)
    share = (layout.micro_batches + fill) / layout.pp * ROUNDING
    bounds = [
        seconds[at[group.devices][:, own]] * share[group.rows]
        for group, own in zip(groups, keys, strict=True)
    ]
    return bounds, Probes(None if job.work.routed.any() else layer, at, len(key))


def _whole_model(job: Job, layout: Layouts) -> tuple[Floats, Layer]:
    """Work of one micro-batch through the whole model on one tensor and context parallel group, s, and its layers."""
    # The fewest replicas that expert parallelism allows: every layout of this kind has a multiple of them.
    experts = layout.ep.astype(np.int64)
    replicas = layout.ep / np.gcd(experts, layout.cp.astype(np.int64))
    seconds, layers = _with_replicas(job, layout, replicas)
    if job.training.layout.expert_parallel:
        # Pinned experts may be spread over tensor ranks instead, on fewer replicas: neither need be the quicker one.
        fewer = layout.ep / np.gcd(experts, (layout.cp * layout.tp).astype(np.int64))
        while (fewer < replicas).any():
            seconds = np.minimum(seconds, _with_replicas(job, layout, fewer)[0])
            fewer = np.minimum(fewer * 2.0, replicas)
    return seconds, layers


def _with_replicas(job: Job, layout: Layouts, dp: Floats) -> tuple[Floats, Layer]:
    """The same on so many replicas."""
    one = np.ones(layout.n_rows)
    nodes = np.maximum(layout.tp * layout.cp * dp / job.devices.count[layout.hardware], 1.0)
    alone = replace(layout, nodes=nodes, pp=one, dp=dp, zero=0.0 * one, micro_batches=one, interleave=one)
    # A batch of nothing: neither the roofline of the whole batch nor its loading counts here.
    small = replace(job, work=replace(job.work, global_batch=np.full(1, 1e-9)))
    times, layers = [np.zeros(0)], []
    for part in chunks(layout.n_rows):
        some = alone.take(part)
        place = place_of(job, some)
        layers.append(model_layer(job, some, place))
        step = training_step_of(small, some, layers[-1], place).parts
        times.append(step["compute_s"] + step["memory_bound_s"] + step["tp_comm_s"])
    return np.concatenate(times), Layer.join(layers)
