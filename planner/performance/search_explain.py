"""Why one layout wins on a machine and node count, and what every other one lost by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from catalogs.tables.table import Floats, Table
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import Grid, build_bounds, fits_node, grid, shard_axes
from planner.performance.measured_layouts import LAYOUT_ERROR, measured_words, nearby, with_measured
from planner.performance.memory import NONE, SELECTIVE
from planner.performance.memory_host import offloaded_bytes
from planner.performance.search_job import LEVELS, Job, build_job, memory_levels, step_of
from planner.performance.spec import COMPONENTS, ModelSpec, TrainingSpec
from planner.records import record

# What may move to host memory, by keys of `training.memory`, in the order in which it is tried.
_OFFLOADS: tuple[tuple[str, ...], ...] = (
    ("offload_optimizer",),
    ("offload_weights",),
    ("offload_optimizer", "offload_weights"),
)
_RECOMPUTE = ("no recompute", "selective recompute", "full recompute")
_PARTS = {
    "compute_s": "compute", "memory_bound_s": "memory traffic", "tp_comm_s": "tensor, context and expert traffic",
    "pp_comm_s": "pipeline traffic", "bubble_s": "pipeline bubble", "dp_comm_s": "gradient traffic and stragglers",
    "optimizer_s": "optimizer", "data_loading_s": "data loading", "fixed_s": "fixed cost",
    "other_models_s": "other models", "offload_s": "offload",
    "generation_s": "generation", "refit_s": "weights to the engine", "evaluation_s": "evaluation",
}  # fmt: skip
# Differences of a step below this share of it are not worth a word.
_WORTH_TELLING = 0.002
# Nor is memory for a gain below this share.
_WORTH_MEMORY = 0.01


@record(frozen=True)
class RankedLayout:
    """One layout beside the best.

    Attributes:
        words: the layout as text.
        step_time_s: seconds per optimizer step; `over_best_ratio`: relative to the best layout that fits, less 1.
        memory_gib: needed per accelerator, GiB.
        loses: parts of the step that take longer than the best layout's, largest first, with the seconds more.
    """

    words: str
    step_time_s: float
    over_best_ratio: float
    memory_gib: float
    loses: tuple[tuple[str, float], ...]


@record(frozen=True)
class LayoutReport:
    """What the search saw on one machine at one node count.

    Attributes:
        accelerators: of the whole cluster; `available_gib`: what a layout may need of each one's memory.
        shards: combinations of tensor, pipeline and context parallelism within the bounds.
        off_node: of these, tensor groups that do not fill nodes evenly; `off_cluster`: combinations that do not divide
            the accelerators; `off_batch`: those whose data-parallel degree does not divide the batch.
        layouts: layouts of the rest, with micro-batch, ZeRO stage, expert parallelism and interleaving.
        too_big: of these, out of memory at every recompute level allowed; `slower`: fit, but are not taken.
        best: the fastest that fits, None where nothing does.
        others: the best layout of each other combination of degrees, fastest first.
        blocked: of the layouts that would be faster but do not fit, the one that needs least memory, None without any.
        least: the layout that needs least memory, where nothing fits.
        offload_gib: what the most frugal layout would need with more in host memory, None where something fits;
            `host_gib`: what that takes of each node's memory; `offload`: keys of `training.memory` that put it there.
        measured: who measured the best layout as the fastest, where others are predicted to be a little faster.
        simpler: the layout with the fewest kinds of parallelism within the model's error, where the best has more.
    """

    accelerators: int
    available_gib: float
    shards: int
    off_node: int
    off_cluster: int
    off_batch: int
    layouts: int
    too_big: int
    slower: int
    best: RankedLayout | None
    others: tuple[RankedLayout, ...]
    blocked: RankedLayout | None
    least: RankedLayout | None
    offload_gib: float | None
    host_gib: float | None
    measured: str = ""
    simpler: RankedLayout | None = None
    offload: tuple[str, ...] = ()

    @property
    def offload_words(self) -> str:
        """What to state for more in host memory."""
        return f"training.memory: {{{', '.join(f'{key}: true' for key in self.offload)}}}"

    @property
    def simpler_words(self) -> str:
        """The simpler layout, what it costs and how it is planned; empty without any."""
        if self.simpler is None:
            return ""
        more = f"{self.simpler.over_best_ratio:+.1%}, within the model's error"
        return f"simpler: {self.simpler.words}: {more}; training.layout pins it"


def explain_layouts(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    nodes: int,
    *,
    row: int = 0,
    top: int = 3,
) -> LayoutReport:
    """Evaluate every layout of one machine at one node count and say what each lost by.

    Args:
        model: sizes of the model.
        training: batch, sequence length, precision, stack class and pinned parts of the layout.
        hardware: machines; `row` picks one that can run the job.
        nodes: node count.
        row: row of `hardware`.
        top: how many other layouts to return.

    Raises:
        ValueError: when the model lacks a size, or the machine has no peak, memory or network to judge by.
    """
    job = build_job(model, training, hardware.take(np.asarray([row])))
    reason = str(job.devices.reason[0]) or (
        "unknown_link" if nodes > 1 and not job.devices.node_rate[0] > 0 else ""
    )
    if reason:
        raise ValueError(f"layouts cannot be compared on this machine: {reason}")
    bounds = build_bounds(model, training, job.sampled)
    count = int(job.devices.count[0])
    layouts = grid((count,), (nodes,), bounds)
    shards = shard_axes(bounds)
    even = fits_node(shards[:, 0], count, bounds.pin.tensor_parallel is not None)
    divides = even & (nodes * count % shards.prod(axis=1) == 0)
    replicas = nodes * count // shards[divides].prod(axis=1)
    counted = (
        nodes * count, float(job.budget_gib[0]), len(shards), int((~even).sum()), int((even & ~divides).sum()),
        int((bounds.update_batch % replicas != 0).sum()),
    )  # fmt: skip
    return _report(job, layouts, counted, top)


def _report(job: Job, grid: Grid, counted: tuple[int, float, int, int, int, int], top: int) -> LayoutReport:
    """Rank all layouts of the grid at the least recompute that fits (the fullest where none does)."""
    if not grid.layout.n_rows:
        return LayoutReport(*counted, 0, 0, 0, None, (), None, None, None, None)
    needs = np.stack(memory_levels(job, grid.layout))
    pinned, budget = job.training.layout.recompute, counted[1]
    level = (needs[:2] > budget).sum(axis=0) if pinned is None else np.full(needs.shape[1], LEVELS[pinned])
    fits = needs[2] <= budget
    layout = replace(grid.layout, recompute=level.astype(np.float64))
    need = needs[level, np.arange(needs.shape[1])] if pinned is None else needs[0]
    table = _Ranking(job, layout, need)
    if not fits.any():
        least = int(np.argmin(needs[2]))
        ranked_layout = table.ranked(least, None)
        keys, offload, host = _offload(job, grid.layout, budget)
        return LayoutReport(
            *counted, len(fits), len(fits), 0, None, (), None, ranked_layout, offload, host, offload=keys
        )
    best, measured = _best(job, layout, np.where(fits, table.total, np.inf))
    order = [best, *(k for k in np.argsort(table.total, kind="stable").tolist() if fits[k] and k != best)]
    return LayoutReport(
        *counted, len(fits), int((~fits).sum()), int(fits.sum()) - 1, table.ranked(best, best),
        tuple(table.ranked(k, best) for k in _distinct(layout, order)[1 : 1 + top]),
        _blocked(job, grid, needs, budget, table, best), None, None, None, measured,
        None if measured else _simpler(layout, np.where(fits, table.total, np.inf), table, best),
    )  # fmt: skip


def _best(job: Job, layout: Layouts, times: Floats) -> tuple[int, str]:
    """The layout that the search takes, and who measured it where it is not the fastest by prediction."""
    best, cell = np.asarray([np.argmin(times)]), np.zeros(len(times), dtype=np.int64)
    known = nearby(job.model, job.training)
    clusters, codes = layout.nodes * job.devices.count[0], np.full(len(times), job.devices.measured[0])
    taken = int(with_measured(known, layout, clusters, codes, times, cell, best)[0])
    return taken, measured_words(known, layout, clusters, codes, taken) if times[taken] > times.min() else ""


def _simpler(layout: Layouts, times: Floats, table: _Ranking, best: int) -> RankedLayout | None:
    """The fastest of the layouts with the fewest kinds of parallelism that the model cannot tell from the best."""
    kinds = np.sum(
        [layout.tp > 1, layout.pp > 1, layout.cp > 1, layout.ep > 1, layout.interleave > 1], axis=0
    )
    near = np.where(times <= (1.0 + LAYOUT_ERROR) * times[best], kinds, np.inf)
    if near.min() >= kinds[best]:
        return None
    return table.ranked(int(np.argmin(np.where(near == near.min(), times, np.inf))), best)


def _distinct(layout: Layouts, order: list[int]) -> list[int]:
    """The first of each combination of degrees."""
    keys = np.stack([layout.tp, layout.pp, layout.cp, layout.ep, layout.zero], axis=1)
    first: dict[bytes, int] = {}
    for position in order:
        first.setdefault(keys[position].tobytes(), position)
    return list(first.values())


class _Ranking:
    """Times of all layouts of one machine and node count."""

    def __init__(self, job: Job, layout: Layouts, need: Floats) -> None:
        step = step_of(job, layout)
        self.layout, self.need, self.total = layout, need, step.total
        self._updates = job.training.updates
        parts = np.stack([np.broadcast_to(step.parts[name], step.total.shape) for name in COMPONENTS])
        # where no engine fits, generation takes for ever: nothing is compared with it
        self.parts = np.where(np.isfinite(parts), parts, 0.0)

    def ranked(self, at: int, best: int | None) -> RankedLayout:
        """Layout `at` beside layout `best`."""
        time = float(self.total[at])
        reference = at if best is None else best
        more = self.parts[:, at] - self.parts[:, reference]
        loses = [
            (_PARTS[COMPONENTS[k]], float(more[k]))
            for k in np.argsort(-more).tolist()
            if more[k] > _WORTH_TELLING * self.total[reference]
        ]
        over = time / float(self.total[reference]) - 1.0
        words = describe_layout(self.layout, at, self._updates)
        return RankedLayout(words, time, over, float(self.need[at]), tuple(loses))


def _blocked(
    job: Job, grid: Grid, needs: Floats, budget: float, table: _Ranking, best: int
) -> RankedLayout | None:
    """Of the layouts that memory rules out and that would be faster than the best, the one that needs least."""
    if job.training.layout.recompute is not None:
        return None
    ranked_layouts: list[RankedLayout] = []
    for level in (NONE, SELECTIVE):
        full = np.full(grid.layout.n_rows, float(level))
        ranking = _Ranking(job, replace(grid.layout, recompute=full), needs[level])
        faster = (needs[level] > budget) & (ranking.total < (1.0 - _WORTH_MEMORY) * table.total[best])
        if faster.any():
            report = ranking.ranked(int(np.argmin(np.where(faster, needs[level], np.inf))), None)
            ranked_layouts.append(
                replace(report, over_best_ratio=report.step_time_s / float(table.total[best]) - 1.0)
            )
    return min(ranked_layouts, key=lambda layout: layout.memory_gib, default=None)


def _offload(job: Job, layout: Layouts, budget: float) -> tuple[tuple[str, ...], float, float]:
    """The first of `_OFFLOADS` with which a layout fits (else the last), its least memory, and the host's, GiB."""
    for keys in _OFFLOADS:
        moved: dict[str, Any] = dict.fromkeys(keys, np.ones(1))
        footprint = replace(job.footprint, **moved)
        needs = memory_levels(replace(job, footprint=footprint), layout)[2]
        at = int(np.argmin(needs))
        per_node = float(job.devices.count[0]) * offloaded_bytes(footprint, layout)
        need, host = float(needs[at]), float(per_node[at]) / 1024.0**3
        if need <= budget:
            break
    return keys, need, host


