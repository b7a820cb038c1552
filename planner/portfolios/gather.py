"""All candidates of a portfolio, job by job, and the report of what each job's filters left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from catalogs.tariffs import load_tariffs
from planner.inputs.checks import start_moment
from planner.inputs.portfolio_load import LoadedPortfolio
from planner.market.place_names import check_portfolio_places
from planner.portfolios.candidates import Built, WorkloadCandidates
from planner.portfolios.declared_quotas import check_quotas, commitment_notes, type_amounts, unused_quotas
from planner.portfolios.job_report import SHARED_LIMIT, JobReport
from planner.portfolios.job_times import end_hours, groups_of, hours_after, limit_of, starts_of, windows_of
from planner.portfolios.list_plan import GIVEN
from planner.portfolios.own_machines import own_machines
from planner.portfolios.question import Question, Windows, build_question
from planner.portfolios.reduce import fits_limits
from planner.portfolios.shared_limits import MICRO
from planner.portfolios.sized import SizedCandidates
from planner.portfolios.sized_jobs import SizedJobs
from planner.portfolios.table import CandidateTable, Way, Ways, concat_tables, left_out

if TYPE_CHECKING:
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.candidates.filters import FilterReport
    from planner.candidates.plan_parts.bought import Source
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.portfolio_schema import PortfolioJob, SharedCommitment
    from planner.portfolios.sequencing import Later


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
        sources: where candidates of workloads are described in full.
        whole_usd: per entry of the file: no candidate of at most this cost is missing of those that `optimize`
            searches; infinity where all were given.
        follows: whether jobs may start later than at once, when others end.
        declared: commitments of the portfolio; pools from there on are machines of the workloads' files.
    """

    question: Question
    ways: tuple[Way, ...]
    jobs: tuple[str, ...]
    kinds: tuple[int, ...]
    reports: tuple[JobReport, ...]
    start: datetime
    windows: Windows
    notes: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    whole_usd: tuple[float, ...] = ()
    follows: bool = False
    declared: int = 0


def opened(
    used: list[Catalog],
    catalog: Callable[[], Catalog] | None,
    planning: Options,
    catalog_dir: Path | None = None,
) -> Callable[[], Catalog]:
    """What opens the prices of a portfolio when a first job needs them, and notes in `used` that one did.

    Args:
        used: is given the catalog.
        catalog: gives the prices; by default the snapshot of `catalog_dir`, or the newest, on the day asked for.
        planning: the day.
        catalog_dir: snapshot directory.
    """

    def load() -> Catalog:
        from catalogs.store.load import load_catalog

        return load_catalog(catalog_dir, as_of=planning.as_of)

    def open_catalog() -> Catalog:
        used.append(load() if catalog is None else catalog())
        return used[0]

    return open_catalog


