"""Budgets checked from files: the one body of `planner budget` and of `planner.budget`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.budget.answer import BudgetAnswer, check_budgets, dimensions, refuse_csv_scopes
from planner.finops.forecast.plans import load_plans
from planner.finops.forecast.source import Costs, check_currency, read_costs
from planner.inputs.budget_load import LoadedBudgets, load_budgets
from planner.records import record
from planner.render.currency import UNKNOWN_CURRENCY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from planner.finops.read.rates import Rates


@record(frozen=True, eq=False)
class CheckedFiles:
    """What was read, and the answer.

    Attributes:
        loaded: the budgets; `costs`: what they were held against.
    """

    loaded: LoadedBudgets
    costs: Costs
    answer: BudgetAnswer


def check_files(
    budgets: Path,
    bill: Sequence[str],
    *,
    daily: Path | None,
    plans: Sequence[str],
    day: date | None,
    currency: str | None,
    drop_days: int | None,
    mapping: Mapping[str, str] | None = None,
    rates: Rates | None = None,
    tell: Callable[[str], None] | None = None,
) -> CheckedFiles:
    """Check the budgets of a file against a bill or daily costs.

    Args:
        budgets: a YAML file.
        bill: files, folders and globs of a bill.
        daily: instead of a bill, a CSV file with columns date, scope, cost.
        plans: saved plans to add, as `[SCOPE=]GLOB`.
        day: check the periods of this day; None: the last known.
        currency: ISO 4217; None: that of the bill, of daily costs that of the budgets.
        drop_days: last days to leave out; None: those whose bill looks late.
        mapping: of a bill's columns, see `read.open_bill`.
        rates: put a bill's currencies into one (`read.rates.load_rates`).
        tell: told what a reader must know about the bill, before the budgets are checked.

    Raises:
        InputError: a file cannot be read, neither or both of bill and daily are given, or currencies differ.
    """
    loaded = load_budgets(budgets)
    if bill and daily is None:
        refuse_csv_scopes(loaded)
    planned, plan_currency = load_plans(tuple(plans))
    if currency is None and daily is not None:
        currency = loaded.file.currency
    costs = read_costs(
        bill,
        daily,
        dimensions(loaded),
        cost=loaded.file.cost,
        currency=currency,
        mapping=mapping,
        rates=rates,
    )
    if costs.currency == UNKNOWN_CURRENCY:
        raise InputError(
            f"--focus: the bill names no currency, the budgets are in {loaded.file.currency}: if the bill is too, say "
            f"so with --currency {loaded.file.currency}"
        )
    check_currency(costs.currency, plan_currency)
    if tell is not None:
        for finding in costs.findings:
            tell(finding)
    answer = check_budgets(
        loaded, costs.scopes, currency=costs.currency, day=day, planned=planned, drop_days=drop_days
    )
    return CheckedFiles(loaded, costs, replace(answer, daily=daily is not None))