def describe_layout(layout: Layouts, at: int, updates: int = 1) -> str:
    """One layout in words; degrees of 1 are left out, micro-batches are those of one of a step's `updates`."""
    degrees = {
        "tensor": layout.tp, "pipeline": layout.pp, "context": layout.cp, "expert": layout.ep, "data": layout.dp,
    }  # fmt: skip
    words = [f"{name} {int(value[at])}" for name, value in degrees.items() if value[at] > 1 or name == "data"]
    if layout.interleave[at] > 1:
        words.append(f"{int(layout.interleave[at])} virtual stages")
    words.append(f"micro-batch {int(layout.micro_batch[at])} x {int(layout.micro_batches[at]) // updates}")
    words.append(f"ZeRO {int(layout.zero[at])}")
    return ", ".join([*words, _RECOMPUTE[int(layout.recompute[at])]])


def report_lines(report: LayoutReport) -> list[str]:
    """The report as plain lines."""
    lost = {
        "do not fill nodes evenly": report.off_node, "do not divide the cluster": report.off_cluster,
        "do not divide the batch": report.off_batch,
    }  # fmt: skip
    ways = [f"{report.shards:,} splits of tensor x pipeline x context"]
    ways += [f"{count:,} {why}" for why, count in lost.items() if count]
    lines = [
        f"{report.accelerators} accelerators: {', '.join(ways)}; {report.layouts:,} layouts of the rest: "
        f"{report.too_big:,} out of memory, {report.slower:,} {'others fit' if report.measured else 'slower'}"
    ]
    if report.best is not None:
        best = report.best
        lines.append(f"best: {best.words}: {best.step_time_s:,.3g} s a step, "
                     f"{best.memory_gib:,.1f} of {report.available_gib:,.1f} GiB")  # fmt: skip
    if report.measured:
        lines.append(report.measured)
    for other in report.others:
        why = ", ".join(f"{name} +{seconds:,.2g} s" for name, seconds in other.loses[:3])
        lines.append(f"next: {other.words}: {other.over_best_ratio:+.1%}{f' ({why})' if why else ''}")
    if report.simpler is not None:
        lines.append(report.simpler_words)
    if report.blocked is not None:
        lines.append(f"out of memory: {report.blocked.words}: {report.blocked.over_best_ratio:+.1%}, "
                     f"but needs {report.blocked.memory_gib:,.1f} GiB")  # fmt: skip
    if report.least is not None:
        lines.append(f"least memory: {report.least.words}: {report.least.memory_gib:,.1f} of "
                     f"{report.available_gib:,.1f} GiB")  # fmt: skip
    if report.offload_gib is not None and report.host_gib is not None:
        fit = "fits" if report.offload_gib <= report.available_gib else "does not fit either"
        lines.append(
            f"with {report.offload_words}: {report.offload_gib:,.1f} GiB per accelerator ({fit}), "
            f"{report.host_gib:,.0f} GiB of each node's host memory; searched only where stated"
        )
    return lines
