"""Backward induction for several zones that may replace each other.

The joint state of all zones is far too large, so each zone keeps its own spell and the rest is summed up: when a zone
goes down, another one is up with a chance that is capped (a model that believes in "some zone will be up" waits the
slack away), and it is the best of those likely to be up, at an age as long spells have it; otherwise all are down (a
dry spell), which ends with the zones' own hazards, discounted for their correlation. A start is a jump over its
restart. Prices are in units of one on-demand tick; values of all actions are kept on a grid of work and slack.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats, Ints
from planner.spot.policy.chain import SpellChain
from planner.spot.policy.induction import MISS, Restart, done

Float32Array = npt.NDArray[np.float32]
Values = tuple[Float32Array, ...]

FINE_TICKS = 30
COARSE_STEP = 4


class Pool:
    """Zones on one grid.

    Attributes:
        chains: spells, one per zone.
        price_ratio: spot over on-demand, shape `(n,)`.
        other: chance that zone `j` is what a run goes on with when zone `i` is lost, shape `(n, n)`; rows sum to the
            chance that any is.
        move: cost of doing so, on-demand ticks, shape `(n, n)`.
        arrive: chance that zone `j` ends a dry spell of a stage in a tick, shape `(k, n)`.
    """

    def __init__(
        self,
        chains: list[SpellChain],
        price_ratio: Floats,
        other: Floats,
        move: Floats,
        arrive: Floats,
    ) -> None:
        self.chains, self.price_ratio, self.other, self.move, self.arrive = (
            chains,
            price_ratio,
            other,
            move,
            arrive,
        )
        k = len(chains[0].first_ticks)
        self.stages = k
        self.step = np.stack([chain.step[:k, :k] for chain in chains])
        self.leave = np.stack([chain.leave_up for chain in chains])
        self.age = np.stack([up_age(chain) for chain in chains])
        advance = 1.0 / np.diff(np.append(chains[0].first_ticks, np.inf))
        stay = 1.0 - arrive.sum(axis=1)
        self.dry = np.diag(stay * (1.0 - advance)) + np.diag((stay * advance)[:-1], 1)


def up_age(chain: SpellChain) -> Floats:
    """How the stages of an up spell are met at a random moment, shape `(k,)`."""
    k = len(chain.first_ticks)
    within = chain.step[:k, :k]
    time = np.linalg.solve(np.eye(k) - within.T, np.eye(k)[0])
    return np.asarray(time / time.sum())


class PoolInduction:
    """Values of the actions on the grid of slack and work.

    Attributes:
        start, run, wait, keep, begin: cost to go, in on-demand ticks, of starting spot, going on with it, waiting,
            staying on on-demand and asking for it; shape `(rows, n_slack, n_work)`, the last three with `k` more rows
            for the stages of a dry spell; row `zone * k + stage`.
    """

    def __init__(
        self, pool: Pool, work: int, slack: int, spot: Restart, on_demand: Restart, wait: float
    ) -> None:
        self.pool, self.work, self.slack = pool, work, max(slack, 1)
        self.spot, self.on_demand, self.wait_ticks = spot, on_demand, wait
        self.zones, self.k = len(pool.chains), pool.stages
        self.pad = 2
        self.slack_at = _grid(self.slack)
        self.work_at = np.asarray(sorted({*range(0, work + 1, COARSE_STEP), work}), dtype=np.int64)
        own, all_rows = self.zones * self.k, (self.zones + 1) * self.k
        ends = np.cumsum([own, own, all_rows, all_rows, all_rows])
        self.kept = np.full((int(ends[-1]), len(self.slack_at), len(self.work_at)), MISS, np.float32)
        self.kept[..., 0] = 0.0  # no work left: nothing to pay
        self.start, self.run, self.wait, self.keep, self.begin = np.split(self.kept, ends[:-1])
        self._solve()

    def _solve(self) -> None:
        z, k, pool = self.zones, self.k, self.pool
        self.step, self.dry = pool.step.astype(np.float32), pool.dry.astype(np.float32)
        self.leave, self.arrive = pool.leave.astype(np.float32)[:, :, None], pool.arrive.astype(np.float32)
        self.price = pool.price_ratio.astype(np.float32)[:, None, None]
        self.age, self.other = pool.age.astype(np.float32)[:, None, :], pool.other.astype(np.float32)
        self.none = (1.0 - pool.other.sum(axis=1)).astype(np.float32)[:, None]
        self.moved = (pool.other * pool.move).sum(axis=1).astype(np.float32)[:, None]
        self.jump = [np.linalg.matrix_power(self.step, n) for n in (self.spot.ticks, self.on_demand.ticks)]
        self.gone = [1.0 - jump.sum(axis=2, keepdims=True) for jump in self.jump]
        self.dry_jump = np.linalg.matrix_power(self.dry, self.on_demand.ticks)
        self.wet = 1.0 - self.dry_jump.sum(axis=1, keepdims=True)
        self.paid = self.spot.ticks * self.price
        width = self.pad + self.work + 1
        past = [_Tick(z, k, width, self.pad) for _ in range(max(self.spot.ticks, self.on_demand.ticks) + 2)]
        held = self._grid_by_tick()
        for left in range(1, self.work + self.slack + 1):
            low, high = max(1, left - self.slack), min(self.work, left)
            if high >= low:
                new = past.pop()  # of too long ago for any restart
                self._tick(left, low, high, [tick.values for tick in past], new, held[left])
                past.insert(0, new)

    def _grid_by_tick(self) -> list[tuple[Ints, Ints]]:
        """Rows and columns of the grid that have so many ticks left, work and slack together, work among them."""
        left = (self.slack_at[:, None] + self.work_at).ravel()
        left[np.tile(self.work_at == 0, len(self.slack_at))] = 0
        order = np.argsort(left, kind="stable")
        ends = np.searchsorted(left[order], np.arange(self.work + self.slack + 2)).tolist()
        row, column = np.divmod(order, len(self.work_at))
        return [(row[a:b], column[a:b]) for a, b in pairwise([*ends, len(order)])]

    def _onward(self, value: Float32Array, lost: Float32Array) -> Float32Array:
        """Expected value after a tick in which a zone may be lost."""
        return np.asarray(self.step @ value + self.leave * lost[:, None, :])

    def _lost(self, free: Float32Array, dry: Float32Array, moved: bool) -> Float32Array:
        """Value after the loss of each zone: another one, at the age it is likely to have, or a dry spell."""
        typical = (self.age @ free)[:, 0]
        after = self.other @ typical + self.none * dry[0]
        return np.asarray(after + self.moved if moved else after)

    def _tick(
        self, left: int, low: int, high: int, past: list[Values], new: _Tick, held: tuple[Ints, Ints]
    ) -> None:
        """Values with `left` ticks left from those with one tick less, kept where the grid has them."""
        run1, free1, dry1, rent1, rent_dry1, lost1, lost_rent1 = past[0]
        at = slice(self.pad + low, self.pad + high + 1)
        on = slice(at.start - 1, at.stop - 1)
        wait = self._onward(free1[..., at], lost1[:, at])
        run = self.price + self._onward(run1[..., on], lost1[:, on])
        keep = 1.0 + self._onward(rent1[..., on], lost_rent1[:, on])
        keep_dry = 1.0 + self.dry @ rent_dry1[:, on] + self.arrive @ rent1[:, 0, on]
        wait_dry = self.dry @ dry1[:, at] + self.arrive @ free1[:, 0, at]
        start = self._start(left, at, past, run)
        begin, begin_dry = self._begin(left, at, past, keep, keep_dry)
        best = np.minimum(np.minimum(wait, start), begin)
        best_dry = np.minimum(wait_dry, begin_dry)
        row, column = held
        if len(row):
            parts = (start, run, wait, wait_dry, keep, keep_dry, begin, begin_dry)
            found = np.concatenate([part.reshape(-1, high - low + 1) for part in parts])
            self.kept[:, row, column] = found.take(self.work_at[column] - low, axis=1)
        run, keep, keep_dry = np.minimum(run, best), np.minimum(keep, best), np.minimum(keep_dry, best_dry)
        lost, lost_rented = self._lost(best, best_dry, True), self._lost(keep, keep_dry, False)
        new.fill(at, (run, best, best_dry, keep, keep_dry, lost, lost_rented))

    def _start(self, left: int, at: slice, past: list[Values], run: Float32Array) -> Float32Array:
        """Start spot: survive the restart, or lose all of it."""
        n = self.spot.ticks
        if n == 0:
            return run
        if left < n:
            return np.full_like(run, MISS)
        then = self.jump[0] @ done(past[n - 1][0], at, self.spot.gain)
        return np.asarray(self.paid + (then + self.gone[0] * past[n - 1][5][:, None, at]))

    def _begin(
        self, left: int, at: slice, past: list[Values], keep: Float32Array, keep_dry: Float32Array
    ) -> tuple[Float32Array, Float32Array]:
        """Ask for on-demand and stay until its restart is over."""
        n = self.on_demand.ticks
        if n == 0:
            return keep, keep_dry
        if left < n:
            return np.full_like(keep, MISS), np.full_like(keep_dry, MISS)
        rented, rented_dry, lost = past[n - 1][3], past[n - 1][4], past[n - 1][6]
        gain = self.on_demand.gain
        paid = np.float32(n - self.wait_ticks)
        then = done(rented, at, gain)
        begin = paid + self.jump[1] @ then + self.gone[1] * done(lost, at, gain)[:, None]
        fresh = then[:, 0].sum(axis=0) / self.zones
        return begin, np.asarray(paid + self.dry_jump @ done(rented_dry, at, gain) + self.wet * fresh)


class _Tick:
    """What the ticks after this one need of it, in one array: all but reachable work is out of reach."""

    def __init__(self, zones: int, stages: int, width: int, pad: int) -> None:
        """Take a tick at which only finished work is in reach."""
        shapes = [(zones, stages), (zones, stages), (stages,), (zones, stages), (stages,), (zones,), (zones,)]
        ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        self._all, self._from = np.full((ends[-1], width), MISS, np.float32), pad + 1
        self._all[:, : self._from] = 0.0
        rows = pairwise([0, *ends])
        self.values: Values = tuple(
            self._all[a:b].reshape(*shape, width) for (a, b), shape in zip(rows, shapes, strict=True)
        )

    def fill(self, at: slice, values: Values) -> None:
        """Take the values of the work at `at`, which neither begins nor ends before that of an earlier tick."""
        self._all[:, self._from : at.start] = MISS
        self._from = at.start
        flat = [value.reshape(-1, value.shape[-1]) for value in values]
        np.minimum(np.concatenate(flat), np.float32(MISS), out=self._all[:, at])


def _grid(slack: int) -> Ints:
    """Every tick of slack while it is short, then coarser."""
    ticks = {*range(min(FINE_TICKS, slack) + 1), *range(0, slack + 1, COARSE_STEP), slack}
    return np.asarray(
        sorted(ticks), dtype=np.int64
    )  # np.unique would import numpy.ma, a tenth of a short call
