"""What is known of a spot job before its launch: chance to meet the deadline, cost and its range, by Monte Carlo.

Futures of all zones (`planner.spot.futures`) are replayed with spot alone and with the policy that will drive the job
(`planner.spot.replay_batch`, the same decisions as at run time), at the prices of launch. Chances of spot alone are
calibrated (`planner.spot.meet`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats
from planner.normal.arrays import normal_quantile_by_table
from planner.records import record
from planner.spot.futures import sample_futures
from planner.spot.hazards import HazardModel, HazardTable
from planner.spot.meet import calibration
from planner.spot.policy.job import SpotJob
from planner.spot.zones import comes_given

if TYPE_CHECKING:
    from planner.spot.replay_batch import BatchReplay

N_FUTURES = 200
# over many zones costs vary three times less, and a decision costs more
_N_FUTURES_MANY, _MANY_ZONES = 120, 4


@record(frozen=True)
class LaunchForecast:
    """What to expect of a job. Ratios of cost are to the same work on on-demand without a restart.

    Attributes:
        p_meet_spot_only_ratio: chance that spot alone meets the deadline.
        p_meet_ratio: chance that the policy does (1 for every guarded policy where on-demand always comes).
        cost_ratio: expected (mean) cost.
        cost_ratio_p50: as many futures cost less as cost more; the usual one, as costs are skewed upwards.
        cost_ratio_p10, cost_ratio_p90: four of five futures lie between.
        cost_usd, cost_usd_p10, cost_usd_p90: the same in USD.
        finish_hours_p10, finish_hours_p90: hours from launch to the end; the deadline where a future
            misses it.
        interruptions, starts: expected number.
        spot_hours, on_demand_hours, lost_hours: expected paid hours, and those without progress.
        futures: how many were drawn.
        sources: per zone, which evidence its hazards rest on.
    """

    p_meet_spot_only_ratio: float
    p_meet_ratio: float
    cost_ratio: float
    cost_ratio_p50: float
    cost_ratio_p10: float
    cost_ratio_p90: float
    cost_usd: float
    cost_usd_p10: float
    cost_usd_p90: float
    finish_hours_p10: float
    finish_hours_p90: float
    interruptions: float
    starts: float
    spot_hours: float
    on_demand_hours: float
    lost_hours: float
    futures: int
    sources: Mapping[str, str]


@record(frozen=True)
class OnDemandLuck:
    """How surely on-demand comes when it is asked for; where it does not, the job goes on on spot.

    Attributes:
        had_ratio: probability that it comes in time.
        link_ratio: how far it is scarce when spot is, 0 to 1 (`planner.spot.zones`).
        late_ratio: how often spot alone is too late over all conditions; None: as often as in the futures.
    """

    had_ratio: float = 1.0
    link_ratio: float = 0.0
    late_ratio: float | None = None


_ALWAYS = OnDemandLuck()
_MEANS = ("cost_usd", "interruptions", "starts", "spot_hours", "on_demand_hours", "lost_hours")


def forecast_launch(
    job: SpotJob,
    model: HazardModel,
    policy_name: str = "survival",
    *,
    futures: int | None = None,
    seed: int = 0,
    tables: Mapping[str, HazardTable] | None = None,
    on_demand: OnDemandLuck = _ALWAYS,
    work_log_sd: float = 0.0,
) -> LaunchForecast:
    """Forecast a job at its launch; hours and costs are those with on-demand that comes.

    Args:
        job: zones, prices and what the last hours showed.
        model: hazards of the zones.
        policy_name: a key of `planner.spot.policy.registry.POLICIES`.
        futures: how many are drawn; None: 200, from four zones on 120. With 200 a chance of 0.5 is known to 0.035 (one
            standard error).
        seed: the same seed gives the same forecast.
        tables: hazards per zone name instead of the model's.
        on_demand: how surely it comes; default: always.
        work_log_sd: spread of the hours of work, of the logarithm. As in plans, the job's are the median behind chances
            and quantiles, and the mean behind means.
    """
    from planner.spot.replay_batch import replay_futures

    known = {zone.name: model.table_for(zone) for zone in job.zones} if tables is None else tables
    if futures is None:
        futures = N_FUTURES if len(job.zones) < _MANY_ZONES else _N_FUTURES_MANY
    up = sample_futures(job, known, futures, _ticks(job), seed)
    speed = _spread_evenly(futures, seed)
    work = job.work_hours * np.exp(work_log_sd * speed)
    alone = replay_futures(job, "spot_only", known, up, work=work)
    batch_replay = replay_futures(job, policy_name, known, up, work=work)
    weight = np.exp(-0.5 * work_log_sd * speed)  # of futures by a law with the job's hours as its mean
    means = {name: float(np.average(getattr(batch_replay, name), weights=weight)) for name in _MEANS}
    low, middle, high = (float(v) for v in np.quantile(batch_replay.cost_usd, (0.1, 0.5, 0.9)))
    finish = np.where(batch_replay.finished, batch_replay.finish_hours, job.deadline_hours)
    early, late = (float(v) for v in np.quantile(finish, (0.1, 0.9)))
    return LaunchForecast(
        p_meet_spot_only_ratio=chance_of("spot_only", alone.finished),
        p_meet_ratio=_chance_by_either(policy_name, batch_replay, alone.finished, on_demand),
        cost_ratio=_ratio(job, means["cost_usd"]),
        cost_ratio_p50=_ratio(job, middle),
        cost_ratio_p10=_ratio(job, low),
        cost_ratio_p90=_ratio(job, high),
        cost_usd_p10=low,
        cost_usd_p90=high,
        finish_hours_p10=early,
        finish_hours_p90=late,
        futures=futures,
        sources={name: table.source for name, table in known.items()},
        **means,
    )


def _spread_evenly(n: int, seed: int) -> Floats:
    """Standard normal values at even quantiles, in random order, shape `(n,)`."""
    order = np.random.default_rng([seed, 1]).permutation(n)
    return normal_quantile_by_table((order + 0.5) / n)


def chance_of(policy_name: str, finished: Bools) -> float:
    """Chance that a policy meets the deadline, from the futures in which it did; of spot alone it is calibrated."""
    share = float(finished.mean())
    return float(calibration("replay").apply(share)) if policy_name == "spot_only" else share


def _chance_by_either(
    policy_name: str, batch_replay: BatchReplay, alone: Bools, on_demand: OnDemandLuck
) -> float:
    """Chance to meet the deadline, where on-demand that was asked for may not come; `alone`: spot alone is in time."""
    if on_demand.had_ratio >= 1.0:
        return chance_of(policy_name, batch_replay.finished)
    comes = comes_given(~alone, on_demand.had_ratio, on_demand.link_ratio, on_demand.late_ratio)
    had = np.where(batch_replay.on_demand_asked, comes, 1.0)
    return float((had * batch_replay.finished + (1.0 - had) * alone).mean())


def _ratio(job: SpotJob, cost_usd: float) -> float:
    """Cost over that of the work on on-demand; where that is free, 0 for what is free too and else infinite."""
    whole = job.work_hours * job.on_demand_usd_per_hour
    if whole > 0:
        return cost_usd / whole
    return cost_usd if cost_usd == 0 else math.inf


def _ticks(job: SpotJob) -> int:
    """Ticks from launch to the deadline, a started one included."""
    return int(np.ceil(job.deadline_hours / job.tick_hours - 1e-6))
