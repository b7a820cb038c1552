"""Benders' decomposition of two-stage programs with a mean-risk objective.

    minimise    c.x + (1 - w) E[Q_s(x)] + w CVaR_a[Q_s(x)]
    subject to  rows.x <= row_hi,   0 <= x <= upper,   x_j whole where `integer`

where every `Q_s` is convex, at least 0, and known through an oracle: its value at a point and an affine function that
nowhere exceeds it (a cut). CVaR is the largest expectation over the probabilities `q_s <= p_s / (1 - a)` (Rockafellar
and Uryasev 2000, "Optimization of conditional value-at-risk"), which the master carries as
`eta + sum_s p_s z_s / (1 - a)`, `z_s >= theta_s - eta`.

One cut per scenario and round goes into the master (Birge and Louveaux 1988, multicut). The next point is not the
master's own but the one nearest to the best point known whose modelled cost reaches a level between bound and best cost
(Lemarechal, Nemirovskii and Nesterov 1995, level method), which ends the zigzag of the plain method. Every answer
carries its bound, whether the end came by the gap, the clock or Ctrl-C. Nothing here knows what a column means.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from solvers.problem.milp import Floats
from solvers.problem.solution import Status, Termination, status_of
from solvers.search.master import Master, MasterPoint, TwoStage

LEVEL = 0.3  # of the way from the bound to the best cost; smaller is bolder
TRIFLES = (1e-12, 1e-9, 1e-6)  # relative violations of a row by a solver's point that are repaired
COARSE = 40  # times the gap to close: beyond it points are rounded


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Answer of an oracle at a point: each scenario's cost, and a cut `intercept + slope.y` that is never above it.

    Attributes:
        value: cost of each scenario, shape `(S,)`.
        intercept: of the cuts at 0, shape `(S,)`.
        slope: of the cuts, shape `(S, F)`.
    """

    value: Floats
    intercept: Floats
    slope: Floats


class OutOfTimeError(Exception):
    """Raised by an oracle when the time is up; the search then ends with its best point."""


class Oracle(Protocol):
    """The second stage."""

    def evaluate(self, x: Floats) -> Evaluation:
        """Return the scenarios' costs at `x` and one cut of each; the first call must succeed."""
        ...


@dataclass(frozen=True)
class Round:
    """One round: seconds since the start, best cost and bound so far, and whether columns were whole."""

    elapsed_s: float
    objective: float
    bound: float
    whole: bool


@dataclass(frozen=True, eq=False)
class BendersResult:
    """The best point, its cost, and the bound with what proves it.

    Attributes:
        status: optimal (within `gap`), feasible, or no_solution.
        termination: why the loop ended.
        x: best point, shape `(F,)`.
        recourse: cost of each scenario there, shape `(S,)`.
        objective: its cost; `bound`: no point costs less (floating point).
        points: where cuts were made, shape `(n_points, F)`.
        multipliers: of the cuts in the relaxation that gave `lp_bound`, shape `(n_points, S)`.
        risk: weights `q_s` of the scenarios in CVaR there, shape `(S,)`.
        row_multipliers: of `TwoStage.rows`, shape `(m,)`.
        lp_bound: bound with every column continuous; `multipliers` prove it.
        rounds: history.
    """

    status: Status
    termination: Termination
    x: Floats
    recourse: Floats
    objective: float
    bound: float
    points: Floats
    multipliers: Floats
    risk: Floats
    row_multipliers: Floats
    lp_bound: float
    rounds: tuple[Round, ...]

    @property
    def gap_ratio(self) -> float:
        """(objective - bound) / objective."""
        return max(0.0, (self.objective - self.bound) / max(abs(self.objective), 1e-12))


class _Search:
    """The state of one solve."""

    def __init__(self, problem: TwoStage, oracle: Oracle, gap: float, deadline_s: float) -> None:
        self.problem, self.oracle, self.gap = problem, oracle, gap
        self.begun = time.perf_counter()
        self.deadline = self.begun + deadline_s
        self.master = Master(problem)
        self.best_x = np.zeros(len(problem.cost))
        self.best_recourse = np.full(len(problem.probability), math.inf)
        self.best = math.inf  # of points with whole columns
        self.relaxed_x, self.relaxed = self.best_x, math.inf  # of any point
        self.bound = self.lp_bound = -math.inf
        self.proof: MasterPoint | None = None
        self.rounds: list[Round] = []
        self.tried: set[bytes] = set()

    def left_s(self) -> float:
        return self.deadline - time.perf_counter()

    def try_point(self, x: Floats) -> None:
        """Evaluate `x`, keep it if it is the best, and add a cut there."""
        evaluation = self.oracle.evaluate(x)
        cost = self.problem.objective(x, evaluation.value)
        if cost < self.relaxed:
            self.relaxed, self.relaxed_x = cost, x
        whole = not (x % 1)[self.problem.integer].any()
        if whole and cost < self.best and self.holds(x):
            self.best, self.best_x, self.best_recourse = cost, x, evaluation.value
        self.master.add(x, evaluation.intercept, evaluation.slope)

    def fresh(self, rounded: Floats, point: Floats) -> Floats:
        """Return `rounded` where it is allowed and new, else `point`."""
        problem = self.problem
        if (rounded > problem.upper).any() or not self.holds(rounded) or rounded.tobytes() in self.tried:
            return point
        self.tried.add(rounded.tobytes())
        return rounded

    def holds(self, x: Floats) -> bool:
        """Whether every row holds without any tolerance."""
        return not len(self.problem.row_hi) or bool((self.problem.rows @ x <= self.problem.row_hi).all())

    def repaired(self, x: Floats) -> Floats:
        """Return `x`; if it violates a row slightly, with its continuous columns shrunk slightly towards 0.

        Integer columns may fill a row: tiny values of continuous ones are then set to 0.
        """
        for share in (0.0, *TRIFLES):
            nearer = np.where(x > share * x.max(initial=0.0), x * (1 - share), 0.0)
            moved = np.where(self.problem.integer, x, nearer)
            if self.holds(moved):
                return moved
        return x

    def is_known(self, x: Floats) -> bool:
        """Whether a cut was made at `x` already."""
        return bool((np.abs(self.master.points() - x).max(axis=1, initial=0.0) == 0).any())

    def within(self, cost: float, bound: float) -> bool:
        return cost - bound <= self.gap * abs(cost) + 1e-12

    def note(self, whole: bool) -> None:
        elapsed = time.perf_counter() - self.begun
        self.bound = min(self.bound, self.best)  # equal but for rounding
        self.rounds.append(Round(elapsed, self.best, self.bound, whole))


