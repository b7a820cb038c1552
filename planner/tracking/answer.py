"""A run against its plan: how far it is, when it ends, what it costs, why it is slow, and which gates break."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import numpy as np

from planner.errors import InputError
from planner.inputs.quantities import of_our_time
from planner.records import record
from planner.render.presentable import Presentable
from planner.tracking.causes import find_causes
from planner.tracking.forecast import FUTURES, Futures, draw_futures
from planner.tracking.renewal import Interruptions, count_interruptions
from planner.tracking.row_order import intervals_of
from planner.tracking.speed import measure_speed
from planner.tracking.thresholds import thresholds
from planner.tracking.time_breakdown import split_time

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.tracking.bill import Spent
    from planner.tracking.model import Cause, Intervals, Progress, Replan, Speed, Split
    from planner.tracking.planned import Planned

Status = Literal["on time", "at risk", "late", "over budget", "finished"]
_LIKELY = 0.5
_USUAL_CONFIDENCE = 0.9
_SLOW_RATIO = 1.05  # a step this much longer than planned is slow
_FUTURE = timedelta(minutes=5)  # clocks of machines differ by less


@record(frozen=True)
class Ask:
    """What is asked of a run.

    Attributes:
        started: when the run began, for logs without moments; now: the present moment, default the log's last row.
        fail_late, fail_over: gates; None: those that the plan states.
        futures, seed: of the forecast.
    """

    started: datetime | None = None
    now: datetime | None = None
    fail_late: float | None = None
    fail_over: float | None = None
    futures: int = FUTURES
    seed: int = 1


@record(frozen=True)
class Gate:
    """A limit on a probability, and whether it is broken."""

    name: Literal["late", "over budget"]
    limit: float
    value: float
    origin: Literal["asked", "plan"]

    @property
    def broken(self) -> bool:
        """Whether the probability is above the limit."""
        return self.value > self.limit


@record(frozen=True)
class Range:
    """An expectation with its 80 % interval."""

    value: float
    low: float
    high: float


@record(frozen=True, eq=False)
class Tracked(Presentable):
    """How a run is doing.

    Attributes:
        planned: the plan; source: of the log.
        status: the verdict; p_late, p_over: probabilities, None without a deadline or budget.
        now: the present moment; last: that of the last row.
        done_steps, left_steps: of the work.
        hours_left, usd_left: from now on; finish: moments of the end; total_usd: spent and left.
        spent_usd: until now; spent_from: `bill`, `bill and estimate` or `estimate`.
        stalled_hours: since the last step, where that is too long; 0: the run goes on.
        slow_ratio: measured seconds per step over the plan's; None: too few steps.
        memory_ratio: of the GPU memory in use; None: not logged.
        spend_ratio: cost per hour so far over the plan's; None where it is not known.
    """

    REPORT = "planner.tracking.report:track_report"
    __repr__ = Presentable.__repr__

    planned: Planned
    source: str
    status: Status
    p_late: float | None
    p_over: float | None
    now: datetime
    last: datetime
    done_steps: float
    left_steps: float
    hours_left: Range
    finish: tuple[datetime, datetime, datetime]
    usd_left: Range
    total_usd: Range
    spent_usd: float
    spent_from: str
    stalled_hours: float
    speed: Speed
    slow_ratio: float | None
    split: Split
    interruptions: Interruptions
    causes: tuple[Cause, ...]
    gates: tuple[Gate, ...]
    memory_ratio: float | None
    spend_ratio: float | None
    notes: tuple[str, ...]
    replan: Replan | None = None

    @property
    def broken(self) -> tuple[Gate, ...]:
        """Gates that break."""
        return tuple(gate for gate in self.gates if gate.broken)


def track(
    planned: Planned, progress: Progress, ask: Ask | None = None, spent: Spent | None = None
) -> Tracked:
    """Compare a run with its plan and forecast its end.

    Args:
        planned: the plan.
        progress: the log.
        ask: gates, moments and draws.
        spent: of the bill; None: estimated from the plan's prices.

    Raises:
        InputError: log and plan contradict each other, or the log has no speed.
    """
    flags = ask or Ask()
    intervals = intervals_of(progress)
    speed = measure_speed(intervals, planned)
    done = _done_steps(planned, progress)
    left = max(planned.steps - done, 0.0)
    last = _last_moment(planned, progress, flags)
    now = flags.now or last
    _check(planned, progress, done, last, now)
    stalled = _stalled_hours(now, last, intervals, finished=left <= 0)
    interruptions = count_interruptions(intervals, planned, stopped_hours=stalled)
    to_deadline = None if planned.deadline is None else (planned.deadline - now) / timedelta(hours=1)
    futures = draw_futures(
        planned, speed, interruptions, left, hours_to_deadline=to_deadline, stalled_hours=stalled,
        share_left=left / planned.steps, n=flags.futures, seed=flags.seed,
    )  # fmt: skip
    split = split_time(progress, intervals)
    usd, origin = _spent(planned, split, last, done / planned.steps, spent)
    p_over = None if planned.budget_usd is None else float((usd + futures.usd > planned.budget_usd).mean())
    p_late = _p_late(planned, futures, now if left > 0 else None, last)
    hours, end = _range(futures.hours), now if left > 0 else last
    return Tracked(
        planned=planned, source=progress.source, status=_status(planned, left, p_late, p_over), p_late=p_late,
        p_over=p_over, now=now, last=last, done_steps=done, left_steps=left, hours_left=hours,
        finish=(_after(end, hours.value), _after(end, hours.low), _after(end, hours.high)),
        usd_left=_range(futures.usd), total_usd=_range(usd + futures.usd), spent_usd=usd, spent_from=origin,
        stalled_hours=stalled, speed=speed, slow_ratio=_slow_ratio(speed), split=split, interruptions=interruptions,
        causes=find_causes(progress, intervals, planned.network_ratio), gates=_gates(planned, flags, p_late, p_over),
        memory_ratio=_late_memory(progress), spend_ratio=_spend_ratio(planned, spent, split),
        notes=_notes(planned, progress, now, last),
    )  # fmt: skip


def _p_late(planned: Planned, futures: Futures, now: datetime | None, last: datetime) -> float | None:
    """Probability of missing the deadline, None without one; `now` is None once the run has finished, at `last`."""
    if planned.deadline is None:
        return None
    if now is None:
        return float(last > planned.deadline)
    return float((futures.hours > (planned.deadline - now) / timedelta(hours=1)).mean())


def _slow_ratio(speed: Speed) -> float | None:
    """Measured over planned seconds per step; None where one is not known."""
    if speed.measured_s is None or speed.planned_s is None:
        return None
    return speed.measured_s / speed.planned_s


def _after(moment: datetime, hours: float) -> datetime:
    return moment + timedelta(hours=min(hours, 1e6))


def _range(values: Floats) -> Range:
    low, high = np.quantile(values, (0.1, 0.9))
    return Range(float(values.mean()), float(low), float(high))


def _done_steps(planned: Planned, progress: Progress) -> float:
    """Steps of the plan that are done: by what the plan counts where the log has it, else by its steps."""
    step = progress.step
    counted = (progress.tokens,) if planned.unit == "tokens" else (progress.samples, progress.tokens)
    for units in counted:
        if units is not None and _grows(units):
            return min(float(units[np.isfinite(units)][-1]) / planned.units, 1.0) * planned.steps
    return float(step[-1]) + (1.0 if step.min() == 0 else 0.0)


def _grows(units: Floats) -> bool:
    """Whether a column says how much is done."""
    finite = units[np.isfinite(units)]
    return len(finite) > 1 and bool(finite[-1] > finite[0])


def _last_moment(planned: Planned, progress: Progress, asked: Ask) -> datetime:
    """The moment of the last row; of a log without moments as long after the start as its steps took."""
    started = asked.started or planned.start + timedelta(hours=planned.lead_hours)
    try:
        moment = progress.moment(float(progress.seconds[-1]))
        if moment is None:
            moment = started + timedelta(seconds=float(progress.seconds[-1] - progress.seconds[0]))
        return of_our_time(moment)
    except (
        ValueError,
        OverflowError,
        OSError,
    ) as error:  # beyond the calendar, or what the system knows of it
        raise InputError(f"{progress.source}: the time of the last row: {error}") from None


def _check(planned: Planned, progress: Progress, done: float, last: datetime, now: datetime) -> None:
    try:
        of_our_time(now)
    except ValueError as error:
        raise InputError(f"now: {error}") from None
    if done > planned.steps * 1.01 + 1.0:
        raise InputError(
            f"{progress.source}: step {done:,.0f} is beyond the plan's {planned.steps:,.0f} steps: another run's log, "
            "or another batch size; log a column tokens"
        )
    if last > now + _FUTURE:
        raise InputError(
            f"{progress.source}: the last row is of {last:%Y-%m-%dT%H:%MZ}, after the present ({now:%Y-%m-%dT%H:%MZ}): "
            "are its times in UTC?"
        )


def _stalled_hours(now: datetime, last: datetime, intervals: Intervals, *, finished: bool) -> float:
    """Hours without a step, where they are more than the threshold and than ten steps; else 0."""
    since = (now - last) / timedelta(hours=1)
    limit = max(thresholds()["progress_stalled_max"].for_minutes / 60.0, 10.0 * intervals.step_s / 3600.0)
    return 0.0 if finished or since <= limit else since


def _spent(
    planned: Planned, split: Split, last: datetime, done: float, bill: Spent | None
) -> tuple[float, str]:
    """What the run has cost until its last row, and where that comes from."""
    paid = split.hours - split.waiting + planned.paid_setback_ratio * split.waiting
    lead = max(planned.lead_hours - (planned.plan.starts_in_hours or 0.0), 0.0)
    estimate = (paid + lead) * planned.usd_per_hour + done * planned.other_usd
    if bill is None:
        return estimate, "estimate"
    after = max((last - bill.through) / timedelta(hours=1), 0.0)
    if after <= 0 or split.hours <= 0:
        return bill.usd, "bill"
    return bill.usd + min(after, split.hours) * paid / split.hours * planned.usd_per_hour, "bill and estimate"


def _spend_ratio(planned: Planned, bill: Spent | None, split: Split) -> float | None:
    """Cost per hour in use by the bill, over the plan's."""
    if bill is None or not bill.node_hours > 0 or split.hours <= 0:
        return None
    return bill.usd / (bill.node_hours / planned.nodes) / planned.usd_per_hour


