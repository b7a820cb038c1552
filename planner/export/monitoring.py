"""What is watched of a run: PromQL of its recorded series, for rules and dashboards alike.

Series of the GPUs are dcgm-exporter's, those of the training program are in training_metrics.csv. The scrape
configuration puts the label `planner_run_id` on all of them, and `planner_pool` (0 is the plan's first) on GPUs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from decimal import Decimal

from planner.export.names import RUN_TAG
from planner.export.view import Launch, Pool
from planner.records import record
from planner.tracking.thresholds import thresholds

_OLD = frozenset({"kepler", "maxwell", "pascal"})
"""Generations without profiling metrics: DCGM has those from Volta on."""
BY_RUN = f"by ({RUN_TAG})"


@record(frozen=True)
class Series:
    """A recorded series: its name, expression, unit of Grafana, title and labels that it is given."""

    name: str
    expr: str
    unit: str
    title: str
    labels: Mapping[str, str] = field(default_factory=dict)


def label(text: str) -> str:
    """Return a text as a quoted string of PromQL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def selector(launch: Launch) -> str:
    """Return the matcher that keeps one run's series apart."""
    return f"{{{RUN_TAG}={label(launch.run_id)}}}"


def gpu_series(launch: Launch) -> tuple[Series, ...]:
    """Recorded series of the GPUs; none for chips that DCGM does not know."""
    if any(pool.vendor != "nvidia" for pool in launch.pools):
        return ()
    at = selector(launch)
    busy = f"avg_over_time(DCGM_FI_DEV_GPU_UTIL{at}[5m]) / 100"
    if all(pool.generation not in _OLD for pool in launch.pools):
        # beyond 1 lies DCGM's mark for "not supported"
        busy = f"avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{at}[5m]) <= 1"
    idle = thresholds()["gpu_idle_below"].value
    by_pool, by_host = f"by ({RUN_TAG}, planner_pool)", f"by ({RUN_TAG}, planner_pool, Hostname)"
    used, free = f"DCGM_FI_DEV_FB_USED{at}", f"DCGM_FI_DEV_FB_FREE{at}"
    return (
        Series("gpu:active:avg5m", busy, "percentunit", "Activity of each GPU"),
        Series("run:gpu_active:avg5m", f"avg {BY_RUN} (gpu:active:avg5m{at})", "percentunit", "GPU activity"),
        Series("run:gpu_idle:ratio", f"avg {BY_RUN} (gpu:active:avg5m{at} < bool {idle:g})", "percentunit",
               "Idle GPUs"),
        Series("run:gpu_memory_used:max", f"max {BY_RUN} ({used} / ({used} + {free}))", "percentunit",
               "Fullest GPU memory"),
        Series("run:tensor_active:avg5m", f"avg {BY_RUN} (avg_over_time(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{at}[5m]) <= 1)",
               "percentunit", "Tensor cores active"),
        Series("run:gpu_power_watts:sum", f"sum {BY_RUN} (DCGM_FI_DEV_POWER_USAGE{at})", "watt", "Power of all GPUs"),
        Series("run_pool:nodes:count", f"count {by_pool} (count {by_host} (DCGM_FI_DEV_GPU_TEMP{at}))",
               "none", "Nodes"),
    )  # fmt: skip


def spend_series(launch: Launch) -> tuple[Series, ...]:
    """What is spent per hour, at the plan's prices, beside what the plan expects; needs the series of the GPUs."""
    if not gpu_series(launch):
        return ()
    at = selector(launch)
    run_labels = {RUN_TAG: launch.run_id}
    prices = tuple(
        Series("run_pool:price_usd_per_hour:plan", f"vector({pool.usd_per_hour:f})", "currencyUSD",
               f"Price of one node: {pool.place}, {pool.option}", run_labels | {"planner_pool": str(place)})
        for place, pool in enumerate(launch.pools)
    )  # fmt: skip
    prices_at = f"on ({RUN_TAG}, planner_pool) run_pool:price_usd_per_hour:plan{at}"
    rate = f"sum {BY_RUN} (run_pool:nodes:count{at} * {prices_at})"
    return (
        *prices,
        Series(
            "run:spend_usd_per_hour:plan",
            f"vector({planned_rate(launch):f})",
            "currencyUSD",
            "Spend, planned",
            run_labels,
        ),
        Series("run:spend_usd_per_hour:estimated", rate, "currencyUSD", "Spend, by nodes that report"),
    )


def progress_series(launch: Launch) -> tuple[Series, ...]:
    """Progress and the finish that it leads to; none for independent runs, whose steps are not one count."""
    if launch.way == "workers":
        return ()
    at = selector(launch)
    loader = f"avg {BY_RUN} (avg_over_time(training_loader_seconds{at}[5m]))"
    series = [
        Series("run:training_step:max", f"max {BY_RUN} (training_step{at})", "none", "Step"),
        Series("run:step_seconds:avg30m", f"avg {BY_RUN} (avg_over_time(training_step_seconds{at}[30m]))", "s",
               "Time of a step"),
        Series("run:loader:ratio", f"{loader} / avg {BY_RUN} (avg_over_time(training_step_seconds{at}[5m]))",
               "percentunit", "Share of the step that waits for data"),
    ]  # fmt: skip
    if launch.training.steps is not None:
        left = (
            f"clamp_min({launch.training.steps} - run:training_step:max{at}, 0) * run:step_seconds:avg30m{at}"
        )
        finish = f"time() + {left} * {overhead(launch):.4f}"
        series.append(
            Series("run:finish_timestamp_seconds:estimated", finish, "dateTimeAsIso", "Expected finish")
        )
        if (deadline := deadline_epoch(launch)) is not None:
            late = f"(run:finish_timestamp_seconds:estimated{at} - {deadline}) / 3600"
            series.append(Series("run:late_hours:estimated", late, "h", "Hours behind the deadline"))
    return tuple(series)


def planned_rate(launch: Launch) -> Decimal:
    """US dollars per hour of the run as planned: its dearest pool, or all that run together; no fall-back."""
    if launch.parts:
        return sum(map(planned_rate, launch.parts), Decimal(0))
    own = [pool for pool in launch.pools if not _is_fall_back(launch, pool)]
    rates = [pool.nodes * pool.usd_per_hour for pool in own]
    return max(rates) if launch.moves else sum(rates, Decimal(0))


def overhead(launch: Launch) -> float:
    """Elapsed over stepping time of the plan: what comes beside the steps, stops and waiting; at least 1."""
    steps, step = (
        sum(one[0] for one in launch.training.phases) or launch.training.steps,
        launch.limits.step_time_s,
    )
    if not steps or not step:
        return 1.0
    return max(1.0, launch.limits.hours * 3600 / (steps * step))


def deadline_epoch(launch: Launch) -> int | None:
    """The deadline in seconds since 1970; None without one, and for a phase that others follow."""
    phases = launch.training.phases
    if launch.limits.deadline is None or (launch.training.phase or len(phases)) < len(phases):
        return None
    return int(datetime.fromisoformat(launch.limits.deadline).timestamp())


def _is_fall_back(launch: Launch, pool: Pool) -> bool:
    return launch.moves and not pool.is_spot and any(other.is_spot for other in launch.pools)
