"""Backward induction for several zones that may replace each other.

The joint state of all zones is far too large, so each zone keeps its own spell and the rest is summed up: when a zone
goes down, another one is up with a chance that is capped (a model that believes in "some zone will be up" waits the
slack away), and it is the best of those likely to be up, at an age as long spells have it; otherwise all are down (a
dry spell), which ends with the zones' own hazards, discounted for their correlation. A start is a jump over its
restart. Prices are in units of one on-demand tick; values of all actions are kept on a grid of work and slack.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.spot.policy.chain import SpellChain
from planner.spot.policy.induction import MISS, Restart, done

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
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
        price_ratio: FloatArray,
        other: FloatArray,
        move: FloatArray,
        arrive: FloatArray,
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


def up_age(chain: SpellChain) -> FloatArray:
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
        shape = (len(self.slack_at), len(self.work_at))
        z, k = self.zones, self.k
        self.start, self.run = (np.full((z * k, *shape), MISS, np.float32) for _ in range(2))
        self.wait, self.keep, self.begin = (
            np.full(((z + 1) * k, *shape), MISS, np.float32) for _ in range(3)
        )
        for table in (self.start, self.run, self.wait, self.keep, self.begin):
            table[..., 0] = 0.0  # no work left: nothing to pay
        self._solve()

    def _blank(self, rows: tuple[int, ...]) -> Float32Array:
        blank = np.full((*rows, self.pad + self.work + 1), MISS, np.float32)
        blank[..., : self.pad + 1] = 0.0
        return blank

    def _solve(self) -> None:
        z, k, pool = self.zones, self.k, self.pool
        self.step, self.dry = pool.step.astype(np.float32), pool.dry.astype(np.float32)
        self.leave, self.arrive = pool.leave.astype(np.float32)[:, :, None], pool.arrive.astype(np.float32)
        self.price = pool.price_ratio.astype(np.float32)[:, None, None]
        self.age, self.other = pool.age.astype(np.float32)[:, None, :], pool.other.astype(np.float32)
        self.none = (1.0 - pool.other.sum(axis=1)).astype(np.float32)[:, None]
        self.moved = (pool.other * pool.move).sum(axis=1).astype(np.float32)[:, None]
        self.jump = [np.linalg.matrix_power(self.step, n) for n in (self.spot.ticks, self.on_demand.ticks)]
        self.dry_jump = np.linalg.matrix_power(self.dry, self.on_demand.ticks)
        zones, dry = self._blank((z, k)), self._blank((k,))
        lost = self._blank((z,))
        past: list[Values] = [(zones, zones, dry, zones, dry, lost, lost)]
        past *= max(self.spot.ticks, self.on_demand.ticks) + 1
        for left in range(1, self.work + self.slack + 1):
            low, high = max(1, left - self.slack), min(self.work, left)
            if high >= low:
                past = [self._tick(left, low, high, past), *past[:-1]]

    def _onward(self, value: Float32Array, lost: Float32Array) -> Float32Array:
        """Expected value after a tick in which a zone may be lost."""
        return np.asarray(self.step @ value + self.leave * lost[:, None, :])

    def _lost(self, free: Float32Array, dry: Float32Array, moved: bool) -> Float32Array:
        """Value after the loss of each zone: another one, at the age it is likely to have, or a dry spell."""
        typical = (self.age @ free)[:, 0]
        after = self.other @ typical + self.none * dry[0]
        return np.asarray(after + self.moved if moved else after)

    def _tick(self, left: int, low: int, high: int, past: list[Values]) -> Values:
        """Values with `left` ticks left from those with one tick less."""
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
        self._store(left, low, high, (start, run, wait, keep, begin), (wait_dry, keep_dry, begin_dry))
        run, keep, keep_dry = np.minimum(run, best), np.minimum(keep, best), np.minimum(keep_dry, best_dry)
        lost, lost_rented = self._lost(best, best_dry, True), self._lost(keep, keep_dry, False)
        new = (run, best, best_dry, keep, keep_dry, lost, lost_rented)
        return tuple(self._filled(value, at) for value in new)

    def _start(self, left: int, at: slice, past: list[Values], run: Float32Array) -> Float32Array:
        """Start spot: survive the restart, or lose all of it."""
        n = self.spot.ticks
        if n == 0:
            return run
        if left < n:
            return np.full_like(run, MISS)
        jump = self.jump[0]
        gone = 1.0 - jump.sum(axis=2, keepdims=True)
        then = jump @ done(past[n - 1][0], at, self.spot.gain) + gone * past[n - 1][5][:, None, at]
        return np.asarray(n * self.price + then)

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
        gone = 1.0 - self.jump[1].sum(axis=2, keepdims=True)
        wet = 1.0 - self.dry_jump.sum(axis=1, keepdims=True)
        begin = paid + self.jump[1] @ done(rented, at, gain) + gone * done(lost, at, gain)[:, None]
        fresh = done(rented[:, 0], at, gain).mean(axis=0)
        return begin, np.asarray(paid + self.dry_jump @ done(rented_dry, at, gain) + wet * fresh)

    def _filled(self, value: Float32Array, at: slice) -> Float32Array:
        filled = self._blank(value.shape[:-1])
        filled[..., at] = np.minimum(value, np.float32(MISS))
        return filled

    def _store(
        self,
        left: int,
        low: int,
        high: int,
        values: Values,
        dry: Values,
    ) -> None:
        slack = left - self.work_at
        place = np.searchsorted(self.slack_at, np.maximum(slack, 0))
        place = np.minimum(place, len(self.slack_at) - 1)
        held = (self.work_at >= low) & (self.work_at <= high) & (self.slack_at[place] == slack)
        if not held.any():
            return
        column, row = np.flatnonzero(held), place[held]
        take = self.work_at[held] - low
        own = self.zones * self.k
        for kept, value in zip((self.start, self.run, self.wait, self.keep, self.begin), values, strict=True):
            kept[:own, row, column] = value.reshape(own, -1)[:, take]
        for kept, value in zip((self.wait, self.keep, self.begin), dry, strict=True):
            kept[own:, row, column] = value[:, take]


def _grid(slack: int) -> IntArray:
    """Every tick of slack while it is short, then coarser."""
    ticks = {*range(min(FINE_TICKS, slack) + 1), *range(0, slack + 1, COARSE_STEP), slack}
    return np.asarray(
        sorted(ticks), dtype=np.int64
    )  # np.unique would import numpy.ma, a tenth of a short call
