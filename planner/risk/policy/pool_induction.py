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

from planner.risk.policy.chain import SpellChain
from planner.risk.policy.induction import MISS, Restart

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]

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
        self.pool, self.work, self.slack = pool, work, slack
        self.spot, self.on_demand, self.wait_ticks = spot, on_demand, wait
        self.zones, self.k = len(pool.chains), pool.stages
        self.pad = max(1, spot.gain, on_demand.gain)
        self.slack_at = _grid(slack)
        self.work_at = np.unique(np.append(np.arange(0, work + 1, COARSE_STEP), work))
        shape = (len(self.slack_at), len(self.work_at))
        z, k = self.zones, self.k
        self.start, self.run = (np.full((z * k, *shape), MISS, np.float32) for _ in range(2))
        self.wait, self.keep, self.begin = (
            np.full(((z + 1) * k, *shape), MISS, np.float32) for _ in range(3)
        )
        self._solve()

    def _blank(self, rows: tuple[int, ...]) -> FloatArray:
        blank = np.full((*rows, self.pad + self.work + 1), MISS)
        blank[..., : self.pad + 1] = 0.0
        return blank

    def _lost(self, free: FloatArray, dry: FloatArray) -> FloatArray:
        """Value after the loss of each zone: another one by its age, or a dry spell; shape `(n, columns)`."""
        pool = self.pool
        typical = np.einsum("zk,zkw->zw", pool.age, free)
        none = 1.0 - pool.other.sum(axis=1)
        moved = (pool.other * pool.move).sum(axis=1)
        return np.asarray(pool.other @ typical + moved[:, None] + none[:, None] * dry[0])

    def _solve(self) -> None:
        z, k = self.zones, self.k
        free, dry, run = self._blank((z, k)), self._blank((k,)), self._blank((z, k))
        rented, rented_dry = self._blank((z, k)), self._blank((k,))
        past: list[tuple[FloatArray, ...]] = [(run, free, dry, rented, rented_dry)] * (
            max(self.spot.ticks, self.on_demand.ticks) + 1
        )
        jump = [np.linalg.matrix_power(self.pool.step, n) for n in (self.spot.ticks, self.on_demand.ticks)]
        dry_jump = np.linalg.matrix_power(self.pool.dry, self.on_demand.ticks)
        for left in range(1, self.work + self.slack + 1):
            low, high = max(1, left - self.slack), min(self.work, left)
            if high < low:
                continue
            past = [self._tick(left, low, high, past, jump, dry_jump), *past[:-1]]

    def _tick(
        self,
        left: int,
        low: int,
        high: int,
        past: list[tuple[FloatArray, ...]],
        jump: list[FloatArray],
        dry_jump: FloatArray,
    ) -> tuple[FloatArray, ...]:
        pool, pad = self.pool, self.pad
        run1, free1, dry1, rent1, rent_dry1 = past[0]
        at, done = slice(pad + low, pad + high + 1), slice(pad + low - 1, pad + high)
        price = pool.price_ratio[:, None, None]
        leave = pool.leave[:, :, None]

        def onward(value: FloatArray, lost: FloatArray) -> FloatArray:
            return np.asarray(pool.step @ value + leave * lost[:, None, :])

        wait = onward(free1[..., at], self._lost(free1[..., at], dry1[..., at]))
        run = price + onward(run1[..., done], self._lost(free1[..., done], dry1[..., done]))
        keep = 1.0 + onward(rent1[..., done], self._lost_rented(rent1, rent_dry1, done))
        keep_dry = 1.0 + pool.dry @ rent_dry1[:, done] + pool.arrive @ rent1[:, 0, done]
        wait_dry = pool.dry @ dry1[:, at] + pool.arrive @ free1[:, 0, at]
        start = self._start(left, at, past, jump[0], run)
        begin, begin_dry = self._begin(left, at, past, jump[1], dry_jump, keep, keep_dry)
        best = np.minimum(np.minimum(wait, start), begin)
        best_dry = np.minimum(wait_dry, begin_dry)
        self._store(left, low, high, (start, run, wait, keep, begin), (wait_dry, keep_dry, begin_dry))
        new = (np.minimum(run, best), best, best_dry, np.minimum(keep, best), np.minimum(keep_dry, best_dry))
        return tuple(self._filled(value, at) for value in new)

    def _lost_rented(self, rented: FloatArray, rented_dry: FloatArray, at: slice) -> FloatArray:
        """On on-demand the zones matter only for going back to spot."""
        typical = np.einsum("zk,zkw->zw", self.pool.age, rented[..., at])
        none = 1.0 - self.pool.other.sum(axis=1)
        return np.asarray(self.pool.other @ typical + none[:, None] * rented_dry[0, at])

    def _start(
        self, left: int, at: slice, past: list[tuple[FloatArray, ...]], jump: FloatArray, run: FloatArray
    ) -> FloatArray:
        """Start spot: survive the restart, or lose all of it."""
        n = self.spot.ticks
        if n == 0:
            return run
        if left < n:
            return np.full_like(run, MISS)
        then_run, then_free, then_dry = past[n - 1][:3]
        gained = slice(at.start - self.spot.gain, at.stop - self.spot.gain)
        lost = self._lost(then_free[..., at], then_dry[..., at])
        gone = 1.0 - jump.sum(axis=2)
        paid = n * self.pool.price_ratio[:, None, None]
        return np.asarray(paid + jump @ then_run[..., gained] + gone[:, :, None] * lost[:, None, :])

    def _begin(
        self,
        left: int,
        at: slice,
        past: list[tuple[FloatArray, ...]],
        jump: FloatArray,
        dry_jump: FloatArray,
        keep: FloatArray,
        keep_dry: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Ask for on-demand and stay until its restart is over."""
        n = self.on_demand.ticks
        if n == 0:
            return keep, keep_dry
        if left < n:
            return np.full_like(keep, MISS), np.full_like(keep_dry, MISS)
        rented, rented_dry = past[n - 1][3:]
        gained = slice(at.start - self.on_demand.gain, at.stop - self.on_demand.gain)
        paid = n - self.wait_ticks
        lost = self._lost_rented(rented, rented_dry, gained)
        gone, wet = 1.0 - jump.sum(axis=2), 1.0 - dry_jump.sum(axis=1)
        begin = paid + jump @ rented[..., gained] + gone[:, :, None] * lost[:, None, :]
        fresh = rented[:, 0, gained].mean(axis=0)
        return begin, paid + dry_jump @ rented_dry[:, gained] + wet[:, None] * fresh

    def _filled(self, value: FloatArray, at: slice) -> FloatArray:
        filled = self._blank(value.shape[:-1])
        filled[..., at] = np.minimum(value, MISS)
        return filled

    def _store(
        self,
        left: int,
        low: int,
        high: int,
        values: tuple[FloatArray, ...],
        dry: tuple[FloatArray, ...],
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
    fine = np.arange(0, min(FINE_TICKS, slack) + 1)
    return np.unique(np.concatenate([fine, np.arange(0, slack + 1, COARSE_STEP), [slack]]))
