"""Parts of an estimate that the search does not return: memory by kind, data loading, the host, learned factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.performance.layouts import explicit
from planner.performance.memory import needed_parts
from planner.performance.search_explain import LayoutReport, explain_layouts
from planner.performance.search_job import build_job
from planner.performance.step import loading_s
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from catalogs.table import Table
    from planner.context import Context
    from planner.performance.layouts import Layouts
    from planner.performance.spec import TrainingSpec

# A loader that keeps pace hides behind the step; beyond these marks it is felt (MLPerf Storage asks 70 to 90 %).
MAX_LOADING_RATIO = 0.2
MIN_BUSY_RATIO = 0.7
_LEVELS = {"none": 0, "selective": 1, "full": 2}


@record(frozen=True)
class Loading:
    """Reading and decoding one batch against the step; `seconds` None where the size of a sample is unknown."""

    seconds: float | None
    share_ratio: float | None
    busy_ratio: float | None

    @property
    def passes(self) -> bool | None:
        """Whether the rule "loading below 20 % of the step, accelerators busy above 70 %" holds; None unknown."""
        if self.share_ratio is None or self.busy_ratio is None:
            return None
        return self.share_ratio < MAX_LOADING_RATIO and self.busy_ratio > MIN_BUSY_RATIO


@record(frozen=True)
class Memory:
    """Memory of the fullest accelerator in GiB.

    Attributes:
        needed_gib: by the layout, or by the most frugal one where none fits.
        usable_gib: what a framework can allocate.
        allowed_gib: the greatest predicted need that a plan may have: the prediction is uncertain, so it is less.
        parts: by name; empty where nothing fits.
        oom_ratio: probability of running out of memory; None unknown.
    """

    needed_gib: float
    usable_gib: float
    allowed_gib: float
    parts: Mapping[str, float]
    oom_ratio: float | None

    @property
    def free_gib(self) -> float:
        """What is left of the usable memory; negative where it does not fit."""
        return self.usable_gib - self.needed_gib


@record(frozen=True)
class Host:
    """What the host needs and has, GiB per node; None unknown."""

    checkpoint_gib: float
    memory_gib: float | None
    nvme_gib: float | None
    data_gib: float | None


def _layout(context: Context, training: TrainingSpec, hardware: Table, row: dict[str, Any]) -> Layouts:
    """The layout of a row of `estimate_shapes`, as the performance model takes it."""
    model = context.job.model
    count = max(1.0, float(np.floor(hardware["accelerator_count"][0])))
    chosen = {
        "nodes": row["nodes"], "tp": row["tp"], "pp": row["pp"], "cp": row["cp"], "zero": row["zero_stage"],
        "micro_batch": row["micro_batch"], "recompute": _LEVELS[row["recompute"]], "ep": row["ep"],
        "interleave": row["interleave"], "sequence_parallel": int(row["sequence_parallel"]),
    }  # fmt: skip
    return explicit(count, training, int(model.layers or 1), int(model.experts or 1), [chosen])


def loading_of(context: Context, training: TrainingSpec, hardware: Table, row: dict[str, Any]) -> Loading:
    """Data loading of one step: its time if nothing hid it, its share of the step, and how busy accelerators stay."""
    if not training.bytes_per_sample:
        return Loading(None, None, None)
    job = build_job(context.job.model, training, hardware)
    layout = _layout(context, training, hardware, row)
    seconds = float(loading_s(job.work, job.devices.take(layout.hardware), layout, job.constants)[0])
    if not np.isfinite(seconds):
        return Loading(None, None, None)
    busy = 1.0 - row["data_loading_s"] / row["step_time_s"]
    return Loading(seconds, seconds / row["step_time_s"], busy)


def memory_of(context: Context, training: TrainingSpec, hardware: Table, row: dict[str, Any]) -> Memory:
    """Needed and usable memory per accelerator, by kind where the model tells."""
    job = build_job(context.job.model, training, hardware)
    parts: dict[str, float] = {}
    if not row["reason"]:
        found = needed_parts(job.footprint, _layout(context, training, hardware, row), job.constants)
        parts = {name.removesuffix("_gib"): float(value[0]) for name, value in found.items()}
    risk = _known(row["oom_probability"])
    return Memory(
        row["memory_needed_gib"], row["memory_available_gib"], float(job.budget_gib[0]), parts, risk
    )


def others_of(context: Context, training: TrainingSpec, hardware: Table, nodes: int) -> LayoutReport | None:
    """What the other layouts lost by; None where nothing can be compared on this machine."""
    try:
        return explain_layouts(context.job.model, training, hardware, nodes)
    except ValueError:  # no peak, memory or network to judge by: the estimate's own reason says so
        return None


def host_of(context: Context, hardware: Table, nodes: int, row: dict[str, Any]) -> Host:
    """What a node must hold besides the accelerators: its part of a checkpoint, and the data set where it is staged."""
    job = context.job
    checkpoint = (job.checkpoint_gib or row["checkpoint_gib"]) / nodes
    return Host(
        checkpoint_gib=float(checkpoint),
        memory_gib=_known(hardware["memory_gib"][0]),
        nvme_gib=_known(hardware["local_nvme_gib"][0]),
        data_gib=job.data_gib if job.stage_to_nodes else None,
    )


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def learned_factor(context: Context, training: TrainingSpec, hardware: Table) -> float:
    """The learned factor on the step time that the performance model applies to this machine; 1 = none."""
    return float(build_job(context.job.model, training, hardware).devices.multiplier[0])
