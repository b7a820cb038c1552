"""A model that grows row by row has the optimum of the model written out, whatever basis it starts from."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp, MilpBuilder, with_rows
from solvers.problem.solution import Termination

BACKENDS = ("scipy", "highspy")
COLUMNS = 6


def first_model(random: np.random.Generator) -> Milp:
    """Costs above 0, so that each model that fits has an optimum; a limit, and one row of the kind that is added."""
    builder = MilpBuilder("growing")
    x = builder.add_columns(
        "x", [("x", at) for at in range(COLUMNS)], cost=random.uniform(1, 9, COLUMNS), upper=20.0
    )
    for name, side in (("limit", {"upper": 40.0}), ("cut", {"lower": 3.0})):
        row = builder.add_rows(name, 1, **side)
        builder.add_entries(
            row.start, np.arange(x.start, x.stop), random.integers(1, 4, COLUMNS).astype(np.float64)
        )
    return builder.build()


def dense(problem: Milp) -> np.ndarray:
    """The coefficients, shape `(n_rows, n_columns)`."""
    out = np.zeros((problem.n_rows, problem.n_columns))
    out[problem.indices, problem.column_of_entry()] = problem.data
    return out


def test_rows_come_behind_the_others() -> None:
    random = np.random.default_rng(5)
    model = first_model(random)
    rows = np.where(random.random((4, COLUMNS)) < 0.5, random.uniform(-3, 3, (4, COLUMNS)), 0.0)
    grown = with_rows(model, rows, np.arange(4.0))
    assert (dense(grown) == np.vstack([dense(model), rows])).all()
    assert grown.row_lo.tolist() == [*model.row_lo, 0.0, 1.0, 2.0, 3.0]
    assert np.isposinf(grown.row_hi[-4:]).all()
    assert [(block.name, block.start, block.stop) for block in grown.row_blocks] == [
        ("limit", 0, 1),
        ("cut", 1, 6),
    ]
    for column in range(COLUMNS):  # as a builder compresses them
        own = grown.indices[grown.indptr[column] : grown.indptr[column + 1]]
        assert (np.diff(own) > 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_optimum_is_that_of_the_model_written_out(backend: str) -> None:
    """With one row more or none, other limits, and rows that nothing keeps; duals are of the rows as they are given."""
    seen = {Termination.GAP_REACHED: 0, Termination.INFEASIBLE: 0}
    for seed in range(12):
        random = np.random.default_rng([seed, 8])
        model, solve = first_model(random), get_backend(backend).growing()
        for _ in range(8):
            if random.random() < 0.8:
                rows = random.uniform(-2, 5, (2, COLUMNS)) * random.choice([1.0, 1e3, 1e-3])
                model = with_rows(model, rows, rows.mean(axis=1) * random.uniform(0, 14))
            limit = np.where(np.arange(model.n_rows) == 0, random.uniform(2, 60), model.row_hi)
            now = replace(model, row_hi=limit)
            found, truth = solve(now), get_backend(backend).relax(now, math.inf)
            assert found.termination is truth.termination, seed
            seen[found.termination] += 1
            if truth.x is None or found.x is None or found.duals is None:
                continue
            assert found.objective == pytest.approx(truth.objective, rel=1e-9, abs=1e-9)
            assert float(now.c @ found.x) == pytest.approx(truth.objective, rel=1e-9, abs=1e-9)
            held = np.where(np.isfinite(now.row_lo), now.row_lo, now.row_hi)
            reduced = now.c - found.duals @ dense(now)
            worth = found.duals @ held + np.minimum(reduced, 0.0) @ now.ub
            assert worth == pytest.approx(truth.objective, rel=1e-7, abs=1e-7), (
                "weak duality holds with equality"
            )
    assert min(seen.values()) >= 5
