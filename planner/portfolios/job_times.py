"""When jobs of a portfolio may start and must have ended."""

from __future__ import annotations

import math
import shlex
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.inputs.checks import end_moment, start_moment
from planner.inputs.faults import Fault
from planner.portfolios.list_plan import GIVEN, Busy
from planner.portfolios.question import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.inputs.load import LoadedWorkload
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import PortfolioJob, SharedCommitment
    from planner.portfolios.table import CandidateTable


def windows_of(loaded: LoadedPortfolio, start: datetime) -> Windows:
    """The windows that a portfolio declares, or one without an end."""
    given = loaded.portfolio.windows
    if not given:
        return Windows(("",), np.zeros(1))
    return Windows(
        tuple(window.name for window in given),
        np.array([hours_after(start_moment(window.start), start) for window in given]),
    )


def hours_after(moment: datetime, start: datetime) -> float:
    """Hours from `start` to `moment`."""
    return (moment - start).total_seconds() / 3600.0


def end_hours(commitment: SharedCommitment, start: datetime) -> float:
    """Hours from `start` to the end of a commitment, infinity where it does not end."""
    return math.inf if commitment.expires is None else hours_after(end_moment(commitment.expires), start)


def busy_nodes(pools: Sequence[SharedCommitment], start: datetime) -> dict[int, Busy]:
    """Nodes that come free later, by number of the commitment."""
    return {
        number: (hours_after(start_moment(pool.busy_until), start), pool.busy_nodes)
        for number, pool in enumerate(pools)
        if pool.busy_until is not None
    }


def starts_of(rule: str, job: PortfolioJob, start: datetime, windows: Windows) -> Iterator[datetime]:
    """Moments at which `job` may start: as early as it can, and by the rule with each later window."""
    first = start if job.earliest_start is None else max(start, start_moment(job.earliest_start))
    yield first
    if rule == "windows":
        for hours in windows.starts.tolist():
            moment = start + timedelta(hours=hours)
            if moment > first:
                yield moment


def limit_of(job: PortfolioJob, workload: LoadedWorkload | None, start: datetime) -> datetime | None:
    """When a job must have ended, whenever it starts: its own deadline, else its workload's.

    A length counts from the portfolio's start in a job, and from the job's earliest start in a workload.
    """
    if job.deadline is not None:
        return start + job.deadline if isinstance(job.deadline, timedelta) else end_moment(job.deadline)
    given = None if workload is None else workload.workload.constraints.deadline
    if not isinstance(given, timedelta):
        return None if given is None else end_moment(given)
    return given + (start if job.earliest_start is None else max(start, start_moment(job.earliest_start)))


def groups_of(loaded: LoadedPortfolio, start: datetime) -> list[int]:
    """Of each entry of the file, the number of those whose candidates are built together; GIVEN: they are given."""
    numbers: dict[tuple[object, ...], int] = {}
    return [
        GIVEN
        if workload is None
        else numbers.setdefault(
            (workload.sha256, limit_of(job, workload, start), job.delay_usd_per_hour), len(numbers)
        )
        for job, workload in zip(loaded.jobs, loaded.workloads, strict=True)
    ]


def refuse_arrivals(loaded: LoadedPortfolio) -> None:
    """Refuse what only a rolling plan knows, where all jobs are planned at once.

    Raises:
        InputError: every such key with its place.
    """
    portfolio, remedy = loaded.portfolio, "is of rolling plans: plan with --rolling 1d, or remove it"
    faults = [Fault((key,), remedy) for key in ("teams", "rolling") if getattr(portfolio, key)]
    for at, job in enumerate(loaded.jobs):
        for key, given in (("submitted", job.submitted is not None), ("priority", job.priority > 0)):
            if given:
                path: tuple[str | int, ...] = ("jobs", at, key) if at < len(portfolio.jobs) else ("jobs_csv",)
                faults.append(Fault(path, f"job {job.name!r}: {key} {remedy}"))
    if faults:
        raise loaded.source.error(faults)


def late_alone(
    loaded: LoadedPortfolio, table: CandidateTable, kinds: Sequence[int], start: datetime, windows: Windows
) -> Iterator[str]:
    """A sentence for each entry of the file with late candidates alone, and who says what in its own file would help.

    Args:
        loaded: the file.
        table: all candidates, late ones included.
        kinds: entry of the file of each job.
        start: the portfolio's start.
        windows: of time.
    """
    able = set(distinct_values(table.job[table.late_hours <= 0]).tolist())
    some = set(distinct_values(table.job).tolist())
    entries = sorted({kinds[job] for job in some - able})
    for entry in entries:
        job, workload = loaded.jobs[entry], loaded.workloads[entry]
        text = f"{job.name} cannot be in time whatever the other jobs do"
        limit = limit_of(job, workload, start)
        if job.workload is not None and limit is not None:
            first = next(starts_of("earliest", job, start, windows))
            begin, end = (moment.isoformat(timespec="minutes") for moment in (first, limit))
            sets = f"--set start={begin} --set constraints.deadline={end}"
            text += f": `planner optimize {shlex.quote(job.workload)} {sets}` shows what else in its file would help"
        yield text
