"""What a run's log says of its bottleneck, without a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.records import record
from planner.render.numbers import percent
from planner.render.presentable import Presentable
from planner.tracking.causes import busy_processor, find_causes
from planner.tracking.model import Cause, Speed, Split
from planner.tracking.row_order import intervals_of
from planner.tracking.speed import measure_speed
from planner.tracking.thresholds import thresholds
from planner.tracking.time_breakdown import split_time

if TYPE_CHECKING:
    from planner.tracking.model import Progress

# What tells causes apart, in the order in which it is worth logging.
_TELLING = {
    "loader_s": "loader_seconds", "gpu_busy": "gpu_busy", "network_s": "network_seconds",
    "checkpoint_s": "checkpoint_seconds", "clock_mhz": "sm_clock_mhz",
}  # fmt: skip


@record(frozen=True, eq=False)
class Diagnosis(Presentable):
    """The bottleneck of a run.

    Attributes:
        source, kind: of the log; steps: logged; hours: they took.
        bottleneck: a key of `Cause`, or `unknown`.
        sure: whether the log says so, or only hints at it.
        causes: all that were found, the first one first.
        speed, split: of the log.
        hosts: seconds per step of each.
        missing: columns that would tell more; notes: of the reading.
    """

    REPORT = "planner.tracking.diagnose_report:diagnosis_report"
    __repr__ = Presentable.__repr__

    source: str
    kind: str
    steps: int
    hours: float
    bottleneck: str
    sure: bool
    causes: tuple[Cause, ...]
    speed: Speed
    split: Split
    hosts: dict[str, float]
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def diagnose(progress: Progress) -> Diagnosis:
    """Find the bottleneck.

    Raises:
        InputError: the log has no speed in it.
    """
    intervals = intervals_of(progress)
    causes = find_causes(progress, intervals)
    if not causes or not causes[0].sure:
        causes = (*_compute(progress), *causes)
    first = causes[0] if causes else None
    missing = tuple(column for name, column in _TELLING.items() if name not in progress.measures)
    return Diagnosis(
        progress.source, progress.kind, int(intervals.steps.sum()), float(intervals.seconds.sum()) / 3600.0,
        "unknown" if first is None else first.key, first is not None and first.sure, causes,
        measure_speed(intervals, None), split_time(progress, intervals), dict(progress.hosts), missing, progress.notes,
    )  # fmt: skip


def _compute(progress: Progress) -> tuple[Cause, ...]:
    """Computing itself, where a processor works nearly all the time and steps do not wait for data."""
    busy = busy_processor(progress)
    loader, step = progress.measures.get("loader_s"), progress.measures.get("step_s")
    if busy is None:
        return ()
    limit = thresholds()["loader_share_max"].value
    if (
        loader is not None
        and step is not None
        and float(np.nanmean(loader)) > limit * float(np.nanmean(step))
    ):
        return ()
    word, share = busy
    remedy = (
        "it computes: a faster accelerator, a better layout, lower precision or a larger batch change it"
        if word == "GPUs"
        else "it computes on the CPUs: move the step to an accelerator, or take more and faster cores"
    )
    return (
        Cause(
            "compute",
            f"computing: the {word} are busy",
            f"{word} work {percent(share)} of the time",
            remedy,
            None,
            share,
        ),
    )