def solve_benders(
    problem: TwoStage,
    oracle: Oracle,
    *,
    gap: float = 1e-3,
    time_limit_s: float = math.inf,
    max_rounds: int = 500,
    start: Floats | None = None,
    progress: Callable[[Round], None] | None = None,
) -> BendersResult:
    """Solve to a relative `gap`, or to the clock, or until Ctrl-C; the answer is the best point and the best bound.

    Args:
        problem: the first stage.
        oracle: the second stage; its values must be at least 0.
        gap: relative gap at which the answer counts as optimal.
        time_limit_s: wall-clock limit; checked between evaluations.
        max_rounds: most rounds.
        start: a feasible first point; default x = 0, which commits to nothing.
        progress: called after each round.
    """
    search = _Search(problem, oracle, gap, time_limit_s)
    try:
        ended = _run(search, max_rounds, start, progress)
    except KeyboardInterrupt:
        ended = Termination.INTERRUPTED
    except OutOfTimeError:
        ended = Termination.TIME_LIMIT
    except ArithmeticError:  # the master's solver failed: what is known stays known
        ended = Termination.SOLVER_ERROR
    return _result(search, ended)


def _run(
    search: _Search, max_rounds: int, start: Floats | None, progress: Callable[[Round], None] | None
) -> Termination:
    search.try_point(np.zeros(len(search.problem.cost)))
    if start is not None:
        search.try_point(np.clip(start, 0.0, search.problem.upper))
    whole = False
    for _ in range(max_rounds):
        if search.left_s() <= 0:
            return Termination.TIME_LIMIT
        whole = _whole_round(search) if whole else _relaxed_round(search)
        search.note(whole)
        if progress is not None:
            progress(search.rounds[-1])
        if search.within(search.best, search.bound):
            return Termination.GAP_REACHED
    return Termination.ITERATION_LIMIT


def _relaxed_round(search: _Search) -> bool:
    """One round with continuous columns; True when they have done what they can and columns must be whole."""
    lowest = search.master.lowest()
    if lowest.bound > search.lp_bound:
        search.lp_bound, search.proof = lowest.bound, lowest
        search.bound = max(search.bound, lowest.bound)
    integer = search.problem.integer.any()
    target = search.gap * (0.25 if integer else 1.0)  # leave room for what rounding costs
    if search.relaxed - search.lp_bound <= target * abs(search.relaxed) + 1e-12:
        return _round_off(search, search.relaxed_x) if integer else False
    level = search.lp_bound + LEVEL * (search.relaxed - search.lp_bound)
    near = search.master.nearest(search.relaxed_x, level)
    point = search.repaired(lowest.x if near is None else near)
    if integer and search.relaxed - search.lp_bound > COARSE * target * abs(search.relaxed):
        # Far from the end a cut at the nearest whole point is as good, and the point is an answer already.
        rounded = np.where(search.problem.integer, np.floor(point + 0.5), point)
        point = search.fresh(search.repaired(rounded), point)
    if integer and search.is_known(point):  # the solver's tolerance is reached
        return _round_off(search, search.relaxed_x)
    search.try_point(point)
    return False


def _round_off(search: _Search, x: Floats) -> bool:
    """Try the whole points around `x`; returns True: the next phase."""
    for shift in (0.5, 0.0, 1.0 - 1e-6):
        if search.left_s() <= 0 or search.within(search.best, search.bound):
            break
        rounded = search.repaired(np.where(search.problem.integer, np.floor(x + shift), x))
        if search.fresh(rounded, x) is rounded:
            search.try_point(rounded)
    return True


def _whole_round(search: _Search) -> bool:
    """One round in which the master's columns are whole."""
    master_point = search.master.lowest_whole(search.gap, search.left_s())
    if master_point is None:
        return True
    search.bound = max(search.bound, min(master_point.bound, search.best))
    search.try_point(search.repaired(master_point.x))
    return True


def _result(search: _Search, ended: Termination) -> BendersResult:
    problem, proof = search.problem, search.proof
    points = search.master.points()
    shape = (len(points), len(problem.probability))
    multipliers = np.zeros(shape)
    if proof is not None:
        multipliers[: len(proof.multipliers)] = proof.multipliers
    return BendersResult(
        status=status_of(ended, has_point=math.isfinite(search.best)),
        termination=ended,
        x=search.best_x,
        recourse=search.best_recourse,
        objective=search.best,
        bound=search.bound,
        points=points,
        multipliers=multipliers,
        risk=proof.risk if proof is not None else problem.probability,
        row_multipliers=proof.row_multipliers if proof is not None else np.zeros(len(problem.row_hi)),
        lp_bound=search.lp_bound,
        rounds=tuple(search.rounds),
    )
