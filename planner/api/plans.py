"""One plan, or many: what is in a file, the cheapest plan, the cost of every deadline, portfolios and pipelines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from planner.asked.calls import question
from planner.asked.given import Day, options_on, path_of
from planner.errors import InputError
from planner.inputs.kinds import load_any, loaded_as

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.asked.options import Options
    from planner.estimation.answer import Estimates
    from planner.estimation.calibrate import Result
    from planner.inputs.kinds import Loaded
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.job.frontier import Frontier
    from planner.pipelines.answer import PipelineAnswer
    from planner.pipelines.pools_model import Pools
    from planner.plan.model import Plan
    from planner.portfolios.answer import PortfolioAnswer


@question
def load(path: str | Path) -> Loaded:
    """Read a workload, portfolio or pipeline file and check it.

    Args:
        path: a YAML file; its key `kind` says what it is.

    Raises:
        InputError: lists every fault with its line, column and remedy.
    """
    return load_any(Path(path))


@question
def optimize(
    workload: str | Path | LoadedWorkload,
    *,
    as_of: Day | None = None,
    objective: str | None = None,
    settings: Mapping[str, object] | None = None,
    max_results: int | None = None,
    max_age_days: int | None = None,
    allow_flagged: bool = False,
    allow_derived: bool = False,
    calibrated: bool = True,
    spot_evidence: Sequence[str | Path] = (),
    replays: int = 0,
    quote: float | None = None,
    best_within: float | None = None,
    solver: Literal["enumerate", "milp", "both"] = "enumerate",
    backend: str = "auto",
    gap: float = 1e-3,
    time_limit_s: float = 30.0,
    catalog_dir: str | Path | None = None,
) -> Plan:
    """Find the cheapest feasible plan of a workload.

    Args:
        workload: a file, or a loaded one.
        as_of: plan as of this day, with the prices known then; by default now, with the newest prices.
        objective: `cost`, `time` or `carbon`; by default the file's.
        settings: overrides of the file's values by dotted key, as `--set`: `{"preferences.prices": "firm"}`.
        max_results: alternatives; by default the file's.
        max_age_days: refuse a plan that rests on older prices.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        calibrated: correct predictions with your own measurements.
        spot_evidence: files with your own spot records, in addition to those that the workload names.
        replays: random futures in which a plan with spot is replayed.
        quote: probability with which `plan.quote` bounds cost and end, 0.5 to 0.999; not for fleets.
        best_within: instead, the best result for a budget in US dollars: all of the work soonest, else most of it.
        solver: exact enumeration, a MILP of the same question, or both, which must agree.
        backend: MILP backend: `auto`, `highspy` or `scipy`.
        gap: relative gap at which the MILP of a fleet may stop, 0..1.
        time_limit_s: longest solving of a fleet, seconds.
        catalog_dir: snapshot directory; by default the newest refreshed or the bundled one.

    Raises:
        InputError: the workload is wrong.
        CatalogError: the catalog cannot be used.
    """
    from planner.workloads.answer import optimize as find_plan

    loaded = _with_flags(
        loaded_as(workload, "workload"), settings, max_results=max_results, objective=objective,
        allow_flagged=allow_flagged, allow_derived=allow_derived, spot_evidence=[Path(x) for x in spot_evidence],
    )  # fmt: skip
    options = replace(
        options_on(as_of), solver=solver, backend=backend, max_age_days=max_age_days, gap=gap,
        time_limit_s=time_limit_s, calibrated=calibrated, replays=replays, quote=quote,
    )  # fmt: skip
    if best_within is None:
        return find_plan(loaded, options, catalog_dir=path_of(catalog_dir)).plan
    return _most_within(loaded, best_within, options, path_of(catalog_dir))


def _with_flags(
    loaded: LoadedWorkload, settings: Mapping[str, object] | None, **flags: Any
) -> LoadedWorkload:
    """The workload with overrides of its values and flags."""
    from planner.inputs.settings import setting_texts, with_settings
    from planner.job.overrides import override

    return override(with_settings(loaded, setting_texts(settings or {})), **flags)


def _most_within(loaded: LoadedWorkload, usd: float, options: Options, catalog_dir: Path | None) -> Plan:
    """The best result for a budget of `usd` US dollars."""
    from planner.units import parse_money
    from planner.workloads.best_within import best_within

    return best_within(loaded, parse_money(f"{usd:.15g}"), options, catalog_dir=catalog_dir)[0].plan


@question
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
        as_of: as for `optimize`.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        catalog_dir: as for `optimize`.

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


@question
def estimate(
    workload: str | Path | LoadedWorkload,
    instance_type: str | Sequence[str] | None = None,
    *,
    nodes: int | Sequence[int] | None = None,
    layout: str | None = None,
    provider: str | None = None,
    calibrated: bool = True,
    as_of: Day | None = None,
    catalog_dir: str | Path | None = None,
) -> Estimates:
    """Predict speed, memory and cost of a workload on named clusters; prices are quotes for the machines alone.

    Args:
        workload: a file, or a loaded one.
        instance_type: one type or several, in the provider's spelling; default: the plan's.
        nodes: instances, one number or several; default: 1, or the plan's.
        layout: parts of the parallel layout to fix, such as `tp=8,pp=2,zero=1`.
        provider: the provider of `instance_type`, if several have one of that name.
        calibrated: correct predictions with your own measurements.
        as_of: as for `optimize`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the workload, a type or the layout is wrong.
    """
    from planner.estimation.answer import estimate_workload
    from planner.estimation.layout import parse_layout
    from planner.workloads.planned_cluster import estimate_planned

    counts = (nodes,) if isinstance(nodes, int) else tuple(nodes or ())
    pin = None if layout is None else parse_layout(layout)
    loaded, options = loaded_as(workload, "workload"), replace(options_on(as_of), calibrated=calibrated)
    if instance_type is None:
        if provider is not None:
            raise InputError("provider: says whose instance type is meant: give instance_type, too")
        return estimate_planned(loaded, counts, pin, options=options, catalog_dir=path_of(catalog_dir))
    types = (instance_type,) if isinstance(instance_type, str) else tuple(instance_type)
    if not types:
        raise InputError("instance_type: names no machine; None takes the plan's")
    return estimate_workload(
        loaded, types, counts or (1,), pin, provider, calibrated=calibrated, options=options,
        catalog_dir=path_of(catalog_dir),
    )  # fmt: skip


@question
def calibrate(
    workload: str | Path | LoadedWorkload,
    log: str | Path | None = None,
    *,
    measured: str | None = None,
    instance_type: str | None = None,
    nodes: int = 1,
    provider: str | None = None,
    layout: str | None = None,
    skip: int | None = None,
    dry_run: bool = False,
    catalog_dir: str | Path | None = None,
) -> Result:
    """Compare a run of a workload with its prediction, and store it for later predictions and plans.

    Args:
        workload: a file, or a loaded one.
        log: the run's log, in any format that `planner calibrate` reads.
        measured: instead of a log, a throughput such as `12500 tokens/s`.
        instance_type: machines it ran on; not needed if the workload has a `measured` line.
        nodes: instances it ran on.
        provider: the provider of `instance_type`, if several have one of that name.
        layout: parts of the parallel layout it ran with, such as `tp=8,pp=2,zero=1`.
        skip: leading steps to leave out; None finds the warm-up.
        dry_run: compare only, store nothing.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the log, the machine or the layout is wrong, or they contradict each other.
    """
    from planner.estimation.calibrate import Run, run_calibration

    run = Run(
        log=path_of(log), measured=measured, machine=instance_type, nodes=nodes, provider=provider, layout=layout,
        skip=skip, dry_run=dry_run,
    )  # fmt: skip
    return run_calibration(loaded_as(workload, "workload"), run, catalog_dir=path_of(catalog_dir))


@question
def portfolio(
    jobs: str | Path | LoadedPortfolio,
    *,
    as_of: Day | None = None,
    mode: str = "auto",
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    backend: str = "auto",
    robust: float | None = None,
    catalog_dir: str | Path | None = None,
) -> PortfolioAnswer:
    """Plan many jobs together under shared quotas, owned capacity and one budget.

    Args:
        jobs: a portfolio file, or a loaded one.
        as_of: as for `optimize`.
        mode: `auto`, `fast` or `full`.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest solving, seconds.
        backend: `auto`, `highspy` or `scipy`.
        robust: CVaR level of the risk term, 0.95: the worst twentieth; None: as the file's `risk`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: a job or a file is wrong.
    """
    from planner.portfolios.answer import plan_portfolio
    from planner.portfolios.solve import PortfolioOptions

    options = PortfolioOptions(gap=gap, time_limit_s=time_limit_s, backend=backend, mode=mode)
    return plan_portfolio(
        loaded_as(jobs, "portfolio"),
        options_on(as_of),
        options,
        catalog_dir=path_of(catalog_dir),
        robust_level=robust,
    )


@question
def pipeline(
    tasks: str | Path | LoadedPipeline,
    *,
    as_of: Day | None = None,
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    backend: str = "auto",
    robust: float | None = None,
    catalog_dir: str | Path | None = None,
) -> PipelineAnswer:
    """Choose machines, places and start times of tasks that pass data to each other.

    Args:
        tasks: a pipeline file, or a loaded one.
        as_of: as for `optimize`.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest solving, seconds.
        backend: `auto`, `highspy` or `scipy`.
        robust: CVaR level of the risk term, 0.95: the worst twentieth; None: as the file's `risk`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: a task or a file is wrong.
    """
    from planner.pipelines.answer import plan_pipeline

    options = replace(options_on(as_of), solver="auto", backend=backend, gap=gap, time_limit_s=time_limit_s)
    loaded = loaded_as(tasks, "pipeline")
    return plan_pipeline(loaded, options, catalog_dir=path_of(catalog_dir), robust_level=robust)


@question
def pools(
    workload: str | Path | LoadedWorkload,
    *,
    as_of: Day | None = None,
    allow_flagged: bool = False,
    allow_derived: bool = False,
    catalog_dir: str | Path | None = None,
) -> Pools:
    """Choose the machines that train and those that generate for a workload of reinforcement learning.

    Args:
        workload: a file with `training.rollouts`, or a loaded one.
        as_of: as for `optimize`.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the workload is wrong, or has no rollouts.
    """
    from planner.job.overrides import override
    from planner.pipelines.pools import plan_pools

    loaded = override(
        loaded_as(workload, "workload"), allow_flagged=allow_flagged, allow_derived=allow_derived
    )
    return plan_pools(loaded, options_on(as_of), catalog_dir=path_of(catalog_dir))
