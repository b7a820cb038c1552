"""Candidates of all jobs that were sized elsewhere, in one table: a portfolio may have 100,000 of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.errors import InputError
from planner.inputs.checks import start_moment
from planner.inputs.faults import near
from planner.inputs.load import decode, read_limited
from planner.inputs.portfolio_load import MAX_CSV_BYTES, LoadedPortfolio
from planner.portfolios.job_times import hours_after, limit_of
from planner.portfolios.sized import SizedCandidates, SizedTable, sized_from_csv, sized_from_yaml
from planner.portfolios.table import CandidateTable

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import PortfolioJob
    from planner.portfolios.question import Windows


@dataclass(frozen=True, eq=False)
class _Batch:
    """Jobs of one source, and their candidates; arrays of jobs have shape `(n_jobs,)`, those of rows `(n_rows,)`."""

    source: SizedTable
    entries: Ints
    numbers: Ints
    earliest: Floats
    deadline: Floats
    delay: Floats
    rows: Ints
    owner: Ints


class SizedJobs:
    """The jobs of a portfolio whose candidates its file or its CSV file gives."""

    def __init__(self, loaded: LoadedPortfolio, sized: SizedCandidates, start: datetime) -> None:
        """Read the candidates.

        Raises:
            InputError: a file of candidates is wrong.
        """
        self._loaded, self._sized, self._start = loaded, sized, start
        self._inside, self._outside = _sized_tables(loaded)
        self._asked: list[tuple[int, int]] = []

    def add(self, entry: int, number: int) -> None:
        """Let `entry` of the file be asked for, its first copy as job `number`; ways are numbered in this order."""
        job = self._loaded.jobs[entry]
        source = self._source(job)
        self._sized.number_ways(source, source.rows_of(job.name))
        self._asked += [(entry, number + copy) for copy in range(job.count)]

    def candidates_of(self, entry: int, begin: datetime) -> CandidateTable:
        """Candidates of one entry that starts at `begin`, as job 0, late ones included."""
        job = self._loaded.jobs[entry]
        source = self._source(job)
        self._sized.number_ways(source, source.rows_of(job.name))
        batch = self._batch(source, [(entry, 0)])
        return self._table(batch, np.full(len(batch.rows), hours_after(begin, self._start)))

    def gather(
        self, later: Windows | None, kept: Callable[[CandidateTable], CandidateTable]
    ) -> tuple[list[CandidateTable], dict[int, tuple[int, int]]]:
        """Candidates of all that was added, and by entry how many there are and how many of them end late.

        Args:
            later: moments at which jobs may start too; None: at the earliest only.
            kept: which of the candidates that start later are taken.
        """
        tables: list[CandidateTable] = []
        counts: dict[int, tuple[int, int]] = {}
        for source in (self._inside, self._outside):
            own = [pair for pair in self._asked if self._source(self._loaded.jobs[pair[0]]) is source]
            if not own:
                continue
            batch = self._batch(source, own)
            by_start = [self._table(batch, batch.earliest[batch.owner])]
            by_start += [kept(table) for table in self._later(batch, later)]
            counts |= self._counts(batch, by_start)
            tables += by_start
        self._asked = []
        return tables, counts

    def _later(self, batch: _Batch, later: Windows | None) -> Iterator[CandidateTable]:
        for hours in [] if later is None else later.starts.tolist():
            begin = hours_after(
                self._start + timedelta(hours=hours), self._start
            )  # a moment has whole microseconds
            able = (begin > batch.earliest) & (begin < batch.deadline)
            rows = np.flatnonzero(able[batch.owner])
            if len(rows):
                yield self._table(batch, np.full(len(rows), begin), rows)

    def _counts(self, batch: _Batch, tables: list[CandidateTable]) -> dict[int, tuple[int, int]]:
        """By entry, of one of its copies, the candidates in all and those that end late."""
        top = int(batch.numbers.max()) + 1
        total, late = np.zeros(top, dtype=np.int64), np.zeros(top, dtype=np.int64)
        for table in tables:
            total += np.bincount(table.job, minlength=top)
            late += np.bincount(table.job[table.late_hours > 0], minlength=top)
        pairs = zip(
            batch.entries.tolist(), total[batch.numbers].tolist(), late[batch.numbers].tolist(), strict=True
        )
        return {entry: (both, behind) for entry, both, behind in pairs}

    def _source(self, job: PortfolioJob) -> SizedTable:
        return self._inside if job.candidates else self._outside

    def _batch(self, source: SizedTable, asked: list[tuple[int, int]]) -> _Batch:
        jobs = [self._loaded.jobs[entry] for entry, _ in asked]
        rows = [source.rows_of(job.name) for job in jobs]
        return _Batch(
            source,
            np.array([entry for entry, _ in asked], dtype=np.int64),
            np.array([number for _, number in asked], dtype=np.int64),
            np.array([self._earliest(job) for job in jobs]),
            np.array([self._deadline(job) for job in jobs]),
            np.array([job.delay_usd_per_hour for job in jobs], dtype=np.float64),
            np.concatenate(rows),
            np.repeat(np.arange(len(jobs)), [len(own) for own in rows]),
        )

    def _earliest(self, job: PortfolioJob) -> float:
        if job.earliest_start is None:
            return 0.0
        return max(hours_after(start_moment(job.earliest_start), self._start), 0.0)

    def _deadline(self, job: PortfolioJob) -> float:
        limit = limit_of(job, None, self._start)
        return np.inf if limit is None else hours_after(limit, self._start)

    def _table(self, batch: _Batch, begin_hours: Floats, at: Ints | None = None) -> CandidateTable:
        rows, owner = (batch.rows, batch.owner) if at is None else (batch.rows[at], batch.owner[at])
        jobs = self._loaded.jobs
        entries = batch.entries[owner]
        moved = any(jobs[entry].data is not None for entry in batch.entries.tolist())
        return self._sized.build(
            batch.source,
            rows,
            job=batch.numbers[owner],
            data=[jobs[entry].data for entry in entries.tolist()] if moved else None,
            begin_hours=begin_hours,
            deadline_hours=batch.deadline[owner],
            delay_usd_per_hour=batch.delay[owner],
        )


def check_candidates(loaded: LoadedPortfolio) -> None:
    """Read the file of sized candidates, where the portfolio names one, for its errors alone.

    Raises:
        InputError: it cannot be read, or is not valid; names the line.
    """
    _sized_tables(loaded)


def _sized_tables(loaded: LoadedPortfolio) -> tuple[SizedTable, SizedTable]:
    listed = [(job.name, candidate) for job in loaded.jobs for candidate in job.candidates]
    inside = sized_from_yaml(listed)
    name = loaded.portfolio.candidates_csv
    if name is None:
        return inside, sized_from_yaml([])
    file = loaded.beside(name)
    outside = sized_from_csv(file, decode(read_limited(file, MAX_CSV_BYTES), str(file)))
    names = {job.name for job in loaded.jobs}
    strangers = sorted(outside.jobs - names)
    if strangers:
        close = near(strangers[0], names)
        hint = f" (did you mean '{close}'?)" if close else ""
        raise InputError(f"{file}: candidates of a job that is not listed: {strangers[0]!r}{hint}")
    return inside, outside
