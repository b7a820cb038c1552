"""The screen of budgets: which are over or likely to be, by how much and when, and all of them in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.model import Column, Section, Value, table_section
from planner.render.numbers import percent
from planner.render.precision import figure, known_places, rounded
from planner.render.screen import Row, Screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.finops.budget.answer import BudgetAnswer, BudgetLine

NEXT = ("forecast --focus BILL --by service", "review --focus BILL")
NEXT_DAILY = ("forecast --daily COSTS",)  # daily costs are no bill that could be reviewed
_MOST_NAMED = 4
_MOST_LINES = 16
_SURE, _UNSURE = 0.99, 0.01


def budget_screen(
    answer: BudgetAnswer,
    verdict: str,
    known: str,
    status: Mapping[str, str],
    notes: Sequence[str],
    *,
    daily: bool = False,
) -> Screen:
    """Return the screen.

    Args:
        answer: the answer.
        verdict: how many are over, or likely to be.
        known: until when cost is known.
        status: words of each status.
        notes: what the reader must know.
        daily: whether costs came from a file of daily costs.
    """
    named = sorted((line for line in answer.lines if line.status != "ok"), key=lambda line: -line.p_over)
    rows: list[Row] = [
        ("verdict", "gate", "exceeded" if answer.exceeded else "passed", "text", _gate(answer, verdict))
    ]
    rows += [
        (f"budget_{line.name}", line.name, line.landing, "money", _said(line)) for line in named[:_MOST_NAMED]
    ]
    if len(named) > _MOST_NAMED:
        rows.append(("more", "", len(named), "count", f"{len(named) - _MOST_NAMED:,} more in the table"))
    asked = f"{answer.name}, {answer.currency}: {known}"
    following = NEXT_DAILY if daily else NEXT
    return Screen(
        asked, rows, _table(answer, status), notes, _record(answer), following, "Before you rely on it"
    )


def _table(answer: BudgetAnswer, status: Mapping[str, str]) -> Section | None:
    if not answer.lines:
        return None
    columns = (
        Column("budget", "budget", "text"), Column("period", "period", "text"),
        Column("amount", "amount", "money_short"), Column("actual_to_date", "to date", "money_short"),
        Column("used_ratio", "used", "ratio", 0), Column("landing", "landing", "money_short"),
        Column("p_over", "over", "chance"), Column("status", "status", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            line.name, line.period.label, line.amount, line.actual, line.actual / line.amount if line.amount else "",
            _landing(line), line.p_over if line.days_left else "", status[line.status],
        )
        for line in answer.lines
    ]  # fmt: skip
    return table_section("lines", "Budgets", columns, rows, shown=_MOST_LINES)


def _landing(line: BudgetLine) -> float:
    """In the digits that the interval leaves; what a period that is over has cost is known to the cent."""
    if not line.days_left:
        return line.landing
    half = (line.high - line.low) / 2.0
    return float(rounded(line.landing, min(known_places(line.landing, half), 2)))


def _gate(answer: BudgetAnswer, verdict: str) -> str:
    return f"{'EXCEEDED (exit code 5)' if answer.exceeded else 'passed'}: {verdict}"


def _said(line: BudgetLine) -> str:
    """Where one budget lands, how likely it goes over, and when."""
    if not line.days_left:
        return f"{figure(line.actual, 0)} of {figure(line.amount, 0)} in {line.period.label}, which has ended"
    places = min(known_places(line.landing, (line.high - line.low) / 2.0), 2)
    text = f"lands at {figure(line.landing, places)} of {figure(line.amount, 0)} in {line.period.label} "
    text += (
        f"(80 %: {figure(line.low, places)} to {figure(line.high, places)}); over with {_chance(line.p_over)}"
    )
    return text + (f", about {line.runs_out}" if line.runs_out else "")


def _chance(ratio: float) -> str:
    if ratio > _SURE:
        return ">99 %"
    return "<1 %" if ratio < _UNSURE else percent(ratio, 0)


def _record(answer: BudgetAnswer) -> str:
    tested = [line for line in answer.lines if line.backtest.windows]
    if answer.lines and not any(line.days_left for line in answer.lines):
        return ""  # nothing is forecast
    if not tested:
        return "Not tested: the history is too short for a window of the past."
    errors = sorted(line.backtest.median_error_ratio or 0.0 for line in tested)
    least, most = percent(errors[0]), percent(errors[-1])
    stated = f"a median error of {most}" if least == most else f"median errors of {least} to {most}"
    weighted = "Each is a mean of methods, weighted by their accuracy on its past"
    return f"{weighted}: {stated} on past windows of the remaining length."
