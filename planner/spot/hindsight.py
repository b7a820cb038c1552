"""The offline optimum: the least cost with the whole future known, and on-demand always to be had.

Backward induction over ticks and work left. A run is stopped (its checkpoint in some region), on spot in a zone, or
on on-demand; a start is one jump over its restart, which is exact because with the future known nobody starts what is
interrupted before it makes progress. No policy without foresight can do better, so it bounds what any can save.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats
from planner.spot.policy.job import SpotJob
from planner.spot.policy.view import JobView
from planner.spot.replay_batch import check_length, zone_prices

_STEPS_PER_TICK = 10
"""Finest grid of work within a tick, for restarts that are no whole number of ticks."""


def grid_steps(job: SpotJob) -> int:
    """Steps of work per tick with which the restart fits the grid, at most `_STEPS_PER_TICK`."""
    ratio = job.restart_hours / job.tick_hours
    for steps in range(1, _STEPS_PER_TICK + 1):
        if abs(ratio * steps - round(ratio * steps)) < 1e-6:
            return steps
    return _STEPS_PER_TICK


def offline_optimum(
    job: SpotJob, up: npt.ArrayLike, prices: npt.ArrayLike | None = None, start_tick: int = 0
) -> float:
    """Least cost of the job, USD; infinite when not even on-demand meets the deadline.

    Args:
        job: what must be done; `on_demand_acquire_hours` is taken as waiting without pay.
        up: availability, shape `(n_zones, n_ticks)`.
        prices: USD per hour, of the same shape; None takes those at launch.
        start_tick: the launch.
    """
    seen = np.asarray(up, dtype=bool)
    ticks = check_length(job, seen.shape[1], start_tick)
    usd = zone_prices(job, prices, seen.shape[1])[:, start_tick : start_tick + ticks]
    return float(_Backward(job, seen[:, start_tick : start_tick + ticks], usd).solve())


class _Start:
    """A start as a jump: ticks it takes until progress is whole, and the work done in the last of them."""

    def __init__(self, hours: float, tick_hours: float, steps: int) -> None:
        in_steps = math.ceil(hours / tick_hours * steps - 1e-6)
        self.ticks = -(-in_steps // steps)
        self.gain = self.ticks * steps - in_steps


class _Backward:
    """Values by work left, in steps of the grid, for every tick back from the deadline."""

    def __init__(self, job: SpotJob, up: Bools, usd: Floats) -> None:
        self.job, self.up = job, up
        self.zones, self.ticks = up.shape
        self.steps = grid_steps(job)
        self.size = math.ceil(job.work_hours / job.tick_hours * self.steps - 1e-6) + 1
        self.tick_usd = usd * job.tick_hours
        self.paid = np.concatenate([np.zeros((self.zones, 1)), np.cumsum(self.tick_usd, axis=1)], axis=1)
        self.view = JobView(job)
        self.spot_start = _Start(job.restart_hours, job.tick_hours, self.steps)
        self.on_demand_start = _Start(
            job.restart_hours + job.on_demand_acquire_hours, job.tick_hours, self.steps
        )
        self.on_demand_usd = job.on_demand_usd_per_hour * job.tick_hours
        acquired = min(job.on_demand_acquire_hours / job.tick_hours, float(self.on_demand_start.ticks))
        self.on_demand_start_usd = (self.on_demand_start.ticks - acquired) * self.on_demand_usd

    def solve(self) -> float:
        """Backward to the launch, where no checkpoint lies anywhere and the first start moves nothing."""
        regions = len(self.view.region_names)
        shape = (self.ticks + 1, self.size)
        never = np.full(self.size, np.inf)
        never[0] = 0.0
        spot = np.full((self.zones, *shape), np.inf)
        on_demand = np.full((regions + 1, *shape), np.inf)
        stopped = np.broadcast_to(never, (regions + 1, self.size)).copy()
        spot[:, -1], on_demand[:, -1] = never, never
        for tick in range(self.ticks - 1, -1, -1):
            spot[:, tick] = self._stay_on_spot(spot, tick)
            on_demand[:, tick] = self.on_demand_usd + _done(on_demand[:, tick + 1], self.steps)
            best = self._start_spot(spot, tick)
            begun = self._start_on_demand(on_demand, tick)
            stopped = np.minimum(stopped, begun)
            stopped[:regions] = np.minimum(
                stopped[:regions], np.minimum(best, best.min(axis=0) + self.job.egress_usd)
            )
            stopped[regions] = np.minimum(stopped[regions], best.min(axis=0))
            stopped[:, 0] = 0.0
            on_demand[:, tick] = np.minimum(on_demand[:, tick], stopped)
            spot[:, tick] = np.minimum(spot[:, tick], stopped[self.view.region])
        return float(stopped[regions, -1])

    def _stay_on_spot(self, spot: Floats, tick: int) -> Floats:
        stay = self.tick_usd[:, tick, None] + _done(spot[:, tick + 1], self.steps)
        stay[~self.up[:, tick]] = np.inf
        return stay

    def _start_spot(self, spot: Floats, tick: int) -> Floats:
        """Least cost of starting now in each region, egress left out, shape `(n_regions, size)`."""
        best = np.full((len(self.view.region_names), self.size), np.inf)
        end = tick + self.spot_start.ticks
        if end > self.ticks:
            return best
        for zone in range(self.zones):
            if self.up[zone, tick : max(end, tick + 1)].all():
                cost = self.paid[zone, end] - self.paid[zone, tick]
                region = self.view.region[zone]
                best[region] = np.minimum(best[region], cost + _done(spot[zone, end], self.spot_start.gain))
        return best

    def _start_on_demand(self, on_demand: Floats, tick: int) -> Floats:
        end = tick + self.on_demand_start.ticks
        if end > self.ticks:
            return np.full_like(on_demand[:, 0], np.inf)
        return self.on_demand_start_usd + _done(on_demand[:, end], self.on_demand_start.gain)


def _done(value: Floats, gain: int) -> Floats:
    """The value after `gain` steps of work, as a function of the work left before; last axis is work left."""
    if gain == 0:
        return value.copy()
    after = np.empty_like(value)
    after[..., gain:] = value[..., :-gain]
    after[..., :gain] = value[..., :1]
    return after
