"""A relaxation over few columns, to which those that pay are added, has the optimum of all columns at once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import solvers.backends.sifting as module
from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import Sifting, SolveOptions
from solvers.problem.solution import Termination
from solvers.search.search import Search
from tests.solvers.test_growing import dense

BACKENDS = ("scipy", "highspy")
GROUPS, EACH = 12, 25
LIMITS = 5


def model_of(random: np.random.Generator) -> tuple[Milp, Sifting]:
    """One column of each group is taken; limits bind, above which a unit costs money. Begins with two of each group."""
    builder, count = MilpBuilder("sifted"), GROUPS * EACH
    group = np.repeat(np.arange(GROUPS), EACH)
    cost = random.uniform(1, 1_000, count) * random.choice([1.0, 1e4])
    builder.add_columns("x", [("x", at) for at in range(count)], cost=cost, upper=1.0)
    choice = builder.add_rows("choice", GROUPS, lower=1.0, upper=1.0)
    builder.add_entries(choice.start + group, np.arange(count), 1.0)
    limit = builder.add_rows("limit", LIMITS, upper=random.uniform(5, 60, LIMITS))
    slack = builder.add_columns(
        "slack",
        [("slack", at) for at in range(LIMITS)],
        cost=cost.max() * random.uniform(0.02, 2, LIMITS),
        upper=1e5,
    )
    for row in range(LIMITS):
        using = np.flatnonzero(random.random(count) < 0.4)
        builder.add_entries(limit.start + row, using, random.integers(1, 30, len(using)).astype(np.float64))
        builder.add_entries(limit.start + row, slack.start + row, -1.0)
    first = np.r_[np.arange(count) % EACH < 2, np.ones(LIMITS, dtype=np.bool_)]
    return builder.build(), Sifting(first, np.r_[group, np.zeros(LIMITS, dtype=np.int64)])


def check_optimum(problem: Milp, backend: str, sifting: Sifting) -> None:
    """Objective, point, prices and reduced costs are those of an optimum of the whole model."""
    found = get_backend(backend).sifted(problem, sifting, math.inf)
    truth = get_backend(backend).relax(problem, math.inf)
    assert found.termination is truth.termination
    if truth.x is None:
        assert found.x is None
        return
    assert found.x is not None and found.duals is not None and found.reduced_costs is not None
    assert found.objective == pytest.approx(truth.objective, rel=1e-8)
    assert float(problem.c @ found.x) == pytest.approx(truth.objective, rel=1e-8)
    activity, size = problem.activity(found.x), np.abs(problem.c).max()
    assert (activity <= problem.row_hi + 1e-6).all() and (activity >= problem.row_lo - 1e-6).all()
    assert (found.x >= problem.lb - 1e-9).all() and (found.x <= problem.ub + 1e-9).all()
    assert found.reduced_costs == pytest.approx(problem.c - found.duals @ dense(problem), abs=1e-9 * size)
    side = np.where(found.duals > 0, problem.row_lo, problem.row_hi)
    worth = found.duals[found.duals != 0] @ side[found.duals != 0]
    worth += np.maximum(found.reduced_costs, 0.0) @ problem.lb
    worth += np.minimum(found.reduced_costs, 0.0) @ problem.ub
    assert worth == pytest.approx(truth.objective, rel=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_optimum_is_that_of_all_columns(backend: str) -> None:
    for seed in range(25):
        problem, sifting = model_of(np.random.default_rng([seed, 12]))
        check_optimum(problem, backend, sifting)


@pytest.mark.parametrize("backend", BACKENDS)
def test_columns_that_rest_above_nothing_are_there_from_the_beginning(backend: str) -> None:
    problem, sifting = model_of(np.random.default_rng(3))
    lower = problem.lb.copy()
    lower[[7, 40]] = 0.25
    check_optimum(replace(problem, lb=lower), backend, sifting)


@pytest.mark.parametrize("backend", BACKENDS)
def test_where_the_first_columns_have_no_point_all_are_asked(backend: str) -> None:
    problem, sifting = model_of(np.random.default_rng(4))
    check_optimum(problem, backend, replace(sifting, first=np.zeros_like(sifting.first)))
    nothing = np.where(np.arange(problem.n_rows) == 0, 2.0 * EACH, problem.row_lo)
    without = replace(problem, row_lo=nothing, row_hi=np.maximum(problem.row_hi, nothing))
    check_optimum(without, backend, sifting)
    assert get_backend(backend).sifted(without, sifting, math.inf).termination is Termination.INFEASIBLE


def test_few_columns_of_many_are_ever_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, sifting = model_of(np.random.default_rng(5))
    joined: list[int] = []
    joining = module._joining

    def counted(*given: np.ndarray) -> np.ndarray:
        new = joining(*given)
        joined.append(len(new))
        return new

    monkeypatch.setattr(module, "_joining", counted)
    check_optimum(problem, "highspy", sifting)
    assert joined[-1] == 0 and max(joined) <= GROUPS * module.EACH
    assert 0 < sum(joined) < problem.n_columns / 2


def test_no_time_is_no_answer_and_rounds_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, sifting = model_of(np.random.default_rng(6))
    search = Search[object](
        SolveOptions(time_limit_s=60.0, backend="highspy"), clock=iter((0.0, 61.0, 61.0)).__next__
    )
    assert search.relax(problem, sifting=sifting) is None
    monkeypatch.setattr(module, "MOST_ROUNDS", 1)
    check_optimum(problem, "highspy", sifting)
