"""Scenarios as a report: one row each, what changes against the file as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.plan.front_scale import cost_places
from planner.plan.plain import plain
from planner.render.model import Answer, Chart, Column, Section, Value, next_steps, table_section, versioned
from planner.render.precision import rounded
from planner.render.units import change

if TYPE_CHECKING:
    from planner.plan.outcome import Outcome
    from planner.workloads.whatif import WhatIf

_LEAST_TO_DRAW = 2
_COLUMNS = (
    "scenario", "status", "choice", "total_usd", "change_usd", "change_ratio", "hours", "change_hours", "finish",
    "p_meet_deadline", "needs",
)  # fmt: skip


def whatif_report(what_if: WhatIf) -> Answer:
    """Build the answer."""
    rows = [_values(one, what_if.before) for one in (what_if.before, *what_if.scenarios)]
    values = {
        "workload": what_if.workload, "workload_sha256": what_if.workload_sha256, "created_at": what_if.created_at,
        "before": plain(rows[0]), "scenarios": [plain(row) for row in rows[1:]],
    }  # fmt: skip
    columns = (
        Column("scenario", "if", "text"), Column("cost", "cost", "usd_known"),
        Column("change", "change", "percent_change", 0), Column("done", "done", "date"),
        Column("in_time", "in time", "chance"), Column("choice", "choice", "text"),
    )  # fmt: skip
    shown = [_row(one, what_if.before) for one in (what_if.before, *what_if.scenarios)]
    table = table_section("scenarios", "Scenarios", columns, shown)
    sections = [replace(table, charts=_chart(what_if)), *_unproven(what_if), *_needs(what_if)]
    flat = [{**row, "needs": "; ".join(row["needs"])} for row in rows]
    return Answer(
        f"What if, for {what_if.workload}", _title(what_if), (), tuple(sections), versioned(values), _COLUMNS, flat,
        success=any(one.total_usd is not None for one in what_if.scenarios), front=(*sections, _next(what_if)),
    )  # fmt: skip


def _chart(what_if: WhatIf) -> tuple[Chart, ...]:
    """Cost of each scenario beside the file as it is; one without a plan is left out."""
    planned = [one for one in (what_if.before, *what_if.scenarios) if one.total_usd is not None]
    if len(planned) < _LEAST_TO_DRAW:
        return ()
    costs = tuple(float(one.total_usd or 0) for one in planned)
    words = "; ".join(f"{one.name}: {one.usd_words}" for one in planned)
    return (
        Chart("cost_by_scenario", "Cost by scenario", "bars", tuple(one.name for one in planned), (("cost", costs),),
              "usd_rounded", words, drawn_only=True),
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


def _row(one: Outcome, before: Outcome) -> tuple[Value, ...]:
    if one.total_usd is None:
        return (one.name, "", "", "", "", "no plan meets every limit")
    cost = rounded(one.total_usd, cost_places(one.total_usd, one.usd_ratio))
    change = "" if one is before or not before.total_usd else float(one.total_usd / before.total_usd) - 1.0
    return (one.name, cost, change, one.done_words, one.in_time, one.choice)


def _title(what_if: WhatIf) -> str:
    """The verdict on the only scenario, or on the cheapest."""
    before, planned = what_if.before, [one for one in what_if.scenarios if one.total_usd is not None]
    if not planned:
        return f"No plan for {what_if.workload} under {_those(what_if)}"
    best = min(planned, key=lambda one: one.total_usd or 0)
    many = len(what_if.scenarios) > 1
    lead = f"Cheapest of {len(what_if.scenarios)} scenarios, {best.name}" if many else best.name
    if before.total_usd is None or best.total_usd is None:
        return f"{lead}: {best.usd_words}, done {best.done_words}, where the unchanged file has no plan"
    if (best.choice, best.total_usd) == (before.choice, before.total_usd):
        if many:
            end = f"{best.usd_words}, done {best.done_words}"
            return f"No scenario of {len(what_if.scenarios)} is cheaper than the unchanged file: {end}"
        return f"{lead} changes nothing: {best.usd_words}, done {best.done_words}"
    more = float(best.total_usd / before.total_usd) - 1.0 if before.total_usd else 0.0
    much = change(more, 0) if abs(more) >= 0.005 else "nearly the same"
    cost = f"{before.usd_words} -> {best.usd_words} ({much})"
    if before.usd_words == best.usd_words:
        cost = f"{best.usd_words} ({much})"
    end = (
        best.done_words
        if before.done_words == best.done_words
        else f"{before.done_words} -> {best.done_words}"
    )
    same = "the same choice" if best.choice == before.choice else f"now {best.choice}"
    return f"{lead}: {cost}, done {end}; {same}"


def _next(what_if: WhatIf) -> Section:
    best = next((one for one in what_if.scenarios if one.total_usd is not None), None)
    if best is None:
        return next_steps("next: planner explain FILE")
    return next_steps("next: planner optimize FILE --set KEY=VALUE; planner explain FILE --set KEY=VALUE")


def _those(what_if: WhatIf) -> str:
    return (
        what_if.scenarios[0].name
        if len(what_if.scenarios) == 1
        else f"any of {len(what_if.scenarios)} scenarios"
    )


def _unproven(what_if: WhatIf) -> list[Section]:
    """Costs that a search did not finish: a difference as small as what is left of it may be the search's own."""
    lines = tuple(
        f"{one.name}: {one.unproven}" for one in (what_if.before, *what_if.scenarios) if one.unproven
    )
    if not lines:
        return []
    more = "a smaller change may be the search's: planner optimize FILE --set KEY=VALUE --time-limit 5m"
    return [Section("unproven", "Not proven", (*lines, more), warning=True)]


def _needs(what_if: WhatIf) -> list[Section]:
    lines = tuple(
        f"{one.name}: {need}" for one in (what_if.before, *what_if.scenarios) for need in one.needs[:3]
    )
    return [Section("needs", "What would make a plan possible", lines)] if lines else []
