"""Why this plan, as an answer: the plan, what came next, what removed the rest, layouts, and why not a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.plan import report_choice as choice
from planner.plan import report_grounds as grounds
from planner.plan import report_others as others
from planner.render.model import Answer, Cell, Section, versioned

if TYPE_CHECKING:
    from planner.plan.model import Plan

_COLUMNS = ("filter", "removed", "removed_only_by_this", "description")


def explain_answer(
    plan: Plan, layouts: Sequence[str], why_not: Mapping[str, Sequence[str]], kinds: Sequence[str] = ()
) -> Answer:
    """Return the explanation in the shape that every format is made of.

    Args:
        plan: what was found, or that nothing was.
        layouts: what is said of the layouts of the chosen machines.
        why_not: what is said of each instance type asked about.
        kinds: the best candidate of each kind of plan.
    """
    planned = plan.status == "planned"
    title = (
        choice.verdict(plan)
        if planned
        else f"No plan for {plan.workload}: none of the candidates compared satisfies all constraints"
    )
    sections = [
        *([choice.plan_lines(plan, True)] if plan.lines else []),
        *others.alternatives(plan, verbose=True),
        *([Section("kinds", "Best of each kind", tuple(kinds))] if kinds else []),
        *grounds.relaxations(plan),
        *grounds.filters(plan, True),
        *([Section("layouts", "Layouts", tuple(layouts))] if layouts else []),
        *(Section(f"why_not_{name}", f"Why not {name}", tuple(lines)) for name, lines in why_not.items()),
    ]
    rows: list[dict[str, Cell]] = [
        {"filter": one.name, "removed": one.removed, "removed_only_by_this": one.removed_only_by_this,
         "description": one.description}
        for one in plan.filters
    ]  # fmt: skip
    values = {
        "workload": plan.workload, "status": plan.status, "filters": rows, "layouts": list(layouts),
        "best_of_kind": list(kinds),
        "filter_pairs": [
            {"filters": [pair.first, pair.second], "removed": pair.removed} for pair in plan.filter_pairs
        ],
        "why_not": {name: list(lines) for name, lines in why_not.items()},
    }  # fmt: skip
    return Answer(
        f"Why this plan for {plan.workload}", title, (), tuple(sections), versioned(values), _COLUMNS, rows,
        success=planned,
    )  # fmt: skip
