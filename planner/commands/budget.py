"""`planner budget`: what was spent of each budget, where it lands, and how likely it goes over."""

from __future__ import annotations

import sys
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from planner.commands.options import (
    DAY,
    bill_options,
    currency_option,
    daily_option,
    details_option,
    drop_days_option,
    examples,
    output_options,
    planned_option,
    rates_options,
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
@bill_options
@daily_option
@currency_option
@rates_options
@click.option("--day", type=DAY, default=None, help="Check the periods of this day; default: the last known.")
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
    rates: Path | None, target: str | None,
    plans: tuple[str, ...], drop_days: int | None, pairs: tuple[str, ...], map_file: Path | None,
    details: tuple[str, ...], fiscal_year_start: int | None, output: str, out: Path | None,
) -> None:  # fmt: skip
    """Check BUDGETS (a YAML file, `planner schema budget`) against a bill (--focus) or daily costs (--daily).

    Further PATHs belong to the bill, so that the shell can expand a glob after --focus.

    Exit code 0: all within their gates; 5: a budget is exceeded, or more likely to be exceeded than its gate allows;
    2: invalid input.
    """
    from planner.finops.budget.files import check_files
    from planner.finops.budget.fiscal import fiscal_year
    from planner.finops.budget.report import budget_report
    from planner.finops.read.mapping import read_mapping
    from planner.finops.read.rates import read_rates

    budgets, more = _budgets_and_bill(paths)
    is_quiet = bool(getattr(click.get_current_context().find_root().obj, "quiet", False))
    budget_check = check_files(
        budgets, (*focus, *more), daily=daily, plans=plans, day=day.date() if day is not None else None,
        currency=currency, drop_days=drop_days, mapping=read_mapping(pairs, map_file),
        rates=read_rates(rates, target),
        tell=None if is_quiet else partial(click.echo, file=sys.stderr),
    )  # fmt: skip
    answer = budget_check.answer
    year = (
        fiscal_year(
            budget_check.loaded, budget_check.costs.scopes, fiscal_year_start, answer.last_day,
            twice=budget_check.costs.twice,
        )
        if fiscal_year_start
        else None
    )  # fmt: skip
    show_answer(budget_report(answer, details=details, year=year), output, out)
    if answer.exceeded:
        click.get_current_context().exit(5)


def _budgets_and_bill(paths: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """The budgets file, and the rest: the only YAML file of several, else the first."""
    yaml_paths = [path for path in paths if path.lower().endswith((".yaml", ".yml"))]
    budgets = yaml_paths[0] if len(yaml_paths) == 1 else paths[0]
    at = paths.index(budgets)
    return Path(budgets), (*paths[:at], *paths[at + 1 :])
