"""What a policy would have cost on recorded or generated availability: one run, tick by tick.

Within a tick, in this order: a run on spot whose zone is gone is interrupted (its work so far is kept; what was lost
since the checkpoint is part of `restart_hours`); the policy decides; a change of instance starts a restart during
which the instance is paid but makes no progress, and a start in another region than the checkpoint's pays
`egress_usd`; the tick is paid in full at the price in force. A restart may end within a tick: the rest of it is
progress. Asking for spot where there is none is a wait. On-demand may take `on_demand_acquire_hours` to be obtained:
they are not paid. A run that misses its deadline is charged what is left of it on on-demand, so that no mean cost
improves by missing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.errors import InputError
from planner.records import record
from planner.spot.policy.job import Action, JobState, Mode, Policy, SpotJob, ZoneState
from planner.spot.policy.view import EPS_HOURS, whole_ticks

HISTORY_TICKS = 240
"""How far back a spell's age is counted: 24 h at the usual tick."""


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


def zone_prices(job: SpotJob, prices: npt.ArrayLike | None, ticks: int) -> Floats:
    """Spot prices of all ticks, shape `(n_zones, ticks)`: those given, and where there is none the prices at launch."""
    at_launch = np.array([zone.usd_per_hour for zone in job.zones])[:, None]
    if prices is None:
        return np.broadcast_to(at_launch, (len(job.zones), ticks))
    usd = np.asarray(prices, dtype=np.float64)
    return np.where(np.isnan(usd), at_launch, usd) if np.isnan(usd).any() else usd


def spell_ticks(job: SpotJob, up: Bools, start_tick: int) -> tuple[Bools, Ints]:
    """State before the first tick and for how many ticks it has held, per zone.

    Taken from the record before `start_tick`, or from the job's history when there is none; a zone without either
    counts as new in its first state.
    """
    before = up[:, max(start_tick - HISTORY_TICKS, 0) : start_tick]
    state, ticks = up[:, start_tick].copy(), np.zeros(len(job.zones), dtype=np.int64)
    for number, zone in enumerate(job.zones):
        seen = before[number]
        if not len(seen) and zone.name in job.history:
            seen = np.asarray(job.history[zone.name], dtype=bool)
        if len(seen):
            seen = seen[-HISTORY_TICKS:]
            state[number] = seen[-1]
            changes = np.flatnonzero(seen != seen[-1])
            ticks[number] = len(seen) - (changes[-1] + 1 if len(changes) else 0)
    return state, np.minimum(ticks, HISTORY_TICKS - 1)


def check_length(job: SpotJob, ticks: int, start_tick: int) -> int:
    """Ticks to the deadline; the record must hold them.

    Raises:
        InputError: the record ends before the deadline.
    """
    needed = whole_ticks(job.deadline_hours, job.tick_hours)
    if start_tick < 0 or start_tick + needed > ticks:
        raise InputError(
            f"availability: {ticks} ticks from start {start_tick} do not reach the deadline, {needed} ticks later; "
            "start earlier or give a longer record"
        )
    return needed


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
