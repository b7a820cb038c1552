"""Bills: the review of a month, and what the coming ones cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from planner.asked.calls import question
from planner.asked.given import Day, month_of, path_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.finops.forecast.answer import ForecastAnswer
    from planner.finops.review.model import Review


@question
def review(
    bill: str | Path | Sequence[str | Path],
    *,
    month: Day | None = None,
    compare: Day | None = None,
    tags: Sequence[str] = ("team", "env"),
    run_tag: str | None = None,
    budgets: str | Path | None = None,
    plans: Sequence[str | Path] = (),
    currency: str | None = None,
    rates: str | Path | None = None,
    target: str | None = None,
    forecast: bool = True,
) -> Review:
    """Review one month of a cloud bill (FOCUS 1.0 to 1.4, or the exports of AWS, Azure and Google).

    Args:
        bill: files, folders or globs.
        month: the month to review, such as `2026-10`; by default the newest with use beyond its first day.
        compare: the month to compare with; by default the one before.
        tags: mandatory tag keys, the first names who pays.
        run_tag: tag key that names a run; default `planner_run_id`, else `run_id`, whichever charges carry.
        budgets: a budgets file.
        plans: saved plans of the runs, files or globs.
        currency: rows to take, ISO 4217; by default those of the bill's own.
        rates: a CSV of exchange rates (date, from, to, rate), which puts all currencies of the bill into `target`.
        target: ISO 4217; the currency of the answer, with `rates` (`--in` of the command).
        forecast: whether to look ahead.

    Raises:
        InputError: the bill or a file cannot be read.
    """
    from planner.finops.plan_vs_actual import load_plans
    from planner.finops.read import open_bill
    from planner.finops.read.rates import read_rates
    from planner.finops.review.answer import review_bill
    from planner.finops.review.files import find_named
    from planner.inputs.budget_load import load_budgets

    loaded_budgets = None if budgets is None else load_budgets(Path(budgets))
    runs = load_plans(find_named("plans", [str(path) for path in plans]))
    first = month_of(month)
    exchange = read_rates(path_of(rates), target)
    with open_bill(texts_of(bill), month=first, currency=currency, rates=exchange, tags_later=True) as opened:
        return review_bill(
            opened, month=first, compare_month=month_of(compare), budgets=loaded_budgets, plans=runs, tags=tuple(tags),
            run_tag=run_tag, forecast=forecast,
        )  # fmt: skip


@question
def forecast(
    bill: str | Path | Sequence[str | Path] = (),
    *,
    daily: str | Path | None = None,
    by: str = "total",
    cost: str = "effective",
    currency: str | None = None,
    rates: str | Path | None = None,
    target: str | None = None,
    plans: Sequence[str] = (),
    period: Literal["month", "quarter", "year"] = "month",
    periods: int = 3,
    horizon_days: int = 30,
    level: float = 0.8,
) -> ForecastAnswer:
    """Forecast what the coming periods cost, from a bill or from daily costs, with plans added.

    Args:
        bill: files, folders or globs of a bill.
        daily: instead of a bill, a CSV with date, scope, cost.
        by: scopes: `total`, `service`, `project`, `region`, `tag:team`, ...
        cost: `effective` or `billed`.
        currency: ISO 4217.
        rates: a CSV of exchange rates (date, from, to, rate), which puts all currencies of the bill into `target`.
        target: ISO 4217; the currency of the answer, with `rates` (`--in` of the command).
        plans: saved plans to add, as `[SCOPE=]GLOB`.
        period: `month`, `quarter` or `year`.
        periods: how many, with the running one.
        horizon_days: one more period of so many days; 0: none.
        level: share of cases that the intervals hold, 0..1.

    Raises:
        InputError: a file cannot be read, or neither or both of bill and daily are given.
    """
    from planner.finops.forecast.answer import Question, forecast_scopes
    from planner.finops.forecast.plans import load_plans
    from planner.finops.forecast.source import check_currency, read_costs
    from planner.finops.read.rates import read_rates

    planned, plan_currency = load_plans(tuple(plans))
    exchange = read_rates(path_of(rates), target)
    costs = read_costs(texts_of(bill), path_of(daily), (by,), cost=cost, currency=currency, rates=exchange)
    question = Question(
        size=period,
        count=periods,
        horizon_days=horizon_days,
        level=level,
        planned=(*planned, *costs.endings),
    )
    return forecast_scopes(
        costs.scopes[by], question, currency=check_currency(costs.currency, plan_currency),
        by=by if daily is None else "scope",
    )  # fmt: skip
