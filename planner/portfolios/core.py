"""The few candidates of each job that matter: those of restricted models, and those that a relaxation begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvers.problem.options import Sifting

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.portfolios.reduce import Reduced
    from solvers.problem.milp import Milp

SMALL = 20_000  # columns; a model of at most as many is relaxed and solved at once, in this process
FIRST_EACH = 4  # candidates per job that a large relaxation begins with: 2 or 8 take as long (measured)


def rank_of(x: Floats, reduced_costs: Floats) -> Floats:
    """What candidates are ranked by: those that a relaxation uses first, then by reduced cost."""
    return np.where(x > 1e-9, -1.0, np.maximum(reduced_costs, 0.0))


def core_of(reduced: Reduced, rank: Floats, picks: Ints | None, each: int) -> Ints:
    """Columns of a restricted model: per job the `each` of least rank, those of a known choice among them.

    Args:
        reduced: the question.
        rank: of the candidates, shape `(n_kept,)`.
        picks: the choice (positions among the kept), None without one.
        each: candidates per job.
    """
    if picks is not None:
        rank = rank.copy()
        rank[picks] = -np.inf
    order = np.lexsort((rank, reduced.job))
    place = np.arange(len(order)) - np.searchsorted(reduced.job, reduced.job[order])
    return np.sort(order[place < each])


def sifting_of(reduced: Reduced, model: Milp, rank: Floats | Ints, picks: Ints) -> Sifting | None:
    """What the relaxation of a large model begins with: the columns of a core, and all that are no candidates.

    Args:
        reduced: the question.
        model: its first columns are the candidates.
        rank: of the candidates, shape `(n_kept,)`.
        picks: a choice (positions among the kept) that keeps the rows.

    Returns:
        None where the model is small: then all columns at once take no longer.
    """
    if model.n_columns <= SMALL:
        return None
    count = len(reduced.keep)
    first, group = np.ones(model.n_columns, dtype=np.bool_), np.zeros(model.n_columns, dtype=np.int64)
    first[:count], group[:count] = False, reduced.job
    first[core_of(reduced, rank.astype(np.float64), picks, FIRST_EACH)] = True
    return Sifting(first, group)
