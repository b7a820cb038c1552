"""A plan at once, without a solver: jobs one after another take their best candidate that still fits, then again.

Jobs that lose most by their second choice go first; where a job finds nothing left, it goes to the front and all start
over. The plan is no proof of anything, but it is there when a time limit is short.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.reduce import Reduced

ROUNDS = 12  # times the order is changed because a job found nothing
POLISH = 3  # times every job looks again, given the others


class Ledger:
    """What is left of every live limit and of the budget."""

    def __init__(self, reduced: Reduced) -> None:
        """Start with nothing drawn."""
        count = len(reduced.keep)
        slots = np.bincount(reduced.entry_at, minlength=count)
        width = max(int(slots.max(initial=0)), 1)
        order = np.argsort(reduced.entry_at, kind="stable")
        at = reduced.entry_at[order]
        slot = np.arange(len(at)) - np.searchsorted(at, at)
        self.rows = np.full(
            (count, width), len(reduced.live), dtype=np.int64
        )  # the last row takes everything
        self.units = np.zeros((count, width), dtype=np.int64)
        self.rows[at, slot], self.units[at, slot] = reduced.entry_row[order], reduced.entry_units[order]
        self.cost = reduced.source.cost[reduced.keep]
        self.starts = np.searchsorted(reduced.job, np.arange(reduced.source.n_jobs + 1)).astype(np.int64)
        self._limits = np.append(reduced.source.limit[reduced.live], np.int64(0))
        least = np.minimum.reduceat(self.cost, self.starts[:-1])
        self.extra = self.cost - least[reduced.job]  # beyond the job's cheapest, which is set aside for it
        budget = reduced.source.budget
        self._room = np.iinfo(np.int64).max if budget is None else budget - int(least.sum())
        self.clear()

    def clear(self) -> None:
        """Give everything back."""
        self.left, self.room = self._limits.copy(), int(self._room)

    def fitting(self, job: int) -> Ints:
        """Candidates of `job` that fit into what is left."""
        own = slice(int(self.starts[job]), int(self.starts[job + 1]))
        fits = (self.units[own] <= self.left[self.rows[own]]).all(axis=1) & (self.extra[own] <= self.room)
        return own.start + np.flatnonzero(fits)

    def take(self, at: int, sign: int = 1) -> None:
        """Draw candidate `at`; `sign` -1 gives it back."""
        np.subtract.at(self.left, self.rows[at], sign * self.units[at])
        self.room -= sign * int(self.extra[at])


def greedy_plan(reduced: Reduced, score: Floats, rounds: int = ROUNDS) -> Ints | None:
    """Return a plan (kept candidate per job, shape `(n_jobs,)`), None where none was found.

    Args:
        reduced: every job has a candidate.
        score: what a candidate is worth avoiding, shape `(n_kept,)`: cost, or cost less the price of what it draws.
        rounds: orders tried, at most.
    """
    ledger = Ledger(reduced)
    if ledger.room < 0:
        return None
    order = _by_regret(reduced, score, ledger.starts).tolist()
    for _ in range(rounds):
        picks, stuck = _fill(ledger, score, order)
        if not stuck:
            return _polish(reduced, ledger, picks)
        front = set(stuck)
        order = [*stuck, *(job for job in order if job not in front)]
    return None


def _by_regret(reduced: Reduced, score: Floats, starts: Ints) -> Ints:
    """Jobs in order of what their second choice costs them, most first."""
    order = np.lexsort((score, reduced.job))
    first = score[order[starts[:-1]]]
    second = score[order[np.minimum(starts[:-1] + 1, starts[1:] - 1)]]
    only = np.diff(starts) == 1
    return np.argsort(-np.where(only, np.inf, second - first), kind="stable")


def _fill(ledger: Ledger, score: Floats, order: list[int]) -> tuple[Ints, list[int]]:
    ledger.clear()
    picks, stuck = np.zeros(len(order), dtype=np.int64), []
    for job in order:
        fitting = ledger.fitting(job)
        if not len(fitting):
            stuck.append(job)
            continue
        picks[job] = fitting[np.argmin(score[fitting])]
        ledger.take(int(picks[job]))
    return picks, stuck


def polished(reduced: Reduced, picks: Ints) -> Ints:
    """A plan (kept candidate per job) after every job looked again."""
    ledger = Ledger(reduced)
    for pick in picks.tolist():
        ledger.take(pick)
    return _polish(reduced, ledger, picks.copy())


def _polish(reduced: Reduced, ledger: Ledger, picks: Ints) -> Ints:
    """Let every job look again for a better candidate in what the others leave."""
    worth = reduced.source.objective[reduced.keep]
    for _ in range(POLISH):
        moved = False
        for job in range(len(picks)):
            ledger.take(int(picks[job]), -1)
            fitting = ledger.fitting(job)
            best = int(fitting[np.argmin(worth[fitting])])
            if worth[best] < worth[picks[job]]:
                picks[job], moved = best, True
            ledger.take(int(picks[job]))
        if not moved:
            break
    return picks
