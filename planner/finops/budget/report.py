"""Budgets as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.finops.forecast.report import money
from planner.render import numbers
from planner.render.document import Document, Grid, Notes, without_empty
from planner.render.report import Report

if TYPE_CHECKING:
    from planner.finops.budget.answer import BudgetAnswer, BudgetLine

_COLUMNS = (
    "budget", "scope", "period", "start", "end", "currency", "amount", "actual_to_date", "landing", "p10", "p90",
    "planned", "p_over", "max_p_over", "status", "runs_out", "days_left", "backtest_windows",
    "backtest_median_error_ratio",
)  # fmt: skip
_SAID = {"over": "OVER", "alert": "ALERT", "watch": "watch", "ok": "ok"}


def budget_report(answer: BudgetAnswer) -> Report:
    """Build the report."""
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
    return Report(_document(answer), values, _COLUMNS, flat)


def _values(answer: BudgetAnswer, line: BudgetLine) -> dict[str, Any]:
    return {
        "budget": line.name, "scope": line.scope, "period": line.period.label, "start": line.period.start.isoformat(),
        "end": line.period.end.isoformat(), "currency": answer.currency, "amount": line.amount,
        "actual_to_date": line.actual, "landing": line.landing, "p10": line.low, "p90": line.high,
        "planned": line.planned, "p_over": line.p_over, "max_p_over": line.max_p_over, "status": line.status,
        "runs_out": line.runs_out.isoformat() if line.runs_out else None, "days_left": line.days_left,
        "backtest_windows": line.backtest.windows,
        "backtest_median_error_ratio": line.backtest.median_error_ratio,
    }  # fmt: skip


def _document(answer: BudgetAnswer) -> Document:
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
    blocks: tuple[Grid | Notes, ...] = (_grid(answer),) if count else ()
    short = [line.name for line in answer.lines if line.period.start < answer.first_day]
    if short:
        text = f"{', '.join(short)}: what was spent before {answer.first_day} is not known and not counted"
        blocks += (Notes("Notes", (text,), True),)
    if answer.silent:
        blocks += (Notes("Not in force", answer.silent),)
    return Document(f"{answer.name}: {verdict}", (known,), blocks, not bad)


def _grid(answer: BudgetAnswer) -> Grid:
    rows = [
        (line.name, line.period.label, _short(line.amount), _short(line.actual),
         numbers.percent(line.actual / line.amount, 0) if line.amount else "", _short(line.landing),
         f"{_short(line.low)} to {_short(line.high)}" if line.days_left else "", _chance(line), _SAID[line.status],
         f"{line.runs_out:%m-%d}" if line.runs_out else "")
        for line in answer.lines
    ]  # fmt: skip
    header, cells, align = without_empty(
        ("budget", "period", "amount", "to date", "used", "landing", "P10 to P90", "P(over)", "status", "passed on"),
        rows, "llrrrrrrll",
    )  # fmt: skip
    limits = sorted({line.max_p_over for line in answer.lines})
    gate = " or ".join(numbers.percent(limit, 0) for limit in limits)
    return Grid(
        f"Budgets, {answer.currency}", header, cells, align, (f"ALERT: P(over) above {gate}; exit code 5",)
    )


def _short(value: float) -> str:
    """Format an amount without cents where they would hide what matters."""
    return f"{value:,.0f}" if abs(value) >= 100 else money(value, "XXX")


def _chance(line: BudgetLine) -> str:
    if not line.days_left:
        return "over" if line.p_over else "no"
    if line.p_over < 0.01:
        return "<1 %"
    return ">99 %" if line.p_over > 0.99 else f"{line.p_over:.0%}".replace("%", " %")
