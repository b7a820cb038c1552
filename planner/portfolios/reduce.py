"""Exact reductions of a portfolio: what is dropped is in no plan, or can be replaced without loss. Each is counted.

- *too large*: a candidate draws more than a limit holds. Without this the relaxation is worthless.
- *too dear*: with the cheapest candidate of every other job, the budget is exceeded.
- *limits that cannot bind*: the most that every job could draw, summed, is within the limit.
- *dominance*: another candidate of the same job is no dearer (in what counts and in what is paid) and draws no more of
  any limit that can bind. Of equal ones the first stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.portfolios.shared_limits import PortfolioInput

LOOK_BACK = 24  # rivals compared per candidate and limit; more would find little and is never wrong


@dataclass(frozen=True, eq=False)
class Reduced:
    """The candidates kept and the limits that can bind.

    Attributes:
        source: the whole question.
        keep: candidates kept, ascending, shape `(n_kept,)`.
        live: limits that can bind, ascending, shape `(n_live,)`.
        job: job of each kept candidate, shape `(n_kept,)`.
        entry_at: position among the kept candidates of each remaining entry, shape `(n_entries,)`.
        entry_row: position among the live limits, shape `(n_entries,)`.
        entry_units: units drawn, shape `(n_entries,)`.
        dominator: candidate that replaces each dominated one (-1: not dominated), shape `(n_candidates,)`.
        dropped: candidates removed per reason.
    """

    source: PortfolioInput
    keep: Ints
    live: Ints
    job: Ints
    entry_at: Ints
    entry_row: Ints
    entry_units: Ints
    dominator: Ints
    dropped: dict[str, int]

    @property
    def draws(self) -> Floats:
        """What each candidate kept draws on the limits that can bind, its cost last, shape `(n_kept, n_live + 1)`."""
        out = np.zeros((len(self.keep), len(self.live) + 1))
        np.add.at(out, (self.entry_at, self.entry_row), self.entry_units)
        out[:, -1] = self.source.cost[self.keep] if self.source.budget is not None else 0
        return out

    def empty_jobs(self) -> Ints:
        """Jobs without a candidate left."""
        return np.flatnonzero(np.bincount(self.job, minlength=self.source.n_jobs) == 0)


def reduce_portfolio(
    question: PortfolioInput, *, drop_dominated: bool = True, within_limits: bool = True
) -> Reduced:
    """Drop what no optimal plan needs.

    Args:
        question: the portfolio.
        drop_dominated: also drop candidates that another one replaces without loss.
        within_limits: limits hold; off where they may give way.
    """
    alive = np.ones(question.n_candidates, dtype=np.bool_)
    dropped: dict[str, int] = {}
    if within_limits:
        alive = fits_limits(question)
        dropped["too_large"] = int((~alive).sum())
        affordable = _affordable(question, alive)
        dropped["too_dear"] = int((alive & ~affordable).sum())
        alive &= affordable
    live = _binding(question, alive)
    dominator = np.full(question.n_candidates, -1, dtype=np.int64)
    if drop_dominated:
        dominator = _dominators(question, alive, live)
        dropped["dominated"] = int((dominator >= 0).sum())
        alive &= dominator < 0
        live &= _binding(question, alive)
    return _reduced(question, alive, live, dominator, {name: n for name, n in dropped.items() if n})


def fits_limits(question: PortfolioInput) -> Bools:
    """Whether each candidate alone is within every limit, shape `(n_candidates,)`."""
    over = question.entry_units > question.limit[question.entry_limit]
    fits = np.ones(question.n_candidates, dtype=np.bool_)
    fits[question.entry_candidate[over]] = False
    return fits


def _affordable(question: PortfolioInput, alive: Bools) -> Bools:
    """Whether each candidate fits the budget beside the cheapest of all other jobs."""
    if question.budget is None:
        return np.ones(question.n_candidates, dtype=np.bool_)
    least = np.full(question.n_jobs, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(least, question.job[alive], question.cost[alive])
    known = least < np.iinfo(np.int64).max
    room = question.budget - int(least[known].sum())
    extra = question.cost - np.where(known, least, 0)[question.job]
    return np.asarray(extra <= room, dtype=np.bool_)


def _binding(question: PortfolioInput, alive: Bools) -> Bools:
    """Limits that the largest draw of every job together exceeds, shape `(n_limits,)`."""
    inside = alive[question.entry_candidate]
    limit, units = question.entry_limit[inside], question.entry_units[inside]
    job = question.job[question.entry_candidate[inside]]
    key = limit * question.n_jobs + job
    order = np.argsort(key, kind="stable")
    key = key[order]
    most = np.zeros(len(question.limit), dtype=np.int64)
    if len(key):
        starts = np.flatnonzero(np.r_[True, np.diff(key) != 0])
        np.add.at(most, limit[order][starts], np.maximum.reduceat(units[order], starts))
    return np.asarray(most > question.limit, dtype=np.bool_)


def _dominators(question: PortfolioInput, alive: Bools, live: Bools) -> Ints:
    """A candidate that replaces each one without loss, -1 where none was found, shape `(n_candidates,)`."""
    at = np.flatnonzero(alive)
    inside = live[question.entry_limit] & alive[question.entry_candidate]
    candidate, limit = question.entry_candidate[inside], question.entry_limit[inside]
    units = question.entry_units[inside]
    slots = np.bincount(candidate, minlength=question.n_candidates)
    width = int(slots.max(initial=0))
    rows, draws = _padded(candidate, limit, units, question.n_candidates, width)
    rows, draws = rows[at], draws[at]
    job, counts, paid = question.job[at], question.objective[at], question.cost[at]
    total = draws.sum(axis=1)
    order = np.lexsort((at, total, paid, counts, *(rows[:, slot] for slot in range(width)), job))
    same = _same_pool(job[order], rows[order])
    winner = _beaten_by(same, paid[order], draws[order])
    found = np.full(len(at), -1, dtype=np.int64)
    found[order[winner >= 0]] = order[winner[winner >= 0]]
    best = _best_free(job, counts, paid, slots[at], question.n_jobs)
    rival = best[job]
    free = (rival >= 0) & (found < 0) & (rival != np.arange(len(at)))
    # a draw of nothing beats any draw; between two of no draw the pools above have decided
    free &= (slots[at] > 0) & (counts[rival] <= counts) & (paid[rival] <= paid)
    found[free] = rival[free]
    result = np.full(question.n_candidates, -1, dtype=np.int64)
    result[at[found >= 0]] = at[found[found >= 0]]
    return result


def _padded(candidate: Ints, limit: Ints, units: Ints, n: int, width: int) -> tuple[Ints, Ints]:
    """Limits and draws of each candidate side by side, sorted by limit: two arrays of shape `(n, width)`."""
    order = np.lexsort((limit, candidate))
    candidate = candidate[order]
    first = np.searchsorted(candidate, candidate)
    slot = np.arange(len(candidate)) - first
    rows, draws = np.full((n, width), -1, dtype=np.int64), np.zeros((n, width), dtype=np.int64)
    rows[candidate, slot], draws[candidate, slot] = limit[order], units[order]
    return rows, draws


def _same_pool(job: Ints, rows: Ints) -> Ints:
    """Position within the run of candidates of one job on the same limits, shape `(n,)` (sorted input)."""
    new = np.ones(len(job), dtype=np.bool_)
    if len(job):
        new[1:] = (np.diff(job) != 0) | (np.diff(rows, axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(new)
    return np.asarray(np.arange(len(job)) - np.repeat(starts, np.diff(np.r_[starts, len(job)])))


def _beaten_by(place: Ints, paid: Ints, draws: Ints) -> Ints:
    """Earlier member of the same pool that is no worse in all, -1 where none (input sorted by objective)."""
    winner = np.full(len(place), -1, dtype=np.int64)
    for back in range(1, LOOK_BACK + 1):
        at = np.flatnonzero((place >= back) & (winner < 0))
        if not len(at):
            break
        rival = at - back
        no_worse = (paid[rival] <= paid[at]) & (draws[rival] <= draws[at]).all(axis=1)
        winner[at[no_worse]] = rival[no_worse]
    return winner


def _best_free(job: Ints, counts: Ints, paid: Ints, slots: Ints, n_jobs: int) -> Ints:
    """The best candidate of each job among those that draw on no limit that can bind, -1 without one."""
    free = np.flatnonzero(slots == 0)
    order = free[np.lexsort((free, paid[free], counts[free], job[free]))]
    best = np.full(n_jobs, -1, dtype=np.int64)
    best[job[order[::-1]]] = order[::-1]
    return best


def _reduced(
    question: PortfolioInput, alive: Bools, live: Bools, dominator: Ints, dropped: dict[str, int]
) -> Reduced:
    keep, rows = np.flatnonzero(alive), np.flatnonzero(live)
    position = np.full(question.n_candidates, -1, dtype=np.int64)
    position[keep] = np.arange(len(keep))
    row_of = np.full(len(question.limit), -1, dtype=np.int64)
    row_of[rows] = np.arange(len(rows))
    inside = alive[question.entry_candidate] & live[question.entry_limit]
    return Reduced(
        source=question, keep=keep, live=rows, job=question.job[keep],
        entry_at=position[question.entry_candidate[inside]], entry_row=row_of[question.entry_limit[inside]],
        entry_units=question.entry_units[inside], dominator=dominator, dropped=dropped,
    )  # fmt: skip
