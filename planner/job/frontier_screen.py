"""The screen of a frontier: the cheapest, the soonest, the best trade between them, and the points."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from planner.candidates.decisions import HAIR_RATIO
from planner.job.frontier import thin
from planner.plan.front_choices import assumed_at_once, in_brief
from planner.plan.words import beside_steps, enable_first, places_of, sentence
from planner.render import numbers
from planner.render.model import Column, Section, Value, table_section
from planner.render.precision import dollars, known_places, moment_known, rounded
from planner.render.screen import Row, Screen, has_room, prices_note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from planner.job.frontier import Frontier, Point

_HALF_WIDTH = 0.3  # of a cost whose interval is not worked out: that of a usual plan
_NOTE_COLUMNS = 56  # of a note below, as a table's text of so many: one line at 100 columns, two at 80
_COST_COLUMNS = 7  # of a usual cost; of a longer one the table's text has so many fewer
_ROUND_HOURS = 72.0  # deadlines from here on are printed and typed to the hour, shorter ones to the minute
_SLIP = 1e-6  # of deadlines that are whole hours but for rounding
_COLUMNS = (
    Column("deadline_hours", "deadline h", "hours"), Column("expected_hours", "done in", "hours"),
    Column("cost_usd", "cost", "usd_known"), Column("plan", "plan", "text"), Column("limits", "your limits", "text"),
)  # fmt: skip


def frontier_screen(frontier: Frontier, shown: Sequence[Point]) -> Screen:
    """Return the screen.

    Args:
        frontier: all points.
        shown: the points that the table lists.
    """
    sure = numbers.percent(frontier.confidence, 0)
    asked = f"{frontier.workload}: the cheapest plan for every deadline, met with {sure}"
    asked = ", ".join([asked, *frontier.assumed])
    if not shown:
        why = "none: no candidate passes the limits other than deadline and budget"
        helps = "`planner optimize` shows which limits exclude the candidates"
        rows: list[Row] = [("plan", "plan", "none", "text", why), ("change", "instead", helps, "text", helps)]
        return Screen(
            asked, rows, None, (), f"None of {frontier.candidates:,} candidates is left.", ("optimize FILE",)
        )
    fair = min(frontier.points, key=lambda point: float(point.best.cost_usd) * point.deadline_hours)
    ends = {"cheapest": _cheapest(frontier.points), "soonest": _soonest(frontier.points)}
    rows = [_row(name, frontier, point, also_fair=point is fair) for name, point in ends.items()]
    if not any(point is fair for point in ends.values()):
        rows.insert(1, _row("fair", frontier, fair))
    rows += _limits(frontier)
    proof = (
        f"Exact at each of {frontier.deadlines:,} deadlines, {frontier.candidates:,} candidates compared; between two "
        "deadlines, no better than at the later. Best trade: lowest cost x deadline. Without taxes and support "
        f"plans. {sentence(beside_steps(frontier.beside_steps_ratio))}"
    ).rstrip()
    steps = (
        f"optimize FILE --set constraints.deadline={_as_duration(fair.deadline_hours)}",
        "compare FILE --over region",
    )
    return Screen(asked, rows, _table(frontier, shown), _notes(frontier), proof, steps)


def fitting(points: Sequence[Point]) -> Sequence[Point]:
    """The most telling points for which a screen has room, of those that are nearly alike one."""
    points = _distinct(points)
    note = [text[:_NOTE_COLUMNS] for text in (_soonest_asks(points),) if text]
    longest = max((len(known_usd(point.best.cost_usd)) for point in points), default=0)
    beside = max(longest - _COST_COLUMNS, 0)
    for count in range(len(points), 2, -1):
        kept = thin(points, count)
        if has_room([*(in_brief(point.best) for point in kept), *note], beside):
            return kept
    return thin(points, 2)


def _distinct(points: Sequence[Point]) -> list[Point]:
    """Without points that are next to the same as another; the ends and deadlines that were asked for stay.

    Left out are those whose deadline prints like that of a cheaper one, the same machines bought the same way a hair
    later and cheaper elsewhere, and what prints the plan and cost of an earlier deadline.
    """
    later = [_minutes(point.deadline_hours) for point in points[1:]]
    points = [
        point
        for at, point in enumerate(points)
        if at == len(later) or point.wished or later[at] != _minutes(point.deadline_hours)
    ]
    kept: list[Point] = []
    for at, point in enumerate(points):
        if kept and not point.wished and _prints_alike(point, kept[-1]):
            continue
        if kept and at < len(points) - 1 and not point.wished and _is_near(point, kept[-1]):
            continue
        if at == len(points) - 1 and len(kept) > 1 and not kept[-1].wished and _is_near(point, kept[-1]):
            kept.pop()
        kept.append(point)
    return kept


def _soonest_asks(points: Sequence[Point]) -> str:
    """What the soonest point assumes, where it asks for many times more than the cheapest."""
    if not points:
        return ""
    return assumed_at_once("soonest", _soonest(points).best, points[-1].best.accelerators)


def _cheapest(points: Sequence[Point]) -> Point:
    """The earliest of the points that cost no more than the last in the digits that are known."""
    least = known_usd(points[-1].best.cost_usd)
    return next(point for point in points if known_usd(point.best.cost_usd) == least)


def _soonest(points: Sequence[Point]) -> Point:
    """The cheapest of the points whose deadline prints like the first: they differ by seconds."""
    first = _minutes(points[0].deadline_hours)
    return [point for point in points if _minutes(point.deadline_hours) == first][-1]


def _prints_alike(one: Point, other: Point) -> bool:
    return (known_usd(one.best.cost_usd), in_brief(one.best)) == (
        known_usd(other.best.cost_usd), in_brief(other.best),
    )  # fmt: skip


def _is_near(one: Point, other: Point) -> bool:
    first, second = one.best, other.best
    names = ("provider", "instance_type", "nodes", "purchase_option", "option_variant")
    if any(getattr(first, name) != getattr(second, name) for name in names):
        return False
    pairs = (
        (float(first.cost_usd), float(second.cost_usd)), (first.hours, second.hours),
        (one.deadline_hours, other.deadline_hours),
    )  # fmt: skip
    return all(abs(a - b) <= HAIR_RATIO * max(a, b) for a, b in pairs)


def _places(usd: Decimal) -> int:
    return min(known_places(float(usd), float(usd) * _HALF_WIDTH), 2)


def known_usd(usd: Decimal) -> str:
    """A cost in the digits that are known of a usual one."""
    return dollars(usd, _places(usd))


def _row(name: str, frontier: Frontier, point: Point, *, also_fair: bool = False) -> Row:
    best = point.best
    text = f"{known_usd(best.cost_usd)} by {_moment(frontier, point.deadline_hours)}: {in_brief(best)}"
    if also_fair:
        text += "; the best trade"
    return (name, "best trade" if name == "fair" else name, best.cost_usd, "usd", text)


def _moment(frontier: Frontier, hours: float) -> str:
    if not frontier.start:
        return f"{numbers.hours(hours)} h"
    start = datetime.fromisoformat(frontier.start)
    return moment_known((start + timedelta(minutes=_minutes(hours))).isoformat(), 0.0, start.year)


def _as_duration(hours: float) -> str:
    """A deadline as it is typed, rounded up as `_moment` prints it: `96h`, of a short one `18h6m`."""
    minutes = _minutes(hours)
    parts = (f"{minutes // 60}h" if minutes >= 60 else "", f"{minutes % 60}m" if minutes % 60 else "")
    return "".join(parts)


def _minutes(hours: float) -> int:
    """Whole minutes, or those of whole hours: what is kept by a moment is not kept by an earlier one."""
    step = 60 if hours >= _ROUND_HOURS else 1
    return step * ceil(hours * 60.0 / step - _SLIP)


def _limits(frontier: Frontier) -> list[Row]:
    """How many points keep the workload's own deadline and budget."""
    if all(point.within_deadline is None and point.within_budget is None for point in frontier.points):
        return []
    kept = [point for point in frontier.points if kept_limits(point) == "kept"]
    text = f"{len(kept):,} of {len(frontier.points):,} points keep deadline and budget"
    if kept:
        text += f"; the soonest costs {known_usd(_soonest(kept).best.cost_usd)}"
    return [("kept", "your limits", len(kept), "count", text)]


