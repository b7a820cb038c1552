"""`planner forecast`: what the coming months cost, from a bill and from plans."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.options import (
    RATIO,
    bill_options,
    currency_option,
    daily_option,
    details_option,
    drop_days_option,
    examples,
    more_paths,
    output_options,
    planned_option,
    rates_options,
    vintages_option,
)
from planner.commands.output import show_answer
from planner.render.formats import PLAN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.finops.forecast.daily import DailyCost
    from planner.render.model import Answer

# where --periods is not given: a third year ends further ahead than a forecast reaches
_PERIODS = {"month": 3, "quarter": 3, "year": 2}


@click.command(
    epilog=examples(
        "planner forecast --daily examples/daily-costs.csv --horizon 90",
        "planner forecast --focus examples/focus --scenario price=-20% --period quarter",
    )
)
@more_paths
@bill_options
@daily_option
@click.option(
    "--by", default="total", show_default=True, help="Scopes: service, project, region, tag:team, ..."
)
@click.option(
    "--cost",
    type=click.Choice(["effective", "billed"]),
    default="effective",
    show_default=True,
    help="Cost column of the bill.",
)
@currency_option
@rates_options
@click.option(
    "--exact-tags",
    is_flag=True,
    help="Treat ML-Platform and ml_platform, and keys team and Team, as different (default: as the same).",
)
@planned_option
@click.option(
    "--more-members", is_flag=True, help="Also try statsforecast's models (extra `forecast`); slower."
)
@click.option(
    "--commitments-end", is_flag=True, help="Do not renew commitments that end (default: renew them)."
)
@click.option(
    "--scenario",
    multiple=True,
    metavar="CHANGE",
    help="price=-20%, team-a:volume=+30%@2026-12-01; may be repeated.",
)
@click.option(
    "--period",
    type=click.Choice(["month", "quarter", "year"]),
    default="month",
    show_default=True,
    help="Length of the periods.",
)
@click.option(
    "--periods",
    type=click.IntRange(1, 24),
    default=None,
    help="Number of periods, including the current one.  [default: 3, or 2 years]",
)
@click.option(
    "--horizon",
    type=click.IntRange(0, 750),
    default=30,
    show_default=True,
    help="Add one period of this many days; 0: none.",
)
@click.option("--fiscal-start", metavar="MM", help="Month in which the fiscal year begins.")
@click.option(
    "--fiscal-weeks", metavar="4-4-5@DAY", help="Weeks of a quarter's periods; DAY begins a fiscal year."
)
@click.option(
    "--level", type=RATIO, default="80%", show_default=True, help="Share of cases that the intervals cover."
)
@click.option(
    "--top",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Number of separate scopes; the others are combined.",
)
@drop_days_option
@click.option(
    "--score", multiple=True, metavar="GLOB", help="Score saved forecasts (-o json) instead; may be repeated."
)
@vintages_option
@details_option("forecast", "record", "planned", "notes")
@output_options(PLAN_FORMATS, private=True)
def forecast(
    focus: tuple[str, ...], more: tuple[str, ...],
    daily: Path | None, by: str, cost: str, currency: str | None, plans: tuple[str, ...],
    commitments_end: bool, more_members: bool, scenario: tuple[str, ...], period: str, periods: int | None,
    horizon: int, fiscal_start: str | None, fiscal_weeks: str | None, level: float, top: int,
    drop_days: int | None, score: tuple[str, ...], vintages: Path | None, pairs: tuple[str, ...],
    rates: Path | None, target: str | None, map_file: Path | None, exact_tags: bool, details: tuple[str, ...],
    output: str, out: Path | None,
) -> None:  # fmt: skip
    """Forecast the cost of a bill (--focus) or of daily costs (--daily), in total and by scope.

    Methods are weighted by their accuracy on each scope's past; the table shows how accurate. Intervals apply to whole
    periods. `-o focus` writes FOCUS 1.4 rows. Exit code 2: invalid input.
    """
    from planner.errors import InputError
    from planner.finops.forecast.answer import Question, forecast_scopes
    from planner.finops.forecast.calendars import parse_calendar
    from planner.finops.forecast.completion import learn_completion
    from planner.finops.forecast.daily import load_vintages
    from planner.finops.forecast.more import statsforecast_members
    from planner.finops.forecast.plans import load_plans
    from planner.finops.forecast.report import forecast_report
    from planner.finops.forecast.scenarios import parse_scenario
    from planner.finops.forecast.source import check_currency, read_costs
    from planner.finops.read.mapping import read_mapping
    from planner.finops.read.rates import read_rates
    from planner.render.progress import counted_progress

    if daily is not None and by not in ("total", "scope"):
        raise InputError(f"--by {by} divides a bill (--focus): daily costs are divided by their column scope")
    calendar = parse_calendar(fiscal_start, fiscal_weeks)
    scenarios = tuple(parse_scenario(text) for text in scenario)
    planned, plan_currency = load_plans(plans)
    bill = (*focus, *more)  # a shell puts what a glob matches after --focus
    costs = read_costs(bill, daily, (by,), cost=cost, currency=currency, endings=commitments_end,
                       mapping=read_mapping(pairs, map_file), rates=read_rates(rates, target),
                       exact_tags=exact_tags)  # fmt: skip
    known_currency = check_currency(costs.currency, plan_currency)
    question = Question(
        calendar=calendar, size=period, count=periods or _PERIODS[period], horizon_days=horizon,  # type: ignore[arg-type]
        level=level, top=top,
        drop_days=drop_days, scenarios=scenarios, planned=(*planned, *costs.endings),
        completion=learn_completion(load_vintages(vintages)) if vintages is not None else None,
        more_members=statsforecast_members() if more_members else None,
    )  # fmt: skip
    quiet = bool(getattr(click.get_current_context().find_root().obj, "quiet", False))
    for line in costs.findings if not quiet else ():
        click.echo(line, file=sys.stderr)
    if score:
        show_answer(_scored(score, costs.scopes[by], costs.currency), output, out)
        return
    name = by if daily is None else "scope"
    with counted_progress("scopes", quiet=quiet) as progress:
        answer = forecast_scopes(
            costs.scopes[by], question, currency=known_currency, by=name, progress=progress
        )
    show_answer(forecast_report(answer, details=details), output, out)


def _scored(patterns: tuple[str, ...], scopes: Mapping[str, DailyCost], currency: str) -> Answer:
    from planner.finops.forecast.daily import total_of
    from planner.finops.forecast.score import load_saved, score_forecasts
    from planner.finops.forecast.score_report import score_report

    return score_report(
        score_forecasts(load_saved(patterns), {"total": total_of(scopes), **scopes}), currency
    )
