"""The charts of a plan: what it costs by kind, what a step and the memory are made of, the run in hours, cash.

Each says what figures or a table of its section say too, so that texts leave it out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from planner.plan.cash import spread_days
from planner.plan.ids import BEFORE_USE, CostId, TimePartId
from planner.plan.model import CashMonth, Performance, Plan, TimePart
from planner.plan.words import cost_kind, step_part
from planner.render.model import Chart
from planner.render.numbers import hours, number

_AMONG_THE_STEPS = {
    TimePartId.EVALUATION: "evaluation",
    TimePartId.BESIDE_STEPS: "beside the steps",
    TimePartId.CHECKPOINTS: "checkpoints",
    TimePartId.INTERRUPTIONS: "interruptions",
}
_STARTING = (TimePartId.IMAGE_PULL, TimePartId.DATA_TO_NODES, TimePartId.WARM_UP, TimePartId.FLEET_FIXED)
_SAVING = (TimePartId.CHECKPOINTS, TimePartId.FINAL_EXPORT)
_AT_THE_START = (CostId.UPFRONT, CostId.DATASET_TRANSFER)
# after the end of a commitment there are hours only of runs that take longer than expected
_AT_THE_END = (CostId.AFTER_END, CostId.MODEL_EXPORT)
_MOST_DAYS = 92  # more are read by month
_LEAST_DAYS = 3


def cost_by_kind(paid_usd: Mapping[str, Decimal], *, inference: bool) -> tuple[Chart, ...]:
    """What each kind of cost is of the whole; none where there is one kind."""
    if len(paid_usd) < 2:
        return ()
    names = tuple(cost_kind(kind, inference=inference) for kind in paid_usd)
    values = tuple(map(float, paid_usd.values()))
    return (Chart("cost_by_kind", "", "parts", names, (("cost", values),), "usd", "", drawn_only=True),)


def step_and_memory(speed: Performance, *, inference: bool) -> tuple[Chart, ...]:
    """What the time of a step goes to, largest first, and how much of the memory of an accelerator is used."""
    return (*_step_time(speed, inference=inference), *_memory(speed))


def _step_time(speed: Performance, *, inference: bool) -> tuple[Chart, ...]:
    parts = sorted(
        ((name, time) for name, time in speed.breakdown_s.items() if time > 0), key=lambda one: -one[1]
    )
    if len(parts) < 2:
        return ()
    names = tuple(step_part(name, inference=inference) for name, _ in parts)
    title = f"Time of one {'batch' if inference else 'step'} by part"
    times = (("time", tuple(time for _, time in parts)),)
    return (Chart("step_time_by_part", title, "parts", names, times, "seconds", "", drawn_only=True),)


def _memory(speed: Performance) -> tuple[Chart, ...]:
    used, available = speed.memory_needed_gib, speed.memory_available_gib
    if used is None or available is None or used > available:
        return ()
    title = f"Memory used of {number(available)} GiB per accelerator"
    series = (("memory", (used,)),)
    return (Chart("memory", title, "parts", ("used",), series, "gib", "", available, drawn_only=True),)


def time_line(timeline: tuple[TimePart, ...]) -> tuple[Chart, ...]:
    """The parts of the elapsed time, one span after another."""
    parts = [(part.name, part.hours) for part in timeline if part.hours > 0]
    if len(parts) < 2:
        return ()
    ends = [sum(length for _, length in parts[: at + 1]) for at in range(len(parts))]
    starts = [end - length for end, (_, length) in zip(ends, parts, strict=True)]
    names = tuple(f"{name} {hours(length)} h" for name, length in parts)
    series = (("start", tuple(starts)), ("end", tuple(ends)))
    among = [_AMONG_THE_STEPS[part.id] for part in timeline if part.hours > 0 and part.id in _AMONG_THE_STEPS]
    caption = "Expected hours of each part, drawn one after another"
    caption += f"; {', '.join(among)} fall between the steps." if among else "."
    return (Chart("time_line", "", "spans", names, series, "hours", caption, drawn_only=True),)


def cash_by_month(cash: tuple[CashMonth, ...]) -> tuple[Chart, ...]:
    """What falls due in each month; none where all falls due in one."""
    if len(cash) < 2:
        return ()
    months, due = tuple(month.month for month in cash), tuple(float(month.amount_usd) for month in cash)
    return (
        Chart("cash_by_month", "Due by month", "bars", months, (("due", due),), "usd", "", drawn_only=True),
    )


def cost_by_day(plan: Plan) -> tuple[Chart, ...]:
    """What accrues on each day, by kind; none of a run of a day or two, or of many months."""
    start, finish = _moment(plan.start), _moment(plan.finish_expected)
    if start is None or finish is None or not 0 < (finish - start).days < _MOST_DAYS:
        return ()
    in_use = _after(start, plan.starts_in_hours or 0.0)
    together = plan.side_by_side or plan.launch is None
    owed = []
    for line in plan.lines:
        until = min(finish, _after(in_use, float(line.billed_hours))) if together else finish
        for cost in line.costs:
            begin, end = (in_use, until) if cost.kind == "compute" else (start, finish)
            if cost.id in _AT_THE_START:
                end = begin
            elif cost.id in _AT_THE_END:
                begin = end
            owed.append((cost, begin, max(begin, end)))
    by_kind = spread_days(owed)
    days = tuple(
        f"{start + timedelta(days=at):%Y-%m-%d}" for at in range((finish.date() - start.date()).days + 1)
    )
    if len(days) < _LEAST_DAYS:
        return ()
    inference = plan.kind == "inference"
    series = tuple(
        (cost_kind(kind, inference=inference), tuple(paid.get(day, 0.0) for day in days))
        for kind, paid in by_kind.items()
    )
    caption = (
        "Expected cost as it accrues, spread evenly over the time in which each part is used (days of UTC)."
    )
    return (Chart("cost_by_day", "Cost by day", "stack", days, series, "usd", caption, drawn_only=True),)


def finish_range(plan: Plan) -> tuple[Chart, ...]:
    """When the run is done: expected, its interval, and the deadline; none where nothing is known of the spread."""
    start, finish, deadline = _moment(plan.start), _moment(plan.finish_expected), _moment(plan.deadline)
    if start is None or finish is None or plan.risk is None:
        return ()
    expected = (finish - start).total_seconds() / 3600.0
    low, high = expected, plan.risk.worst_hours
    caption = "From the expected finish to the one that is met with 90 %"
    if plan.launch is not None:
        early, late = _moment(plan.launch.finish_p10), _moment(plan.launch.finish_p90)
        if early is None or late is None:
            return ()
        low, high = ((end - start).total_seconds() / 3600.0 for end in (early, late))
        caption = "Expected finish with its 80 % interval"
    if not (math.isfinite(low) and math.isfinite(high)):
        return ()
    marks = () if deadline is None else ((deadline - start).total_seconds() / 3600.0,)
    caption += "; the dark line is the deadline." if marks else "."
    series = (("finish", (expected,)), ("finish low", (low,)), ("finish high", (high,)))
    chart = Chart(
        "finish", "When it is done", "dots", ("finish",), series, "hours", caption, marks=marks, drawn_only=True,
        axis="hours from the start",
    )  # fmt: skip
    return (chart,)


def hours_by_use(plan: Plan) -> tuple[Chart, ...]:
    """What the hours go to: work, saving it, waiting, starting, and what interruptions cost."""
    if len(plan.timeline) < 2:
        return ()
    hours_of = {part.id: part.hours for part in plan.timeline}
    lost = hours_of.pop(TimePartId.INTERRUPTIONS, 0.0)
    for_spot = min(lost, plan.launch.waiting_hours) if plan.launch is not None else 0.0
    waiting = for_spot + sum(hours_of.pop(part, 0.0) for part in BEFORE_USE)
    starting = sum(hours_of.pop(part, 0.0) for part in _STARTING)
    saving = sum(hours_of.pop(part, 0.0) for part in _SAVING)
    uses = {
        "work": sum(hours_of.values()), "saving": saving, "waiting for data and capacity": waiting,
        "starting": starting, "lost by interruptions": lost - for_spot,
    }  # fmt: skip
    shown = {name: spent for name, spent in uses.items() if spent > 0}
    series = (("hours", tuple(shown.values())),)
    return (
        Chart(
            "hours_by_use", "Where the hours go", "parts", tuple(shown), series, "hours", "", drawn_only=True
        ),
    )


def _after(start: datetime, hours: float) -> datetime:
    return start + timedelta(hours=min(hours, 24.0 * _MOST_DAYS))


def _moment(text: str | None) -> datetime | None:
    """A moment of a plan; None where the plan does not say it."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
