"""The best parallel layout per (hardware type, node count): exhaustive within the bounds of `layouts_grid`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Coded, Ints, Table
from planner.performance.constants import Constants
from planner.performance.inference.pool import estimate_rollouts
from planner.performance.inference.shapes import estimate_requests
from planner.performance.kernels import lacks_flash, mixed
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import build_bounds
from planner.performance.phases import join_phases, phase_jobs
from planner.performance.search_best import Winners, find_best
from planner.performance.search_job import Job, build_job, distinct_devices, need_of
from planner.performance.search_table import coded, shape_table
from planner.performance.spec import ModelSpec, TrainingSpec

_OWN_REASONS = (
    "", "unknown_link", "too_many_accelerators", "layout_not_possible", "batch_not_divisible", "out_of_memory",
)  # fmt: skip


def estimate_shapes(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    node_counts: Sequence[int],
    *,
    max_accelerators: int | None = None,
    constants: Constants | None = None,
    prune: bool = True,
) -> Table:
    """Find the fastest layout that fits for every hardware row and node count.

    Args:
        model: sizes of the model.
        training: batch, sequence length, precision, stack class and pinned parts of the layout.
        hardware: one row per instance type with the columns that `build_devices` reads.
        node_counts: cluster sizes to try, in nodes.
        max_accelerators: larger clusters get the reason `too_many_accelerators`.
        constants: the model's constants, the bundled ones by default.
        prune: skip layouts that a lower bound rules out; the result is the same without (a test says so).

    Returns:
        One row per (hardware row, node count), hardware-major: `hardware_row`, `nodes`, `fits`, `reason`, the layout,
        step time in s with an 80 % interval, breakdown in s, memory in GiB.

    Raises:
        ValueError: when the model lacks a size that its family needs.
    """
    if training.tuning.requests is not None:
        return estimate_requests(model, training, hardware, node_counts, max_accelerators, constants)
    rollouts = training.tuning.rollouts
    if rollouts is not None and rollouts.pool == "rollouts":
        return estimate_rollouts(model, training, hardware, node_counts, max_accelerators, constants)
    again = partial(
        estimate_shapes,
        node_counts=node_counts,
        max_accelerators=max_accelerators,
        constants=constants,
        prune=prune,
    )
    if training.phases:
        return join_phases(training, [again(*job, hardware) for job in phase_jobs(model, training)])
    old = lacks_flash(hardware)
    if mixed(training, old):
        parts = [np.flatnonzero(old), np.flatnonzero(~old)]
        tables = [again(model, training, hardware.take(rows)) for rows in parts]
        return _in_order(tables, parts, len(node_counts))
    whole = build_job(model, training, hardware, constants)
    first, inverse = distinct_devices(
        (whole.devices, *whole.beside), bool(training.decode_samples_per_s_per_core)
    )
    job = whole.take(first)
    nodes = np.asarray(list(node_counts), dtype=np.int64)
    table = search_job(job, nodes, max_accelerators, prune=prune)[0]
    if training.tuning.rollouts is not None:
        table = _without_engine(table)
    pair = (inverse[:, None] * len(nodes) + np.arange(len(nodes))[None, :]).ravel()
    rows = np.repeat(np.arange(hardware.n_rows, dtype=np.int64), len(nodes))
    return table.take(pair).with_columns(hardware_row=rows)


def _in_order(tables: Sequence[Table], parts: Sequence[Ints], counts: int) -> Table:
    """Join tables of `estimate_shapes` that were made for `parts` of the hardware rows, in the order of all rows."""
    rows = np.concatenate(parts)
    position = np.argsort(rows, kind="stable")
    order = (position[:, None] * counts + np.arange(counts)[None, :]).ravel()
    return Table.concat(tables).take(order).with_columns(hardware_row=np.repeat(np.sort(rows), counts))


def estimate_layouts(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    layout: Layouts,
    *,
    constants: Constants | None = None,
) -> Table:
    """Estimate given layouts (row by row, `layout.hardware` points into `hardware`); nothing is searched.

    Returns:
        The columns of `estimate_shapes`, one row per layout; `fits` and `reason` tell whether it can run.
    """
    job = build_job(model, training, hardware, constants)
    device = layout.hardware
    need = need_of(job, layout)
    codes, words = coded(job.devices.reason, _OWN_REASONS)
    codes = codes[device]
    _mark(codes, words, "unknown_link", (layout.nodes > 1) & ~(job.devices.node_rate[device] > 0))
    _mark(codes, words, "out_of_memory", need > job.budget_gib[device])
    found = np.flatnonzero(codes == words.index(""))
    nodes = layout.nodes.astype(np.int64)
    return shape_table(job, device, nodes, Coded(codes, words), found, layout.take(found), need)


# Columns that are infinite where no engine generates; of clusters that cannot run they are unknown.
_ENDLESS = ("step_time_s", "step_time_low_s", "step_time_high_s", "samples_per_s", "mfu", "generation_s")


def _without_engine(table: Table) -> Table:
    """Clusters that train the model but hold no engine that generates run out of memory there."""
    none = np.isinf(table["step_time_s"])
    if not none.any():
        return table
    codes, words = coded(np.asarray(table["reason"], dtype=np.object_), _OWN_REASONS)
    _mark(codes, words, "out_of_memory", none)
    times = {name: np.where(none, np.nan, table[name]) for name in _ENDLESS}
    return table.with_columns(fits=np.asarray(table["fits"]) & ~none, reason=Coded(codes, words), **times)


def _mark(codes: npt.NDArray[np.int32], words: tuple[str, ...], reason: str, where: Bools) -> None:
    """Give `reason` to the rows of `where` that have none yet."""
    codes[where & (codes == words.index(""))] = words.index(reason)


def search_job(
    job: Job, nodes: Ints, max_accelerators: int | None = None, *, prune: bool = True
) -> tuple[Table, Winners]:
    """Best layout per (device row, node count), device-major, and how it was found."""
    size = (len(job.devices.count), len(nodes))
    device = np.repeat(np.arange(size[0], dtype=np.int64), size[1])
    number = np.tile(nodes, size[0])
    codes, words = coded(job.devices.reason, _OWN_REASONS)
    codes = codes[device]
    _mark(codes, words, "unknown_link", (number > 1) & ~(job.devices.node_rate[device] > 0))
    if max_accelerators:
        _mark(codes, words, "too_many_accelerators", number * job.devices.count[device] > max_accelerators)
    open_cells = (codes == words.index("")).reshape(size)
    bounds = build_bounds(job.model, job.training, job.sampled)
    best = find_best(job, nodes, open_cells, bounds, prune=prune)
    _mark(codes, words, "layout_not_possible", ~best.shards)
    _mark(codes, words, "batch_not_divisible", ~best.listed)
    need = best.least_need
    unfit = codes == words.index("")
    unfit[best.cells] = False
    codes[unfit] = words.index("out_of_memory")
    need[best.cells] = best.need
    reason = Coded(codes, words)
    return shape_table(job, device, number, reason, best.cells, best.layout, need, best.step), best
