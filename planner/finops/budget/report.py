"""Budgets as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.finops.budget.fiscal_report import fiscal_section, fiscal_values
from planner.finops.budget.screen import budget_screen
from planner.render import numbers
from planner.render.model import Answer, Chart, Column, Section, Value, table_section, versioned
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.finops.budget.answer import BudgetAnswer, BudgetLine
    from planner.finops.budget.fiscal import FiscalYear

_COLUMNS = (
    "budget", "scope", "period", "start", "end", "currency", "amount", "actual_to_date", "landing", "p10", "p90",
    "planned", "p_over", "max_p_over", "status", "runs_out", "days_left", "backtest_windows",
    "backtest_median_error_ratio", "missing_days",
)  # fmt: skip
_SAID = {"over": "OVER", "alert": "ALERT", "watch": "watch", "ok": "ok"}


def budget_report(
    answer: BudgetAnswer,
    *,
    details: Collection[str] = (),
    year: FiscalYear | None = None,
) -> Answer:
    """Build the answer in the shape that every format is made of.

    Args:
        answer: the answer.
        details: keys of sections to show in place of the screen, or `all`.
        year: budgets by month of a fiscal year, shown in place of the screen where no details are asked for.
    """
    rows = [_values(answer, line) for line in answer.lines]
    values: dict[str, Any] = {
        "budgets": answer.name, "currency": answer.currency, "last_day": answer.last_day.isoformat(),
        "dropped_days": answer.dropped_days, "first_day": answer.first_day.isoformat(),
        "exceeded": answer.exceeded, "lines": rows,
        "not_in_force": list(answer.silent),
    }  # fmt: skip
    flat = [
        {name: round(v, 6) if isinstance(v := row[name], float) else v for name in _COLUMNS} for row in rows
    ]
    title, summary, sections = _said(answer)
    if year is not None:
        values["fiscal_year"] = fiscal_values(year)
        sections = (fiscal_section(year, answer.currency), *sections)
        details = details or ("fiscal_year",)
    whole = Answer(
        f"Budgets {answer.name}", title, summary, sections, versioned(values), _COLUMNS, flat,
        success=not any(line.exceeded for line in answer.lines), currency=answer.currency,
    )  # fmt: skip
    notes = [text for section in sections for text in section.sentences]
    screen = budget_screen(
        answer, title.removeprefix(f"{answer.name}: "), summary[0], _SAID, notes, daily=answer.daily
    )
    return on_screen(whole, screen, details)


def _values(answer: BudgetAnswer, line: BudgetLine) -> dict[str, Any]:
    return {
        "budget": line.name, "scope": line.scope, "period": line.period.label, "start": line.period.start.isoformat(),
        "end": line.period.end.isoformat(), "currency": answer.currency, "amount": line.amount,
        "actual_to_date": line.actual, "landing": line.landing, "p10": line.low, "p90": line.high,
        "planned": line.planned, "p_over": line.p_over, "max_p_over": line.max_p_over, "status": line.status,
        "runs_out": line.runs_out.isoformat() if line.runs_out else None, "days_left": line.days_left,
        "backtest_windows": line.backtest.windows,
        "backtest_median_error_ratio": line.backtest.median_error_ratio, "missing_days": line.missing_days,
    }  # fmt: skip


def _said(answer: BudgetAnswer) -> tuple[str, tuple[str, ...], tuple[Section, ...]]:
    bad = [line.name for line in answer.lines if line.exceeded]
    count = len(answer.lines)
    if not count:
        verdict = "no budget holds in this period"
    elif bad:
        verdict = f"{len(bad)} of {count} budgets over or likely to be: {', '.join(bad)}"
    else:
        verdict = f"{count} budget{'s' if count > 1 else ''} within the gate"
    known = f"cost known to {answer.last_day}"
    if answer.dropped_days:
        known += f"; {answer.dropped_days} later day(s) left out: the bill is not complete"
    sections: tuple[Section, ...] = (_lines(answer),) if count else ()
    short = [line.name for line in answer.lines if line.period.start < answer.first_day]
    if short:
        text = f"{', '.join(short)}: what was spent before {answer.first_day} is not known and not counted"
        sections += (Section("notes", "Notes", (text,), warning=True),)
    if gaps := [(line.missing_days, line.name) for line in answer.lines if line.missing_days]:
        named = "; ".join(f"{name}: {days} day{'s' * (days > 1)}" for days, name in gaps)
        text = f"no cost is reported for days of the period, which count as 0: {named}"
        sections += (Section("missing", "Missing days", (text,), warning=True),)
    if answer.silent:
        sections += (Section("not_in_force", "Not in force", answer.silent),)
    return f"{answer.name}: {verdict}", (known,), sections


def _lines(answer: BudgetAnswer) -> Section:
    rows: list[tuple[Value, ...]] = [
        (line.name, line.period.label, line.amount, line.actual, line.actual / line.amount if line.amount else "",
         line.landing, (line.low, line.high) if line.days_left else "", _chance(line), _SAID[line.status],
         line.runs_out.isoformat() if line.runs_out else "")
        for line in answer.lines
    ]  # fmt: skip
    columns = (
        Column("budget", "budget", "text"), Column("period", "period", "text"),
        Column("amount", "amount", "money_short"), Column("actual_to_date", "to date", "money_short"),
        Column("used_ratio", "used", "ratio", 0), Column("landing", "landing", "money_short"),
        Column("range", "P10 to P90", "span"), Column("p_over", "Chance over", "chance"),
        Column("status", "status", "text"), Column("runs_out", "passed on", "date"),
    )  # fmt: skip
    limits = sorted({line.max_p_over for line in answer.lines})
    gate = " or ".join(numbers.percent(limit, 0) for limit in limits)
    series = (
        ("landing", tuple(line.landing for line in answer.lines)),
        ("to date", tuple(line.actual for line in answer.lines)),
        ("budget", tuple(line.amount for line in answer.lines)),
    )
    names = tuple(line.name for line in answer.lines)
    chart = Chart("budgets", "", "bars", names, series, "money", "", drawn_only=True)
    notes = (f"ALERT: chance of being over above {gate}; exit code 5",)
    return table_section("budgets", "Budgets", columns, rows, notes, charts=(chart,))


def _chance(line: BudgetLine) -> float | str:
    """The probability of going over; once the period has ended, whether it did."""
    if line.days_left:
        return line.p_over
    return "over" if line.p_over else "no"
