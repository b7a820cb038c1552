"""The survival policy: waits, takes spot and leaves it by how long spells of that age still last.

One zone: exact dynamic programming over time left, work left, mode and age of the spell (`induction`). Several zones:
the same with the other zones summed up (`pool_induction`), and at every tick the values of all actions are compared
for the zones as they are: start here or there, stay, move, wait, or take on-demand. The guard stands above both.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.spot.policy import pool as pools
from planner.spot.policy.chain import SpellChain, bucket_ticks
from planner.spot.policy.guard import guarded
from planner.spot.policy.induction import (
    FRESH_MASK,
    STAY_ON_DEMAND,
    STAY_ON_SPOT_SHIFT,
    Induction,
    Problem,
    Restart,
)
from planner.spot.policy.job import SpotJob
from planner.spot.policy.pool_induction import PoolInduction
from planner.spot.policy.pool_values import SOLVED, Corner, Market, PoolValues
from planner.spot.policy.recent import recent_levels
from planner.spot.policy.view import EPS_HOURS, ON_DEMAND, SPOT, ArrayPolicy, JobView, RunStates

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable

_CACHE_SIZE = 8
Arrays = Mapping[str, npt.NDArray[Any]]
Memory = Callable[[tuple[Any, ...], Callable[[], Arrays]], Arrays]
"""Gives the arrays solved for a key: those it remembers, else those that the function solves now."""
_CACHE: OrderedDict[tuple[Any, ...], Arrays] = OrderedDict()
_MOST_CELLS = 300_000
_MOST_STEPS_PER_TICK = 4
_PRICE_STEP = 0.005
_CAUTION = 0.18
"""How much worse than expected one zone's hazards are taken, on the log scale: half of the sd between days."""


class Grid:
    """Ticks and steps the induction works on: the job's tick, or several of them for a long job.

    A restart that is not a whole number of ticks gets a finer grid of work, as far as the number of cells allows.
    """

    def __init__(self, view: JobView) -> None:
        job = view.job
        cells = job.work_hours * max(job.deadline_hours - job.work_hours, job.tick_hours) / job.tick_hours**2
        ticks = max(1, math.ceil(math.sqrt(cells / _MOST_CELLS)))
        self.tick_hours = job.tick_hours * ticks
        restart = view.restart_hours / self.tick_hours
        whole = abs(restart - round(restart)) < 1e-6
        room = math.floor(math.sqrt(_MOST_CELLS * ticks**2 / cells))
        self.per_tick = 1 if whole else max(1, min(room, _MOST_STEPS_PER_TICK))
        self.step_hours = self.tick_hours / self.per_tick
        self.work = math.ceil(job.work_hours / self.step_hours - 1e-6)
        self.slack = max(0, math.floor((view.deadline_hours - job.work_hours) / self.step_hours + 1e-6))
        self.spot = Restart(job.restart_hours, self.tick_hours, self.per_tick)
        self.on_demand = Restart(view.on_demand_start_hours, self.tick_hours, self.per_tick)
        self.wait_ticks = job.on_demand_acquire_hours / self.tick_hours


class SurvivalPolicy(ArrayPolicy):
    """See the module."""

    is_guarded = True

    def __init__(self, job: SpotJob, tables: Mapping[str, HazardTable], memory: Memory | None = None) -> None:
        """Solve the policy for a job.

        Args:
            job: what must be done.
            tables: hazards per zone name.
            memory: of what was solved before; default: this process's own.
        """
        super().__init__(job)
        self.memory = memory or _cached
        self.grid = Grid(self.view)
        self.tables = [tables[zone.name] for zone in job.zones]
        self.ratios = [_ratio(zone.usd_per_hour, job.on_demand_usd_per_hour) for zone in job.zones]
        one_zone = len(job.zones) == 1
        self.chains = (
            [one_zone_chain(job, self.tables[0], self.grid.tick_hours)]
            if one_zone
            else [chain_of(table, self.grid.tick_hours) for table in self.tables]
        )
        self.saves = min(self.ratios) < 1
        if self.saves:
            self._solver = _OneZone(self) if one_zone else _SeveralZones(self)

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """The best action, made safe; spot that costs as much as on-demand is no spot, and not waited for."""
        if not self.saves:
            return np.full(len(runs.mode), ON_DEMAND), np.full(len(runs.mode), -1)
        usd = self.view.known_usd(runs.usd_per_hour)
        cheap = runs.up & (usd < self.view.job.on_demand_usd_per_hour * (1 - 1e-9))
        mode, zone = self._solver.decide(runs, cheap)
        return guarded(self.view, runs, mode, zone)