def _status(planned: Planned, left: float, p_late: float | None, p_over: float | None) -> Status:
    if left <= 0:
        return "finished"
    late, over = p_late or 0.0, p_over or 0.0
    if late > _LIKELY:
        return "late"
    if over > _LIKELY:
        return "over budget"
    sure = _USUAL_CONFIDENCE if planned.confidence_ratio is None else planned.confidence_ratio
    return "at risk" if late > 1.0 - sure + 1e-9 else "on time"


def _gates(planned: Planned, asked: Ask, p_late: float | None, p_over: float | None) -> tuple[Gate, ...]:
    """The gates asked for; without any, the confidence and the budget that the plan states.

    Raises:
        InputError: a gate is asked for on a limit that the plan does not have.
    """
    for name, limit, value, key in (
        ("--fail-late", asked.fail_late, p_late, "constraints.deadline"),
        ("--fail-over", asked.fail_over, p_over, "constraints.budget_usd"),
    ):
        if limit is not None and value is None:
            raise InputError(f"{name}: the plan has no such limit: set {key} in the workload and plan again")
    if asked.fail_late is not None or asked.fail_over is not None:
        late = [] if asked.fail_late is None else [Gate("late", asked.fail_late, p_late or 0.0, "asked")]
        over = (
            [] if asked.fail_over is None else [Gate("over budget", asked.fail_over, p_over or 0.0, "asked")]
        )
        return (*late, *over)
    out = []
    if p_late is not None and planned.confidence_ratio is not None:
        out.append(Gate("late", 1.0 - planned.confidence_ratio, p_late, "plan"))
    if p_over is not None:
        out.append(Gate("over budget", _LIKELY, p_over, "plan"))
    return tuple(out)


