"""Batched prediction of cases, shared by the benchmark and the fit.

Cases are grouped by (family, stack, precision), the values that the model treats as one per call. A layout that the row
does not give is searched with the planner's own search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.measured import PEAK_COLUMN, Case
from catalogs.tables.table import Floats, Ints, Table
from planner.performance.constants import Constants
from planner.performance.device import Devices, build_devices
from planner.performance.interval import log_spread
from planner.performance.layouts import Layouts, expert_parallel, interleave
from planner.performance.memory import needed_gib
from planner.performance.memory_host import with_offload
from planner.performance.memory_work import Footprint, build_footprint, stack_footprints
from planner.performance.search import estimate_shapes
from planner.performance.search_job import evaluate
from planner.performance.spec import TrainingSpec
from planner.performance.step import Step
from planner.performance.work import Work, stack_work

SAMPLED_BATCH_CAP = 256
TOKEN_CAP = 131072
RISKS = (0.5, 0.99)


@dataclass(frozen=True)
class Group:
    """Cases that share family, stack and precision, ready for evaluation with any constants."""

    index: Ints
    kind: str
    training: TrainingSpec
    work: Work
    footprint: Footprint
    hardware: Table
    device_row: Ints
    layout: Layouts
    to_metric: Floats


def settle(cases: Sequence[Case], constants: Constants) -> tuple[list[Case], Counter[str]]:
    """Fill in what rows leave open: layouts by search, batches by memory; count the rows where that fails."""
    settled: list[Case] = []
    dropped: Counter[str] = Counter()
    for case in cases:
        try:
            made = _searched(case, constants) if case.layout is None else _with_batch(case, constants)
        except (ValueError, OverflowError):
            made = "sizes that no layout fits"
        if isinstance(made, str):
            dropped[made] += 1
        else:
            settled.append(made)
    return settled, dropped


def hardware_table(cases: Sequence[Case]) -> Table:
    """The machines of the cases, one row each."""
    return Table({name: [case.hardware[name] for case in cases] for name in cases[0].hardware})


def _searched(case: Case, constants: Constants) -> Case | str:
    # The row ran: where a plan would call its memory too risky, less certain layouts count as well.
    for risk in (constants["memory.oom_limit"], *RISKS):
        accepted = constants.replace({"memory.oom_limit": risk})
        hardware = hardware_table([case])
        row = estimate_shapes(case.model, case.training, hardware, [case.nodes], constants=accepted).row(0)
        if row["reason"] != "out_of_memory":
            break
    if not row["fits"]:
        # A partition of nodes that does not divide the batch is still run in practice; take plain data parallel.
        if case.model.params > 2e9:
            return f"layout unknown: {row['reason']}"
        micro = max(1.0, case.training.global_batch / case.accelerators)
        layout = {"tp": 1, "pp": 1, "cp": 1, "dp": case.accelerators, "zero": 0, "micro_batch": micro,
                  "accumulation": 1.0, "recompute": 0, "sequence_parallel": False}  # fmt: skip
        return replace(case, layout=layout)
    words = {"none": 0, "selective": 1, "full": 2}
    layout = {"tp": row["tp"], "pp": row["pp"], "cp": row["cp"], "dp": row["dp"], "zero": row["zero_stage"],
              "micro_batch": float(row["micro_batch"]), "accumulation": float(row["grad_accum"]),
              "recompute": words[row["recompute"]], "sequence_parallel": row["tp"] > 1,
              "interleave": float(row["interleave"])}  # fmt: skip
    return replace(case, layout=layout, ep=row["ep"])


def _with_batch(case: Case, constants: Constants) -> Case | str:
    """A missing micro-batch becomes the largest power of two that fits, up to a cap."""
    layout = case.layout
    assert layout is not None
    if layout["micro_batch"] > 0:
        return case
    cap = (
        SAMPLED_BATCH_CAP
        if case.kind != "transformer"
        else max(1, TOKEN_CAP // case.training.sequence_length)
    )
    chosen = 1.0
    work = build_footprint(case.model, case.training)
    while chosen * 2 <= cap:
        trial = replace(case, layout={**layout, "micro_batch": chosen * 2, "accumulation": 1.0})
        need = needed_gib(work, layouts_of([trial]), constants)[0]
        if need > 0.9 * case.hardware["accelerator_memory_gib"]:
            break
        chosen *= 2
    accumulation = layout["accumulation"]
    batch = int(case.training.global_batch or chosen * layout["dp"] * accumulation)
    training = replace(case.training, global_batch=batch)
    return replace(
        case, training=training, layout={**layout, "micro_batch": chosen, "accumulation": accumulation}
    )


def layouts_of(cases: Sequence[Case]) -> Layouts:
    rows = [case.layout for case in cases]

    def column(name: str) -> Floats:
        return np.asarray([row[name] for row in rows if row is not None], dtype=np.float64)

    dp, micro = column("dp"), column("micro_batch")
    batch = np.asarray([case.training.global_batch for case in cases], dtype=np.float64)
    ep = np.asarray([float(case.ep) for case in cases])
    experts = np.asarray([case.model.experts or 1 for case in cases])
    count = np.asarray([case.hardware["accelerator_count"] for case in cases])
    guessed = np.asarray(
        [expert_parallel(int(e), d[None], k[None])[0] for e, d, k in zip(experts, dp, count, strict=True)]
    )
    ep = np.where((ep <= 1) & (experts > 1), guessed, np.where(experts > 1, ep, 1.0))
    pp = column("pp")
    layers = np.asarray([case.model.layers or 1 for case in cases], dtype=np.float64)
    # A searched layout has the virtual stages of the search; a row states none.
    searched = np.asarray([row.get("interleave", np.nan) for row in rows if row is not None])
    virtual = np.where(np.isnan(searched), interleave(cases[0].training.stack, layers, pp), searched)
    micro_batches = np.maximum(batch / np.maximum(dp * micro, 1e-9), 1.0)
    return Layouts(
        np.arange(len(cases)), np.asarray([float(case.nodes) for case in cases]), column("tp"), pp, column("cp"),
        ep, dp, column("zero"), micro, micro_batches, virtual, column("sequence_parallel"), column("recompute"),
    )  # fmt: skip


def _shared(case: Case) -> tuple[str, ...]:
    """What the model treats as one per call: family, software class, precision and kernels by generation."""
    training = case.training
    native = "native" if training.attention == "native" else ""
    return case.kind, training.stack, training.precision, native, training.expert_kernels


def build_groups(cases: Sequence[Case]) -> list[Group]:
    """Group settled cases for fast evaluation."""
    keys: dict[tuple[str, ...], list[int]] = {}
    for position, case in enumerate(cases):
        keys.setdefault(_shared(case), []).append(position)
    groups = []
    for (kind, *_), positions in sorted(keys.items()):
        chosen = [cases[p] for p in positions]
        work = stack_work([(case.model, case.training) for case in chosen])
        factor = np.asarray([metric_factor(case, work.flops_per_sample[n]) for n, case in enumerate(chosen)])
        distinct: dict[str, int] = {}
        device_row = [
            distinct.setdefault(repr(sorted(case.hardware.items())), len(distinct)) for case in chosen
        ]
        first = [device_row.index(number) for number in range(len(distinct))]
        hardware = hardware_table([chosen[k] for k in first])
        groups.append(
            Group(
                np.asarray(positions),
                kind,
                chosen[0].training,
                work,
                stack_footprints([(case.model, case.training) for case in chosen], work),
                hardware,
                np.asarray(device_row),
                layouts_of(chosen),
                factor,
            )
        )
    return groups


def metric_factor(case: Case, flops: float) -> float:
    """Factor from samples/s to the row's metric."""
    metric, sequence = case.measured.metric, case.training.sequence_length
    if metric == "samples_per_s":
        return 1.0
    if metric == "tokens_per_s":
        return float(sequence)
    if metric == "tokens_per_s_per_gpu":
        return sequence / case.accelerators
    rate = flops / case.accelerators
    if metric == "mfu":
        return rate / (float(case.hardware[PEAK_COLUMN[case.training.precision]]) * 1e12)
    if metric == "hw_tflops_per_gpu" and case.layout is not None and case.layout["recompute"] == 2:
        # Hardware FLOPs count the forward pass that full recompute repeats.
        rate *= 4.0 / 3.0
    return rate / 1e12


