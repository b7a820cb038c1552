"""The cost/time frontier as a report: one row per point, the workload's own limits marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.job.frontier_screen import fitting, frontier_screen, kept_limits, known_usd
from planner.render import numbers, words
from planner.render.model import (
    Answer,
    Chart,
    Column,
    Section,
    Value,
    facts,
    table_section,
    versioned,
)
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planner.job.frontier import Frontier, Point

_COLUMNS = (
    "deadline_hours", "expected_hours", "cost_usd", "provider", "region", "zone", "instance_type", "accelerator",
    "accelerators", "nodes", "purchase_option", "option_variant", "within_deadline", "within_budget", "wished",
    "price_as_of", "flags",
)  # fmt: skip
_SHOWN = (
    Column("deadline_hours", "deadline h", "hours"), Column("expected_hours", "expected h", "hours"),
    Column("cost_usd", "cost", "usd"), Column("cluster", "cluster", "cluster"), Column("option", "option", "option"),
    Column("place", "place", "place"), Column("limits", "your limits", "text"),
)  # fmt: skip


def frontier_report(
    frontier: Frontier, shown: Sequence[Point] | None = None, *, details: Collection[str] = (), fit: bool = True
) -> Answer:  # fmt: skip
    """Build the answer.

    Args:
        frontier: all points, which the data formats and the chart hold.
        shown: the points that the table lists; by default all.
        details: keys of sections to show in place of the screen, or `all`.
        fit: show no more of them on the screen than it has room for.
    """
    shown = frontier.points if shown is None else shown
    rows = [_values(point) for point in frontier.points]
    values = {
        "workload": frontier.workload, "deadline_confidence": frontier.confidence, "candidates": frontier.candidates,
        "workload_sha256": frontier.workload_sha256, "created_at": frontier.created_at, "start": frontier.start,
        "catalog": [vars(source) for source in frontier.sources], "deadlines_asked": frontier.deadlines,
        "searched": frontier.note, "points": rows,
    }  # fmt: skip
    title, summary, sections = _said(frontier, shown)
    flat = [{**row, "flags": ";".join(row["flags"])} for row in rows]
    whole = Answer(
        f"Cost by deadline of {frontier.workload}", title, summary, sections, versioned(values), _COLUMNS, flat,
        success=bool(shown),
    )  # fmt: skip
    return on_screen(whole, frontier_screen(frontier, fitting(shown) if fit else shown), details)


def _values(point: Point) -> dict[str, Any]:
    best = point.best
    own = {"deadline_hours": point.deadline_hours, "expected_hours": best.hours, "cost_usd": best.cost_usd}
    own |= {"within_deadline": point.within_deadline, "within_budget": point.within_budget}
    own |= {"wished": point.wished, "p_meet_deadline": point.p_meet_deadline}
    own |= {"parts": [vars(part) for part in best.parts]}
    return own | {name: getattr(best, name) for name in _COLUMNS if name not in own}


def _said(frontier: Frontier, shown: Sequence[Point]) -> tuple[str, tuple[str, ...], tuple[Section, ...]]:
    if not shown:
        text = (
            f"No point for {frontier.workload}: no candidate passes the limits other than deadline and budget"
        )
        return text, ("`planner optimize` shows which limits exclude the candidates",), ()
    first, last = shown[0], shown[-1]
    title = (
        f"{frontier.workload}: from {known_usd(last.best.cost_usd)} in {numbers.hours(last.deadline_hours)} h "
        f"to {known_usd(first.best.cost_usd)} in {numbers.hours(first.deadline_hours)} h"
    )
    sure = numbers.percent(frontier.confidence, 0)
    summary = (
        f"Each row is the cheapest plan that `optimize` finds for its deadline, met with {sure} probability. "
        "Cost and time are both weighed here, so preferences.objective is not used.",
    )
    left = len(frontier.points) - len(shown)
    notes = (
        (f"{left} {'point' if left == 1 else 'points'} between not shown; -o csv lists all",) if left else ()
    )
    points = table_section(
        "points", "Cost by deadline", _SHOWN, [_row(point) for point in shown], notes, charts=_chart(frontier)
    )
    method = (
        f"exact at each of {frontier.deadlines} deadlines, including those listed, among the candidates compared; "
        "between two of them, no better than at the later and no worse than at the earlier"
    )
    proof = facts(
        "proof", "Proof",
        [
            ("method", "method", "exact", "text", method),
            ("candidates", "candidates", frontier.candidates, "count", f"{frontier.candidates:,}"),
            ("searched", "searched", frontier.note, "text", frontier.note),
        ],
        detail=True,
    )  # fmt: skip
    return title, summary, (points, proof)


def _chart(frontier: Frontier) -> tuple[Chart, ...]:
    """Cost over the deadline: each point's cost is least until the next deadline."""
    labels = tuple(words.cluster(point.best.nodes, point.best.instance_type) for point in frontier.points)
    hours = tuple(point.deadline_hours for point in frontier.points)
    costs = tuple(float(point.best.cost_usd) for point in frontier.points)
    if len(frontier.points) < 2:
        return ()
    alt = f"Cost falls from {known_usd(max(p.best.cost_usd for p in frontier.points))} as the deadline moves later."
    series = (("x", hours), ("cost", costs))
    return (
        Chart(
            "cost_by_deadline", "", "steps", labels, series, "usd", alt, drawn_only=True, axis="deadline, h"
        ),
    )


def _row(point: Point) -> tuple[Value, ...]:
    best = point.best
    return (
        point.deadline_hours, best.hours, best.cost_usd, (best.nodes, best.instance_type),
        (best.purchase_option, best.option_variant), (best.provider, best.region, best.zone), kept_limits(point),
    )  # fmt: skip