def chain_of(table: HazardTable, tick_hours: float) -> SpellChain:
    """Spells of a table on a tick."""
    return SpellChain(table.age_edges_hours, table.down_per_hour, table.up_per_hour, tick_hours)


def one_zone_chain(job: SpotJob, table: HazardTable, tick_hours: float) -> SpellChain:
    """Spells of a job's only zone: the table, moved by what its last hours showed, and taken with caution."""
    history = np.asarray(job.history.get(job.zones[0].name, ()), dtype=np.bool_)
    down, up = recent_levels(table, history, job.tick_hours)
    return SpellChain(
        table.age_edges_hours,
        table.down_per_hour * math.exp(down + _CAUTION),
        table.up_per_hour * math.exp(up - _CAUTION),
        tick_hours,
        bucket_ticks(table.age_edges_hours, tick_hours),
    )


def _cached(key: tuple[Any, ...], make: Callable[[], Arrays]) -> Arrays:
    if key in _CACHE:
        _CACHE.move_to_end(key)
    else:
        _CACHE[key] = make()
        while len(_CACHE) > _CACHE_SIZE:
            _CACHE.popitem(last=False)
    return _CACHE[key]


def _ratio(spot_usd: float, on_demand_usd: float) -> float:
    """Spot over on-demand, at most 1: a price that is not known, or no less than on-demand, saves nothing."""
    saves = spot_usd < on_demand_usd * (1 - 1e-9) and spot_usd >= 0 and on_demand_usd < math.inf
    return spot_usd / on_demand_usd if saves else 1.0


def _price(ratio: float) -> float:
    """Rounded, so that jobs an hour apart share what was solved."""
    return round(ratio / _PRICE_STEP) * _PRICE_STEP


class _OneZone:
    def __init__(self, policy: SurvivalPolicy) -> None:
        grid = policy.grid
        self.view, self.grid = policy.view, grid
        self.chain = policy.chains[0]
        ratio = _price(policy.ratios[0])
        problem = Problem(
            self.chain,
            grid.work,
            grid.slack,
            grid.per_tick,
            grid.spot,
            grid.on_demand,
            grid.wait_ticks,
            ratio,
        )
        key = ("one", *_key(grid, policy.chains), ratio)
        self.codes = policy.memory(key, lambda: {"codes": Induction(problem).codes})["codes"]

    def decide(self, runs: RunStates, up: Bools) -> tuple[Ints, Ints]:
        grid, view = self.grid, self.view
        work, slack = _place(view, grid, runs, view.work_hours - runs.done_hours)
        stage = self.chain.stage(runs.since_hours[:, 0]) + np.where(
            runs.up[:, 0], 0, len(self.chain.leave_up)
        )
        code = self.codes[stage, np.clip(slack, 0, grid.slack), np.clip(work, 0, grid.work)].astype(np.int64)
        code[slack < 0] = ON_DEMAND | STAY_ON_DEMAND
        gone = (self.view.restart_hours - runs.restart_left_hours) / grid.tick_hours
        level = np.clip(np.floor(gone + 1e-6).astype(np.int64), 0, grid.spot.ticks)
        level = np.where(runs.restart_left_hours <= EPS_HOURS, grid.spot.ticks, level)
        stays = (runs.mode == SPOT) & (code >> (STAY_ON_SPOT_SHIFT + level) & 1 > 0)
        keeps = (runs.mode == ON_DEMAND) & (
            (code & STAY_ON_DEMAND > 0) | (runs.restart_left_hours > EPS_HOURS)
        )
        mode = np.where(stays, SPOT, np.where(keeps, ON_DEMAND, code & FRESH_MASK))
        mode = np.where((mode == SPOT) & ~up[:, 0], ON_DEMAND, mode)  # spot as dear as on-demand
        return mode, np.where(mode == SPOT, 0, -1)


def _key(grid: Grid, chains: list[SpellChain]) -> tuple[Any, ...]:
    spells = b"".join(np.round(chain.step, 6).tobytes() for chain in chains)
    return (
        spells,
        grid.tick_hours,
        grid.per_tick,
        grid.work,
        grid.slack,
        grid.spot.steps,
        grid.on_demand.steps,
        grid.wait_ticks,
    )


