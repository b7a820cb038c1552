"""Parts of an estimate that the search does not return: memory by kind, data loading, the host, learned factors."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.estimation.values import Host, Loading, Memory
from planner.performance.inference.beyond import prompt_doubts
from planner.performance.interval import doubts
from planner.performance.layouts import explicit
from planner.performance.memory import needed_parts
from planner.performance.search_explain import LayoutReport, explain_layouts
from planner.performance.search_job import build_job
from planner.performance.search_table import generation_spread
from planner.performance.spec import COMPONENTS
from planner.performance.step import Step, learned_ratio, loading_s

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.asked.model import Asked
    from planner.performance.layouts import Layouts
    from planner.performance.search_job import Job
    from planner.performance.spec import TrainingSpec

_LEVELS = {"none": 0, "selective": 1, "full": 2}


def _layout(asked: Asked, training: TrainingSpec, hardware: Table, row: dict[str, Any]) -> Layouts:
    """The layout of a row of `estimate_shapes`, as the performance model takes it."""
    model = asked.job.model
    count = max(1.0, float(np.floor(hardware["accelerator_count"][0])))
    chosen = {
        "nodes": row["nodes"], "tp": row["tp"], "pp": row["pp"], "cp": row["cp"], "zero": row["zero_stage"],
        "micro_batch": row["micro_batch"], "recompute": _LEVELS[row["recompute"]], "ep": row["ep"],
        "interleave": row["interleave"], "sequence_parallel": int(row["sequence_parallel"]),
    }  # fmt: skip
    return explicit(count, training, int(model.layers or 1), int(model.experts or 1), [chosen])


class Built:
    """What the performance model makes of a job on one machine: once for all parts of an estimate that ask for it."""

    def __init__(self, asked: Asked, training: TrainingSpec, hardware: Table) -> None:
        """Take the job, as it is told, and the machine, one row."""
        self.asked, self.training, self.hardware = asked, training, hardware

    @cached_property
    def job(self) -> Job:
        """The job; see `build_job`."""
        return build_job(self.asked.job.model, self.training, self.hardware)


def loading_of(built: Built, row: dict[str, Any]) -> Loading:
    """Data loading of one step: its time if nothing hid it, its share of the step, and how busy accelerators stay."""
    training = built.training
    if not training.bytes_per_sample or training.tuning.requests is not None:
        return Loading(None, None, None)
    job = built.job
    layout = _layout(built.asked, training, built.hardware, row)
    seconds = float(loading_s(job.work, job.devices.take(layout.hardware), layout, job.constants)[0])
    if not np.isfinite(seconds):
        return Loading(None, None, None)
    busy = 1.0 - row["data_loading_s"] / row["step_time_s"]
    return Loading(seconds, seconds / row["step_time_s"], busy)


def memory_of(built: Built, row: dict[str, Any]) -> Memory:
    """Needed and usable memory per accelerator, by kind where the model gives it."""
    if built.training.tuning.requests is not None:
        need, has = row["memory_needed_gib"], row["memory_available_gib"]
        return Memory(need, has, has, {}, None)
    job = built.job
    parts: dict[str, float] = {}
    if not row["reason"]:
        layout = _layout(built.asked, built.training, built.hardware, row)
        needed = needed_parts(job.footprint, layout, job.constants)
        parts = {name.removesuffix("_gib"): float(value[0]) for name, value in needed.items()}
    risk = _known(row["oom_probability"])
    return Memory(
        row["memory_needed_gib"], row["memory_available_gib"], float(job.budget_gib[0]), parts, risk
    )


def others_of(asked: Asked, training: TrainingSpec, hardware: Table, nodes: int) -> LayoutReport | None:
    """What the other layouts lost by; None where nothing can be compared on this machine."""
    if training.tuning.requests is not None:
        return None
    try:
        return explain_layouts(asked.job.model, training, hardware, nodes)
    except ValueError:  # no peak, memory or network to judge by: the estimate's own reason says so
        return None


def host_of(asked: Asked, hardware: Table, nodes: int, row: dict[str, Any]) -> Host:
    """What a node must hold besides the accelerators: its part of a checkpoint, and the data set where it is staged."""
    job = asked.job
    checkpoint = (job.checkpoint_gib or row["checkpoint_gib"]) / nodes
    return Host(
        checkpoint_gib=float(checkpoint),
        memory_gib=_known(hardware["memory_gib"][0]),
        nvme_gib=_known(hardware["local_nvme_gib"][0]),
        data_gib=job.data_gib if job.stage_to_nodes else None,
        needed_gib=_known(row["host_memory_needed_gib"]),
    )


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def doubts_of(built: Built, nodes: int, row: dict[str, Any]) -> tuple[str, ...]:
    """Why the prediction is uncertain, in words; empty where it is as good as most, or rests on the user's own runs.

    Args:
        built: the job on its machine.
        nodes: machines.
        row: its row of `estimate_shapes`.
    """
    calibration, training = built.asked.calibration, built.training
    if calibration is not None and calibration.describe(str(built.hardware["generation"][0])):
        return ()
    prompts = prompt_doubts(training.tuning.generates)
    if training.tuning.requests is not None:
        return prompts
    job = built.job
    accelerators = nodes * float(job.devices.count[0])
    thin = float(job.devices.spread[0])
    parts = {name: np.asarray([row[name]]) for name in COMPONENTS}
    step = Step(np.asarray([row["step_time_s"]]), parts)
    generation = float(generation_spread(job, np.zeros(1, dtype=np.int64), step)[0])
    wide = doubts(
        job.kind,
        training.stack,
        job.work,
        thin,
        accelerators,
        job.constants,
        training.open_choices,
        generation,
    )
    return (*wide, *prompts)


def learned_factor(built: Built, nodes: int) -> float:
    """The learned factors on the step time, of this machine, of adapters and of an accelerator alone; 1 = none."""
    return float(learned_ratio(built.job.work, built.job.devices, np.asarray([float(nodes)]))[0])
