"""Sifting: solves a linear relaxation with many columns by pricing them into a small restricted problem.

The optimum of the restricted problem gives duals of the rows. Of the other columns, those with the most negative
reduced costs in each group are added, and the primal simplex method continues from the last basis, which is still
feasible. When no reduced cost is negative, the optimum is that of all columns (Bixby, Gregory, Lustig, Marsten and
Shanno 1992, doi:10.1287/opre.40.5.885).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from solvers.backends.base import Relaxation
from solvers.problem.milp import Bools, Floats, Ints, Milp
from solvers.problem.options import Sifting
from solvers.problem.solution import Termination

EACH = 4  # columns of a group that are added per round
MOST_ROUNDS = 200  # portfolios of 1,000 jobs took at most 30
PAYS = 1e-7  # least negative reduced cost of a scaled column worth adding: the solver's own tolerance

# Adds the columns of these numbers and re-solves within so many seconds.
Widened = Callable[[Ints, float], Relaxation]


def sift(
    problem: Milp, sifting: Sifting, begin: Callable[[Bools], Widened], time_limit_s: float
) -> Relaxation | None:
    """The relaxation of a scaled model; None if sifting reached no optimum.

    Args:
        problem: the model.
        sifting: the first columns and the groups.
        begin: builds the restricted problem of the first columns.
        time_limit_s: seconds, at most.
    """
    end = time.perf_counter() + time_limit_s
    there = sifting.first | (problem.lb != 0)
    if not there.any():
        return None
    number = np.flatnonzero(there)  # of the solver's columns
    solve, new = begin(there), np.zeros(0, dtype=np.int64)
    column = problem.column_of_entry()
    for _ in range(MOST_ROUNDS):
        found = solve(new, max(end - time.perf_counter(), 1e-3))
        if found.termination is not Termination.GAP_REACHED or found.x is None or found.duals is None:
            return None
        priced = problem.data * found.duals[problem.indices]
        reduced = problem.c - np.bincount(column, weights=priced, minlength=problem.n_columns)
        new = _joining(reduced, there, sifting.group)
        if not len(new):
            x = np.zeros(problem.n_columns)
            x[number] = found.x
            return Relaxation(found.termination, found.objective, x, reduced, found.message, found.duals)
        there[new] = True
        number = np.append(number, new)
    return None


def _joining(reduced: Floats, there: Bools, group: Ints) -> Ints:
    """The columns with the most negative reduced costs, at most `EACH` of each group."""
    pays = np.flatnonzero(~there & (reduced < -PAYS))
    order = pays[np.lexsort((reduced[pays], group[pays]))]
    own = group[order]
    return np.sort(order[np.arange(len(order)) - np.searchsorted(own, own) < EACH])
