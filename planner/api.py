"""The public Python API: what `import planner` offers, each function with plain keyword arguments and defaults.

    import planner

    plan = planner.optimize("workload.yaml")
    plan.total_usd, plan.to_frame(), plan.save("plan.json")

Every function takes a path or what `planner.load` returned, and returns an answer that can be printed, shown in a
notebook, turned into a DataFrame or plain values, rendered in any format of `-o` and saved. Wrong input raises
`planner.errors.InputError` with the message that the command prints. Relative paths in a file count from its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from planner.asked.given import Day, month_of, options_on, path_of, texts_of
from planner.inputs.kinds import load_any, loaded_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.model import Catalog
    from planner.estimation.answer import Estimates
    from planner.finops.forecast.answer import ForecastAnswer
    from planner.finops.review.model import Review
    from planner.inputs.kinds import Loaded
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.job.compare import Comparison
    from planner.job.frontier import Frontier
    from planner.pipelines.answer import PipelineAnswer
    from planner.plan.model import Plan
    from planner.portfolios.answer import PortfolioAnswer
    from planner.workloads.whatif import WhatIf


def load(path: str | Path) -> Loaded:
    """Read a workload, portfolio or pipeline file and check it.

    Args:
        path: a YAML file; its key `kind` says what it is.

    Raises:
        InputError: lists every fault with its line, column and remedy.
    """
    return load_any(Path(path))


def optimize(
    workload: str | Path | LoadedWorkload,
    *,
    as_of: Day | None = None,
    objective: str | None = None,
    max_results: int | None = None,
    allow_flagged: bool = False,
    allow_derived: bool = False,
    calibrated: bool = True,
    replays: int = 0,
    gap: float = 1e-3,
    time_limit_s: float = 30.0,
    catalog_dir: str | Path | None = None,
) -> Plan:
    """Find the cheapest feasible plan of a workload.

    Args:
        workload: a file, or a loaded one.
        as_of: plan as on this day with the prices known then; by default now, with the newest prices.
        objective: `cost` or `time`; by default the file's.
        max_results: alternatives; by default the file's.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        calibrated: correct predictions with your own measurements.
        replays: drawn futures on which a plan with spot is replayed.
        gap: relative gap at which the MILP of a fleet may stop, 0..1.
        time_limit_s: longest solving of a fleet, seconds.
        catalog_dir: snapshot directory; by default the newest refreshed or the bundled one.

    Raises:
        InputError: the workload is wrong.
        CatalogError: the catalog cannot be used.
    """
    from planner.job.overrides import override
    from planner.workloads.answer import optimize as find_plan

    loaded = override(
        loaded_as(workload, "workload"), max_results=max_results, objective=objective, allow_flagged=allow_flagged,
        allow_derived=allow_derived,
    )  # fmt: skip
    options = replace(
        options_on(as_of), gap=gap, time_limit_s=time_limit_s, calibrated=calibrated, replays=replays
    )
    return find_plan(loaded, options, catalog_dir=path_of(catalog_dir)).plan


def frontier(
    workload: str | Path | LoadedWorkload,
    *,
    deadlines_hours: Sequence[float] = (),
    as_of: Day | None = None,
    allow_flagged: bool = False,
    allow_derived: bool = False,
    catalog_dir: str | Path | None = None,
) -> Frontier:
    """Find what a workload costs for every deadline.

    Args:
        workload: a file, or a loaded one.
        deadlines_hours: hours from the start that must be among the points, beside those found.
        as_of: as of `optimize`.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        catalog_dir: as of `optimize`.

    Raises:
        InputError: the workload is wrong, or a fleet.
        CatalogError: the catalog cannot be used.
    """
    from planner.job.frontier import frontier as find_frontier
    from planner.job.overrides import override

    loaded = override(
        loaded_as(workload, "workload"), allow_flagged=allow_flagged, allow_derived=allow_derived
    )
    return find_frontier(
        loaded, options_on(as_of), deadlines_hours=tuple(deadlines_hours), catalog_dir=path_of(catalog_dir)
    )


def compare(
    workload: str | Path | LoadedWorkload,
    *,
    pick: str | Sequence[str] = (),
    over: Literal["region", "type", "option", "provider"] | None = None,
    base: str | None = None,
    as_of: Day | None = None,
    allow_flagged: bool = False,
    allow_derived: bool = False,
    catalog_dir: str | Path | None = None,
) -> Comparison:
    """Compare machines, regions, providers or ways to buy for one job, each row the plan within it.

    Args:
        workload: a file, or a loaded one.
        pick: instance types, in the provider's spelling.
        over: instead, what to compare all of.
        base: the row that the others are compared with; by default the first picked, or the best.
        as_of: as of `optimize`.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        catalog_dir: as of `optimize`.

    Raises:
        InputError: the workload or a name is wrong, or the file is a fleet.
        CatalogError: the catalog cannot be used.
    """
    from planner.job.compare import compare as find_comparison
    from planner.job.overrides import override

    loaded = override(
        loaded_as(workload, "workload"), allow_flagged=allow_flagged, allow_derived=allow_derived
    )
    return find_comparison(
        loaded, options_on(as_of), pick=texts_of(pick), over=over, base=base, catalog_dir=path_of(catalog_dir)
    )


def whatif(
    workload: str | Path | LoadedWorkload,
    scenarios: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    as_of: Day | None = None,
    catalog_dir: str | Path | None = None,
) -> WhatIf:
    """Plan a workload as it is, and with other values: `whatif(file, {"constraints.deadline": "10d"})`.

    Args:
        workload: a file, or a loaded one.
        scenarios: one or several, each the values to put over the file's by dotted key; None removes a key.
        as_of: as of `optimize`.
        catalog_dir: as of `optimize`.

    Raises:
        InputError: the workload or a value is wrong.
        CatalogError: the catalog cannot be used.
    """
    from planner.inputs.settings import setting_texts
    from planner.workloads.whatif import ask_whatif

    each = [scenarios] if isinstance(scenarios, Mapping) else scenarios
    texts = [setting_texts(one) for one in each]
    return ask_whatif(
        loaded_as(workload, "workload"), texts, options_on(as_of), catalog_dir=path_of(catalog_dir)
    )


def estimate(
    workload: str | Path | LoadedWorkload,
    instance_type: str | Sequence[str],
    *,
    nodes: int | Sequence[int] = 1,
    layout: str | None = None,
    provider: str | None = None,
    calibrated: bool = True,
    catalog_dir: str | Path | None = None,
) -> Estimates:
    """Predict speed and memory of a workload on clusters that you name; nothing is priced.

    Args:
        workload: a file, or a loaded one.
        instance_type: one type or several, in the provider's spelling.
        nodes: instances, one number or several.
        layout: parts of the parallel layout to fix, such as `tp=8,pp=2,zero=1`.
        provider: whose type, where several have one of that name.
        calibrated: correct predictions with your own measurements.
        catalog_dir: as of `optimize`.

    Raises:
        InputError: the workload, a type or the layout is wrong.
    """
    from planner.estimation.answer import estimate_workload
    from planner.estimation.layout import parse_layout

    types = (instance_type,) if isinstance(instance_type, str) else tuple(instance_type)
    counts = (nodes,) if isinstance(nodes, int) else tuple(nodes)
    pin = None if layout is None else parse_layout(layout)
    return estimate_workload(
        loaded_as(workload, "workload"), types, counts, pin, provider, calibrated=calibrated,
        catalog_dir=path_of(catalog_dir),
    )  # fmt: skip


def portfolio(
    jobs: str | Path | LoadedPortfolio,
    *,
    as_of: Day | None = None,
    mode: str = "auto",
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    backend: str = "auto",
    catalog_dir: str | Path | None = None,
) -> PortfolioAnswer:
    """Plan many jobs together under shared quotas, owned capacity and one budget.

    Args:
        jobs: a portfolio file, or a loaded one.
        as_of: as of `optimize`.
        mode: `auto`, `fast` or `full`.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest solving, seconds.
        backend: `auto`, `highspy` or `scipy`.
        catalog_dir: as of `optimize`.

    Raises:
        InputError: a job or a file is wrong.
    """
    from planner.portfolios.answer import plan_portfolio
    from planner.portfolios.solve import PortfolioOptions

    planning = options_on(as_of)

    def catalog() -> Catalog:
        from catalogs.store.load import load_catalog

        return load_catalog(path_of(catalog_dir), as_of=planning.as_of)

    options = PortfolioOptions(gap=gap, time_limit_s=time_limit_s, backend=backend, mode=mode)
    return plan_portfolio(loaded_as(jobs, "portfolio"), planning, options, catalog=catalog)


def pipeline(
    tasks: str | Path | LoadedPipeline,
    *,
    as_of: Day | None = None,
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    backend: str = "auto",
    catalog_dir: str | Path | None = None,
) -> PipelineAnswer:
    """Place and time tasks that feed each other data.

    Args:
        tasks: a pipeline file, or a loaded one.
        as_of: as of `optimize`.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest solving, seconds.
        backend: `auto`, `highspy` or `scipy`.
        catalog_dir: as of `optimize`.

    Raises:
        InputError: a task or a file is wrong.
    """
    from planner.pipelines.answer import plan_pipeline

    options = replace(options_on(as_of), solver="auto", backend=backend, gap=gap, time_limit_s=time_limit_s)
    return plan_pipeline(loaded_as(tasks, "pipeline"), options, catalog_dir=path_of(catalog_dir))


def review(
    bill: str | Path | Sequence[str | Path],
    *,
    month: Day | None = None,
    compare: Day | None = None,
    tags: Sequence[str] = ("team", "env"),
    run_tag: str = "run_id",
    budgets: str | Path | None = None,
    plans: Sequence[str | Path] = (),
    currency: str | None = None,
    forecast: bool = True,
) -> Review:
    """Review one month of a cloud bill (FOCUS 1.0 to 1.4, or the exports of AWS, Azure and Google).

    Args:
        bill: files, folders or globs.
        month: the month to review, such as `2026-10`; by default the newest with use.
        compare: the month to compare with; by default the one before.
        tags: mandatory tag keys, the first names who pays.
        run_tag: tag key that names a run.
        budgets: a budgets file.
        plans: saved plans of the runs, files or globs.
        currency: rows to take, ISO 4217; by default those of the bill's own.
        forecast: whether to look ahead.

    Raises:
        InputError: the bill or a file cannot be read.
    """
    from planner.finops.plan_vs_actual import load_plans
    from planner.finops.read import open_bill
    from planner.finops.review.answer import review_bill
    from planner.finops.review.files import find_named
    from planner.inputs.budget_load import load_budgets

    named = None if budgets is None else load_budgets(Path(budgets))
    runs = load_plans(find_named("plans", [str(one) for one in plans]))
    first = month_of(month)
    with open_bill(texts_of(bill), month=first, currency=currency) as opened:
        return review_bill(
            opened, month=first, compare_month=month_of(compare), budgets=named, plans=runs, tags=tuple(tags),
            run_tag=run_tag, forecast=forecast,
        )  # fmt: skip


def forecast(
    bill: str | Path | Sequence[str | Path] = (),
    *,
    daily: str | Path | None = None,
    by: str = "total",
    cost: str = "effective",
    currency: str | None = None,
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

    planned, plan_currency = load_plans(tuple(plans))
    costs = read_costs(texts_of(bill), path_of(daily), (by,), cost=cost, currency=currency)
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
