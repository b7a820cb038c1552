"""What saved plans add to a forecast: each as a line, those of runs that come again with what they cost a month."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.render.model import Column, Section, Value, table_section
from planner.render.units import column_places

if TYPE_CHECKING:
    from planner.finops.forecast.answer import ForecastAnswer
    from planner.finops.forecast.plans import PlannedCost


def planned_values(answer: ForecastAnswer) -> list[dict[str, Any]]:
    """The planned costs for the JSON; what says how often a run comes again is only there where it does."""
    return [
        {"name": one.name, "run_id": one.run_id, "start": one.start.isoformat(), "end": one.end.isoformat(),
         "cost": one.cost, "scope": one.scope, **_again(one)} for one in answer.planned
    ]  # fmt: skip


def _again(one: PlannedCost) -> dict[str, Any]:
    if one.every is None:
        return {}
    hours = one.every.total_seconds() / 3600.0
    return {"every_hours": hours, "times": one.times, "month_cost": one.month_cost}


def planned_words(answer: ForecastAnswer) -> str:
    """How many costs are planned, and how many runs those are where some come again."""
    count = len(answer.planned)
    runs = sum(one.times for one in answer.planned)
    said = f"{count} planned cost{'s' if count > 1 else ''}"
    return said if runs == count else f"{said} of {runs:,} runs"


def planned_sections(answer: ForecastAnswer) -> tuple[Section, ...]:
    """One row a planned cost: the first run, how often it comes, and what it costs each time and a month."""
    if not answer.planned:
        return ()
    rows: list[tuple[Value, ...]] = [
        (
            one.name, one.scope or "", one.start.isoformat(timespec="minutes"), one.times,
            "" if one.every is None else one.every.total_seconds() / 3600.0, one.cost,
            "" if one.month_cost is None else one.month_cost,
        )
        for one in answer.planned
    ]  # fmt: skip
    # one of many runs may cost cents where a month costs thousands
    cents = column_places([one.cost for one in answer.planned], "money", answer.currency)
    columns = (
        Column("name", "planned", "text"), Column("scope", "scope", "text"), Column("start", "first start", "text"),
        Column("times", "runs", "number", 0), Column("every_hours", "hours between", "number", 1),
        Column("cost", "each", "money", cents), Column("month_cost", "a month", "money"),
    )  # fmt: skip
    return (table_section("planned", "Planned costs", columns, rows),)
