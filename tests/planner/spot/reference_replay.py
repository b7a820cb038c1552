"""One run of a policy on recorded availability, tick by tick: the reference of `planner.spot.replay_batch`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.records import record
from planner.spot.policy.job import Action, JobState, Mode, Policy, SpotJob, ZoneState
from planner.spot.policy.view import EPS_HOURS
from planner.spot.replay_batch import check_length, spell_ticks, zone_prices


@record(frozen=True)
class ReplayResult:
    """What happened in one run.

    Attributes:
        cost_usd: all that was paid; for a missed deadline plus what is left, on-demand.
        finished: whether the work was done by the deadline.
        finish_hours: from launch to the end of the last tick, or None.
        spot_hours, on_demand_hours: paid.
        interruptions, starts: counted; a start is a new instance, spot or on-demand.
        lost_hours: paid without progress (restarts).
        work_left_hours: 0 when finished.
    """

    cost_usd: float
    finished: bool
    finish_hours: float | None
    spot_hours: float
    on_demand_hours: float
    interruptions: int
    starts: int
    lost_hours: float
    work_left_hours: float = 0.0


class _Run:
    """The bookkeeping of one run."""

    def __init__(self, job: SpotJob) -> None:
        self.job = job
        self.mode: Mode = "idle"
        self.zone = -1
        self.left = self.wait = 0.0
        self.region: str | None = None
        self.work = job.work_hours
        self.cost = self.spot = self.on_demand = self.lost = 0.0
        self.interruptions = self.starts = 0

    def take(self, mode: Mode, zone: int) -> None:
        """Change over to what was decided."""
        job = self.job
        if mode == "idle":
            self.left = self.wait = 0.0
        elif (mode, zone) != (self.mode, self.zone):
            self.wait = job.on_demand_acquire_hours if mode == "on_demand" else 0.0
            self.left = self.wait + job.restart_hours
            self.starts += 1
            if mode == "spot":
                region = job.zones[zone].region
                if self.region is not None and self.region != region:
                    self.cost += job.egress_usd
                self.region = region
        self.mode, self.zone = mode, zone

    def pass_tick(self, spot_usd_per_hour: float) -> None:
        """Pay for the tick and do its work."""
        tick = self.job.tick_hours
        if self.mode == "idle":
            return
        paid = tick - min(self.wait, tick)
        self.wait = max(self.wait - tick, 0.0)
        progress = max(tick - self.left, 0.0)
        self.left = max(self.left - tick, 0.0)
        if self.left < EPS_HOURS:
            self.left = 0.0
        if self.mode == "spot":
            self.spot += paid
            self.cost += paid * spot_usd_per_hour
        else:
            self.on_demand += paid
            self.cost += paid * self.job.on_demand_usd_per_hour
        self.lost += max(paid - progress, 0.0)
        self.work -= progress


def replay(
    job: SpotJob,
    policy: Policy,
    up: npt.ArrayLike,
    prices: npt.ArrayLike | None = None,
    start_tick: int = 0,
) -> ReplayResult:
    """Run the policy through recorded availability.

    Args:
        job: what must be done.
        policy: made for this job.
        up: availability, shape `(n_zones, n_ticks)` in the job's order of zones and on its tick.
        prices: spot prices of the same shape, USD per hour of the gang; None, or NaN in a tick, takes those at launch.
        start_tick: the launch.

    Raises:
        InputError: the record ends before the deadline.
    """
    seen = np.asarray(up, dtype=bool)
    ticks = check_length(job, seen.shape[1], start_tick)
    usd = zone_prices(job, prices, seen.shape[1])
    state, held = spell_ticks(job, seen, start_tick)
    number = {zone.name: place for place, zone in enumerate(job.zones)}
    run = _Run(job)
    for tick in range(ticks):
        now = seen[:, start_tick + tick]
        held = np.where(now == state, held + 1, 1)
        state = now
        price = usd[:, start_tick + tick]
        if run.mode == "spot" and not now[run.zone]:
            run.interruptions += 1
            run.take("idle", -1)
        action = policy.decide(_state(run, tick, now, price, held))
        mode, zone = _granted(action, number, now)
        run.take(mode, zone)
        run.pass_tick(float(price[zone]) if mode == "spot" else 0.0)
        if run.work <= EPS_HOURS:
            return _result(run, (tick + 1) * job.tick_hours)
    return _result(run, None)


def _state(run: _Run, tick: int, now: Bools, price: Floats, held: Ints) -> JobState:
    job = run.job
    zones = tuple(
        ZoneState(zone.name, bool(now[place]), float(price[place]), float(held[place] * job.tick_hours))
        for place, zone in enumerate(job.zones)
    )
    name = job.zones[run.zone].name if run.zone >= 0 else None
    return JobState(
        tick * job.tick_hours, job.work_hours - run.work, run.mode, name, run.left, run.region, zones
    )


def _granted(action: Action, number: dict[str, int], now: Bools) -> tuple[Mode, int]:
    """What the market gives: spot only where it is up."""
    if action.mode != "spot":
        return action.mode, -1
    zone = number.get(action.zone or "", -1)
    return ("spot", zone) if zone >= 0 and now[zone] else ("idle", -1)


def _result(run: _Run, finish_hours: float | None) -> ReplayResult:
    job, cost, left = run.job, run.cost, 0.0
    if finish_hours is None:
        left = run.work
        cost += (left + job.restart_hours) * job.on_demand_usd_per_hour
    return ReplayResult(
        cost_usd=cost,
        finished=finish_hours is not None,
        finish_hours=finish_hours,
        spot_hours=run.spot,
        on_demand_hours=run.on_demand,
        interruptions=run.interruptions,
        starts=run.starts,
        lost_hours=run.lost,
        work_left_hours=left,
    )
