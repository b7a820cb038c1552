"""Scenarios as a report: one row each, what changes against the file as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.plan.plain import plain
from planner.render.model import Answer, Column, Section, Value, table_section, versioned
from planner.render.numbers import hours, usd, usd_change

if TYPE_CHECKING:
    from planner.plan.outcome import Outcome
    from planner.workloads.whatif import WhatIf

_COLUMNS = (
    "scenario", "status", "choice", "total_usd", "change_usd", "change_ratio", "hours", "change_hours", "finish",
    "p_meet_deadline", "needs",
)  # fmt: skip


def whatif_report(found: WhatIf) -> Answer:
    """Build the answer."""
    rows = [_values(one, found.before) for one in (found.before, *found.scenarios)]
    values = {
        "workload": found.workload, "workload_sha256": found.workload_sha256, "created_at": found.created_at,
        "before": plain(rows[0]), "scenarios": [plain(row) for row in rows[1:]],
    }  # fmt: skip
    columns = (
        Column("scenario", "if", "text"), Column("cost", "cost", "usd_rounded"),
        Column("change", "change", "percent_change"), Column("hours", "h", "hours"),
        Column("done", "done", "moment_short"), Column("in_time", "in time", "chance"),
        Column("choice", "choice", "text"),
    )  # fmt: skip
    shown = [_row(row) for row in rows]
    sections = [table_section("scenarios", "Scenarios", columns, shown), *_needs(found)]
    flat = [{**row, "needs": "; ".join(row["needs"])} for row in rows]
    return Answer(
        f"What if, for {found.workload}", _title(found), (), tuple(sections), versioned(values), _COLUMNS, flat,
        success=any(one.total_usd is not None for one in found.scenarios),
    )  # fmt: skip


def _values(one: Outcome, before: Outcome) -> dict[str, Any]:
    change = None if one.total_usd is None or before.total_usd is None else one.total_usd - before.total_usd
    ratio = None if change is None or not before.total_usd else float(change / before.total_usd)
    later = None if one.hours is None or before.hours is None else one.hours - before.hours
    return {
        "scenario": one.name, "status": one.status, "choice": one.choice, "total_usd": one.total_usd,
        "change_usd": change, "change_ratio": ratio, "hours": one.hours, "change_hours": later, "finish": one.finish,
        "p_meet_deadline": one.p_meet_deadline, "needs": one.needs, "prices_as_of": one.prices_as_of,
    }  # fmt: skip


def _row(row: dict[str, Any]) -> tuple[Value, ...]:
    choice = row["choice"] or "no plan keeps every limit"
    return (
        row["scenario"], row["total_usd"], row["change_ratio"], row["hours"], row["finish"], row["p_meet_deadline"],
        choice,
    )  # fmt: skip


def _title(found: WhatIf) -> str:
    """The verdict on the only scenario, or on the cheapest."""
    before, planned = found.before, [one for one in found.scenarios if one.total_usd is not None]
    if not planned:
        return f"No plan for {found.workload} under {_those(found)}"
    best = min(planned, key=lambda one: one.total_usd or 0)
    if before.total_usd is None or best.total_usd is None or before.hours is None or best.hours is None:
        return f"{best.name}: {usd(best.total_usd)} in {hours(best.hours)} h, where the file as it is has no plan"
    same = "the same choice" if best.choice == before.choice else f"now {best.choice}"
    change = (
        f"{usd(before.total_usd)} -> {usd(best.total_usd)} ({usd_change(best.total_usd - before.total_usd)})"
    )
    lead = (
        best.name
        if len(found.scenarios) == 1
        else f"cheapest of {len(found.scenarios)} scenarios, {best.name}"
    )
    return f"{lead}: {change}, {hours(before.hours)} -> {hours(best.hours)} h; {same}"


def _those(found: WhatIf) -> str:
    return (
        found.scenarios[0].name if len(found.scenarios) == 1 else f"any of {len(found.scenarios)} scenarios"
    )


def _needs(found: WhatIf) -> list[Section]:
    lines = tuple(f"{one.name}: {need}" for one in (found.before, *found.scenarios) for need in one.needs[:3])
    return [Section("needs", "What would bring a plan", lines)] if lines else []
