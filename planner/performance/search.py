"""The best parallel layout per (hardware type, node count): exhaustive within the bounds of `layouts.grid`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from catalogs.table import Coded, Table
from planner.performance import layouts as lay
from planner.performance.constants import Constants, load_constants
from planner.performance.core import evaluate, needed_gib
from planner.performance.device import Devices, build_devices
from planner.performance.interval import log_spread
from planner.performance.layouts import Bounds, Layouts
from planner.performance.memory import FULL, NONE, SELECTIVE, memory_gib
from planner.performance.spec import ModelSpec, TrainingSpec
from planner.performance.step import COMPONENTS, Step
from planner.performance.work import Floats, Work, build_work, is_sampled

RECOMPUTE_WORDS = ("none", "selective", "full")
_LEVELS = {"none": NONE, "selective": SELECTIVE, "full": FULL}
_CHUNK = 8192
# Device rows, positions in the list of combos, recompute levels.
_Batch = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
_HARDWARE_NUMBERS = (
    "accelerator_count", "accelerator_memory_gib", "memory_gib", "vcpus", "intra_node_gb_per_s", "internode_gbps",
    "memory_gb_per_s", "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops",
    "achievable_bf16_tflops", "link_gb_per_s", "pcie_gen",
)  # fmt: skip
_HARDWARE_WORDS = ("intra_node", "rdma", "generation", "trainable")


@dataclass(frozen=True)
class Job:
    """Everything that stays the same while layouts vary."""

    model: ModelSpec
    training: TrainingSpec
    work: Work
    devices: Devices
    constants: Constants
    sampled: bool


def build_job(
    model: ModelSpec, training: TrainingSpec, hardware: Table, constants: Constants | None = None
) -> Job:
    """Prepare one job on some hardware rows."""
    constants = constants or load_constants()
    devices = build_devices(hardware, training, model.family.value, constants)
    work = build_work(model, training)
    return Job(model, training, work, devices, constants, is_sampled(model))


def estimate_shapes(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    node_counts: Sequence[int],
    *,
    max_accelerators: int | None = None,
    constants: Constants | None = None,
) -> Table:
    """Find the fastest layout that fits for every hardware row and node count.

    Args:
        model: sizes of the model.
        training: batch, sequence length, precision, stack class and pinned parts of the layout.
        hardware: one row per instance type, columns as in `_HARDWARE_NUMBERS` and `_HARDWARE_WORDS`.
        node_counts: cluster sizes to try, in nodes.
        max_accelerators: larger clusters get the reason `too_many_accelerators`.
        constants: the model's constants, the bundled ones by default.

    Returns:
        One row per (hardware row, node count), hardware-major: `hardware_row`, `nodes`, `fits`, `reason`, the layout,
        step time in s with an 80 % interval, breakdown in s, memory in GiB.

    Raises:
        ValueError: when the model lacks a size that its family needs.
    """
    first, inverse = _distinct(hardware)
    job = build_job(model, training, hardware.take(first), constants)
    nodes = np.asarray(list(node_counts), dtype=np.int64)
    best = _search(job, nodes, max_accelerators)
    pair = (inverse[:, None] * len(nodes) + np.arange(len(nodes))[None, :]).ravel()
    table = best.take(pair)
    return table.with_columns(hardware_row=np.repeat(np.arange(hardware.n_rows, dtype=np.int64), len(nodes)))


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
    step = _evaluate(job, layout)
    need = _memory_at(job, layout)
    reasons = job.devices.reason[layout.hardware].astype(object)
    cross = (layout.nodes > 1) & ~np.isfinite(job.devices.node_rate[layout.hardware])
    reasons[(reasons == "") & cross] = "unknown_link"
    reasons[(reasons == "") & (need > available_gib(job)[layout.hardware])] = "out_of_memory"
    return _table(job, layout, step, need, reasons)


def available_gib(job: Job) -> Floats:
    """Memory a framework can allocate per accelerator, GiB."""
    return job.devices.memory_gib * job.constants["memory.usable_ratio"]


def _evaluate(job: Job, layout: Layouts) -> Step:
    """Step time of layouts whose `hardware` points into the job's devices."""
    devices = job.devices.take(layout.hardware)
    return evaluate(job.work, devices, layout, job.model.family.value, job.training.stack, job.constants)


