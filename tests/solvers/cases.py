"""Small models with known answers, for every backend."""

from __future__ import annotations

from functools import cache

import numpy as np

from solvers.execution.solve import solve
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions


def knapsack() -> Milp:
    """max 5a + 4b + 3c, 2a + 3b + c <= 5, 4a + b + 2c <= 11, 3a + 4b + 2c <= 8, whole: optimum 13 at (2, 0, 1)."""
    builder = MilpBuilder("knapsack")
    x = builder.add_columns("x", ["a", "b", "c"], cost=[-5.0, -4.0, -3.0], upper=10.0, integer=True)
    rows = builder.add_rows("limit", 3, upper=[5.0, 11.0, 8.0])
    values = np.array([[2.0, 3.0, 1.0], [4.0, 1.0, 2.0], [3.0, 4.0, 2.0]])
    row, column = np.nonzero(values)
    builder.add_entries(rows.start + row, x.start + column, values[row, column])
    return builder.build()


def many_nodes() -> Milp:
    """A knapsack of 60 things and five limits that takes some hundred nodes of branch and bound."""
    random = np.random.default_rng(0)
    weight = random.integers(20, 100, (5, 60)).astype(float)
    builder = MilpBuilder("many nodes")
    value = random.integers(20, 100, 60).astype(float)
    x = builder.add_columns("x", list(range(60)), cost=-value, upper=1.0, integer=True)
    rows = builder.add_rows("limit", 5, upper=weight.sum(axis=1) / 3)
    row, column = np.nonzero(weight)
    builder.add_entries(rows.start + row, x.start + column, weight[row, column])
    return builder.build()


def cover(cost_factor: float = 1.0, row_factor: float = 1.0, *, seed: int = 7, size: int = 40) -> Milp:
    """A covering problem with near ties (the case where an absolute gap in the wrong unit is 1 % wrong)."""
    random = np.random.default_rng(seed)
    work = random.integers(10, 90, size).astype(float) + random.integers(0, 100, size) / 100
    cost = np.round(work * random.uniform(0.9, 1.1, size) / 20, 3)
    builder = MilpBuilder("cover")
    x = builder.add_columns("x", list(range(size)), cost=cost * cost_factor, upper=2.0, integer=True)
    row = builder.add_rows("work", 1, lower=937.31 * row_factor)
    builder.add_entries(row.start, np.arange(x.start, x.stop), work * row_factor)
    return builder.build()


@cache
def cover_optimum(backend: str) -> float:
    """Cost of `cover()` as a backend solves it to a gap of 0."""
    return solve(cover(), SolveOptions(gap=0.0, backend=backend)).objective


def mixed() -> Milp:
    """min 3y + t, t >= 2.5 - 2y, t >= 0, y binary: 2.5 at y = 0 (y = 1 costs 3.5)."""
    builder = MilpBuilder("mixed")
    builder.add_columns("y", ["y"], cost=3.0, upper=1.0, integer=True)
    builder.add_columns("t", ["t"], cost=1.0)
    row = builder.add_rows("cover", 1, lower=2.5)
    builder.add_entries([row.start, row.start], [0, 1], [2.0, 1.0])
    return builder.build()


def infeasible_only_whole() -> Milp:
    """2x = 3 with x whole: the relaxation is feasible, the model is not."""
    builder = MilpBuilder("parity")
    builder.add_columns("x", ["x", "z"], cost=1.0, upper=9.0, integer=True)
    row = builder.add_rows("parity", 1, lower=3.0, upper=3.0)
    builder.add_entries([row.start, row.start], [0, 1], [2.0, 2.0])
    return builder.build()


def unbounded() -> Milp:
    """min -x, x >= 0 whole, no limit."""
    builder = MilpBuilder("unbounded")
    builder.add_columns("x", ["x", "z"], cost=[-1.0, 1.0], integer=True)
    row = builder.add_rows("tie", 1, lower=-1.0)
    builder.add_entries([row.start, row.start], [0, 1], [1.0, -1.0])
    return builder.build()


def hard(size: int = 60, rows: int = 30, seed: int = 3) -> Milp:
    """A market-split-like model that no solver finishes in a second."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 100, (rows, size)).astype(float)
    builder = MilpBuilder("market split")
    builder.add_columns("x", [f"x{number}" for number in range(size)], upper=1.0, integer=True)
    over = builder.add_columns("over", [f"over{number}" for number in range(rows)], cost=1.0)
    under = builder.add_columns("under", [f"under{number}" for number in range(rows)], cost=1.0)
    half = np.floor(values.sum(axis=1) / 2)
    block = builder.add_rows("split", rows, lower=half, upper=half)
    row, column = np.nonzero(values)
    builder.add_entries(block.start + row, column, values[row, column])
    builder.add_entries(np.arange(block.start, block.stop), np.arange(over.start, over.stop), 1.0)
    builder.add_entries(np.arange(block.start, block.stop), np.arange(under.start, under.stop), -1.0)
    return builder.build()
