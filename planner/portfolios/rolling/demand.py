"""What arrives and what is shared: the facts of a rolling plan, and each job's ways to run from the one engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.inputs.checks import end_moment, start_moment
from planner.inputs.faults import Fault
from planner.portfolios.gather import Gatherer
from planner.portfolios.job_times import hours_after
from planner.portfolios.rolling.limits import Limits
from planner.portfolios.table import CandidateTable

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import Portfolio, PortfolioJob


@dataclass(frozen=True)
class Job:
    """One job as its team submits it; hours count from the portfolio's start.

    Attributes:
        entry: its entry of the file; copies of a job are jobs.
        deadline: infinity without one.
    """

    number: int
    entry: int
    name: str
    team: str | None
    priority: int
    submitted: float
    deadline: float
    delay_usd_per_hour: float
    checkpoint_hours: float
    restart_hours: float


class Demand:
    """All jobs of a portfolio, in the order of the file; a policy asks for the ways of those that have arrived.

    Attributes:
        jobs: the jobs.
        limits: what they share.
        every_hours: from one plan to the next.
        usd_per_hour_late: what an hour after a deadline counts, at priority 0.
        start: the portfolio's start.
        gatherer: where candidates come from.
    """

    def __init__(
        self, loaded: LoadedPortfolio, catalog: Callable[[], Catalog], options: Options, every: timedelta
    ) -> None:
        """Take the portfolio.

        Raises:
            InputError: what the file asks for is not part of a rolling plan, or it is wrong.
        """
        portfolio = loaded.portfolio
        faults = list(_unsupported(portfolio, loaded.jobs))
        if faults:
            raise loaded.source.error(faults)
        self.start = options.now if portfolio.start is None else start_moment(portfolio.start)
        jobs = tuple(_dated(job, self.start) for job in loaded.jobs)
        self.loaded = replace(loaded, jobs=jobs)
        self.gatherer = Gatherer(self.loaded, catalog, options)
        self.limits = Limits(portfolio, self.gatherer.own, self.gatherer.ways, self.start)
        self.every_hours = every.total_seconds() / 3600.0
        self.usd_per_hour_late = portfolio.relaxation.usd_per_hour_late
        self._margin = 0.0 if portfolio.rolling is None else portfolio.rolling.hours_margin
        self._known: dict[int, CandidateTable] = {}
        self.jobs = tuple(self._jobs())

    def _jobs(self) -> Iterator[Job]:
        number = 0
        for entry, job in enumerate(self.loaded.jobs):
            limit = self.gatherer.limit_hours(entry)
            assert job.earliest_start is not None
            submitted = hours_after(start_moment(job.earliest_start), self.start)
            for copy in range(job.count):
                name = job.name if job.count == 1 else f"{job.name}#{copy + 1}"
                yield Job(
                    number, entry, name, job.team, job.priority, submitted, math.inf if limit is None else limit,
                    job.delay_usd_per_hour, job.checkpoint_hours, job.restart_hours,
                )  # fmt: skip
                number += 1

    def ways(self, job: Job, now: float) -> CandidateTable:
        """Ways to run the whole of a job that has arrived, from `now` on; `late_hours` is by what a deadline asks for.

        Raises:
            InputError: the job is wrong.
        """
        if self.loaded.workloads[job.entry] is not None:
            return self.gatherer.candidates_of(job.entry, self.start + timedelta(hours=now))
        if job.entry not in self._known:
            self._known[job.entry] = self.gatherer.candidates_of(job.entry, self.start)
        return self._known[job.entry]

    def late_hours(self, job: Job, table: CandidateTable, begin: Floats | float, hours: Floats) -> Floats:
        """Hours after the deadline at which runs that take `hours` from `begin` must be expected to end.

        Args:
            job: the job.
            table: its ways, one per run; what the engine calls late at the job's own start stays late.
            begin: when they start, hours after the portfolio's start.
            hours: how long they take, shape `(n_ways,)`; the file's margin is on the hours of the whole job, also where
                only its rest is to be done, since what was done says little about how long the whole takes.
        """
        if math.isinf(job.deadline):
            return np.zeros(len(table))
        margin = 0.0 if self.loaded.workloads[job.entry] is not None else self._margin
        late = np.maximum(begin + hours + margin * table.hours - job.deadline, 0.0)
        if self.loaded.workloads[job.entry] is not None:
            late = np.maximum(late, table.late_hours)
        return np.asarray(late)


def _dated(job: PortfolioJob, start: datetime) -> PortfolioJob:
    """The job with moments in place of lengths: a deadline counts from the submission."""
    given = job.submitted
    arrives = (
        start if given is None else start + given if isinstance(given, timedelta) else start_moment(given)
    )
    begin = max(start, arrives)
    if job.earliest_start is not None:
        begin = max(begin, start_moment(job.earliest_start))
    deadline = job.deadline
    if deadline is not None:
        deadline = max(start, arrives) + deadline if isinstance(deadline, timedelta) else end_moment(deadline)
    return job.model_copy(update={"earliest_start": begin, "deadline": deadline})


def _unsupported(portfolio: Portfolio, jobs: tuple[PortfolioJob, ...]) -> Iterator[Fault]:
    """What a rolling plan does not know."""
    remedy = "a rolling plan does not know it: remove it, or plan without --rolling and `rolling`"
    if portfolio.budget_usd is not None:
        yield Fault(("budget_usd",), remedy)
    if portfolio.windows:
        yield Fault(("windows",), remedy)
    teams = [(("teams", name, "quota"), team.quota) for name, team in portfolio.teams.items()]
    for path, quotas in ((("quota",), portfolio.quota), *teams):
        for at, quota in enumerate(quotas):
            if quota.window is not None:
                yield Fault((*path, at, "window"), remedy)
    for at, job in enumerate(jobs):
        if job.value_usd is not None:
            place = ("jobs", at, "value_usd") if at < len(portfolio.jobs) else ("jobs_csv",)
            yield Fault(place, f"job {job.name!r} has a value_usd: {remedy}")