def throughput(groups: Sequence[Group], size: int, constants: Constants) -> Floats:
    """Predicted metric of each case, shape `(size,)`: what the fit asks for thousands of times."""
    value = np.full(size, np.nan)
    for group in groups:
        devices = build_devices(group.hardware, group.training, group.kind, constants).take(group.device_row)
        step = _step(group, devices, constants)
        value[group.index] = group.work.global_batch / step.total * group.to_metric
    return value


def _step(group: Group, devices: Devices, constants: Constants) -> Step:
    step = evaluate(group.work, devices, group.layout, group.kind, group.training.stack, constants)
    offloads = (group.footprint.offload_optimizer + group.footprint.offload_activations).any()
    return with_offload(group.footprint, devices, group.layout, step, constants) if offloads else step


def predict(groups: Sequence[Group], size: int, constants: Constants) -> dict[str, Any]:
    """Predicted metric, memory and interval half-width per case, each of shape `(size,)`."""
    value, memory, spread = np.full(size, np.nan), np.full(size, np.nan), np.full(size, np.nan)
    mfu = np.full(size, np.nan)
    for group in groups:
        devices = build_devices(group.hardware, group.training, group.kind, constants).take(group.device_row)
        step = _step(group, devices, constants)
        samples = group.work.global_batch / step.total
        value[group.index] = samples * group.to_metric
        memory[group.index] = needed_gib(group.footprint, group.layout, constants)
        accelerators = group.layout.nodes * devices.count
        spread[group.index] = log_spread(
            group.kind, group.training.stack, group.work, devices.spread, accelerators, constants
        )
        mfu[group.index] = (
            samples * group.work.flops_per_sample / (group.layout.nodes * devices.count * devices.gemm_peak)
        )
    return {"value": value, "memory_gib": memory, "spread": spread, "mfu": mfu}
