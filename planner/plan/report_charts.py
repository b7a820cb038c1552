"""The charts of a plan: what it costs by kind, what a step and the memory are made of, the run in hours, cash.

Each says what figures or a table of its section say too, so that texts leave it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from planner.plan.ids import TimePartId
from planner.plan.model import CashMonth, Performance, TimePart
from planner.plan.words import cost_kind, step_part
from planner.render.model import Chart
from planner.render.numbers import hours, number

_AMONG_THE_STEPS = {
    TimePartId.EVALUATION: "evaluation",
    TimePartId.CHECKPOINTS: "checkpoints",
    TimePartId.INTERRUPTIONS: "interruptions",
}


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
    said = "Expected hours of each part, drawn one after another"
    said += f"; {', '.join(among)} fall between the steps." if among else "."
    return (Chart("time_line", "", "spans", names, series, "hours", said, drawn_only=True),)


def cash_by_month(cash: tuple[CashMonth, ...]) -> tuple[Chart, ...]:
    """What falls due in each month; none where all falls due in one."""
    if len(cash) < 2:
        return ()
    months, due = tuple(one.month for one in cash), tuple(float(one.amount_usd) for one in cash)
    return (
        Chart("cash_by_month", "Due by month", "bars", months, (("due", due),), "usd", "", drawn_only=True),
    )
