"""The cost/time frontier as a report: one row per point, the workload's own limits marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.render import numbers, words
from planner.render.document import Document, Facts, Grid, without_empty
from planner.render.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.job.frontier import Frontier, Point

_COLUMNS = (
    "deadline_hours", "expected_hours", "cost_usd", "provider", "region", "zone", "instance_type", "accelerator",
    "accelerators", "nodes", "purchase_option", "option_variant", "within_deadline", "within_budget", "wished",
    "price_as_of", "flags",
)  # fmt: skip


def frontier_report(found: Frontier, shown: Sequence[Point]) -> Report:
    """Build the report.

    Args:
        found: all points, which the data formats list.
        shown: the points that the table lists.
    """
    rows = [_values(point) for point in found.points]
    values = {
        "workload": found.workload, "deadline_confidence": found.confidence, "candidates": found.candidates,
        "deadlines_asked": found.deadlines, "searched": found.note, "points": rows,
    }  # fmt: skip
    table = [{**row, "flags": ";".join(row["flags"])} for row in rows]
    return Report(_document(found, shown), values, _COLUMNS, table)


def _values(point: Point) -> dict[str, Any]:
    best = point.best
    own = {"deadline_hours": point.deadline_hours, "expected_hours": best.hours, "cost_usd": best.cost_usd}
    own |= {"within_deadline": point.within_deadline, "within_budget": point.within_budget}
    own |= {"wished": point.wished}
    return own | {name: getattr(best, name) for name in _COLUMNS if name not in own}


def _document(found: Frontier, shown: Sequence[Point]) -> Document:
    if not shown:
        text = f"No point for {found.workload}: no candidate passes the limits other than deadline and budget"
        return Document(text, ("`planner optimize` says which limits remove the candidates",), (), False)
    first, last = shown[0], shown[-1]
    headline = (
        f"{found.workload}: from {numbers.usd(last.best.cost_usd)} in {numbers.hours(last.deadline_hours)} h "
        f"to {numbers.usd(first.best.cost_usd)} in {numbers.hours(first.deadline_hours)} h"
    )
    sure = numbers.percent(found.confidence, 0)
    summary = (f"Each row is the cheapest plan for its deadline, kept with {sure} probability.",)
    header, rows, align = without_empty(
        ("deadline h", "expected h", "cost", "cluster", "option", "place", "your limits"),
        [_row(point) for point in shown], "rrrllll",
    )  # fmt: skip
    left = len(found.points) - len(shown)
    notes = (f"{left} points between not shown; -o csv lists all",) if left else ()
    proof = (
        (
            "method",
            f"exact at each of {found.deadlines} deadlines asked for, those listed among them; between two of them no "
            "better than at the later, no worse than at the earlier",
        ),
        ("candidates", f"{found.candidates:,}"),
        ("searched", found.note),
    )
    blocks = (Grid("Cost by deadline", header, rows, align, notes), Facts("Proof", proof, detail=True))
    return Document(headline, summary, blocks, True)


def _row(point: Point) -> tuple[str, ...]:
    best = point.best
    return (
        numbers.hours(point.deadline_hours), numbers.hours(best.hours), numbers.usd(best.cost_usd),
        words.cluster(best.nodes, best.instance_type), words.option(best.purchase_option, best.option_variant),
        words.place(best.provider, best.region, best.zone), _limits(point),
    )  # fmt: skip


def _limits(point: Point) -> str:
    broken = [name for name, kept in (("too late", point.within_deadline), ("over budget", point.within_budget))
              if kept is False]  # fmt: skip
    if broken:
        return ", ".join(broken)
    return "" if point.within_deadline is None and point.within_budget is None else "kept"
