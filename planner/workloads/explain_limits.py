"""What a changed limit is worth, in the digits that are known."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from planner.plan.front_scale import Scale
from planner.render.numbers import number
from planner.render.precision import dollars, known_places

if TYPE_CHECKING:
    from planner.job.worth import Worth
    from planner.plan.model import Plan
    from planner.workloads.explain import Explanation

CENT = Decimal("0.005")
LEAST_RATIO = 1e-3  # of the plan's figure: what changes it by less is below what is known of it


def is_better(plan: Plan, one: Worth) -> bool:
    """Whether the best plan under the changed limit is better by a thousandth of the plan's objective."""
    assert one.best is not None
    if plan.objective == "carbon":
        emitted = 0.0 if plan.carbon is None else plan.carbon.operational_kgco2e or 0.0
        return kg_saved(plan, one) > max(1e-6, LEAST_RATIO * emitted)
    if plan.objective == "time":
        return -one.best.delta_hours > max(1e-3, LEAST_RATIO * plan.hours)
    return -one.best.delta_cost_usd > max(CENT, Decimal(LEAST_RATIO) * plan.total_usd)


def kg_saved(plan: Plan, one: Worth) -> float:
    """Emissions below those of the plan; 0 where unknown."""
    if plan.carbon is None or one.best is None or one.best.operational_kgco2e is None:
        return 0.0
    return (plan.carbon.operational_kgco2e or 0.0) - one.best.operational_kgco2e


def binding(explanation: Explanation) -> list[Worth]:
    """Limits that keep the plan from being better: without them, or with one unit more, it is, by a thousandth."""
    return [
        one
        for one in explanation.limits
        if one.relaxes and one.best is not None and is_better(explanation.plan, one)
    ]


def has_frontier(explanation: Explanation) -> bool:
    """Whether `planner frontier` says what much later deadlines are worth."""
    return explanation.plan.kind != "fleet" and any(one.limit == "deadline" for one in explanation.limits)


def saves(plan: Plan, one: Worth) -> str:
    """What the changed limit is worth, as people say it."""
    assert one.best is not None
    if plan.objective == "carbon":
        return f"emits {number(kg_saved(plan, one))} kgCO2e less"
    if plan.objective == "time":
        return f"ends {number(-one.best.delta_hours)} h sooner"
    return f"saves {change_words(plan, -one.best.delta_cost_usd)}"


def change_words(plan: Plan, usd: Decimal) -> str:
    """A difference of costs in the digits that its own relative interval supports: whole dollars, or cents."""
    if not usd:
        return "$0"
    places = known_places(float(usd), abs(float(usd)) * Scale.of(plan).usd_ratio)
    return dollars(usd, min(places, 0) if abs(usd) >= 1 else min(places, 2))


def signed(plan: Plan, usd: Decimal) -> str:
    """A difference of costs with its sign."""
    text = change_words(plan, usd)
    return text if text.startswith("-") or text == "$0" else f"+{text}"


def differs(one: Worth) -> bool:
    """Whether the best plan under the changed limit costs or lasts otherwise."""
    assert one.best is not None
    return abs(one.best.delta_cost_usd) >= CENT or abs(one.best.delta_hours) >= 0.1