def _memory_at(job: Job, layout: Layouts) -> Floats:
    """Needed memory at each row's own recompute level, GiB."""
    return needed_gib(job.work, layout, job.model.family.value, job.constants)


def _distinct(hardware: Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows that stand for all equal ones, and for each row the position of its representative."""
    columns = [hardware.number(name) for name in _HARDWARE_NUMBERS]
    for name in _HARDWARE_WORDS:
        column = hardware.column(name)
        codes = column.codes if isinstance(column, Coded) else np.asarray(column)
        columns.append(np.asarray(codes, dtype=np.float64))
    rows = np.stack([np.where(np.isnan(column), -1.0, column) for column in columns], axis=1)
    seen: dict[bytes, int] = {}
    first: list[int] = []
    inverse = np.empty(len(rows), dtype=np.int64)
    for position, row in enumerate(rows):
        key = row.tobytes()
        if key not in seen:
            seen[key] = len(first)
            first.append(position)
        inverse[position] = seen[key]
    return np.asarray(first, dtype=np.int64), inverse


def _search(job: Job, nodes: npt.NDArray[np.int64], max_accelerators: int | None) -> Table:
    """Best layout per (device row, node count), device-major."""
    n_devices, n_nodes = len(job.devices.count), len(nodes)
    reasons = np.full(n_devices * n_nodes, "", dtype=object)
    best = _Best(n_devices * n_nodes)
    bounds = Bounds(
        job.training.global_batch, job.training.sequence_length, int(job.model.layers or 1),
        int(job.model.experts or 1), job.sampled, True, job.training.layout,
    )  # fmt: skip
    pin = job.training.layout
    shard = (pin.tensor_parallel or 1) * (pin.pipeline_parallel or 1) * (pin.context_parallel or 1)
    counts = job.devices.count.astype(np.int64)
    for count in sorted(set(counts.tolist())):
        members = np.flatnonzero(counts == count)
        _block_reasons(job, members, nodes, max_accelerators, reasons)
        combos = lay.grid(int(count), tuple(int(n) for n in nodes), bounds)
        possible = (nodes * count) % shard == 0
        listed = np.bincount(combos[:, 0], minlength=n_nodes) > 0
        for device in members:
            at = reasons[device * n_nodes : (device + 1) * n_nodes]
            at[(at == "") & ~listed] = np.where(possible, "batch_not_divisible", "layout_not_possible")[
                (at == "") & ~listed
            ]
        _search_block(job, members, nodes, combos, reasons, best)
    return _assemble(job, nodes, reasons, best)


def _block_reasons(
    job: Job,
    members: npt.NDArray[np.int64],
    nodes: npt.NDArray[np.int64],
    max_accelerators: int | None,
    reasons: npt.NDArray[np.object_],
) -> None:
    """Reasons that need no layout: the device's own, an unknown network, a cluster over the limit."""
    for device in members:
        for position, number in enumerate(nodes):
            reason = job.devices.reason[device]
            if not reason and number > 1 and not job.devices.node_rate[device] > 0:
                reason = "unknown_link"
            if not reason and max_accelerators and number * job.devices.count[device] > max_accelerators:
                reason = "too_many_accelerators"
            reasons[device * len(nodes) + position] = reason


class _Best:
    """The best layout found so far per (device row, node count)."""

    def __init__(self, size: int) -> None:
        self.time = np.full(size, np.inf)
        self.layout = np.zeros((size, 9), dtype=np.int64)
        self.least_need = np.full(size, np.inf)


def _search_block(
    job: Job,
    members: npt.NDArray[np.int64],
    nodes: npt.NDArray[np.int64],
    combos: npt.NDArray[np.int64],
    reasons: npt.NDArray[np.object_],
    best: _Best,
) -> None:
    """Evaluate all combos on all members in chunks; memory first, time only for what fits."""
    if not len(combos):
        return
    budget = available_gib(job)
    needs, pinned = _needs(job, nodes, combos, float(job.devices.count[members[0]]))
    least = needs[2 if pinned is None else pinned]
    waiting: list[_Batch] = []
    for device in members:
        open_nodes = reasons[device * len(nodes) : (device + 1) * len(nodes)] == ""
        level = np.where(needs[0] <= budget[device], 0, np.where(needs[1] <= budget[device], 1, 2))
        if pinned is not None:
            level = np.full(level.shape, pinned)
        np.minimum.at(best.least_need, device * len(nodes) + combos[:, 0], least)
        picked = np.flatnonzero((least <= budget[device]) & open_nodes[combos[:, 0]])
        for start in range(0, len(picked), _CHUNK):
            part = picked[start : start + _CHUNK]
            waiting.append((np.full(len(part), device, dtype=np.int64), part, level[part]))
            # Several machines share one evaluation, bounded so that memory stays small.
            if sum(len(batch[1]) for batch in waiting) >= _CHUNK:
                _score(job, nodes, combos, waiting, best)
                waiting = []
    if waiting:
        _score(job, nodes, combos, waiting, best)


def _needs(
    job: Job, nodes: npt.NDArray[np.int64], combos: npt.NDArray[np.int64], count: float
) -> tuple[tuple[Floats, Floats, Floats], int | None]:
    """Memory of each combo at the three recompute levels (the same for all devices of one count)."""
    layout = _layout(job, nodes, combos, np.zeros(len(combos), dtype=np.int64), np.zeros(len(combos)), count)
    none, selective, full = (
        memory_gib(job.work, layout, level, job.sampled, job.constants) for level in (NONE, SELECTIVE, FULL)
    )
    pinned = job.training.layout.recompute
    return (none, selective, full), (_LEVELS[pinned] if pinned else None)


def _layout(
    job: Job,
    nodes: npt.NDArray[np.int64],
    combos: npt.NDArray[np.int64],
    device: npt.NDArray[np.int64],
    recompute: Floats,
    count: float,
) -> Layouts:
    at, tp, pp, cp, dp, zero, micro, number = (combos[:, k].astype(np.float64) for k in range(8))
    ep = lay.expert_parallel(int(job.model.experts or 1), dp, np.full(dp.shape, count))
    virtual = lay.interleave(job.training.stack, job.work.layers, pp)
    return Layouts(
        device, nodes[at.astype(np.int64)].astype(np.float64), tp, pp, cp, ep, dp, zero, micro, number,
        virtual, (tp > 1).astype(np.float64), recompute,
    )  # fmt: skip


def _score(
    job: Job,
    nodes: npt.NDArray[np.int64],
    combos: npt.NDArray[np.int64],
    batches: list[_Batch],
    best: _Best,
) -> None:
    """Keep the fastest combo per device and node count; ties go to the earlier one (smaller tp, pp, micro-batch)."""
    device, picked, level = (np.concatenate([batch[k] for batch in batches]) for k in range(3))
    chosen = combos[picked]
    count = float(job.devices.count[device[0]])
    layout = _layout(job, nodes, chosen, device, level.astype(np.float64), count)
    total = _evaluate(job, layout).total
    slot = device * len(nodes) + chosen[:, 0]
    order = np.lexsort((total, slot))
    heads = np.flatnonzero(np.r_[True, np.diff(slot[order]) != 0])
    winners = order[heads]
    winners = winners[total[winners] < best.time[slot[winners]]]
    best.time[slot[winners]] = total[winners]
    best.layout[slot[winners]] = np.column_stack([chosen[winners], level[winners]])


def _assemble(job: Job, nodes: npt.NDArray[np.int64], reasons: npt.NDArray[np.object_], best: _Best) -> Table:
    """Re-evaluate the winners once for the breakdown; rows without a layout get their reason."""
    found = np.isfinite(best.time)
    reasons[~found & (reasons == "")] = "out_of_memory"
    rows = np.repeat(np.arange(len(job.devices.count), dtype=np.int64), len(nodes))
    safe = best.layout.copy()
    safe[~found] = (0, 1, 1, 1, 1, 0, 1, 1, 0)
    safe[~found, 0] = np.tile(np.arange(len(nodes)), len(job.devices.count))[~found]
    layout = _layout(job, nodes, safe[:, :8], rows, safe[:, 8].astype(np.float64), 1.0)
    ep = lay.expert_parallel(int(job.model.experts or 1), layout.dp, job.devices.count[rows])
    layout = Layouts(**{**layout.__dict__, "ep": ep})
    step = _evaluate(job, layout)
    need = np.where(found, _memory_at(job, layout), best.least_need)
    return _table(job, layout, step, np.where(np.isfinite(need), need, np.nan), reasons)


def _table(job: Job, layout: Layouts, step: Step, need: Floats, reasons: npt.NDArray[np.object_]) -> Table:
    """Put an evaluation into the contract's columns; times of rows that cannot run are NaN."""
    fits = reasons == ""
    blank = np.where(fits, 1.0, np.nan)
    total = step.total * blank
    spread = log_spread(job.model.family.value, job.devices.spread[layout.hardware], job.constants)
    accelerators = layout.nodes * job.devices.count[layout.hardware]
    peak = job.devices.gemm_peak[layout.hardware]
    flops = job.work.flops_per_sample * job.training.global_batch
    columns: dict[str, Any] = {
        "hardware_row": layout.hardware,
        "nodes": layout.nodes.astype(np.int64),
        "fits": fits,
        "reason": Coded.encode(str(reason) for reason in reasons),
    }
    for name in ("tp", "pp", "cp", "ep", "dp", "zero", "micro_batch", "micro_batches"):
        column = np.where(fits, getattr(layout, name), 0).astype(np.int64)
        columns[{"zero": "zero_stage", "micro_batches": "grad_accum"}.get(name, name)] = column
    recompute = np.where(fits, layout.recompute, 0).astype(np.int32)
    columns |= {
        "recompute": Coded(recompute, RECOMPUTE_WORDS),
        "step_time_s": total,
        "step_time_low_s": np.minimum(
            np.maximum(total * np.exp(-spread), flops / (accelerators * peak)), total
        ),
        "step_time_high_s": total * np.exp(spread),
        "samples_per_s": job.training.global_batch / total,
        "mfu": flops / (total * accelerators * peak),
        "memory_needed_gib": need,
        "memory_available_gib": available_gib(job)[layout.hardware],
        "limited_by": _limits(step, fits),
    }
    columns |= {name: step.parts[name] * blank for name in COMPONENTS}
    checkpoint = (job.work.weight_bytes[0] + job.work.opt_bytes[0]) * job.work.trainable_params[0] / 1024.0**3
    columns["checkpoint_gib"] = np.full(layout.n_rows, checkpoint)
    return Table(columns, length=layout.n_rows)


def _limits(step: Step, fits: npt.NDArray[np.bool_]) -> Coded:
    """The largest part of the step in one word."""
    words = tuple(name.removesuffix("_s") for name in COMPONENTS)
    stacked = np.stack([np.broadcast_to(step.parts[name], fits.shape) for name in COMPONENTS])
    largest = np.argmax(np.where(np.isnan(stacked), -1.0, stacked), axis=0).astype(np.int32)
    return Coded(np.where(fits, largest, len(words)).astype(np.int32), (*words, ""))
