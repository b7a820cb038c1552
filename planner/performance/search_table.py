"""Evaluated layouts as the columns of the `estimate_shapes` contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Coded, Floats, Ints, Table
from planner.performance.inference.beyond import prompt_ratio
from planner.performance.inference.cases import rate_spread
from planner.performance.interval import log_spread
from planner.performance.layouts import Layouts
from planner.performance.memory_host import HOST_PARTS, host_needs
from planner.performance.memory_risk import oom_probability
from planner.performance.post_training.adapters import adapter_spread
from planner.performance.post_training.reinforcement import generation_share
from planner.performance.search_job import Job, step_of
from planner.performance.spec import COMPONENTS
from planner.performance.step import Step

RECOMPUTE_WORDS = ("none", "selective", "full")
_LIMITS = (*(name.removesuffix("_s") for name in COMPONENTS), "")


def shape_table(
    job: Job, device: Ints, nodes: Ints, reason: Coded, picked: Ints, layout: Layouts, need: Floats,
    step: Step | None = None,
) -> Table:  # fmt: skip
    """One row per (device row, node count); whatever has no layout has its reason, zeros and NaN.

    Args:
        job: the job.
        device: device row per row, shape `(n_rows,)`.
        nodes: node count per row, shape `(n_rows,)`.
        reason: why a row cannot run, `""` where it can.
        picked: rows that can, ascending, shape `(n_found,)`.
        layout: their layouts, shape `(n_found,)`.
        need: memory needed per accelerator, GiB, shape `(n_rows,)`.
        step: of the layouts, where it is known.
    """
    size = len(device)
    step = step_of(job, layout) if step is None else step

    def numbers(values: Floats) -> Floats:
        column = np.full(size, np.nan)
        column[picked] = values
        return column

    fits = np.zeros(size, dtype=np.bool_)
    fits[picked] = True
    total = numbers(step.total)
    thin = np.hypot(job.devices.spread[device], adapter_spread(job.training))
    thin = np.hypot(thin, np.nan_to_num(numbers(generation_spread(job, layout.hardware, step))))
    accelerators = nodes * job.devices.count[device]
    spread = np.exp(log_spread(
        job.kind, job.training.stack, replace(job.work, unsure=job.unsure), thin, accelerators, job.constants,
        job.training.open_choices,
    ))  # fmt: skip
    peak = accelerators * job.devices.gemm_peak[device]
    flops = job.flops_per_sample * job.training.global_batch
    host = host_needs(job.footprint, layout, job.devices.count[layout.hardware], job.constants)
    columns: dict[str, Any] = {"hardware_row": device, "nodes": nodes, "fits": fits, "reason": reason}
    columns |= _layout_columns(size, picked, layout)
    needed = sum((host[name] for name in HOST_PARTS), np.zeros(len(picked))) + parked_gib(job, layout)
    columns |= {
        "step_time_s": total,
        "step_time_low_s": np.minimum(np.maximum(total / spread, flops / peak), total),
        "step_time_high_s": total * spread,
        "samples_per_s": job.training.global_batch / total,
        "mfu": flops / (total * peak),
        "memory_needed_gib": need,
        "memory_available_gib": job.available_gib[device],
        "oom_probability": oom_probability(need, job.available_gib[device], job.constants),
        "host_memory_needed_gib": numbers(needed),
        "limited_by": _limits(step, size, picked),
    }
    columns |= {name: numbers(step.parts[name]) for name in COMPONENTS}
    columns["checkpoint_gib"] = np.full(size, job.checkpoint_gib)
    return Table(columns, length=size)


def generation_spread(job: Job, hardware: Ints, step: Step) -> Floats:
    """What the interval of an engine's speed adds to that of steps that generate; 0 of others.

    Args:
        job: the job.
        hardware: device row of each step, shape `(n,)`.
        step: the steps.
    """
    rollouts = job.training.tuning.rollouts
    if rollouts is None:
        return np.zeros(len(hardware))
    width = rate_spread(rollouts.engine, job.devices, job.constants, ratio=prompt_ratio(rollouts))[hardware]
    result: Floats = generation_share(rollouts, step) * width
    return result


def parked_gib(job: Job, layout: Layouts) -> Floats:
    """Host memory per node that holds the trainer's weights and states while colocated engines generate, GiB."""
    rollouts = job.training.tuning.rollouts
    if rollouts is None or not rollouts.colocated:
        return np.zeros(layout.nodes.shape)
    held = job.work.params * job.footprint.weight_bytes + job.work.trainable_params * job.footprint.opt_bytes
    copies = job.work.learners + job.work.other_params * job.footprint.weight_bytes / (
        job.footprint.weight_bytes + job.footprint.opt_bytes
    )
    result: Floats = held * copies / layout.nodes / 1024.0**3
    return result


def _layout_columns(size: int, picked: Ints, layout: Layouts) -> dict[str, Any]:
    named = {
        "tp": layout.tp, "pp": layout.pp, "cp": layout.cp, "ep": layout.ep, "dp": layout.dp, "zero_stage": layout.zero,
        "micro_batch": layout.micro_batch, "grad_accum": layout.micro_batches, "interleave": layout.interleave,
        "sequence_parallel": layout.sequence_parallel, "recompute": layout.recompute,
    }  # fmt: skip
    columns: dict[str, Any] = {}
    for name, values in named.items():
        columns[name] = np.zeros(size, dtype=np.int64)
        columns[name][picked] = values
    columns["sequence_parallel"] = columns["sequence_parallel"] > 0
    columns["recompute"] = Coded(columns["recompute"].astype(np.int32), RECOMPUTE_WORDS)
    return columns


def _limits(step: Step, size: int, picked: Ints) -> Coded:
    """The largest part of the step in one word, `""` where there is none.

    Where the step waits for data, loading is the limit however long the rest takes: layouts that load equally long
    are equally fast, and what is largest in the one that was chosen tells nothing.
    """
    codes = np.full(size, len(COMPONENTS), dtype=np.int32)
    stacked = np.stack([np.broadcast_to(step.parts[name], picked.shape) for name in COMPONENTS])
    waits = np.broadcast_to(step.parts["data_loading_s"], picked.shape) > 0.0
    codes[picked] = np.where(waits, COMPONENTS.index("data_loading_s"), np.argmax(stacked, axis=0))
    return Coded(codes, _LIMITS)


def coded(
    words: npt.NDArray[np.object_], more: tuple[str, ...]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Codes of `words` and the list of words behind them, `more` appended where missing."""
    coded = Coded.encode(words.tolist())
    return coded.codes, tuple(dict.fromkeys((*coded.values, *more)))
