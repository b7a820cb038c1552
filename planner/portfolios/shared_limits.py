"""The question of a portfolio: jobs, their candidates, and the limits that candidates share. Whole numbers only.

Money is in micro-dollars and use in whole units, so that everything claimed about an answer can be checked in exact
arithmetic. A job that may be left out has one more candidate: it draws nothing, and counts the job's value as lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from catalogs.tables.table import Ints
from solvers.problem.errors import ModelError

MICRO = 1_000_000
QUOTA, CAPACITY = 0, 1  # kinds of limit: an account's quota; what an owned machine pool or commitment holds
MOST = 2**62  # sums of money must stay below: they are kept in 64 bits


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PortfolioInput:
    """Candidates of all jobs, in the order of the jobs.

    Attributes:
        n_jobs: number of jobs; each gets exactly one of its candidates.
        job: job of each candidate, ascending, shape `(n_candidates,)`.
        cost: micro-dollars to pay, counted against the budget, shape `(n_candidates,)`.
        objective: micro-dollars that count (cost, lost value, delay), shape `(n_candidates,)`.
        entry_candidate: candidate that draws, shape `(n_entries,)`.
        entry_limit: the limit it draws on, shape `(n_entries,)`.
        entry_units: how much, above 0, shape `(n_entries,)`.
        limit: units there are of each limit, shape `(n_limits,)`.
        limit_kind: `QUOTA` or `CAPACITY` of each limit, shape `(n_limits,)`.
        budget: most micro-dollars to pay in all, None without a budget.
    """

    n_jobs: int
    job: Ints
    cost: Ints
    objective: Ints
    entry_candidate: Ints = field(default_factory=_none)
    entry_limit: Ints = field(default_factory=_none)
    entry_units: Ints = field(default_factory=_none)
    limit: Ints = field(default_factory=_none)
    limit_kind: Ints = field(default_factory=_none)
    budget: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no solver may see.

        Raises:
            ModelError: arrays do not match, jobs are out of order, or a number is negative or too large.
        """
        n, m = len(self.job), len(self.entry_candidate)
        if len(self.cost) != n or len(self.objective) != n or len(self.limit_kind) != len(self.limit):
            raise ModelError("portfolio: arrays of different lengths")
        if len(self.entry_limit) != m or len(self.entry_units) != m:
            raise ModelError("portfolio: entries of different lengths")
        if n and (int(self.job[0]) < 0 or int(self.job[-1]) >= self.n_jobs or (np.diff(self.job) < 0).any()):
            raise ModelError("portfolio: candidates must be in the order of their jobs")
        for name, values in (("cost", self.cost), ("objective", self.objective), ("limit", self.limit)):
            if len(values) and int(values.min()) < 0:
                raise ModelError(f"portfolio: a {name} is below 0")
        if m and int(self.entry_units.min()) <= 0:
            raise ModelError("portfolio: an entry draws 0 or less")
        worst = float(np.max(self.cost, initial=0)) + float(np.max(self.objective, initial=0))
        if worst * max(self.n_jobs, 1) >= MOST:
            raise ModelError("portfolio: costs are too large to be summed exactly; use a larger money unit")

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.job)

    @property
    def over_budget(self) -> bool:
        """Whether the jobs at their cheapest cost more than the budget, whatever the limits: then nothing fits."""
        return self.budget is not None and self.n_candidates > 0 and self.least_cost > self.budget

    @property
    def least_cost(self) -> int:
        """What the jobs cost at their cheapest, whatever the limits; each job has a candidate."""
        jobs = np.flatnonzero(np.diff(self.job, prepend=-1))
        return int(np.minimum.reduceat(self.cost, jobs).sum())

    def first_of_job(self) -> Ints:
        """Where each job's candidates start, and the end of the last, shape `(n_jobs + 1,)`."""
        return np.searchsorted(self.job, np.arange(self.n_jobs + 1)).astype(np.int64)

    def used(self, picks: Ints) -> Ints:
        """Units drawn of each limit by the candidates `picks` (one per job), shape `(n_limits,)`."""
        chosen = np.zeros(self.n_candidates, dtype=np.bool_)
        chosen[picks] = True
        inside = chosen[self.entry_candidate]
        total = np.zeros(len(self.limit), dtype=np.int64)
        np.add.at(total, self.entry_limit[inside], self.entry_units[inside])
        return total

    def faults(self, picks: Ints) -> list[str]:
        """Say what is wrong with `picks` as a plan, in exact arithmetic; empty when nothing is."""
        if len(picks) != self.n_jobs or (self.job[picks] != np.arange(self.n_jobs)).any():
            return ["not one candidate per job"]
        over = np.flatnonzero(self.used(picks) > self.limit)
        faults = [f"limit {at} is exceeded" for at in over.tolist()]
        if self.budget is not None and int(self.cost[picks].sum()) > self.budget:
            faults.append("the budget is exceeded")
        return faults
