"""Cover cuts: what a shared limit rules out for whole choices but its linear relaxation allows.

If one candidate each of some jobs (a *cover* C) together exceed a limit, at most |C| - 1 of them are chosen. The same
holds for every candidate of a job of C that draws at least as much as the one in C, and for candidates of other jobs
that draw at least as much as the largest of C (extended covers under one-per-job: Balas 1975, Johnson and Padberg
1981). Cuts are found on a small part of the portfolio, where the linear program takes hundredths of a second, and only
its prices are used: the exact bound (`planner.portfolios.bound`) counts every candidate and trusts no cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.reduce import Reduced
from solvers.problem.milp import Block, Milp

VIOLATED = 1e-3  # less is not worth a row
FRACTIONAL = 1e-6


@dataclass(frozen=True, eq=False)
class Cover:
    """sum of x over `members` (positions among the kept candidates) <= `most`."""

    members: Ints
    most: int


class Covers:
    """Finds cover cuts at fractional points of a portfolio's relaxation."""

    def __init__(self, reduced: Reduced) -> None:
        """Sort the draws by limit."""
        order = np.lexsort((reduced.entry_at, reduced.entry_row))
        self._at, self._units = reduced.entry_at[order], reduced.entry_units[order]
        rows = np.arange(len(reduced.live) + 1)
        self._starts = np.searchsorted(reduced.entry_row[order], rows)
        self._job, self._limit = reduced.job, reduced.source.limit[reduced.live]

    def violated_by(self, x: Floats) -> Iterator[Cover]:
        """At most one cut per limit that the point `x`, shape `(n_kept,)`, breaks."""
        fractional = (x > FRACTIONAL) & (x < 1 - FRACTIONAL)
        for row, limit in enumerate(self._limit.tolist()):
            own = slice(int(self._starts[row]), int(self._starts[row + 1]))
            at, units = self._at[own], self._units[own]
            if fractional[at].any():
                cover = self._cover(at, units, x[at], limit)
                if cover is not None:
                    yield cover

    def _cover(self, at: Ints, units: Ints, x: Floats, limit: int) -> Cover | None:
        used = np.flatnonzero(x > FRACTIONAL)
        for rank in (-x[used], (1 - x[used]) / units[used], -units[used] * (x[used] > 0.3) - x[used]):
            chosen = self._exceeding(used[np.argsort(rank, kind="stable")], at, units, x, limit)
            if not chosen:
                continue
            least = np.full(int(self._job[at].max()) + 1, max(int(units[k]) for k in chosen), dtype=np.int64)
            least[self._job[at[chosen]]] = units[chosen]
            members = at[units >= least[self._job[at]]]
            inside = units >= least[self._job[at]]
            if float(x[inside].sum()) > len(chosen) - 1 + VIOLATED:
                return Cover(members, len(chosen) - 1)
        return None

    def _exceeding(self, order: Ints, at: Ints, units: Ints, x: Floats, limit: int) -> list[int]:
        """Members of one job each, in `order`, until the limit is exceeded; then those not needed are dropped."""
        chosen: list[int] = []
        jobs: set[int] = set()
        total = 0
        for k in order.tolist():
            job = int(self._job[at[k]])
            if job not in jobs:
                jobs.add(job)
                chosen.append(k)
                total += int(units[k])
                if total > limit:
                    break
        if total <= limit:
            return []
        for k in sorted(chosen, key=lambda k: float(x[k])):
            if total - int(units[k]) > limit:
                chosen.remove(k)
                total -= int(units[k])
        return chosen


def with_covers(problem: Milp, columns: Ints, covers: list[Cover]) -> Milp:
    """`problem`, whose column i is the kept candidate `columns[i]` (ascending), with the cuts as rows."""
    parts = []
    for cover in covers:
        position = np.searchsorted(columns, cover.members)
        known = columns[np.minimum(position, len(columns) - 1)] == cover.members
        parts.append(np.sort(position[known]))
    sizes = [len(part) for part in parts]
    column = np.concatenate([problem.column_of_entry(), *parts])
    row = np.concatenate([problem.indices, np.repeat(problem.n_rows + np.arange(len(covers)), sizes)])
    data = np.concatenate([problem.data, np.ones(sum(sizes))])
    order = np.lexsort((row, column))
    indptr = np.zeros(problem.n_columns + 1, dtype=np.int32)
    np.cumsum(np.bincount(column, minlength=problem.n_columns), out=indptr[1:])
    most = np.array([cover.most for cover in covers], dtype=np.float64)
    return replace(
        problem, data=data[order], indices=row[order].astype(np.int32), indptr=indptr,
        row_lo=np.append(problem.row_lo, np.full(len(covers), -np.inf)), row_hi=np.append(problem.row_hi, most),
        row_blocks=(*problem.row_blocks, Block("cover", problem.n_rows, problem.n_rows + len(covers))),
    )  # fmt: skip
