"""Copies of a job in one model: how many of them run in each way, instead of which of them does.

Copies have the same candidates, so plans that only exchange what they do are one. A model of each copy has all of them
and must rule them out one by one; in a model of counts they are a single point, and every plan is still there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Ints, count_distinct, distinct_values
from solvers.problem.presolve import part_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from planner.portfolios.table import CandidateTable
    from solvers.problem.milp import Milp

_SAME = (
    "source", "row", "way", "nodes", "units", "pool", "start_hours", "hours", "cost_micro_usd", "counted_micro_usd",
)  # fmt: skip


class Copies:
    """Jobs with the same candidates, each kind led by its first.

    Attributes:
        leader: first job with the same candidates, shape `(n_jobs,)`.
    """

    def __init__(self, table: CandidateTable, kinds: Sequence[int], keep: Ints) -> None:
        """Find them.

        Args:
            table: of the candidates.
            kinds: entry of the file of each job; jobs of other entries are no copies.
            keep: candidates of the model, ascending and so by job.
        """
        self._keep, self._job = keep, table.job[keep]
        self._first = np.searchsorted(self._job, np.arange(len(kinds) + 1))
        columns = [getattr(table, name)[keep] for name in _SAME]
        self.leader: Ints = np.arange(len(kinds))
        leaders: dict[int, int] = {}
        for job, kind in enumerate(kinds):
            lead = leaders.setdefault(kind, job)
            own, other = (slice(self._first[one], self._first[one + 1]) for one in (job, lead))
            if all(np.array_equal(column[own], column[other]) for column in columns):
                self.leader[job] = lead

    @property
    def led(self) -> Bools:
        """Whether each candidate of the model is one of a leader, shape `(n,)`."""
        return np.asarray(self.leader[self._job] == self._job)

    def model(self, problem: Milp) -> Milp:
        """The model of a portfolio over the candidates of leaders alone, whose columns count copies."""
        count = np.bincount(self.leader, minlength=len(self.leader)).astype(np.float64)
        choice = problem.row_block("choice")
        assert choice is not None
        rows = np.ones(problem.n_rows, dtype=np.bool_)
        rows[choice.start + np.flatnonzero(count == 0)] = False
        upper, row_lo, row_hi = count[self._job], problem.row_lo.copy(), problem.row_hi.copy()
        row_lo[choice.indices] = row_hi[choice.indices] = count
        counted = replace(problem, ub=upper, row_lo=row_lo, row_hi=row_hi)
        return part_of(counted, self.led, rows)

    def point(self, picks: Ints, keys: Ints) -> dict[Hashable, float]:
        """A choice, one candidate per job, as a point of the model.

        Args:
            picks: numbers of candidates, shape `(n_jobs,)`.
            keys: key of each candidate of the model, shape `(n,)`.
        """
        at = np.searchsorted(self._keep, picks)
        led = at - self._first[:-1] + self._first[self.leader]
        numbers, counts = count_distinct(led)
        return dict(zip(keys[numbers].tolist(), counts.astype(np.float64).tolist(), strict=True))

    def picks(self, point: Mapping[Hashable, float], keys: Ints) -> Ints:
        """The choice of a point: copies take its candidates in the order of jobs.

        Args:
            point: a value per key.
            keys: as for `point`.
        """
        amounts = np.array([round(point.get(key, 0.0)) for key in keys.tolist()])
        amounts[~self.led] = 0
        out = np.full(len(self.leader), -1, dtype=np.int64)
        for lead in distinct_values(self.leader).tolist():
            own = np.arange(self._first[lead], self._first[lead + 1])
            taken = np.repeat(own - self._first[lead], amounts[own])
            jobs = np.flatnonzero(self.leader == lead)
            out[jobs] = self._keep[self._first[jobs] + taken]
        return out


def for_all_copies(near: Bools, table: CandidateTable, kinds: Sequence[int]) -> Bools:
    """The candidates `near` of any copy, for all copies of its job, shape of `near`."""
    copies = Copies(table, kinds, np.arange(len(table)))
    first = np.searchsorted(table.job, np.arange(len(kinds) + 1))
    led = np.arange(len(table)) - first[table.job] + first[copies.leader[table.job]]
    wanted = np.zeros(len(table), dtype=np.bool_)
    wanted[led[near]] = True
    return np.asarray(wanted[led], dtype=np.bool_)
