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

from catalogs.tables.table import Ints
from planner.spot.policy.chain import SpellChain

Float32Array = npt.NDArray[np.float32]
CodeArray = npt.NDArray[np.uint32] | npt.NDArray[np.uint8]

MISS = 1e6
FRESH_MASK = 3
STAY_ON_DEMAND = 4
STAY_ON_SPOT_SHIFT = 3


class Restart:
    """A start on the grid.

    Attributes:
        steps: its length in steps of work; need not be whole.
        ticks: ticks until progress is whole.
        gain: steps of work done in the last of them.
    """

    def __init__(self, hours: float, tick_hours: float, steps_per_tick: int) -> None:
        self.ticks = math.ceil(hours / tick_hours - 1e-6)
        self.steps = hours / tick_hours * steps_per_tick
        self.gain = max(self.ticks * steps_per_tick - self.steps, 0.0)


def done(value: Float32Array, at: slice, gain: float) -> Float32Array:
    """Values of the columns `at` after `gain` steps of work; between steps they are taken as straight.

    Next to states that are lost this errs towards losing: never towards a miss.
    """
    whole = int(gain + 1e-6)
    near = value[..., at.start - whole : at.stop - whole]
    part = np.float32(gain - whole)
    if part < 1e-6:
        return near
    far = value[..., at.start - whole - 1 : at.stop - whole - 1]
    return np.asarray(near + part * (far - near))


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
        self.stages = len(chain.step)
        self.pad = per_tick + 1

    def blank(self, rows: int) -> Float32Array:
        """Values by work left; the first `pad` columns and the next one are work done: nothing more to pay."""
        blank = np.full((rows, self.pad + self.work + 1), MISS, np.float32)
        blank[:, : self.pad + 1] = 0.0
        return blank

    def filled(self, value: Float32Array, at: slice) -> Float32Array:
        """Values of some columns among those of all."""
        filled = self.blank(len(value))
        filled[:, at] = np.minimum(value, np.float32(MISS))
        return filled

    def gain(self, level: int) -> float:
        """Work done in the tick that a run on spot since `level` ticks begins, in steps."""
        return min(max((level + 1) * self.per_tick - self.spot.steps, 0.0), float(self.per_tick))


class _Values:
    """Costs to go, from the deadline back to the present number of ticks left."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.step = problem, problem.chain.step.astype(np.float32)
        self.half = problem.stages // 2
        self.jump = np.linalg.matrix_power(self.step, problem.on_demand.ticks)
        self.stopped = problem.blank(problem.stages)
        self.spot = [problem.blank(self.half) for _ in range(problem.spot.ticks + 1)]
        self.demand = [problem.blank(problem.stages) for _ in range(max(problem.on_demand.ticks, 1))]

    def tick(self, left: int, at: slice) -> Float32Array:
        """One tick further from the deadline.

        Returns:
            Costs to go of waiting, starting spot, asking for on-demand, keeping on-demand, and staying on spot since
            0, 1, .. ticks; shape `(4 + levels, stages, columns)`, `MISS` and more where there is no such action.
        """
        p, half = self.problem, self.half
        top = p.spot.ticks
        costs = np.full((5 + top, p.stages, at.stop - at.start), 2 * MISS, np.float32)
        costs[0] = self.step @ self.stopped[:, at]
        for level in range(top + 1):
            gain = p.gain(level)
            then = np.vstack(
                [done(self.spot[min(level + 1, top)], at, gain), done(self.stopped[half:], at, gain)]
            )
            costs[4 + level, :half] = np.float32(p.price_ratio) + self.step[:half] @ then
        costs[1] = costs[4]
        costs[3] = 1.0 + self.step @ done(self.demand[0], at, p.per_tick)
        costs[2] = self._begin(left, at, costs[3])
        best = costs[:3].min(axis=0)
        self.stopped = p.filled(best, at)
        self.spot = [
            p.filled(np.minimum(costs[4 + level, :half], best[:half]), at) for level in range(top + 1)
        ]
        self.demand = [p.filled(np.minimum(costs[3], best), at), *self.demand[:-1]]
        return costs

    def _begin(self, left: int, at: slice, keep: Float32Array) -> Float32Array:
        """Cost of asking for on-demand now, kept until its restart is over."""
        p, ticks = self.problem, self.problem.on_demand.ticks
        if ticks == 0:
            return keep
        if left < ticks:
            return np.full_like(keep, MISS)
        then = done(self.demand[ticks - 1], at, p.on_demand.gain)
        return np.asarray(np.float32(ticks - p.wait_ticks) + self.jump @ then)


class Induction:
    """Codes of the best actions, `codes[stage, slack, work]`.

    Bits 0-1: what a stopped run does (mode code). Bit 2: a run on on-demand stays there. Bit 3 + k: a run on spot
    since `k` ticks stays there (k capped at the length of the restart).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = p = problem
        shape = (p.stages, p.slack + 1, p.work + 1)
        small = STAY_ON_SPOT_SHIFT + p.spot.ticks < 8
        self.codes: CodeArray = np.zeros(shape, np.uint8) if small else np.zeros(shape, np.uint32)
        values = _Values(p)
        for left in range(1, -(-(p.work + p.slack) // p.per_tick) + 1):
            low, high = max(1, left * p.per_tick - p.slack), min(p.work, left * p.per_tick)
            if high >= low:
                at = slice(p.pad + low, p.pad + high + 1)
                work = np.arange(low, high + 1)
                self.codes[:, left * p.per_tick - work, work] = _codes(values.tick(left, at))


def _codes(costs: Float32Array) -> Ints:
    """The best actions of all states as integers; see `Induction`."""
    best = costs[:3].min(axis=0) + np.float32(1e-4)
    code = costs[:3].argmin(axis=0)
    code |= np.where(costs[3] <= best, STAY_ON_DEMAND, 0)
    for level, stay in enumerate(costs[4:]):
        code |= (stay <= best).astype(np.int64) << (STAY_ON_SPOT_SHIFT + level)
    return np.asarray(code, dtype=np.int64)