def _place(view: JobView, grid: Grid, runs: RunStates, left_hours: Floats) -> tuple[Ints, Ints]:
    """Work left (hours) and slack in steps, the work rounded up and the slack down."""
    work = np.ceil(left_hours / grid.step_hours - 1e-6).astype(np.int64)
    remaining = math.floor((view.deadline_hours - runs.elapsed_hours) / grid.tick_hours + 1e-6)
    return work, remaining * grid.per_tick - work


class _SeveralZones:
    """Compares the values of all actions for the zones as they are.

    Between two estimates the better one is flattered, so leaving a zone that runs must be better by a margin of one
    on-demand tick.
    """

    MOVE_MARGIN = 1.0

    def __init__(self, policy: SurvivalPolicy) -> None:
        grid, job = policy.grid, policy.view.job
        self.view, self.grid, self.chains = policy.view, grid, policy.chains
        self.k = len(self.chains[0].first_ticks)
        whole = job.on_demand_usd_per_hour * grid.tick_hours
        self.egress_ticks = job.egress_usd / whole
        ratio = np.array([_price(ratio) for ratio in policy.ratios])
        region = policy.view.region
        same = region[:, None] == region[None, :]
        key = ("several", *_key(grid, self.chains), tuple(ratio), same.tobytes(), self.egress_ticks)

        def solve() -> Arrays:
            pool_induction = PoolInduction(
                pools.make_pool(self.chains, ratio, same, grid.spot.ticks, self.egress_ticks),
                -(-grid.work // grid.per_tick),
                grid.slack // grid.per_tick,
                Restart(job.restart_hours, grid.tick_hours, 1),
                Restart(policy.view.on_demand_start_hours, grid.tick_hours, 1),
                grid.wait_ticks,
            )
            return {name: getattr(pool_induction, name) for name in SOLVED}

        self.values = PoolValues(policy.memory(key, solve))

    def decide(self, runs: RunStates, up: Bools) -> tuple[Ints, Ints]:
        n, zones = up.shape
        stage = self.chains[0].stage(runs.since_hours)  # ages have the same stages in all zones
        row = np.arange(zones) * self.k + stage
        dry_row = zones * self.k + stage.min(axis=1, initial=self.k - 1, where=~runs.up)
        left = self.view.work_hours - runs.done_hours
        moved = (runs.region[:, None] >= 0) & (runs.region[:, None] != self.view.region[None, :])
        # who puts a start off has the transfer still before them: without this, putting it off would save it for ever
        transfer = moved * self.egress_ticks
        market = Market(self._corner(runs, left), row, dry_row, up, transfer)
        start, (wait, rent) = market.by_zone_and_best("start", "wait", "begin")
        stay = np.full(n, np.inf)
        on_spot = (runs.mode == SPOT).nonzero()[0]
        zone = runs.zone[on_spot]
        start[on_spot, zone] = np.inf
        going = up[on_spot, zone]
        at, zone = on_spot[going], zone[going]
        if len(at):
            corner = self._corner(runs, left[at] + runs.restart_left_hours[at])
            stay[at] = corner.values(("run",), row[at, zone][:, None])[0, :, 0] - self.MOVE_MARGIN
        at = (runs.mode == ON_DEMAND).nonzero()[0]
        if len(at):
            corner = self._corner(runs, left[at] + runs.restart_left_hours[at])
            (keep,) = Market(corner, row[at], dry_row[at], up[at], transfer[at]).best("keep")
            rent[at] = np.minimum(rent[at], keep)
        best = start.argmin(axis=1)
        choice = np.stack([wait, start[np.arange(n), best], rent, stay])
        pick = choice.argmin(axis=0)
        mode = np.where(pick == 3, SPOT, pick)
        return mode, np.where(pick == 3, runs.zone, np.where(pick == SPOT, best, -1))

    def _corner(self, runs: RunStates, left_hours: Floats) -> Corner:
        grid = self.grid
        work, slack = _place(self.view, grid, runs, left_hours)
        if grid.per_tick > 1:
            work, slack = -(-work // grid.per_tick), slack // grid.per_tick
        return Corner.at(self.values, work, slack)