def kept_limits(point: Point) -> str:
    """Which of the workload's own limits a point breaks; `kept` where none, nothing where there are none.

    `later` says that its deadline is after the workload's own; its expected end may be before that all the same.
    """
    broken = [name for name, kept in (("later", point.within_deadline), ("over budget", point.within_budget))
              if kept is False]  # fmt: skip
    if broken:
        return ", ".join(broken)
    return "" if point.within_deadline is None and point.within_budget is None else "kept"


def _table(frontier: Frontier, shown: Sequence[Point]) -> Section:
    several = len({kept_limits(point) for point in shown}) > 1
    rows: list[tuple[Value, ...]] = [
        (
            point.deadline_hours, point.best.hours, rounded(point.best.cost_usd, _places(point.best.cost_usd)),
            in_brief(point.best), kept_limits(point) if several else "",
        )
        for point in shown
    ]  # fmt: skip
    left = len(frontier.points) - len(shown)
    notes = (
        (f"{left} {'point' if left == 1 else 'points'} between not shown; -o csv lists all",) if left else ()
    )
    return table_section("by_deadline", "Cost by deadline", _COLUMNS, rows, notes)


def _notes(frontier: Frontier) -> tuple[str, ...]:
    today = datetime.fromisoformat(frontier.created_at).date() if frontier.created_at else None
    dates = [point.best.price_as_of for point in frontier.points]
    large = _soonest_asks(frontier.points)
    spot = any(part.purchase_option == "spot" for point in frontier.points for part in point.best.parts)
    return (
        "costs are expected ones; `planner optimize` at a deadline gives the 80 % interval, quotas and checkpoints",
        *(prices_note(dates, today) if today is not None else ()),
        "your deadline and budget are not applied here; all other limits are",
        *([large] if large else []),
        *enable_first(places_of(point.best for point in frontier.points)),
        *(["spot needs automatic resume and checkpoints"] if spot else ()),
    )
