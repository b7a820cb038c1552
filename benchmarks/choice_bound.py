"""The exact knapsack bound for suite models that choose one candidate per job within limits.

The same bound as `planner.portfolios.bound`, read off a bare model: rows `sum x = 1` divide the columns among jobs,
every column in at most one further row `sum units x <= limit` of whole numbers, and costs in whole micro-dollars.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Ints
from planner.portfolios.bound import knapsack
from solvers.problem.milp import Floats, Milp

MICRO = 1e6


def choice_bound(problem: Milp, duals: Floats) -> float | None:
    """Return the bound that the duals of the rows `sum x = 1` prove; None where the model has another form."""
    micro = np.rint(problem.c * MICRO)
    columns, rows = problem.column_of_entry(), problem.indices
    chooses = (problem.row_lo == 1) & (problem.row_hi == 1)
    in_choice = chooses[rows]
    binary = problem.integrality.all() and (problem.lb == 0).all() and (problem.ub == 1).all()
    whole = (
        (problem.data[in_choice] == 1).all() and (problem.data % 1 == 0).all() and (problem.data > 0).all()
    )
    limits = problem.row_hi[~chooses]
    open_below = np.isneginf(problem.row_lo[~chooses]).all() and (limits % 1 == 0).all()
    once = (np.bincount(columns[in_choice], minlength=problem.n_columns) == 1).all()
    once = once and np.bincount(columns[~in_choice], minlength=problem.n_columns).max(initial=0) <= 1
    in_money = np.abs(micro - problem.c * MICRO).max(initial=0.0) < 1e-3 and np.abs(micro).max() < 2**52
    if not (binary and whole and open_below and once and in_money):
        return None
    job = np.zeros(problem.n_columns, dtype=np.int64)
    job[columns[in_choice]] = rows[in_choice]
    price = np.rint(duals * MICRO).astype(np.int64)
    gain = price[job] - micro.astype(np.int64)
    home = np.full(problem.n_columns, -1)
    home[columns[~in_choice]] = rows[~in_choice]
    units = np.zeros(problem.n_columns, dtype=np.int64)
    units[columns[~in_choice]] = problem.data[~in_choice]
    total = (
        int(price[chooses].sum()) - _without_limit(job, gain, home) - _within(problem, job, gain, home, units)
    )
    return total / MICRO


def _without_limit(job: Ints, gain: Ints, home: Ints) -> int:
    best = np.zeros(int(job.max()) + 1, dtype=np.int64)
    free = home < 0
    np.maximum.at(best, job[free], gain[free])
    return int(best.sum())


def _within(problem: Milp, job: Ints, gain: Ints, home: Ints, units: Ints) -> int:
    total = 0
    limit = problem.row_hi
    at = np.flatnonzero((home >= 0) & (gain > 0))
    at = at[units[at] <= limit[home[at]]]
    at = at[np.lexsort((units[at], job[at], home[at]))]
    for members in np.split(at, np.flatnonzero(np.diff(home[at])) + 1) if len(at) else []:
        total += knapsack(job[members], gain[members], units[members], int(limit[home[members[0]]]))
    return total
