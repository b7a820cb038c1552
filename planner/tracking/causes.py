"""Why a run is slow: what its log shows, each against its threshold, the largest loss first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from planner.calibration.steps import warm_up
from planner.render.numbers import percent
from planner.render.units import seconds as seconds_words
from planner.tracking.model import Cause
from planner.tracking.thresholds import thresholds
from planner.tracking.time_breakdown import slow_steps

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.tracking.model import Intervals, Progress

# Assumed, all of them: where the table of thresholds says nothing.
NETWORK_RATIO = 0.3  # of the step, where no plan says what to expect
NETWORK_MARGIN = 0.1  # above the share that the model predicts
CHECKPOINT_RATIO = 0.1  # of the time
CLOCK_RATIO = 0.92  # of the highest clock seen
THROTTLED_RATIO = 0.1  # of the time
STRAGGLER_RATIO = 1.15  # slowest host over the median one
DRIFT_RATIO = 1.15  # last third of the steps over the first
BUSY_RATIO = 0.9  # a processor that works this much limits the step
_FEW_ROWS = 12


def find_causes(
    progress: Progress, intervals: Intervals, network_ratio: float | None = None
) -> tuple[Cause, ...]:
    """Causes that the log shows, the one that loses most time first; those it only hints at last.

    Args:
        progress: the log; its last 15 minutes count (the threshold's own span), at least a dozen rows.
        intervals: of the log.
        network_ratio: share of the step that the model gives to communication; None: unknown.
    """
    seen = _Seen(progress, intervals)
    causes = [
        *_loader(seen), *_network(seen, network_ratio), *_throttling(seen), *_checkpoints(seen), *_stragglers(progress),
        *_drift(seen),
    ]  # fmt: skip
    if not causes or all(not cause.sure for cause in causes):
        causes += _idle(seen)
    return tuple(sorted(causes, key=lambda cause: (not cause.sure, -(cause.share or 0.0))))


class _Seen:
    """Figures of the rows that count."""

    def __init__(self, progress: Progress, intervals: Intervals) -> None:
        self.progress, self.intervals = progress, intervals
        span = 60.0 * thresholds()["gpu_busy_min"].for_minutes
        late = progress.seconds >= progress.seconds[-1] - span
        late[-_FEW_ROWS:] = True
        self.late = late
        measured_step_s = self.mean("step_s")
        self.step_s = intervals.step_s if measured_step_s is None else measured_step_s

    def values(self, name: str) -> Floats:
        """Known figures of a measure."""
        measure = self.progress.measures.get(name)
        return np.empty(0) if measure is None else measure[self.late][np.isfinite(measure[self.late])]

    def mean(self, name: str) -> float | None:
        """Their mean, None where there is none."""
        figures = self.values(name)
        return float(figures.mean()) if len(figures) else None


def _loader(seen: _Seen) -> Iterator[Cause]:
    waits, limit = seen.mean("loader_s"), thresholds()["loader_share_max"].value
    if waits is None or waits <= limit * seen.step_s:
        return
    share = min(waits / seen.step_s, 1.0)
    yield Cause(
        "loader", "the data loader",
        f"steps wait {seconds_words(waits)} of {seconds_words(seen.step_s)} for data: {percent(share, 0)} of the step "
        f"(limit {percent(limit, 0)})",
        "more loader workers and prefetch, data staged on local NVMe, or samples decoded beforehand",
        share, share, limit,
    )  # fmt: skip


def _network(seen: _Seen, model_ratio: float | None) -> Iterator[Cause]:
    waits = seen.mean("network_s")
    limit = NETWORK_RATIO if model_ratio is None else model_ratio + NETWORK_MARGIN
    if waits is None or waits <= limit * seen.step_s:
        return
    share = min(waits / seen.step_s, 1.0)
    against = f"limit {percent(limit)}" if model_ratio is None else f"the model has {percent(model_ratio)}"
    yield Cause(
        "network", "the network",
        f"communication that nothing hides takes {percent(share)} of the step ({against})",
        "check that the fast fabric is in use (NCCL_DEBUG=INFO), nodes are placed together, and gradients overlap",
        max(share - (model_ratio or 0.0), 0.0), share, limit,
    )  # fmt: skip


def _throttling(seen: _Seen) -> Iterator[Cause]:
    slowed, clock = seen.mean("throttled"), seen.progress.measures.get("clock_mhz")
    if slowed is not None and slowed > THROTTLED_RATIO:
        yield Cause(
            "throttling", "throttled GPUs", f"GPUs are slowed for heat or power {percent(slowed)} of the time",
            "check cooling, power caps and the host; drain the node if it stays", None, slowed, THROTTLED_RATIO,
        )  # fmt: skip
        return
    if clock is None or not np.isfinite(clock).any():
        return
    top, now = float(np.nanpercentile(clock, 98)), seen.mean("clock_mhz")
    if now is not None and top > 0 and now < CLOCK_RATIO * top:
        yield Cause(
            "throttling", "throttled GPUs", f"the GPUs' clock is {now:,.0f} MHz of {top:,.0f} MHz seen before",
            "check cooling, power caps and the host; drain the node if it stays",
            1.0 - now / top, now / top, CLOCK_RATIO,
        )  # fmt: skip


def _checkpoints(seen: _Seen) -> Iterator[Cause]:
    intervals = seen.intervals
    whole = float(intervals.seconds[intervals.working].sum())
    written = seen.progress.measures.get("checkpoint_s")
    if written is not None:
        stalls, sure = float(np.nansum(written[1:][intervals.working])), True
    else:
        excess, sure = slow_steps(intervals)
        at = np.flatnonzero(intervals.working)
        warm = at[: warm_up((intervals.seconds[at] / intervals.steps[at]).tolist())]  # compiling is no stall
        stalls = float(excess.sum() - excess[warm].sum())
    share = stalls / whole if whole > 0 else 0.0
    if share <= CHECKPOINT_RATIO:
        return
    how = "are logged" if written is not None else "come as regularly" if sure else "come irregularly"
    yield Cause(
        "checkpoint", "stalls for checkpoints" if sure else "stalls between steps",
        f"pauses {how} and take {percent(share)} of the time (limit {percent(CHECKPOINT_RATIO)})",
        "write checkpoints asynchronously or sharded, to faster storage, or less often", share, share, CHECKPOINT_RATIO,
        sure,
    )  # fmt: skip


def _stragglers(progress: Progress) -> Iterator[Cause]:
    paces = sorted(progress.hosts.items(), key=lambda item: item[1])
    if len(paces) < 2:
        return
    usual = float(np.median([pace for _, pace in paces]))
    slowest, pace = paces[-1]
    if not usual > 0 or pace <= STRAGGLER_RATIO * usual:
        return
    yield Cause(
        "straggler", "a straggler",
        f"{slowest} takes {seconds_words(pace)} per step, the median host {seconds_words(usual)}: all wait for it",
        f"replace {slowest}; check its GPUs (dcgmi diag), clocks and network", 1.0 - usual / pace, pace / usual,
        STRAGGLER_RATIO,
    )  # fmt: skip


def _drift(seen: _Seen) -> Iterator[Cause]:
    intervals = seen.intervals
    at = np.flatnonzero(intervals.working)
    per_step = intervals.seconds[at] / intervals.steps[at]
    third = len(per_step) // 3
    if third < _FEW_ROWS:
        return
    first, last = float(np.median(per_step[:third])), float(np.median(per_step[-third:]))
    if last > DRIFT_RATIO * first and "clock_mhz" not in seen.progress.measures:
        yield Cause(
            "drift", "steps that become slower", f"from {seconds_words(first)} to {seconds_words(last)} per step",
            "log the GPUs' clock (sm_clock_mhz) and loader_seconds: heat, a fuller disk or longer samples are usual",
            1.0 - first / last, last / first, DRIFT_RATIO, sure=False,
        )  # fmt: skip


def _idle(seen: _Seen) -> Iterator[Cause]:
    busy, limit = seen.mean("gpu_busy"), thresholds()["gpu_busy_min"].value
    if busy is None or busy >= limit:
        return
    yield Cause(
        "gpu_idle", "idle GPUs",
        f"GPUs work {percent(busy)} of the time (limit {percent(limit)}), and no column says why",
        "log loader_seconds and network_seconds per step", 1.0 - busy / limit, busy, limit, sure=False,
    )  # fmt: skip


def busy_processor(progress: Progress) -> tuple[str, float] | None:
    """The processor that works nearly all the time, and how much; None where none is logged to."""
    for name, word in (("gpu_busy", "GPUs"), ("cpu_busy", "CPUs")):
        values = progress.measures.get(name)
        if (
            values is not None
            and np.isfinite(values).any()
            and (busy := float(np.nanmedian(values))) >= BUSY_RATIO
        ):
            return word, busy
    return None
