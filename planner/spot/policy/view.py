"""Many runs of one job side by side at one tick: what array policies see and answer.

One decision code serves one run and thousands: `planner.spot.replay_batch` asks it for all futures of a tick at
once, and `ArrayPolicy.decide` asks it for one run. So a forecast is made with exactly the decisions of the policy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.spot.policy.job import Action, JobState, Mode, SpotJob

IDLE, SPOT, ON_DEMAND = 0, 1, 2
MODES: tuple[Mode, Mode, Mode] = ("idle", "spot", "on_demand")
EPS_HOURS = 1e-9
"""Below it two times are the same: elapsed hours are sums of ticks that binary fractions do not hold exactly."""
_DEAREST = 1e300


class JobView:
    """A job in the numbers that decisions need.

    Attributes:
        deadline_ticks: whole ticks until the deadline; a tick that ends after it is of no use.
        deadline_hours: the end of the last of them.
        on_demand_start_hours: from asking for on-demand until it makes progress.
        region: number of each zone's region, shape `(n_zones,)`.
        launch_usd: spot price of each zone at launch, shape `(n_zones,)`.
    """

    def __init__(self, job: SpotJob) -> None:
        self.job = job
        self.work_hours = job.work_hours
        self.tick_hours = job.tick_hours
        self.restart_hours = job.restart_hours
        self.deadline_ticks = whole_ticks(job.deadline_hours, job.tick_hours)
        self.deadline_hours = self.deadline_ticks * job.tick_hours
        self.on_demand_start_hours = job.restart_hours + job.on_demand_acquire_hours
        regions = list(dict.fromkeys(zone.region for zone in job.zones))
        self.region_names = tuple(regions)
        self.region: Ints = np.array([regions.index(zone.region) for zone in job.zones], dtype=np.int64)
        self.zone_names = tuple(zone.name for zone in job.zones)
        self.zone_number = {name: number for number, name in enumerate(self.zone_names)}
        self.launch_usd: Floats = np.array([zone.usd_per_hour for zone in job.zones])

    def known_usd(self, usd_per_hour: Floats) -> Floats:
        """The prices, those at launch where none is known; the last axis is the zones."""
        unknown = np.isnan(usd_per_hour)
        return np.where(unknown, self.launch_usd, usd_per_hour) if unknown.any() else usd_per_hour


class RunStates:
    """The state of `n` runs of one job at the same tick.

    Attributes:
        elapsed_hours: since launch; the same for all.
        done_hours: shape `(n,)`.
        mode, zone: codes of `MODES` and zone numbers (-1: none), shape `(n,)`.
        restart_left_hours: shape `(n,)`.
        region: number of the checkpoint's region (-1: nothing written yet), shape `(n,)`.
        up, since_hours: shape `(n, n_zones)`.
        usd_per_hour: spot price now, shape `(n, n_zones)` or `(1, n_zones)`.
    """

    __slots__ = (
        "done_hours",
        "elapsed_hours",
        "mode",
        "region",
        "restart_left_hours",
        "since_hours",
        "up",
        "usd_per_hour",
        "zone",
    )

    def __init__(
        self,
        elapsed_hours: float,
        done_hours: Floats,
        mode: Ints,
        zone: Ints,
        restart_left_hours: Floats,
        region: Ints,
        up: Bools,
        since_hours: Floats,
        usd_per_hour: Floats,
    ) -> None:
        self.elapsed_hours = elapsed_hours
        self.done_hours = done_hours
        self.mode = mode
        self.zone = zone
        self.restart_left_hours = restart_left_hours
        self.region = region
        self.up = up
        self.since_hours = since_hours
        self.usd_per_hour = usd_per_hour


class ArrayPolicy(ABC):
    """A policy that decides for many runs at once, and so for one."""

    is_guarded = False
    """Whether its decisions have passed `planner.spot.policy.guard.guarded`."""

    def __init__(self, job: SpotJob) -> None:
        self.view = JobView(job)

    @abstractmethod
    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """What to do in the coming tick.

        Returns:
            Mode codes and zone numbers (-1 where not on spot), each of shape `(n,)`.
        """

    def decide(self, state: JobState) -> Action:
        """What to do in the coming tick with the one run."""
        mode, zone = self.decide_runs(one_run(self.view, state))
        if mode[0] == SPOT:
            return Action("spot", self.view.zone_names[zone[0]])
        return Action(MODES[mode[0]])


def one_run(view: JobView, state: JobState) -> RunStates:
    """A single state as arrays; a run on spot in a zone that is gone counts as stopped."""
    up = np.array([[zone.available for zone in state.zones]])
    zone = view.zone_number.get(state.zone or "", -1) if state.mode == "spot" else -1
    mode = MODES.index(state.mode)
    if mode == SPOT and (zone < 0 or not up[0, zone]):
        mode, zone = IDLE, -1
    region = -1
    if state.checkpoint_region is not None:
        known = state.checkpoint_region in view.region_names
        # a region of none of the zones: every zone costs a transfer
        region = view.region_names.index(state.checkpoint_region) if known else len(view.region_names)
    return RunStates(
        state.elapsed_hours,
        np.array([state.done_hours]),
        np.array([mode]),
        np.array([zone]),
        np.array([state.restart_left_hours if mode != IDLE else 0.0]),
        np.array([region]),
        up,
        np.array([[zone.since_hours for zone in state.zones]]),
        np.array([[zone.usd_per_hour for zone in state.zones]]),
    )


def whole_ticks(hours: float, tick_hours: float) -> int:
    """Ticks that end no later than `hours`."""
    return math.floor(hours / tick_hours + 1e-6)


def cheapest_up(up: Bools, usd_per_hour: Floats) -> Ints:
    """The cheapest zone that is up (the first of equals, unknown prices last), -1 where none is; shape `(n,)`."""
    best: Ints = np.where(up, np.where(np.isnan(usd_per_hour), _DEAREST, usd_per_hour), np.inf).argmin(axis=1)
    best[~up.any(axis=1)] = -1
    return best