def is_slow(tracked: Tracked) -> bool:
    """Whether steps take longer than planned."""
    return tracked.slow_ratio is not None and tracked.slow_ratio > _SLOW_RATIO


def _late_memory(progress: Progress) -> float | None:
    """Mean of the memory used over the last rows."""
    values = progress.measures.get("memory_used")
    finite = np.empty(0) if values is None else values[-20:][np.isfinite(values[-20:])]
    return float(finite.mean()) if len(finite) else None


def _notes(planned: Planned, progress: Progress, now: datetime, last: datetime) -> tuple[str, ...]:
    notes = list(progress.notes)
    nodes = progress.nodes[np.isfinite(progress.nodes)]
    if len(nodes) and abs(float(np.median(nodes)) - planned.nodes) > 0.5:
        notes.append(f"the log has {float(np.median(nodes)):.0f} nodes, the plan {planned.nodes}")
    if planned.unit == "tokens" and progress.samples is not None and not _grows(progress.tokens):
        notes.append("the log counts samples and the plan tokens: what is done is taken from its steps")
    age = (datetime.now(UTC) - last) / timedelta(hours=1)
    if now == last and 1.0 < age < 24.0 * 30.0 and progress.absolute:
        notes.append(f"the log ends {age:.1f} h ago: --now now counts the time since as standing still")
    return tuple(notes)
