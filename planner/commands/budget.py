"""`planner budget`: what was spent of each budget, where it lands, and how likely it goes over."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import (
    DayOption,
    currency_option,
    daily_option,
    details_option,
    drop_days_option,
    examples,
    focus_option,
    map_file_option,
    map_option,
    output_options,
    planned_option,
)
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner budget examples/budgets.yaml --daily examples/daily-costs.csv",
        "planner budget budgets.yaml --focus 'bills/*.parquet' --plans team-a=plans/*.json",
    )
)
@click.argument("paths", nargs=-1, required=True, metavar="BUDGETS [PATH]...")
@focus_option
@map_option
@map_file_option
@daily_option
@currency_option
@click.option(
    "--day", type=DayOption(), default=None, help="Check the periods of this day; default: the last known."
)
@planned_option
@drop_days_option
@click.option(
    "--fiscal-year-start",
    type=click.IntRange(1, 12),
    default=None,
    metavar="MONTH",
    help="Show the fiscal year that begins in this month (1 to 12): budget against actual by month.",
)
@details_option("fiscal_year", "budgets", "notes", "missing", "not_in_force")
@output_options(ANSWER_FORMATS, private=True)
def budget(
    paths: tuple[str, ...], focus: tuple[str, ...], daily: Path | None, currency: str | None, day: datetime | None,
    plans: tuple[str, ...], drop_days: int | None, pairs: tuple[str, ...], map_file: Path | None,
    details: tuple[str, ...], fiscal_year_start: int | None, output: str, out: Path | None,
) -> None:  # fmt: skip
    """Check BUDGETS (a YAML file, `planner schema budget`) against a bill (--focus) or daily costs (--daily).

    Further PATHs belong to the bill, so that a shell may expand a glob behind --focus.

    Exit code 0: all within the gate; 5: one is over, or likelier to go over than its gate allows; 2: bad input.
    """
    from planner.errors import InputError
    from planner.finops.budget.answer import check_budgets, dimensions, refuse_csv_scopes
    from planner.finops.budget.fiscal import fiscal_year
    from planner.finops.budget.report import budget_report
    from planner.finops.forecast.plans import load_plans
    from planner.finops.forecast.source import check_currency, read_costs
    from planner.finops.read.mapping import read_mapping
    from planner.inputs.budget_load import load_budgets
    from planner.render.currency import UNKNOWN_CURRENCY

    budgets, more = _budgets_and_bill(paths)
    bill = (*focus, *more)
    loaded = load_budgets(budgets)
    if bill and daily is None:
        refuse_csv_scopes(loaded)
    planned, plan_currency = load_plans(plans)
    if currency is None and daily is not None:
        currency = loaded.file.currency
    costs = read_costs(bill, daily, dimensions(loaded), cost=loaded.file.cost, currency=currency,
                       mapping=read_mapping(pairs, map_file))  # fmt: skip
    if costs.currency == UNKNOWN_CURRENCY:
        raise InputError(
            f"--focus: the bill names no currency, the budgets are in {loaded.file.currency}: if the bill is too, say "
            f"so with --currency {loaded.file.currency}"
        )
    check_currency(costs.currency, plan_currency)
    quiet = bool(getattr(click.get_current_context().find_root().obj, "quiet", False))
    for line in costs.findings if not quiet else ():
        click.echo(line, file=sys.stderr)
    answer = check_budgets(
        loaded, costs.scopes, currency=costs.currency, day=day.date() if day is not None else None, planned=planned,
        drop_days=drop_days,
    )  # fmt: skip
    answer = replace(answer, daily=daily is not None)
    year = (
        fiscal_year(loaded, costs.scopes, fiscal_year_start, answer.last_day) if fiscal_year_start else None
    )
    show_answer(budget_report(answer, details=details, year=year), output, out)
    if answer.exceeded:
        click.get_current_context().exit(5)


def _budgets_and_bill(paths: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """The budgets file, and the rest: the only YAML file of several, else the first."""
    named = [path for path in paths if path.lower().endswith((".yaml", ".yml"))]
    budgets = named[0] if len(named) == 1 else paths[0]
    at = paths.index(budgets)
    return Path(budgets), (*paths[:at], *paths[at + 1 :])
