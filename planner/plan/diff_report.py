"""The difference of two plans as a report: a sentence, the two sides, and a line for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.plan.diff import verdict
from planner.plan.plain import plain
from planner.render.model import Answer, Column, Section, table_section, versioned

if TYPE_CHECKING:
    from planner.plan.diff import PlanDiff

_COLUMNS = ("mark", "what", "old", "new", "change_usd")


def diff_report(plan_diff: PlanDiff) -> Answer:
    """Build the answer."""
    sides = (plan_diff.old, plan_diff.new)
    columns = (
        Column("name", "plan", "text"), Column("cost", "cost", "usd_known"), Column("hours", "h", "hours"),
        Column("done", "done", "text"), Column("in_time", "in time", "chance"), Column("choice", "choice", "text"),
    )  # fmt: skip
    rows = [
        (side.name, side.usd_known, side.hours, side.done_words, side.in_time, side.choice or "no plan")
        for side in sides
    ]  # fmt: skip
    lines = [
        (item.mark, item.what, *item.words, "" if item.change_usd is None else plan_diff.known(item.change_usd))
        for item in plan_diff.changes
    ]  # fmt: skip
    change_columns = (
        Column("mark", "", "text"), Column("what", "what", "text"), Column("old", "old", "text"),
        Column("new", "new", "text"), Column("change_usd", "cost", "usd_change_known"),
    )  # fmt: skip
    notes = () if plan_diff.same_workload else ("the workload itself differs",)
    exact = ("costs in the digits that are known; -o json and csv have them to the cent",)
    sections = [table_section("plans", "Plans", columns, rows, notes)]
    if lines:
        sections.append(table_section("changes", "Changes", change_columns, lines, exact))
    sections += [
        Section("needs", f"What would make a plan possible for {side.name}", side.needs)
        for side in sides
        if side.needs
    ]
    values = {
        "workload": plan_diff.workload,
        "old": plain(plan_diff.old),
        "new": plain(plan_diff.new),
        "change_usd": plan_diff.change_usd,
        "change_ratio": plan_diff.change_ratio,
        "same_workload": plan_diff.same_workload,
        "verdict": verdict(plan_diff),
        "changes": [
            {name: plain(getattr(change, name)) for name in _COLUMNS} for change in plan_diff.changes
        ],
    }
    flat = [{name: getattr(change, name) for name in _COLUMNS} for change in plan_diff.changes]
    return Answer(
        f"Plans compared for {plan_diff.workload}",
        verdict(plan_diff),
        (),
        tuple(sections),
        versioned(values),
        _COLUMNS,
        flat,
        success=plan_diff.new.total_usd is not None,
    )