class Gatherer:
    """Gathers the candidates of a portfolio, again with more of them where the answer needs more.

    Attributes:
        up_to_usd: per entry of the file, the cost up to which every candidate is wanted.
        own: machines of the workloads' files, which jobs share.
        group: of each entry, the number of those whose candidates are built together, as `groups_of` gives it.
        once_s: CPU seconds that gathering took at first, as whoever has little time notes it: more may take as long.
    """

    def __init__(
        self,
        loaded: LoadedPortfolio,
        catalog: Callable[[], Catalog],
        options: Options,
        *,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> None:
        """Take what to gather from.

        Args:
            loaded: the portfolio.
            catalog: gives the catalog; asked only when a job is a workload.
            options: moment and flags of `optimize`.
            progress: told (jobs done, jobs in all).

        Raises:
            InputError: a file of candidates is wrong.
        """
        check_portfolio_places(loaded)
        self._loaded, self._progress = loaded, progress
        portfolio = loaded.portfolio
        self._start = options.now if portfolio.start is None else start_moment(portfolio.start)
        self._windows = windows_of(loaded, self._start)
        self._ways, self._tariffs, self._catalog = Ways(), load_tariffs(), catalog
        amounts = type_amounts(portfolio, catalog)
        self._sized = SizedCandidates(portfolio.commitments, self._tariffs, self._ways, amounts)
        self._sized_jobs = SizedJobs(loaded, self._sized, self._start)
        self.own = own_machines(loaded)
        whole = any(item is not None for item in loaded.workloads)
        self._made = (
            WorkloadCandidates(catalog(), options, portfolio, self._ways, self.own) if whole else None
        )
        self._known: dict[tuple[object, ...], Built] = {}
        self.group = groups_of(loaded, self._start)
        self.up_to_usd, self.once_s = [-np.inf] * len(loaded.jobs), 0.0
        self._later: Later | None = None

    def let_follow(self, later: Later) -> None:
        """Gather candidates that start later, too, where they draw on what is scarce; there are no windows."""
        moments = [self._start + timedelta(hours=hours) for hours in later.hours.tolist()]
        self._later = later
        self._windows = Windows(tuple(f"{moment:%Y-%m-%d %H:%M}" for moment in moments), later.hours)

    def widen_for_risk(self, up_to_usd: dict[int, float]) -> None:
        """Gather candidates up to these costs by entry of the file, those too that others replace at less cost."""
        for entry, usd in up_to_usd.items():
            self.up_to_usd[entry] = usd
        if self._made is not None:
            self._made.for_risk = True
        self._known.clear()

    def time_late(self) -> None:
        """Gather late candidates with the hours by which they are late, which matter where limits must give way."""
        if self._made is None or self._made.times_late:
            return
        self._made.times_late = True
        # later starts of jobs that follow others are only gathered in time; those of windows may be late
        firsts = {self._start + timedelta(hours=hours) for hours in self.first_starts()}
        kept = () if self._later is None else self._known.items()
        self._known = {key: built for key, built in kept if key[1] not in firsts}

    def first_starts(self) -> list[float]:
        """The earliest start of each entry of the file, hours."""
        return [
            hours_after(next(starts_of("earliest", job, self._start, self._windows)), self._start)
            for job in self._loaded.jobs
        ]

    def _waits(self, group: int) -> Windows:
        """The windows with which jobs of a group may start, too."""
        if self._later is None:
            return self._windows
        return Windows((), self._later.of_group.get(group, np.zeros(0)))

    def gather(self) -> Gathered:
        """Build the candidates of all jobs.

        Raises:
            InputError: a job or a file is wrong.
        """
        collected = _Collected()
        rule = self._loaded.portfolio.starts if self._later is None else "windows"
        for entry, (job, workload) in enumerate(zip(self._loaded.jobs, self._loaded.workloads, strict=True)):
            if workload is None:
                self._sized_jobs.add(entry, len(collected.jobs))
                collected.add(job, [], [])
            else:
                collected.add(job, *self._from_workload(entry, rule))
            self._progress(len(collected.reports), len(self._loaded.jobs))
        waits = self._waits(GIVEN) if rule == "windows" else None
        tables, counts = self._sized_jobs.gather(waits, self._scarce)
        collected.add_sized(self._loaded.jobs, tables, counts)
        self.check_limits()
        sources, unknown = tuple(self.sources), self._sized.unknown_transfers
        gathered = _gathered(
            self._loaded, self.own, collected, self._ways, self._start, self._windows, unknown, sources
        )
        notes = gathered.notes if self._later is None else (*gathered.notes, self._later.note())
        return replace(gathered, notes=notes, follows=self._later is not None)

    def _from_workload(self, entry: int, rule: str) -> tuple[list[CandidateTable], list[Built]]:
        """Candidates of a job that is a workload, a table per start."""
        job, workload, up_to = self._loaded.jobs[entry], self._loaded.workloads[entry], self.up_to_usd[entry]
        assert workload is not None
        tables, built, limit = list[CandidateTable](), list[Built](), limit_of(job, workload, self._start)
        for begin in starts_of(rule, job, self._start, self._waits(self.group[entry])):
            if tables and limit is not None and begin >= limit:
                break
            one = self._build(job, workload, begin, limit, up_to, self._later if tables else None)
            if self._later is None or not tables:
                built.append(one)
            tables.append(self._scarce(one.table) if tables else one.table)
        return tables, built

    @property
    def ways(self) -> Ways:
        """Ways to buy seen so far."""
        return self._ways

    @property
    def sources(self) -> list[Source]:
        """Where candidates of workloads gathered so far are described in full."""
        return [] if self._made is None else self._made.sources

    @property
    def start(self) -> datetime:
        """The portfolio's start."""
        return self._start

    def limit_hours(self, entry: int) -> float | None:
        """Hours after the portfolio's start by which an entry of the file must have ended; None without a deadline."""
        limit = limit_of(self._loaded.jobs[entry], self._loaded.workloads[entry], self._start)
        return None if limit is None else hours_after(limit, self._start)

    def limits_hours(self, entries: Sequence[int]) -> Floats:
        """The same of each job by its entry of the file, infinity without a deadline, shape `(n_jobs,)`."""
        limits = [self.limit_hours(entry) for entry in range(len(self._loaded.jobs))]
        return np.array([np.inf if one is None else one for one in limits])[list(entries)]

    def candidates_of(self, entry: int, begin: datetime) -> CandidateTable:
        """Candidates of one entry of the file that starts at `begin`, as job 0, late ones included.

        Raises:
            InputError: the job is wrong.
        """
        job, workload = self._loaded.jobs[entry], self._loaded.workloads[entry]
        if workload is None:
            return self._sized_jobs.candidates_of(entry, begin)
        limit = limit_of(job, workload, self._start)
        return self._build(job, workload, begin, limit, self.up_to_usd[entry]).table

    def check_limits(self) -> None:
        """Refuse quotas that match nothing among the candidates gathered so far.

        Raises:
            InputError: every such quota with its place.
        """
        contexts = [] if self._made is None else self._made.contexts
        check_quotas(self._loaded, self._ways, contexts, self._catalog, self._tariffs)

    def _scarce(self, table: CandidateTable) -> CandidateTable:
        """Of candidates that start later, those in time that draw on what is scarce; all where windows are declared."""
        if self._later is None:
            return table
        draws = self._ways.draws(self._loaded.portfolio.quota)
        return table.take(self._later.concerns(table, draws) & (table.late_hours <= 0))

    def _build(
        self,
        job: PortfolioJob,
        workload: LoadedWorkload,
        begin: datetime,
        limit: datetime | None,
        up_to: float,
        scarce: Later | None = None,
    ) -> Built:
        """Candidates of a job and start; equal jobs share them, and a wider set serves a narrower wish."""
        assert self._made is not None
        key = (workload.sha256, begin, limit, job.delay_usd_per_hour, scarce is None)
        known = self._known.get(key)
        if known is None or known.whole_usd < up_to:
            delay = job.delay_usd_per_hour
            known = self._made.build(workload, begin, limit, self._start, delay, up_to, scarce=scarce)
            self._known[key] = known
        return known


class _Collected:
    """Candidates and reports of the jobs so far; copies of a job are jobs."""

    def __init__(self) -> None:
        self.parts: list[CandidateTable] = []
        self.jobs: list[str] = []
        self.kinds: list[int] = []
        self.reports: list[JobReport] = []
        self.whole_usd: list[float] = []
        self._values: list[tuple[int, int]] = []

    def add(self, job: PortfolioJob, tables: list[CandidateTable], built: list[Built]) -> None:
        for copy in range(job.count):
            number = len(self.jobs)
            self.parts += [table.for_job(number) for table in tables]
            if job.value_usd is not None and not job.must_run:
                self._values.append((number, int(job.value_usd * MICRO)))
            self.jobs.append(job.name if job.count == 1 else f"{job.name}#{copy + 1}")
            self.kinds.append(len(self.reports))
        self.reports.append(_report(job, [item.report for item in built]))
        self.whole_usd.append(min((item.whole_usd for item in built), default=np.inf))

    def add_sized(
        self,
        jobs: Sequence[PortfolioJob],
        tables: list[CandidateTable],
        counts: Mapping[int, tuple[int, int]],
    ) -> None:
        """Add the candidates of jobs that were sized elsewhere, counted by entry of the file, and of jobs left out."""
        self.parts += tables
        for entry, (total, late) in counts.items():
            removed = (("deadline", late),) if late else ()
            self.reports[entry] = JobReport(jobs[entry].name, jobs[entry].count, total, total - late, removed)
        if self._values:
            self.parts.append(left_out(*np.array(self._values, dtype=np.int64).T))


def _gathered(
    loaded: LoadedPortfolio,
    shared_commitments: tuple[SharedCommitment, ...],
    collected: _Collected,
    ways: Ways,
    start: datetime,
    windows: Windows,
    unknown: set[str],
    sources: tuple[Source, ...],
) -> Gathered:
    """Write the shared limits over all candidates."""
    portfolio = loaded.portfolio
    busy = [
        np.inf if item.busy_until is None else hours_after(start_moment(item.busy_until), start)
        for item in (*portfolio.commitments, *shared_commitments)
    ]
    table = concat_tables(collected.parts)
    question = build_question(
        portfolio, shared_commitments, table, ways, len(collected.jobs), windows, busy,
        [end_hours(item, start) for item in (*portfolio.commitments, *shared_commitments)],
    )  # fmt: skip
    reports = _with_shared_limits(collected.reports, collected.kinds, question)
    notes = tuple(f"transfer price unknown, highest known assumed: {item}" for item in sorted(unknown))
    notes += (
        *_set_aside(loaded),
        *unused_quotas(loaded, ways),
        *commitment_notes(portfolio, table, ways.all, start),
    )
    return Gathered(
        question, tuple(ways.all), tuple(collected.jobs), tuple(collected.kinds), tuple(reports), start, windows,
        notes, sources, tuple(collected.whole_usd),
        declared=len(portfolio.commitments),
    )  # fmt: skip


def _set_aside(loaded: LoadedPortfolio) -> Iterator[str]:
    """What workloads say that the portfolio decides."""
    for job, workload in zip(loaded.jobs, loaded.workloads, strict=True):
        if workload is not None and workload.workload.commitments:
            yield f"{job.name}: the commitments of its workload are not used; list them under the portfolio's"


def _report(job: PortfolioJob, counts: list[FilterReport]) -> JobReport:
    merged: dict[str, int] = {}
    for report in counts:
        for item in report.counts:
            merged[item.name] = merged.get(item.name, 0) + item.removed
    removed = tuple(sorted(merged.items(), key=lambda pair: (-pair[1], pair[0])))
    total, passed = sum(report.total for report in counts), sum(report.passed for report in counts)
    return JobReport(job.name, job.count, total, passed, removed)


def _with_shared_limits(reports: list[JobReport], kinds: list[int], question: Question) -> list[JobReport]:
    """The reports with the candidates in time that are alone too large for a shared limit."""
    in_time = question.table.late_hours <= 0
    large = in_time & ~fits_limits(question.numbers)
    lost = np.bincount(question.table.job[large], minlength=len(kinds))
    out = list(reports)
    for job, kind in enumerate(kinds):
        if lost[job] and (SHARED_LIMIT, int(lost[job])) not in out[kind].removed:
            found = (*out[kind].removed, (SHARED_LIMIT, int(lost[job])))
            out[kind] = replace(out[kind], removed=tuple(sorted(found, key=lambda pair: -pair[1])))
    return out
