"""The greedy fleet where workers may stop early: work is divided, only workers are whole.

Work is bought in order of cost per work within every limit; the last piece goes where it is cheapest with the
fixed cost of the workers it needs, time left on workers already bought first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.fleet.model.prepared import Prepared

MOST_STEPS = 400
DONE = 1e-12  # of the requirement


@dataclass(frozen=True, eq=False)
class Limit:
    """A limit on groups of offers: `amount` per worker (or per work, `of_work`) against what is `free` per group.

    What uses nothing of it has an amount of 1 and the group -1, of which infinitely much is free.
    """

    code: Ints
    amount: Floats
    free: Floats
    of_work: bool

    def room(self) -> Floats:
        """What is left for each offer, in workers, shape `(n_kept,)`."""
        return np.asarray(np.maximum(self.free, 0.0)[self.code] / self.amount, dtype=np.float64)


@dataclass(eq=False)
class Division:
    """Workers and their work while a fleet is filled, each of shape `(n_kept,)`."""

    prepared: Prepared
    limits: list[Limit]
    units: Floats
    busy: Floats

    def most_units(self) -> Floats:
        """Most further workers of each offer."""
        rooms = [limit.room() for limit in self.limits if not limit.of_work]
        most = np.minimum.reduce([self.prepared.upper - self.units, *rooms])
        return np.asarray(np.floor(most + 1e-9), dtype=np.float64)

    def most_busy(self) -> Floats:
        """Most further work of each offer, in workers used in full."""
        rooms = [limit.room() for limit in self.limits if limit.of_work]
        free = self.most_units() + self.units - self.busy
        return np.asarray(np.minimum.reduce([free, *rooms]), dtype=np.float64)

    def take(self, offer: int, busy: float) -> None:
        """Give `busy` more work to `offer`, with the workers it needs."""
        workers = max(0.0, math.ceil(self.busy[offer] + busy - self.units[offer] - 1e-9))
        self.units[offer] += workers
        self.busy[offer] = min(self.busy[offer] + busy, self.units[offer])
        self._spend(offer, workers, busy)

    def add(self, offer: int, workers: float) -> None:
        """Buy `workers` of `offer` for their memory alone."""
        self.units[offer] += workers
        self._spend(offer, workers, 0.0)

    def _spend(self, offer: int, workers: float, busy: float) -> None:
        for limit in self.limits:
            limit.free[limit.code[offer]] -= limit.amount[offer] * (busy if limit.of_work else workers)

    def missing(self) -> float:
        """Work not yet given out, over the requirement."""
        return 1.0 - float(self.prepared.work @ self.busy)

    def price(self, busy: Floats) -> Floats:
        """Cost of `busy` more work per offer: work, further workers, and its region where that is not open."""
        fleet, prepared = self.prepared.source, self.prepared
        workers = np.maximum(np.ceil(self.busy + busy - self.units - 1e-9), 0.0)
        region = prepared.of("region")
        closed = np.ones(fleet.n_regions, dtype=np.bool_)
        closed[region[self.units > 0]] = False
        opening = np.where(closed, fleet.region_cost_usd, 0.0)[region]
        return np.asarray(
            prepared.of("worker_usd") * workers + prepared.of("busy_usd") * busy + opening, dtype=np.float64
        )


def divide(division: Division, allowed: Bools, density: Floats, given: Floats | None = None) -> bool:
    """Fill `division` with allowed offers until the work is given out; False where limits leave too little.

    Args:
        division: changed in place.
        allowed: offers that may be used, shape `(n_kept,)`.
        density: order of buying, least first, shape `(n_kept,)`.
        given: work to start from, in workers used in full, shape `(n_kept,)`.
    """
    work = division.prepared.work
    for offer in np.flatnonzero(given if given is not None else ()).tolist():
        assert given is not None
        amount = min(float(given[offer]), float(division.most_busy()[offer]))
        if amount > DONE:
            division.take(offer, amount)
    able = allowed & (work > 0)
    for _ in range(MOST_STEPS):
        missing = division.missing()
        if missing <= DONE:
            return _add_memory(division, allowed)
        most = np.where(able, division.most_busy(), 0.0)
        usable = most * work > DONE
        if not usable.any():
            return False
        need = missing / np.where(usable, work, 1.0)
        whole = usable & (most >= need * (1 - 1e-12))
        step = int(np.argmin(np.where(usable, density, math.inf)))
        if whole[step] or not whole.any():
            amount = min(float(need[step]), float(most[step]))
            # whole workers first: what is left over may be cheaper elsewhere
            amount = math.floor(amount) or amount
            if whole[step] and need[step] < 1:
                step = int(np.argmin(np.where(whole, division.price(np.where(whole, need, 0.0)), math.inf)))
                amount = float(need[step])
        else:
            amount = float(most[step])
        division.take(step, amount)
    return False


def _add_memory(division: Division, allowed: Bools) -> bool:
    """Buy further workers where the fleet's memory falls short."""
    prepared = division.prepared
    wanted = prepared.source.min_total_memory_gib or 0.0
    memory = np.asarray(prepared.of("memory_gib"), dtype=np.float64)
    cost = np.asarray(prepared.of("worker_usd"), dtype=np.float64)
    for _ in range(MOST_STEPS):
        missing = wanted - float(memory @ division.units)
        if missing <= 0:
            return True
        room = np.where(allowed & (memory > 0), division.most_units(), 0.0)
        if not (room >= 1).any():
            return False
        each = np.where(room >= 1, memory, 1.0)
        offer = int(np.argmin(np.where(room >= 1, cost / each, math.inf)))
        division.add(offer, min(float(room[offer]), math.ceil(missing / each[offer] - 1e-9)))
    return False
