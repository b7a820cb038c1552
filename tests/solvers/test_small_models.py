"""Small models are solved without the heuristic that would take most of their time."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.backends import highs, scipy_milp
from solvers.backends.base import JUMP, JUMP_ABOVE
from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions


def knapsack(columns: int) -> Milp:
    """Whole numbers of `columns` things that weigh 7 or more together, the cheapest per weight first."""
    builder = MilpBuilder("knapsack")
    weight = np.linspace(1.0, 2.5, columns)
    # each step dearer per weight, or the search goes on among thousands of nearly the same cost
    cost = weight * np.linspace(1.0, 2.0, columns)
    x = builder.add_columns("x", [*range(columns)], cost=cost, upper=3.0, integer=True)
    row = builder.add_rows("weight", 1, lower=7.25)
    builder.add_entries(row.start, np.arange(x.start, x.stop), weight)
    return builder.build()


@pytest.mark.parametrize("columns", [JUMP_ABOVE, JUMP_ABOVE + 1])
def test_scipy_passes_the_option_on_for_small_models_alone(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import scipy.optimize

    asked: list[dict[str, object]] = []
    solve = scipy.optimize.milp

    def milp(*values: object, options: dict[str, object], **others: object) -> object:
        asked.append(dict(options))
        return solve(*values, options=options, **others)

    monkeypatch.setattr(scipy.optimize, "milp", milp)
    found = get_backend("scipy").solve(knapsack(columns), SolveOptions(gap=0.0))
    assert [JUMP in options for options in asked] == [scipy_milp.knows_jump() and columns <= JUMP_ABOVE]
    monkeypatch.setattr(scipy_milp, "JUMP_SINCE", (99, 0))  # a scipy whose HiGHS does not have it
    assert get_backend("scipy").solve(knapsack(columns), SolveOptions(gap=0.0)).objective == found.objective
    assert JUMP not in asked[-1]


def test_highs_knows_the_option() -> None:
    highspy = pytest.importorskip("highspy")
    solver = highs._load(knapsack(3), np.ones(3, dtype=np.bool_), 60.0)
    assert solver.setOptionValue(JUMP, False) == highspy.HighsStatus.kOk


def test_the_filter_for_scipys_warning_does_not_outlive_the_solve() -> None:
    import warnings

    before = list(warnings.filters)
    get_backend("scipy").solve(knapsack(3), SolveOptions(gap=0.0))
    assert list(warnings.filters) == before
