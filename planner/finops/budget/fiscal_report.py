"""A fiscal year as a section of the budgets' answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from planner.finops.budget.fiscal import FiscalBudget, FiscalYear
from planner.render.model import Column, Section, Table, Value
from planner.render.precision import figure, known_places


def fiscal_section(year: FiscalYear, currency: str) -> Section:
    """Each budget's year, its months, and what explains the variance to date."""
    said = [_said(one, currency) for one in year.budgets]
    if any(one.spread for one in year.budgets):
        names = ", ".join(one.name for one in year.budgets if one.spread)
        said.append(
            f"Months of {names} are assumed to be equal parts, by days, of the quarter's or the year's amount."
        )
    said += [words for one in year.budgets if (words := _begins_late(one))]
    if year.unknown:
        names = ", ".join(f"{month:%B %Y}" for month in year.unknown)
        said.append(
            f"No charge of {names} is known (is a file missing?): budget and cost to date are those of the other "
            "months, and the year has no landing."
        )
    if year.twice:
        names = ", ".join(f"{month:%B %Y}" for month in year.twice)
        said.append(
            f"Charges of {names} are counted twice: budget and cost to date are those of the other months, and the "
            "year has no landing; give each charge once."
        )
    elif not year.unknown and any(one.reforecast is None for one in year.budgets):
        said.append(
            "The year has no landing: its months before the first known day are missing, or it ends too far ahead."
        )
    tables = [_years(year), _months(year)]
    if year.explained:
        tables.append(Table("explained", "Variance to date, explained", (Column("part", "budget", "text"),
                            Column("variance", "over budget", "money_short")), tuple(year.explained)))  # fmt: skip
    return Section(
        "fiscal_year",
        f"Fiscal year {year.label} ({year.start} to {year.end - timedelta(days=1)})",
        tuple(said),
        tables=tuple(tables),
    )


def _said(one: FiscalBudget, currency: str) -> str:
    gap = one.to_date_actual - one.to_date_budget
    side = "over" if gap > 0 else "under"
    spent = f"{one.to_date_actual:,.0f} {currency}"
    said = f"{one.name}: {spent} in the months that have ended, {abs(gap):,.0f} {side} budget"
    if one.reforecast is not None and one.low is not None and one.high is not None:
        whole = one.reforecast - one.year_budget
        lands = (
            "the year lands"
            if all(month.budget is not None for month in one.months)
            else "its months of the year land"
        )
        half = (one.high - one.low) / 2
        places = min(known_places(one.reforecast, half), 0) if half else 0
        landing, low, high, off = (
            figure(value, places) for value in (one.reforecast, one.low, one.high, abs(whole))
        )
        span = f" ({low} to {high})" if half else ""
        said += f"; {lands} at {landing}{span}, {off} {'over' if whole > 0 else 'under'}"
    return f"{said}."


def _begins_late(one: FiscalBudget) -> str:
    """That the scope of a budget has no cost in the first months that the bill knows; empty where it has."""
    known = [month for month in one.months if month.state == "actual"]
    at = next((at for at, month in enumerate(known) if month.actual), 0)
    if not at:
        return ""
    begins = f"{known[at].period.start:%B %Y}"
    return f"{one.name} has no cost before {begins}: months before count as 0, also if {one.scope} had another name."


def _years(year: FiscalYear) -> Table:
    rows: list[tuple[Value, ...]] = [
        (one.name, one.to_date_budget, one.to_date_actual, one.to_date_actual - one.to_date_budget, one.year_budget,
         one.reforecast, None if one.reforecast is None else one.reforecast - one.year_budget, one.run_rate_left)
        for one in year.budgets
    ]  # fmt: skip
    columns = (
        Column("budget", "budget", "text"), Column("to_date_budget", "to date, budget", "money_short"),
        Column("to_date_actual", "actual", "money_short"), Column("to_date_variance", "variance", "money_short"),
        Column("year_budget", "year, budget", "money_short"), Column("reforecast", "re-forecast", "money_short"),
        Column("year_variance", "variance", "money_short"), Column("run_rate_left", "left a month", "money_short"),
    )  # fmt: skip
    return Table("years", "The year", columns, tuple(rows))


def _months(year: FiscalYear) -> Table:
    rows: list[tuple[Value, ...]] = []
    for one in year.budgets:
        so_far = 0.0
        for month in one.months:
            gap = None if month.expected is None or month.budget is None else month.expected - month.budget
            so_far += gap or 0.0
            rows.append((one.name, month.period.start.strftime("%Y-%m"), month.state, month.budget, month.actual,
                         month.expected, gap, None if gap is None else so_far))  # fmt: skip
    columns = (
        Column("budget", "budget", "text"), Column("month", "month", "text"), Column("state", "state", "text"),
        Column("amount", "amount", "money_short"), Column("actual", "actual", "money_short"),
        Column("expected", "expected", "money_short"), Column("variance", "variance", "money_short"),
        Column("cumulative", "cumulative", "money_short"),
    )  # fmt: skip
    return Table("months", "By month", columns, tuple(rows), shown=60)


def fiscal_values(year: FiscalYear) -> dict[str, Any]:
    """The year for programs."""
    return {
        "label": year.label, "start": year.start.isoformat(), "end": year.end.isoformat(),
        "explained": [{"budget": name, "variance": gap} for name, gap in year.explained],
        "budgets": [
            {
                "budget": one.name, "scope": one.scope, "months_assumed_equal": one.spread,
                "to_date_budget": one.to_date_budget, "to_date_actual": one.to_date_actual,
                "year_budget": one.year_budget,
                "reforecast": one.reforecast, "p10": one.low, "p90": one.high, "run_rate_left": one.run_rate_left,
                "months": [
                    {"month": f"{m.period.start:%Y-%m}", "state": m.state, "budget": m.budget, "actual": m.actual,
                     "expected": m.expected}
                    for m in one.months
                ],
            }
            for one in year.budgets
        ],
    }  # fmt: skip
