"""All candidates of a portfolio, job by job, and the report of what each job's filters left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError
from planner.inputs.checks import end_moment, start_moment
from planner.inputs.load import decode, read_limited
from planner.inputs.portfolio_load import MAX_CSV_BYTES, LoadedPortfolio
from planner.portfolios.candidates import WorkloadCandidates
from planner.portfolios.declared_quotas import check_quotas, type_amounts, unused_quotas
from planner.portfolios.question import Question, Windows, build_question
from planner.portfolios.reduce import fits_limits
from planner.portfolios.shared_limits import MICRO
from planner.portfolios.sized import SizedCandidates, SizedTable, sized_from_csv, sized_from_yaml
from planner.portfolios.table import CandidateTable, Way, Ways, concat_tables, left_out

if TYPE_CHECKING:
    from catalogs.model import Catalog
    from planner.inputs.portfolio_schema import PortfolioJob
    from planner.job.answer import Options
    from planner.plan.filters import FilterReport


# Filters as a sentence about a job says them; the others by their name.
REASONS = {
    "deadline": "after the deadline",
    "confidence": "too unsure to meet the deadline",
    "memory": "short of memory",
    "capacity": "above what an offer holds",
    "max_nodes": "above max_nodes",
    "quota": "above the workload's quota",
    "budget": "above the workload's budget",
    "shared_limit": "alone above a shared limit",
}


@dataclass(frozen=True)
class JobReport:
    """What the filters left of one job's candidates, before any solver.

    Attributes:
        name: the job.
        copies: equal jobs of this kind.
        total: candidates looked at.
        passed: candidates that meet the job's own limits.
        removed: (why, how many), most first; a candidate may be counted under several reasons.
    """

    name: str
    copies: int
    total: int
    passed: int
    removed: tuple[tuple[str, int], ...]

    def sentence(self) -> str:
        """One line for people."""
        why = ", ".join(f"{count:,} {REASONS.get(name, name)}" for name, count in self.removed[:4])
        return f"{self.name}: {self.passed:,} of {self.total:,} candidates" + (f": {why}" if why else "")


@dataclass(frozen=True, eq=False)
class Gathered:
    """The question with what its numbers mean.

    Attributes:
        question: all candidates, late ones included.
        ways: ways to buy by number.
        jobs: name of each job (copies are numbered).
        kinds: index of each job's entry in the file.
        reports: per entry of the file.
        start: the portfolio's start.
        windows: time windows.
        notes: what the reader should know.
    """

    question: Question
    ways: tuple[Way, ...]
    jobs: tuple[str, ...]
    kinds: tuple[int, ...]
    reports: tuple[JobReport, ...]
    start: datetime
    windows: Windows
    notes: tuple[str, ...]


def gather(
    loaded: LoadedPortfolio,
    catalog: Callable[[], Catalog],
    options: Options,
    *,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Gathered:
    """Build the candidates of all jobs.

    Args:
        loaded: the portfolio.
        catalog: gives the catalog; asked only when a job is a workload.
        options: moment and flags of `optimize`.
        progress: told (jobs done, jobs in all).

    Raises:
        InputError: a job or a file is wrong.
    """
    from catalogs.tariffs import load_tariffs

    portfolio = loaded.portfolio
    start = options.now if portfolio.start is None else start_moment(portfolio.start)
    windows = _windows(loaded, start)
    ways = Ways()
    tariffs = load_tariffs()
    sized = SizedCandidates(portfolio.commitments, tariffs, ways, type_amounts(portfolio, catalog))
    inside, outside = _sized_tables(loaded)
    whole = any(item is not None for item in loaded.workloads)
    made = WorkloadCandidates(catalog(), options, portfolio, ways) if whole else None
    found = _Collected()
    known: dict[tuple[object, ...], tuple[CandidateTable, FilterReport]] = {}
    for job, workload in zip(loaded.jobs, loaded.workloads, strict=True):
        tables, counts = [], []
        for begin in _starts(portfolio.starts, job, start, windows):
            if workload is None:
                tables.append(_sized(sized, inside, outside, job, begin, start))
                continue
            assert made is not None
            limit = _moment(job)
            key = (workload.sha256, begin, limit, job.delay_usd_per_hour)
            if key not in known:
                known[key] = made.build(workload, begin, limit, start, job.delay_usd_per_hour)
            tables.append(known[key][0])
            counts.append(known[key][1])
        found.add(job, tables, counts)
        progress(len(found.reports), len(loaded.jobs))
    check_quotas(loaded, ways, [] if made is None else made.contexts, catalog, tariffs)
    return _gathered(loaded, found, ways, start, windows, sized.unknown_transfers)


class _Collected:
    """Candidates and reports of the jobs so far; copies of a job are jobs."""

    def __init__(self) -> None:
        self.parts: list[CandidateTable] = []
        self.jobs: list[str] = []
        self.kinds: list[int] = []
        self.reports: list[JobReport] = []

    def add(self, job: PortfolioJob, tables: list[CandidateTable], counts: list[FilterReport]) -> None:
        for copy in range(job.count):
            number = len(self.jobs)
            self.parts += [table.for_job(number) for table in tables]
            if job.value_usd is not None and not job.must_run:
                self.parts.append(left_out(number, int(job.value_usd * MICRO)))
            self.jobs.append(job.name if job.count == 1 else f"{job.name}#{copy + 1}")
            self.kinds.append(len(self.reports))
        self.reports.append(_report(job, tables, counts))


def _gathered(
    loaded: LoadedPortfolio,
    found: _Collected,
    ways: Ways,
    start: datetime,
    windows: Windows,
    unknown: set[str],
) -> Gathered:
    """Write the shared limits over all candidates."""
    portfolio = loaded.portfolio
    busy = [
        np.inf if item.busy_until is None else _hours(start_moment(item.busy_until), start)
        for item in portfolio.commitments
    ]
    table = concat_tables(found.parts)
    question = build_question(portfolio, table, ways, len(found.jobs), windows, busy)
    reports = _with_shared_limits(found.reports, found.kinds, question)
    notes = tuple(f"transfer price unknown, dearest used: {item}" for item in sorted(unknown))
    return Gathered(
        question, tuple(ways.all), tuple(found.jobs), tuple(found.kinds), tuple(reports), start, windows,
        (*notes, *unused_quotas(loaded, ways)),
    )  # fmt: skip


def _windows(loaded: LoadedPortfolio, start: datetime) -> Windows:
    given = loaded.portfolio.windows
    if not given:
        return Windows(("",), np.zeros(1))
    return Windows(
        tuple(window.name for window in given),
        np.array([_hours(start_moment(window.start), start) for window in given]),
    )


def _hours(moment: datetime, start: datetime) -> float:
    return (moment - start).total_seconds() / 3600.0


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
        from planner.inputs.faults import near

        close = near(strangers[0], names)
        hint = f" (did you mean '{close}'?)" if close else ""
        raise InputError(f"{file}: candidates of a job that is not listed: '{strangers[0]}'{hint}")
    return inside, outside


def _starts(rule: str, job: PortfolioJob, start: datetime, windows: Windows) -> Iterator[datetime]:
    """Moments at which `job` may start: as early as it can, and by the rule with each later window."""
    first = start if job.earliest_start is None else max(start, start_moment(job.earliest_start))
    yield first
    if rule == "windows":
        for hours in windows.starts.tolist():
            moment = start + timedelta(hours=hours)
            if moment > first:
                yield moment


def _moment(job: PortfolioJob) -> datetime | timedelta | None:
    limit = job.deadline
    return limit if limit is None or isinstance(limit, timedelta) else end_moment(limit)


def _sized(
    sized: SizedCandidates,
    inside: SizedTable,
    outside: SizedTable,
    job: PortfolioJob,
    begin: datetime,
    start: datetime,
) -> CandidateTable:
    limit = _moment(job)
    if isinstance(limit, datetime):
        limit = limit - start
    hours = None if limit is None else limit.total_seconds() / 3600.0
    source = inside if job.candidates else outside
    return sized.build(
        source,
        source.rows_of(job.name),
        data=job.data,
        begin_hours=_hours(begin, start),
        deadline_hours=hours,
        delay_usd_per_hour=job.delay_usd_per_hour,
    )


def _report(job: PortfolioJob, tables: list[CandidateTable], counts: list[FilterReport]) -> JobReport:
    if counts:
        merged: dict[str, int] = {}
        for report in counts:
            for item in report.counts:
                merged[item.name] = merged.get(item.name, 0) + item.removed
        removed = tuple(sorted(merged.items(), key=lambda pair: (-pair[1], pair[0])))
        total, passed = sum(report.total for report in counts), sum(report.passed for report in counts)
        return JobReport(job.name, job.count, total, passed, removed)
    total = sum(len(table) for table in tables)
    late = sum(int((table.late_hours > 0).sum()) for table in tables)
    return JobReport(job.name, job.count, total, total - late, (("deadline", late),) if late else ())


def _with_shared_limits(reports: list[JobReport], kinds: list[int], question: Question) -> list[JobReport]:
    """The reports with the candidates in time that are alone too large for a shared limit."""
    in_time = question.table.late_hours <= 0
    large = in_time & ~fits_limits(question.numbers)
    lost = np.bincount(question.table.job[large], minlength=len(kinds))
    out = list(reports)
    for job, kind in enumerate(kinds):
        if lost[job] and ("shared_limit", int(lost[job])) not in out[kind].removed:
            found = (*out[kind].removed, ("shared_limit", int(lost[job])))
            out[kind] = replace(out[kind], removed=tuple(sorted(found, key=lambda pair: -pair[1])))
    return out
