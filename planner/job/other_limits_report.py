"""Other deadlines and budgets as sections of a plan's page: the frontier drawn, and one table a limit with a slider."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from planner.plan.front_choices import in_brief
from planner.plan.front_scale import Scale
from planner.render.model import Chart, Column, Section, Table, Value
from planner.render.numbers import number, percent
from planner.render.precision import dollars, moment_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.job.frontier import Frontier, Point
    from planner.job.other_limits import OtherLimits, Within
    from planner.plan.brief import Summary
    from planner.plan.model import Plan

_DAYS_FROM_HOURS = 48.0
_LEAST_TO_DRAW = 2
_THREE_DIGITS, _ROUGH = (
    0.01,
    0.1,
)  # half-widths, relative, of cost and hours that have no interval of their own
_ANSWER = (
    Column("decision", "choice", "text"), Column("cost_usd", "cost", "usd_known"),
    Column("finish_expected", "done", "text"), Column("p_meet_deadline", "in time", "chance"),
    Column("limits", "your limits", "text"),
)  # fmt: skip


def other_limits_sections(other_limits: OtherLimits, plan: Plan) -> tuple[Section, ...]:
    """Build the sections.

    Args:
        other_limits: the answers by deadline and by budget.
        plan: the plan beside them.
    """
    scale = Scale.of(plan)
    if plan.status == "infeasible":  # there is no plan whose intervals could say how many digits are known
        scale = replace(scale, usd_ratio=_THREE_DIGITS, hours_ratio=_ROUGH)
    return (_by_deadline(other_limits.frontier, plan, scale), *_by_budget(other_limits, plan, scale))


def _by_deadline(frontier: Frontier, plan: Plan, scale: Scale) -> Section:
    sure = percent(frontier.confidence, 0)
    points = frontier.points
    rows = tuple(
        (_deadline(point, scale), *_answer(point.best, point.p_meet_deadline, scale), _kept(point))
        for point in points
    )
    own = next(
        (at for at, point in enumerate(points) if point.wished), 0 if plan.deadline else len(points) - 1
    )
    columns = (Column("deadline", "deadline", "text"), *_ANSWER)
    note = "in time: the probability of meeting the row's deadline"
    table = Table("by_deadline", "What if the deadline moves?", columns, rows, note, picked=own)
    said = (
        f"Each point is a separate search: the cheapest plan for its deadline, met with {sure} probability. The budget "
        "is not applied. Between two points, the lowest cost lies between theirs."
    )
    return Section(
        "by_deadline", "Cost by deadline", (said,), tables=(table,), charts=_chart(frontier, plan, scale)
    )


def _by_budget(other_limits: OtherLimits, plan: Plan, scale: Scale) -> tuple[Section, ...]:
    if not other_limits.budgets:
        return ()
    rows = tuple(
        (_budget(one), *_answer(one.best, one.p_meet_deadline, scale), "your budget" if one.is_own else "")
        for one in other_limits.budgets
    )
    columns = (Column("budget_usd", "budget", "text"), *_ANSWER)
    own = next((at for at, one in enumerate(other_limits.budgets) if one.is_own), 0)
    note = "in time: the probability of meeting your deadline" if plan.deadline else ""
    table = Table("by_budget", "What if the budget changes?", columns, rows, note, picked=own)
    kept = ""
    if plan.deadline is not None:
        kept = f" that meets your deadline with {percent(other_limits.frontier.confidence, 0)} probability"
    said = (
        f"Each point is a separate search: the soonest plan within its budget{kept}. The first budget is what the "
        "cheapest plan needs."
    )
    return (Section("by_budget", "Time by budget", (said,), tables=(table,)),)


def _answer(best: Summary, chance: float | None, scale: Scale) -> tuple[Value, ...]:
    ends = (scale.start + timedelta(hours=min(best.hours, 1e6))).isoformat()
    met = "" if chance is None else chance
    return in_brief(best), scale.known(best.cost_usd), scale.moment(ends, best.hours), met


def _deadline(point: Point, scale: Scale) -> str:
    """A deadline as a length of time and a moment."""
    hours = point.deadline_hours
    length = f"{number(hours / 24.0)} days" if hours >= _DAYS_FROM_HOURS else f"{number(hours)} h"
    until = (scale.start + timedelta(hours=min(hours, 1e6))).isoformat()
    return f"{length}, until {moment_known(until, 1.0, scale.start.year)}"


def _budget(one: Within) -> str:
    return dollars(one.budget_usd, max(-int(one.budget_usd.normalize().as_tuple().exponent), 0))


def _kept(point: Point) -> str:
    texts = ["your deadline"] if point.wished else []
    texts += ["later than your deadline"] if point.within_deadline is False else []
    texts += ["over your budget"] if point.within_budget is False else []
    return ", ".join(texts)


def _chart(frontier: Frontier, plan: Plan, scale: Scale) -> tuple[Chart, ...]:
    """Cost over the deadline, where it falls; the plan and the knee named."""
    front: list[Point] = []
    for point in frontier.points:
        if not front or point.best.cost_usd < front[-1].best.cost_usd:
            front.append(point)
    if len(front) < _LEAST_TO_DRAW:
        return ()
    knee, named = _knee(front), [*_plan_point(frontier, plan)]
    if knee is not None:
        named.append((knee.deadline_hours, float(knee.best.cost_usd), "knee"))
    limit = _limit_hours(plan)
    first, last = front[0], front[-1]
    alt = (
        f"The cost falls from {scale.usd(first.best.cost_usd)} at {number(first.deadline_hours)} h to "
        f"{scale.usd(last.best.cost_usd)} at {number(last.deadline_hours)} h."
    )
    alt += " The dashed line is your deadline." if limit is not None else ""
    if knee is not None:
        alt += (
            " Up to the knee each percent of time saved costs less than a percent of money, beyond it more."
        )
    series = (
        ("x", tuple(point.deadline_hours for point in front)),
        ("cost", tuple(float(point.best.cost_usd) for point in front)),
    )
    labels = tuple(in_brief(point.best) for point in front)
    marks = () if limit is None else (limit,)
    return (
        Chart(
            "cost_by_deadline", "Cost of the cheapest plan by deadline", "steps", labels, series, "usd", alt,
            marks=marks, drawn_only=True, axis="deadline, hours from the start", named=tuple(named),
        ),
    )  # fmt: skip


def _knee(front: Sequence[Point]) -> Point | None:
    """The point of the least product of deadline and cost; None where it is an end of the frontier."""
    best = min(front, key=lambda point: point.deadline_hours * float(point.best.cost_usd))
    return None if best in (front[0], front[-1]) else best


def _limit_hours(plan: Plan) -> float | None:
    if plan.deadline is None:
        return None
    wait = datetime.fromisoformat(plan.deadline) - datetime.fromisoformat(plan.start)
    return wait.total_seconds() / 3600.0


def _plan_point(frontier: Frontier, plan: Plan) -> list[tuple[float, float, str]]:
    """Where the plan is: at its deadline, without one where the cost is least; the fastest at its own 90 % end."""
    if plan.status != "planned":
        return []
    at = _limit_hours(plan)
    if plan.objective == "time":
        at = plan.hours if plan.risk is None else plan.risk.worst_hours
    elif at is None:
        at = next(
            one.deadline_hours
            for one in frontier.points
            if one.best.cost_usd <= frontier.points[-1].best.cost_usd
        )
    return [(at, float(plan.total_usd), "your plan")]
