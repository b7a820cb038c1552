"""Policies that know nothing of the future: what the survival policy is measured against.

Uniform Progress is the policy of "Can't Be Late" (Wu et al., NSDI 2024) as its authors released it: it stays on
on-demand until spot is back and it is ahead of the straight line from launch to deadline. Greedy takes spot whenever
there is any and on-demand when it must. The margin rule waits with a buffer of 10 % and prefers spot whenever there
is slack. With several zones all three take the cheapest zone that is up.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Ints
from planner.spot.policy.guard import guarded
from planner.spot.policy.view import (
    EPS_HOURS,
    IDLE,
    ON_DEMAND,
    SPOT,
    ArrayPolicy,
    JobView,
    RunStates,
    cheapest_up,
)

_MARGIN_RATIO = 1.1
_MARGIN_TICKS = 2


class OnDemand(ArrayPolicy):
    """On-demand from launch to the end."""

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """Always on-demand."""
        n = len(runs.done_hours)
        return np.full(n, ON_DEMAND), np.full(n, -1)


class SpotOnly(ArrayPolicy):
    """Spot whenever there is any, never on-demand: it misses deadlines."""

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """Stay on spot, or start in the cheapest zone that is up."""
        return _spot_or(
            self.view, runs, np.full(len(runs.done_hours), IDLE), np.ones_like(runs.mode, dtype=bool)
        )


class Greedy(ArrayPolicy):
    """Spot whenever there is any; on-demand, to the end, once two restarts are all the slack left."""

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """Spot, else wait, else the last resort."""
        view = self.view
        late = self._remaining(runs) < self._work(runs) + 2 * view.restart_hours - EPS_HOURS
        on_demand = (runs.mode == ON_DEMAND) | (late & (runs.mode != SPOT))
        other = np.where(on_demand, ON_DEMAND, IDLE)
        return guarded(view, runs, *_spot_or(view, runs, other, ~on_demand))

    def _work(self, runs: RunStates) -> np.ndarray:
        return np.asarray(self.view.work_hours - runs.done_hours)

    def _remaining(self, runs: RunStates) -> float:
        return self.view.job.deadline_hours - runs.elapsed_hours


class Margin(Greedy):
    """Wait while 10 % of the work left is still spare; spot whenever there is slack for it."""

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """Spot with slack, on-demand without, else wait."""
        view = self.view
        work, remaining, spare = (
            self._work(runs),
            self._remaining(runs),
            _MARGIN_TICKS * view.tick_hours,
        )
        slack = remaining >= work + 2 * view.restart_hours + spare
        late = (runs.mode == ON_DEMAND) | (remaining < work * _MARGIN_RATIO + view.restart_hours + spare)
        return guarded(view, runs, *_spot_or(view, runs, np.where(late, ON_DEMAND, IDLE), slack))


class UniformProgress(Greedy):
    """Never behind the straight line from launch to deadline; on-demand until spot is back and it is ahead."""

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """Spot while ahead of the line, on-demand while behind."""
        view, done = self.view, runs.done_hours
        pace = view.work_hours / view.job.deadline_hours
        two_restarts = 2 * view.restart_hours
        enough = self._remaining(runs) >= self._work(runs) + two_restarts - EPS_HOURS
        behind = done < runs.elapsed_hours * pace - EPS_HOURS
        ahead = done >= (runs.elapsed_hours + two_restarts) * pace - EPS_HOURS
        on_demand = runs.mode == ON_DEMAND
        other = np.where(on_demand | behind | ~enough, ON_DEMAND, IDLE)
        return guarded(view, runs, *_spot_or(view, runs, other, np.where(on_demand, ahead & enough, enough)))


def _spot_or(view: JobView, runs: RunStates, other: Ints, allowed: Bools) -> tuple[Ints, Ints]:
    """Stay on spot; start in the cheapest zone that is up where `allowed`; else `other`."""
    best = cheapest_up(runs.up, view.known_usd(runs.usd_per_hour))
    staying = runs.mode == SPOT
    zone = np.where(staying, runs.zone, np.where(allowed, best, -1))
    mode = np.where(zone >= 0, SPOT, other)
    return mode, zone
