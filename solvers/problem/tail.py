"""The mean of the worst outcomes in the objective of a linear model, by rows (Rockafellar and Uryasev 2000).

With equally likely scenarios s in which a point costs c.x + d_s.x, the sum over s of d_s being 0,

    (1 - w) E + w CVaR_a  =  c.x + w CVaR_a[d_s.x]  =  min over eta  c.x + w (eta + sum_s z_s / (S (1 - a)))
    z_s >= d_s.x - eta,  z_s >= 0

because what is certain passes through CVaR (R. T. Rockafellar, S. Uryasev, "Optimization of conditional value-at-risk",
J. Risk 2, 2000). So the model keeps its columns, rows and costs, and gets a column and a row per scenario.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from solvers.problem.milp import Block, Floats, Ints, Milp

LEVEL_KEY: Hashable = ("tail", "level")


def excess_key(scenario: int) -> Hashable:
    """Key of the column that holds what a scenario costs above the level."""
    return ("tail", scenario)


def tail_point(deviation: Floats, level: float) -> dict[Hashable, float]:
    """The tail's columns, by key, at a point whose costs deviate by `deviation`, shape `(S,)`: at their least."""
    at = min(max(math.ceil(level * len(deviation)) - 1, 0), len(deviation) - 1)
    quantile = float(np.partition(deviation, at)[at])
    excess = np.maximum(deviation - quantile, 0.0).tolist()
    return {LEVEL_KEY: quantile, **{excess_key(scenario): usd for scenario, usd in enumerate(excess)}}


def with_tail(problem: Milp, columns: Ints, deviation: Floats, weight: float, level: float) -> Milp:
    """Add `weight` times the mean of the worst `1 - level` of the scenarios' deviations to the objective.

    Args:
        problem: its costs are the expected ones.
        columns: columns whose costs vary, shape `(n,)`.
        deviation: their costs in each scenario less the expected ones, shape `(n, S)`, rows with the mean 0.
        weight: from 0.
        level: 0 up to below 1.
    """
    count = deviation.shape[1]
    at, scenario = np.nonzero(deviation)
    first = problem.n_columns
    extra = np.arange(count)
    column = np.concatenate(
        [problem.column_of_entry(), columns[at], np.full(count, first), first + 1 + extra]
    )
    row = np.concatenate([problem.indices, problem.n_rows + np.concatenate([scenario, extra, extra])])
    data = np.concatenate([problem.data, -deviation[at, scenario], np.ones(2 * count)])
    order = np.lexsort((row, column))
    indptr = np.zeros(first + count + 2, dtype=np.int32)
    np.cumsum(np.bincount(column, minlength=first + count + 1), out=indptr[1:])
    keys = (LEVEL_KEY, *(excess_key(number) for number in range(count)))
    return replace(
        problem,
        c=np.concatenate([problem.c, [weight], np.full(count, weight / (count * (1.0 - level)))]),
        lb=np.concatenate([problem.lb, [-np.inf], np.zeros(count)]),
        ub=np.concatenate([problem.ub, np.full(count + 1, np.inf)]),
        integrality=np.concatenate([problem.integrality, np.zeros(count + 1, dtype=np.bool_)]),
        row_lo=np.append(problem.row_lo, np.zeros(count)), row_hi=np.append(problem.row_hi, np.full(count, np.inf)),
        data=data[order], indices=row[order].astype(np.int32), indptr=indptr, column_keys=(*problem.column_keys, *keys),
        column_blocks=(*problem.column_blocks, Block("tail", first, first + count + 1, keys)),
        row_blocks=(*problem.row_blocks, Block("tail", problem.n_rows, problem.n_rows + count)),
        name=f"{problem.name} with tail",
    )  # fmt: skip
