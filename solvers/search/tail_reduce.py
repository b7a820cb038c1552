"""Exact reductions of a model with a tail: columns that no optimum needs.

Columns of a group exclude each other. The objective is monotone in the cost of every scenario, so a column is dominated
by another of its group that costs no more in any scenario and uses no more of any limit; and a column whose reduced
cost exceeds the gap to the best known choice is in no better one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from solvers.backends.base import Relaxation
    from solvers.problem.milp import Bools, Floats, Ints

# rivals compared per candidate, of least expected cost; more would find little, fewer is never wrong
MOST_RIVALS = 100
SAFE = 1e-6  # of the best choice: a candidate is dropped only this far beyond it


def not_replaced(cost: Floats, uses: Floats, group: Ints) -> Bools:
    """Mask of the columns that no other of their group dominates, shape `(n,)`.

    Args:
        cost: in each scenario, shape `(n, S)`.
        uses: of limits, shape `(n, m)`.
        group: of each column, from 0, shape `(n,)`.
    """
    kept = np.ones(len(group), dtype=np.bool_)
    both, mean = np.concatenate([cost, uses], axis=1), cost.mean(axis=1)
    by_group = np.lexsort((mean, group))
    starts = np.flatnonzero(np.diff(group[by_group], prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(group)], strict=True):
        order = by_group[start:end]
        rivals = np.empty((min(MOST_RIVALS, len(order)), both.shape[1]))
        count = 0
        for at in order.tolist():
            if (rivals[:count] <= both[at]).all(axis=1).any():
                kept[at] = False
            elif count < len(rivals):
                rivals[count] = both[at]
                count += 1
    return kept


def within_reach(relaxation: Relaxation | None, count: int, bound: float, most: float) -> Bools:
    """Whether each of the first `count` columns may be in a choice that costs at most `most`, shape `(count,)`.

    Args:
        relaxation: of the model; None: nothing is known.
        count: columns; they are whole and at least 0.
        bound: that it proves.
        most: the best choice known.
    """
    if relaxation is None or relaxation.reduced_costs is None:
        return np.ones(count, dtype=np.bool_)
    return np.asarray(bound + relaxation.reduced_costs[:count] <= most + SAFE * abs(most), dtype=np.bool_)
