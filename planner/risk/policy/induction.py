"""Exact backward induction for one zone: what to do at every time left, work left, mode and age of spell.

State: ticks left, steps of work left, stage of the zone's spell (`SpellChain`), and the mode: stopped, on spot for `k`
ticks (of which the first are the restart), or on on-demand. Prices are in units of one on-demand tick. A state from
which on-demand no longer finishes costs `MISS`, so no action with any chance of a miss is ever best while another is
left. Values are kept for one tick only; what stays is one small integer per state.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from planner.risk.policy.chain import SpellChain
from planner.risk.policy.view import IDLE, ON_DEMAND, SPOT

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.uint32]

MISS = 1e7
FRESH_MASK = 3
STAY_ON_DEMAND = 4
STAY_ON_SPOT_SHIFT = 3


class Restart:
    """A start on the grid.

    Attributes:
        steps: its length in steps of work.
        ticks: ticks until progress is whole.
        gain: steps of work done in the last of them.
    """

    def __init__(self, hours: float, tick_hours: float, steps_per_tick: int) -> None:
        self.steps = math.ceil(hours / tick_hours * steps_per_tick - 1e-6)
        self.ticks = -(-self.steps // steps_per_tick)
        self.gain = self.ticks * steps_per_tick - self.steps


class Problem:
    """One job on the grid, up to `work` steps left and `slack` steps to spare.

    Attributes:
        chain: spells of the zone.
        work, slack: largest work left, and largest time left beyond it, in steps.
        per_tick: steps per tick.
        spot, on_demand: the two starts; on-demand's may hold an unpaid wait of `wait_ticks`.
        price_ratio: spot over on-demand.
    """

    def __init__(
        self,
        chain: SpellChain,
        work: int,
        slack: int,
        per_tick: int,
        spot: Restart,
        on_demand: Restart,
        wait_ticks: float,
        price_ratio: float,
    ) -> None:
        self.chain = chain
        self.work, self.slack, self.per_tick = work, slack, per_tick
        self.spot, self.on_demand, self.wait_ticks = spot, on_demand, wait_ticks
        self.price_ratio = price_ratio


class Induction:
    """Codes of the best actions, `codes[stage, slack, work]`.

    Bits 0-1: what a stopped run does (mode code). Bit 2: a run on on-demand stays there. Bit 3 + k: a run on spot
    since `k` ticks stays there (k capped at the length of the restart).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.levels = problem.spot.ticks
        self.stages = len(problem.chain.step)
        self.half = self.stages // 2
        self.pad = max(problem.per_tick, problem.spot.gain, problem.on_demand.gain)
        self.codes: CodeArray = np.zeros((self.stages, problem.slack + 1, problem.work + 1), dtype=np.uint32)
        self._jump = np.linalg.matrix_power(problem.chain.step, problem.on_demand.ticks)
        self._solve()

    def _blank(self, rows: int) -> FloatArray:
        """Values by work left; the first `pad` columns and the next one are work done: nothing more to pay."""
        blank = np.full((rows, self.pad + self.problem.work + 1), MISS)
        blank[:, : self.pad + 1] = 0.0
        return blank

    def _solve(self) -> None:
        p = self.problem
        stopped = self._blank(self.stages)
        spot = [self._blank(self.half) for _ in range(self.levels + 1)]
        demand = [self._blank(self.stages) for _ in range(max(p.on_demand.ticks, 1))]
        for left in range(1, -(-(p.work + p.slack) // p.per_tick) + 1):
            low = max(1, left * p.per_tick - p.slack)
            high = min(p.work, left * p.per_tick)
            if high < low:
                continue
            stopped, spot, latest = self._tick(left, low, high, stopped, spot, demand)
            demand = [latest, *demand[:-1]]

    def _tick(
        self,
        left: int,
        low: int,
        high: int,
        stopped: FloatArray,
        spot: list[FloatArray],
        demand: list[FloatArray],
    ) -> tuple[FloatArray, list[FloatArray], FloatArray]:
        """Values with `left` ticks left from those with one tick less."""
        p, half, step = self.problem, self.half, self.problem.chain.step
        at = slice(self.pad + low, self.pad + high + 1)

        def after(gain: int) -> slice:
            return slice(at.start - gain, at.stop - gain)

        wait = step @ stopped[:, at]
        on_spot = []
        for level in range(self.levels + 1):
            gain = self._gain(level)
            then = np.vstack([spot[min(level + 1, self.levels)][:, after(gain)], stopped[half:, after(gain)]])
            on_spot.append(p.price_ratio + step[:half] @ then)
        keep = 1.0 + step @ demand[0][:, after(p.per_tick)]
        begin = self._begin(demand, keep, after(p.on_demand.gain), left)
        start = np.full_like(wait, 2 * MISS)
        start[:half] = on_spot[0]
        choices = np.stack([wait, start, begin])
        fresh = choices.argmin(axis=0)
        best = choices.min(axis=0)
        code = fresh.astype(np.uint32)
        code |= np.where(keep <= best + 1e-9, STAY_ON_DEMAND, 0).astype(np.uint32)
        new_spot = []
        for level, value in enumerate(on_spot):
            stays = value <= best[:half] + 1e-9
            code[:half] |= (stays.astype(np.uint32)) << (STAY_ON_SPOT_SHIFT + level)
            new_spot.append(self._filled(np.minimum(value, best[:half]), at))
        self._store(left, low, high, code)
        return self._filled(best, at), new_spot, self._filled(np.minimum(keep, best), at)

    def _gain(self, level: int) -> int:
        """Work done in the tick that a run on spot since `level` ticks begins, in steps."""
        per_tick = self.problem.per_tick
        return min(max(per_tick - (self.problem.spot.steps - level * per_tick), 0), per_tick)

    def _begin(self, demand: list[FloatArray], keep: FloatArray, at: slice, left: int) -> FloatArray:
        """Cost of asking for on-demand now, kept until its restart is over."""
        p = self.problem
        if p.on_demand.ticks == 0:
            return keep
        paid = p.on_demand.ticks - p.wait_ticks
        if left < p.on_demand.ticks:
            return np.full((self.stages, at.stop - at.start), MISS)
        return np.asarray(paid + self._jump @ demand[p.on_demand.ticks - 1][:, at])

    def _filled(self, value: FloatArray, at: slice) -> FloatArray:
        filled = self._blank(len(value))
        filled[:, at] = np.minimum(value, MISS)
        return filled

    def _store(self, left: int, low: int, high: int, code: CodeArray) -> None:
        work = np.arange(low, high + 1)
        self.codes[:, left * self.problem.per_tick - work, work] = code


__all__ = ["FRESH_MASK", "IDLE", "ON_DEMAND", "SPOT", "Induction", "Problem", "Restart"]
