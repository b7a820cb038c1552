"""Of plans that cost the same, one whose jobs end sooner: a solver leaves open which it takes.

Jobs look again one after another, those that start first before others: each moves to its candidate that ends soonest
of those that cost and count the same and fit into what the others leave, until none moves.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Ints
from planner.portfolios.question import Question, restricted

ROUNDS = 8  # times all jobs look again
_SAME = 1e-9  # hours


def break_ties(question: Question, picks: Ints) -> Ints:
    """A plan of the same cost whose jobs end no later; numbered as in `question`.

    Args:
        question: candidates and limits.
        picks: a candidate per job, within the limits.
    """
    numbers, table = question.numbers, question.table
    pick = picks[numbers.job]
    alike = (numbers.cost == numbers.cost[pick]) & (numbers.objective == numbers.objective[pick])
    ends = table.start_hours + table.hours
    alike &= ends < ends[pick] - _SAME
    if not alike.any():
        return picks
    alike[picks] = True
    numbered = np.flatnonzero(alike)
    return numbered[_moved(restricted(question, alike), np.searchsorted(numbered, picks))]


def _moved(question: Question, picks: Ints) -> Ints:
    numbers, table, picks = question.numbers, question.table, picks.copy()
    left = numbers.limit - numbers.used(picks)
    order = np.argsort(numbers.entry_candidate, kind="stable")
    bounds = np.searchsorted(numbers.entry_candidate[order], np.arange(numbers.n_candidates + 1))
    draws = [
        (numbers.entry_limit[order[a:b]], numbers.entry_units[order[a:b]])
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    ends = table.start_hours + table.hours
    ranked = np.lexsort((ends, numbers.job))
    first = np.searchsorted(numbers.job, np.arange(numbers.n_jobs + 1))
    for _ in range(ROUNDS):
        before = picks.copy()
        for job in np.argsort(table.start_hours[before], kind="stable").tolist():
            pick = int(picks[job])
            np.add.at(left, *draws[pick])
            for at in ranked[first[job] : first[job + 1]].tolist():  # its present candidate fits in any case
                limits, units = draws[at]
                if (units <= left[limits]).all():
                    picks[job] = at
                    break
            np.subtract.at(left, *draws[picks[job]])
        if (picks == before).all():
            break
    return picks
