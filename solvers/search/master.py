"""A two-stage program with a mean-risk objective, and the master of its Benders decomposition.

The master has the first-stage columns, one `theta` per scenario above its cuts, and CVaR.

Columns travel to the solver as shares of their upper bounds and money in units of a typical cost, so that the model
looks the same in dollars, thousandths and millions.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from solvers.backends.base import Growing
from solvers.backends.registry import get_backend
from solvers.problem.errors import ModelError
from solvers.problem.milp import Block, Bools, Floats, Milp, MilpBuilder, with_rows
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Termination

TRIFLE = 1e-8  # of the largest coefficient beside it: what a solver cannot tell from 0
MONEY = 1e4  # what a typical scenario's cost is called inside the solver
MOST_USEFUL = 10.0  # typical scenarios' costs: a column of which more is bought does not pay
Goal = Literal["lowest", "nearest", "whole"]


@dataclass(frozen=True, eq=False)
class TwoStage:
    """A two-stage program without its oracle. F columns, S scenarios, m rows.

    Attributes:
        cost: first-stage cost of one unit of each column, shape `(F,)`.
        upper: finite upper bounds, shape `(F,)`; the lower bounds are 0.
        integer: True where a column is whole, shape `(F,)`.
        probability: of each scenario, shape `(S,)`, summing to 1.
        risk_weight: w, the share of CVaR in the objective, 0..1.
        risk_level: a, CVaR is the mean of the worst `1 - a`, 0 <= a < 1.
        rows: further linear limits on x, shape `(m, F)`.
        row_hi: their upper sides, shape `(m,)`.
    """

    cost: Floats
    upper: Floats
    integer: Bools
    probability: Floats
    risk_weight: float = 0.0
    risk_level: float = 0.9
    rows: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    row_hi: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not (np.isfinite(self.upper).all() and (self.upper >= 0).all()):
            raise ModelError("every first-stage column needs a finite upper bound of at least 0")
        if abs(float(self.probability.sum()) - 1) > 1e-9 or (self.probability < 0).any():
            raise ModelError("the scenarios' probabilities must be at least 0 and sum to 1")
        if not (0 <= self.risk_weight <= 1 and 0 <= self.risk_level < 1):
            raise ModelError("the weight of CVaR must be in 0..1, its level in 0 up to below 1")
        if len(self.row_hi) and (self.row_hi < 0).any():
            raise ModelError("x = 0 must satisfy every row")

    def objective(self, x: Floats, recourse: Floats) -> float:
        """Cost of `x` whose scenarios cost `recourse`, shape `(S,)`."""
        risk = cvar(recourse, self.probability, self.risk_level) if self.risk_weight else 0.0
        mean = float(self.probability @ recourse)
        return float(self.cost @ x) + (1 - self.risk_weight) * mean + self.risk_weight * risk


def cvar(cost: Floats, probability: Floats, level: float) -> float:
    """Mean of the worst `1 - level` of the outcomes, splitting the outcome on the edge.

    Args:
        cost: of each outcome, shape `(n,)`.
        probability: of each outcome, shape `(n,)`.
        level: 0 gives the mean, towards 1 the worst outcome.
    """
    return float(risk_weights(cost, probability, level) @ cost)


def risk_weights(cost: Floats, probability: Floats, level: float) -> Floats:
    """Return the worst weights `q <= p / (1 - level)`, summing to 1, shape `(n,)`."""
    order = np.argsort(-cost, kind="stable")
    cap = probability[order] / (1 - level)
    before = np.concatenate([[0.0], np.cumsum(cap)[:-1]])
    weights = np.zeros(len(cost))
    weights[order] = np.clip(1.0 - before, 0.0, cap)
    return weights


@dataclass(frozen=True, eq=False)
class MasterPoint:
    """A point of the master and what proves its bound.

    Attributes:
        x: first-stage point in its own units, shape `(F,)`.
        bound: no first-stage point costs less.
        multipliers: of the cuts, shape `(n_points, S)`, at least 0.
        risk: weights of the scenarios in CVaR, shape `(S,)`, at least 0.
        row_multipliers: of the first stage's rows, shape `(m,)`, at least 0.
    """

    x: Floats
    bound: float
    multipliers: Floats
    risk: Floats
    row_multipliers: Floats


class Master:
    """The master problem: collects cuts; minimises the modelled cost, or projects a point onto a level set of it."""

    def __init__(self, problem: TwoStage, backend: str = "auto") -> None:
        self._problem = problem
        self._backend = get_backend(backend)
        self._name = backend
        self._points: list[Floats] = []
        self._cuts: list[tuple[Floats, Floats]] = []  # intercepts (S,), slopes (S, F)
        # by goal: the model with its first cuts, how many of them, and what solves it
        self._models: dict[Goal, tuple[Milp, int, Growing]] = {}
        self._money = 1.0

    def add(self, x: Floats, intercept: Floats, slope: Floats) -> None:
        """Add one cut per scenario, made at `x`: `theta_s >= intercept_s + slope_s . x`."""
        if not self._cuts:  # the first cut is made at 0: its height is the cost of doing nothing
            typical = float(
                np.abs(intercept).mean() or np.abs(self._problem.cost * self._problem.upper).max()
            )
            self._money = typical / MONEY if typical > 0 else 1.0
        self._points.append(x)
        self._cuts.append((intercept, slope))

    def points(self) -> Floats:
        """Return where cuts were made, shape `(n_points, F)`."""
        return np.asarray(self._points, dtype=np.float64).reshape(-1, len(self._problem.cost))

    def lowest(self) -> MasterPoint:
        """Return the point of least modelled cost with its proof."""
        model, solve = self._with_all_cuts("lowest")
        relaxation = solve(model)
        blocks = {block.name: block for block in model.row_blocks}
        if relaxation.x is None or relaxation.duals is None:
            raise ArithmeticError(
                f"the master of a decomposition failed: {relaxation.termination}, {relaxation.message}"
            )
        duals = relaxation.duals
        cut = np.maximum(duals[blocks["cut"].indices], 0.0).reshape(len(self._cuts), -1)
        risk = self._problem.probability
        if "tail" in blocks:
            risk = np.maximum(duals[blocks["tail"].indices], 0.0) / self._problem.risk_weight
        rows = (
            -np.minimum(duals[blocks["limit"].indices], 0.0) * self._money
            if "limit" in blocks
            else np.zeros(0)
        )
        return MasterPoint(self._own(relaxation.x), relaxation.objective * self._money, cut, risk, rows)

    def nearest(self, center: Floats, level: float) -> Floats | None:
        """Project `center` onto the level set: the nearest point of modelled cost at most `level`; None if empty."""
        model, solve = self._with_all_cuts("nearest")
        lower, upper = model.row_lo.copy(), model.row_hi.copy()
        share = center / self._scale("nearest")
        blocks = {block.name: block for block in model.row_blocks}
        lower[blocks["up"].indices], lower[blocks["down"].indices] = -share, share
        upper[blocks["level"].indices] = level / self._money
        relaxation = solve(replace(model, row_lo=lower, row_hi=upper))
        return None if relaxation.x is None else self._own(relaxation.x)

    def lowest_whole(self, gap: float, time_limit_s: float) -> MasterPoint | None:
        """As `lowest` with integer columns, without duals; None if the time limit passed before a point was found."""
        from solvers.execution.solve import solve

        model = self._build("whole")
        options = SolveOptions(
            gap=gap / 4, time_limit_s=max(time_limit_s, 0.1), backend=self._name, isolate=False
        )
        solution = solve(model, options)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if not solution.has_point:
            return None
        x = np.array([solution.x.get(("x", column), 0.0) for column in range(len(self._problem.cost))])
        x = np.where(self._problem.integer, np.rint(x), x * self._scale("whole"))
        nothing = np.zeros(0)
        return MasterPoint(
            np.minimum(x, self._problem.upper), solution.bound * self._money, nothing, nothing, nothing
        )

    def _scale(self, goal: Goal) -> Floats:
        """Unit of each column inside the solver; 1 for integer columns where integrality is required."""
        return np.where(self._problem.integer, 1.0, self._useful) if goal == "whole" else self._useful

    @cached_property
    def _useful(self) -> Floats:
        """Range of each column, cut to values that can pay; needs at least one cut."""
        upper = np.where(self._problem.upper > 0, self._problem.upper, 1.0)
        paid = self._problem.cost > 0
        dear = np.full(len(upper), np.inf)
        dear[paid] = MOST_USEFUL * MONEY * self._money / self._problem.cost[paid]
        return np.asarray(np.minimum(upper, dear), dtype=np.float64)

    def _own(self, x: Floats) -> Floats:
        count = len(self._problem.cost)
        return np.clip(x[:count] * self._scale("lowest"), 0.0, self._problem.upper)

    def _with_all_cuts(self, goal: Goal) -> tuple[Milp, Growing]:
        """The model of a goal and its solver, with the cuts added since the last call appended."""
        if goal not in self._models:
            self._models[goal] = self._build(goal), len(self._cuts), self._backend.growing()
        model, known, solve = self._models[goal]
        if known < len(self._cuts):
            heights, slopes = self._scaled_cuts(self._scale(goal), known)
            columns = {block.name: block for block in model.column_blocks}
            rows = np.zeros((heights.size, model.n_columns))
            rows[:, columns["x"].indices] = -slopes.reshape(heights.size, -1)
            rows[:, columns["theta"].indices] = np.tile(np.eye(heights.shape[1]), (len(heights), 1))
            model = with_rows(model, rows, heights.ravel())
            self._models[goal] = model, len(self._cuts), solve
        return model, solve

    def _build(self, goal: Goal) -> Milp:
        """Build the model of a goal, cuts last; `nearest` is built for center 0 and no level, which are set later."""
        problem, scale = self._problem, self._scale(goal)
        count, scenarios = len(problem.cost), len(problem.probability)
        builder = MilpBuilder("benders master")
        priced = goal != "nearest"
        cost, mean, tail = self._prices(scale)
        first = self._first_columns(builder, goal, scale, cost)
        theta = builder.add_columns("theta", [("theta", s) for s in range(scenarios)], cost=mean * priced)
        cost_columns: list[npt.NDArray[np.int64]] = [
            np.arange(first.start, first.stop),
            np.arange(theta.start, theta.stop),
        ]
        cost_values = [cost, mean]
        if problem.risk_weight:
            columns, values = self._add_risk(builder, theta, tail, priced)
            cost_columns.append(columns)
            cost_values.append(values)
        if len(problem.row_hi):
            limit = builder.add_rows("limit", len(problem.row_hi), upper=problem.row_hi)
            at_rows = np.arange(limit.start, limit.stop)[:, None]
            builder.add_entries(at_rows, np.arange(count)[None, :] + first.start, problem.rows * scale)
        if goal == "nearest":
            row = builder.add_rows("level", 1)
            builder.add_entries(row.start, np.concatenate(cost_columns), np.concatenate(cost_values))
            _add_distance(builder, first)
        heights, slopes = self._scaled_cuts(scale)
        cuts = builder.add_rows("cut", heights.size, lower=heights.ravel())
        at = np.arange(cuts.start, cuts.stop).reshape(-1, scenarios)
        builder.add_entries(at, np.arange(theta.start, theta.stop)[None, :], 1.0)
        builder.add_entries(at[:, :, None], np.arange(first.start, first.stop)[None, None, :], -slopes)
        return builder.build()

    def _prices(self, scale: Floats) -> tuple[Floats, Floats, Floats]:
        """Objective coefficients of the columns x, theta and z; negligible ones are 0, which only lowers the cost.

        Negligible is judged within each kind: the coefficient of one column may be far above all probabilities.
        """
        problem = self._problem
        tail = problem.risk_weight * problem.probability / (1 - problem.risk_level)
        parts = (problem.cost * scale / self._money, (1 - problem.risk_weight) * problem.probability, tail)
        cost, mean, tail = (
            np.where((part > 0) & (part < TRIFLE * np.abs(part).max(initial=0.0)), 0.0, part)
            for part in parts
        )
        return cost, mean, tail

    def _scaled_cuts(self, scale: Floats, known: int = 0) -> tuple[Floats, Floats]:
        """Scaled intercepts `(n_points, S)` and slopes `(n_points, S, F)` of the cuts after the first `known`.

        Slopes that are tiny beside the others of their cut are replaced by their least contribution, so that the cut
        stays valid.
        """
        heights = np.stack([intercept for intercept, _ in self._cuts[known:]]) / self._money
        slopes = np.stack([slope for _, slope in self._cuts[known:]]) * (scale / self._money)
        trifle = np.abs(slopes) < TRIFLE * np.maximum(
            np.abs(slopes).max(axis=2, keepdims=True, initial=0.0), 1.0
        )
        heights = heights + np.where(
            trifle, np.minimum(slopes * (self._problem.upper / scale), 0.0), 0.0
        ).sum(axis=2)
        return heights, np.where(trifle, 0.0, slopes)

    def _first_columns(self, builder: MilpBuilder, goal: Goal, scale: Floats, cost: Floats) -> Block:
        """Add the first-stage columns in order; where integrality is required, each in a block of its own."""
        problem = self._problem
        keys: list[Hashable] = [("x", column) for column in range(len(problem.cost))]
        cost = cost * (goal != "nearest")
        upper = problem.upper / scale
        if goal != "whole":
            return builder.add_columns("x", keys, cost=cost, upper=upper)
        blocks = [
            builder.add_columns(
                f"x{column}",
                [key],
                cost=cost[column],
                upper=upper[column],
                integer=bool(problem.integer[column]),
            )
            for column, key in enumerate(keys)
        ]
        return Block("x", blocks[0].start, blocks[-1].stop)

    def _add_risk(
        self, builder: MilpBuilder, theta: Block, tail: Floats, priced: bool
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """Add eta + sum p_s z_s / (1 - a) with z_s >= theta_s - eta; return its columns and their prices."""
        problem = self._problem
        scenarios = len(problem.probability)
        eta = builder.add_columns("eta", ["eta"], cost=problem.risk_weight * priced)
        beyond = builder.add_columns("z", [("z", s) for s in range(scenarios)], cost=tail * priced)
        rows = builder.add_rows("tail", scenarios, lower=0.0)
        at = np.arange(rows.start, rows.stop)
        builder.add_entries(at, np.arange(beyond.start, beyond.stop), 1.0)
        builder.add_entries(at, eta.start, 1.0)
        builder.add_entries(at, np.arange(theta.start, theta.stop), -1.0)
        columns = np.concatenate([[eta.start], np.arange(beyond.start, beyond.stop)])
        return columns.astype(np.int64), np.concatenate([[problem.risk_weight], tail])


def _add_distance(builder: MilpBuilder, first: Block) -> None:
    """Minimise the distance: the largest move of a column, plus a tenth of the sum of all moves."""
    count = len(first)
    most = builder.add_columns("far", ["far"], cost=1.0)
    moves = builder.add_columns("move", [("move", number) for number in range(count)], cost=0.1)
    columns = np.arange(first.start, first.stop)
    for name, sign in (("up", 1.0), ("down", -1.0)):
        rows = builder.add_rows(name, count, lower=0.0)
        at = np.arange(rows.start, rows.stop)
        builder.add_entries(at, np.arange(moves.start, moves.stop), 1.0)
        builder.add_entries(at, columns, -sign)
    top = builder.add_rows("top", count, lower=0.0)
    at = np.arange(top.start, top.stop)
    builder.add_entries(at, most.start, 1.0)
    builder.add_entries(at, np.arange(moves.start, moves.stop), -1.0)
