"""The generic decomposition: mean and CVaR of convex costs, whole columns, limits, the clock and Ctrl-C."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables.table import Floats
from solvers.problem.errors import ModelError
from solvers.problem.solution import Status, Termination
from solvers.search.decompose import Evaluation, Round, solve_benders
from solvers.search.master import TwoStage, cvar, risk_weights


class Distances:
    """Q_s(x) = price * sum |x - target_s|: convex, at least 0, with known slopes."""

    def __init__(self, targets: Floats, price: float = 3.0, pause_s: float = 0.0) -> None:
        self.targets, self.price, self.pause_s = targets, price, pause_s
        self.calls = 0
        self.interrupt_at = math.inf

    def evaluate(self, x: Floats) -> Evaluation:
        self.calls += 1
        if self.calls >= self.interrupt_at:
            raise KeyboardInterrupt
        time.sleep(self.pause_s)
        away = x - self.targets
        value = self.price * np.abs(away).sum(axis=1)
        slope = self.price * np.sign(away)
        return Evaluation(value, value - slope @ x, slope)


def problem(columns: int, scenarios: int, **changes: object) -> TwoStage:
    base = TwoStage(
        cost=np.full(columns, 0.5),
        upper=np.full(columns, 20.0),
        integer=np.zeros(columns, dtype=np.bool_),
        probability=np.full(scenarios, 1 / scenarios),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def targets(columns: int, scenarios: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(0, 15, (scenarios, columns))


def test_one_scenario_is_met_exactly() -> None:
    goal = targets(4, 1)
    found = solve_benders(problem(4, 1), Distances(goal), gap=1e-9)
    assert found.status is Status.OPTIMAL
    assert found.x == pytest.approx(goal[0], abs=1e-6)
    assert found.objective == pytest.approx(0.5 * goal.sum())


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("whole", [False, True])
def test_a_grid_finds_nothing_better(weight: float, whole: bool) -> None:
    goal = targets(2, 7, seed=3)
    stage = problem(2, 7, risk_weight=weight, risk_level=0.7, integer=np.array([whole, whole]))
    oracle = Distances(goal)
    found = solve_benders(stage, oracle, gap=1e-8)
    assert found.status is Status.OPTIMAL
    steps = np.arange(0, 16) if whole else np.unique(np.concatenate([goal.ravel(), np.linspace(0, 15, 31)]))
    best = min(
        stage.objective(x, oracle.evaluate(x).value)
        for x in (np.array([a, b], dtype=float) for a in steps for b in steps)
    )
    assert found.objective <= best * (1 + 1e-7)
    assert found.bound <= found.objective + 1e-9
    if whole:
        assert found.objective == pytest.approx(best, rel=1e-7)
        assert not (found.x % 1).any()


def test_rows_hold() -> None:
    stage = problem(3, 5, rows=np.ones((1, 3)), row_hi=np.array([10.0]), cost=np.zeros(3))
    found = solve_benders(stage, Distances(targets(3, 5)), gap=1e-7)
    assert found.x.sum() <= 10  # to the last bit
    assert found.x.sum() > 9.99
    free = solve_benders(problem(3, 5, cost=np.zeros(3)), Distances(targets(3, 5)), gap=1e-7)
    assert free.objective < found.objective
    assert found.row_multipliers[0] > 0


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_unit_of_money_does_not_matter(unit: float) -> None:
    stage = problem(3, 6, cost=np.full(3, 0.5 * unit), risk_weight=0.5)
    found = solve_benders(stage, Distances(targets(3, 6), price=3 * unit), gap=1e-7)
    truth = solve_benders(problem(3, 6, risk_weight=0.5), Distances(targets(3, 6)), gap=1e-7)
    assert found.objective / unit == pytest.approx(truth.objective, rel=1e-6)


@pytest.mark.parametrize("bound", [1e5, 1e7, 1e9])
def test_a_bound_far_above_any_use_does_not_hide_the_scenarios(bound: float) -> None:
    """Beside what all of such a column costs, the chance of a scenario is less than a solver can tell from 0."""
    many = targets(3, 300)
    near = problem(3, 300, risk_weight=0.3, risk_level=0.9)
    far = replace(near, upper=np.full(3, bound))
    found, plain = (solve_benders(one, Distances(many), gap=1e-4, max_rounds=60) for one in (far, near))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(plain.objective, rel=2e-4)


def test_the_clock_leaves_a_point_and_a_bound() -> None:
    oracle = Distances(targets(8, 12), pause_s=0.12)
    found = solve_benders(problem(8, 12), oracle, gap=1e-9, time_limit_s=0.5)
    assert oracle.calls <= 5, "the fifth begins before the limit at the latest"
    assert found.termination is Termination.TIME_LIMIT
    assert found.status is Status.FEASIBLE
    assert -math.inf < found.bound <= found.objective < math.inf
    assert found.objective == pytest.approx(problem(8, 12).objective(found.x, oracle.evaluate(found.x).value))


def test_ctrl_c_leaves_the_best_point() -> None:
    oracle = Distances(targets(8, 12))
    oracle.interrupt_at = 6
    found = solve_benders(problem(8, 12), oracle, gap=1e-9)
    assert found.termination is Termination.INTERRUPTED
    assert found.status is Status.FEASIBLE
    assert math.isfinite(found.objective)
    assert found.objective <= problem(8, 12).objective(
        np.zeros(8), Distances(targets(8, 12)).evaluate(np.zeros(8)).value
    )


def test_rounds_tell_bounds_that_rise_and_costs_that_fall() -> None:
    seen: list[Round] = []
    found = solve_benders(
        problem(4, 9, risk_weight=0.2), Distances(targets(4, 9)), gap=1e-8, progress=seen.append
    )
    assert tuple(seen) == found.rounds
    assert all(a.bound <= b.bound and a.objective >= b.objective for a, b in itertools.pairwise(seen))
    assert seen[-1].objective == found.objective


def test_multipliers_prove_the_bound() -> None:
    stage = problem(4, 6, risk_weight=0.4, risk_level=0.5)
    oracle = Distances(targets(4, 6))
    found = solve_benders(stage, oracle, gap=1e-8)
    constant, slope = 0.0, stage.cost.copy()
    for point, weights in zip(found.points, found.multipliers, strict=True):
        cut = oracle.evaluate(point)
        constant += float(weights @ cut.intercept)
        slope += weights @ cut.slope
    assert constant + float(np.minimum(slope, 0) @ stage.upper) == pytest.approx(found.lp_bound, rel=1e-6)
    assert found.risk.sum() == pytest.approx(1.0)
    assert (found.risk <= stage.probability / 0.5 + 1e-9).all()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), st.floats(0, 0.99))
def test_cvar_lies_between_mean_and_worst(costs: list[float], level: float) -> None:
    cost = np.array(costs)
    chance = np.full(len(cost), 1 / len(cost))
    value = cvar(cost, chance, level)
    slack = 1e-9 * (1 + float(cost.max()))
    assert float(cost.mean()) - slack <= value <= float(cost.max()) + slack
    weights = risk_weights(cost, chance, level)
    assert weights.sum() == pytest.approx(1.0)
    # Rockafellar and Uryasev: the least over t of t + E[(cost - t)+] / (1 - level), reached at an outcome
    assert value == pytest.approx(
        min(t + float(chance @ np.maximum(cost - t, 0)) / (1 - level) for t in costs), rel=1e-9, abs=1e-6
    )


def test_what_costs_nothing_is_bought_beside_costs_of_many_millions() -> None:
    goal = targets(2, 3)
    asked = problem(2, 3, cost=np.array([0.0, 0.5]))
    found = solve_benders(asked, Distances(goal, price=1e8), gap=1e-9)
    assert found.termination is Termination.GAP_REACHED
    assert found.x[0] == pytest.approx(np.median(goal[:, 0]), rel=1e-6)


def test_a_solver_that_fails_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[Round] = []

    def fail(*_: object) -> None:
        if len(rounds) >= 2:
            raise ArithmeticError("no optimum")

    monkeypatch.setattr("solvers.search.master.Master.nearest", fail)
    found = solve_benders(problem(4, 5), Distances(targets(4, 5)), gap=1e-9, progress=rounds.append)
    assert found.termination is Termination.SOLVER_ERROR
    assert math.isfinite(found.objective)
    assert found.bound <= found.objective


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"upper": np.array([np.inf, 1.0])}, "finite upper bound"),
        ({"probability": np.array([0.5, 0.4])}, "sum to 1"),
        ({"risk_level": 1.0}, "below 1"),
        ({"rows": np.ones((1, 2)), "row_hi": np.array([-1.0])}, "x = 0"),
    ],
)
def test_hopeless_questions_are_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(ModelError, match=text):
        problem(2, 2, **changes)
