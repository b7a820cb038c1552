"""Jobs that follow each other on scarce capacity: which later starts are worth a look where no windows are declared.

In a plan whose jobs start as early as the shared limits let them, every job starts at its earliest moment, or when a
run on the same limit ends, or when owned nodes come free. So later starts are sums of run times. Taken are those of the
cheapest way of each job on each limit that can bind, thinned evenly where there are too many. Between two starts
nothing begins, so a limit that holds at every start holds always.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.inputs.bounds import MOST_HOURS
from planner.portfolios.list_plan import GIVEN, SECONDS, Busy, list_starts, whole_seconds
from planner.portfolios.question import Question
from planner.portfolios.shared_limits import CAPACITY
from planner.portfolios.solve import PortfolioResult
from planner.portfolios.table import CandidateTable
from solvers.problem.solution import Status

MOST_STARTS = 24  # later starts: each multiplies the candidates on scarce limits
MOST_ADDED = 300_000  # candidates that later starts may add
MOST_SUMS = 4_000  # sums of run times kept while they are made
MOST_BUILDS = 64  # times candidates of workloads are built for later starts, about 0.1 CPU s each
LEAST_STARTS = 4  # of each of however many workloads: about as long as their first candidates take


@dataclass(frozen=True, eq=False)
class Later:
    """Later starts, and what a candidate must draw on to be worth starting later.

    Attributes:
        hours: the starts, ascending from the portfolio's own at 0, shape `(n_starts,)`.
        pools: commitments that can bind; quotas: quotas that can.
        sums: starts that the run times add up to; more than there are here where they were thinned.
        of_group: those of the jobs whose candidates are built together, hours, by the group's number.
    """

    hours: Floats
    pools: tuple[int, ...]
    quotas: tuple[int, ...]
    sums: int
    of_group: dict[int, Floats]

    def concerns(self, table: CandidateTable, draws: Floats) -> Bools:
        """Whether each candidate draws on what is scarce, shape `(n_candidates,)`.

        Args:
            table: candidates.
            draws: units that an instance of each way draws on each quota, shape `(n_ways, n_quotas)`.
        """
        found = np.zeros(len(table), dtype=np.bool_)
        for number in self.pools:
            found |= table.drawn_of_pool(number) > 0
        for number in self.quotas:
            found |= table.drawn(draws[:, number]) > 0
        return found

    def note(self) -> str:
        """What the reader should know."""
        count = len(self.hours) - 1
        thinned = f" of {self.sums:,}" if self.sums > count else ""
        most = max((len(starts) for group, starts in self.of_group.items() if group != GIVEN), default=count)
        each = f", each workload at up to {most}," if most < count else ","
        return (
            f"jobs on scarce capacity may also start at {count:,}{thinned} later moments{each} when runs there are "
            "expected to end; bounds hold for these starts"
        )


def later_starts(
    question: Question,
    result: PortfolioResult,
    first: Sequence[float],
    busy: Mapping[int, Busy],
    deadlines: Floats,
    groups: Sequence[int],
) -> Later | None:
    """Choose later starts; None where none can help, none chosen where they would be too many candidates.

    Args:
        question: candidates in time that start as early as they can.
        result: its solution.
        first: earliest start of each job, hours.
        busy: nodes that come free later, by number of the commitment.
        deadlines: when each job must have ended, hours, infinity without a deadline, shape `(n_jobs,)`.
        groups: of each job, the number of those whose candidates are built together; GIVEN: they are given.
    """
    numbers, live = question.numbers, _live(question, result, busy)
    scarce = np.isin(numbers.entry_limit, live)
    if not len(live) and result.status is Status.INFEASIBLE:
        scarce, live = np.ones(len(scarce), dtype=np.bool_), distinct_values(numbers.entry_limit)
    if not scarce.any() or _every_job_at_its_cheapest(question, result):
        return None
    drawing = distinct_values(numbers.entry_candidate[scarce])
    count = min(MOST_STARTS, MOST_ADDED // len(drawing))
    free = [hours for hours, _ in busy.values()]
    sums: set[int] = {whole_seconds(hours) for hours in (*first, *free) if math.isfinite(hours)}
    base = sorted({0, *sums})
    for limit in live.tolist():
        runs = _runs(question, int(limit))
        sums |= start_sums(base, sorted(runs), _horizon(question, int(limit), base[-1], deadlines))
    listed: dict[int, set[int]] = {}
    for job, starts in list_starts(question, live, deadlines, busy).items():
        later = {start for start in starts if 0 < start <= MOST_HOURS * SECONDS}
        for group in {GIVEN, groups[job]}:
            listed.setdefault(group, set()).update(later)
    sums = (sums | listed.get(GIVEN, set())) - {0}
    if not sums:
        return None
    chosen = _chosen(listed, sums, count, given=GIVEN in groups)
    hours = np.array(sorted({0}.union(*chosen.values()))) / SECONDS
    own = [question.limits[number] for number in live.tolist()]
    pools = tuple(sorted({limit.number for limit in own if limit.kind == CAPACITY}))
    quotas = tuple(sorted({limit.number for limit in own if limit.kind != CAPACITY}))
    of_group = {group: np.array(starts) / SECONDS for group, starts in chosen.items()}
    return Later(hours, pools, quotas, len(sums), of_group)


def _live(question: Question, result: PortfolioResult, busy: Mapping[int, Busy]) -> Ints:
    """Limits that matter: of the model, and of nodes that come free later, of which it may lack all candidates."""
    later = {number for number, (hours, _) in busy.items() if hours > 0}
    coming = [
        at for at, limit in enumerate(question.limits) if limit.kind == CAPACITY and limit.number in later
    ]
    return distinct_values(np.concatenate([result.reduced.live, np.array(coming, dtype=np.int64)]))


def _chosen(listed: dict[int, set[int]], sums: set[int], count: int, *, given: bool) -> dict[int, list[int]]:
    """Later starts by group, at most `count` each and ascending.

    Jobs whose candidates are given may start at those of every job and at other sums, too. A workload is built anew at
    each of its own, of which few are completed by other sums: when time is short it may run in quicker ways, unseen.
    """
    built = {group: sorted(starts) for group, starts in listed.items() if group != GIVEN}
    most = min(max(MOST_BUILDS // max(len(built), 1), LEAST_STARTS), count)
    chosen = {
        group: _completed(thinned(starts, most), sums, min(LEAST_STARTS, count))
        for group, starts in built.items()
    }
    if given:
        chosen[GIVEN] = _completed(thinned(sorted(listed.get(GIVEN, ())), count), sums, count)
    return chosen


def _completed(starts: list[int], sums: set[int], count: int) -> list[int]:
    """The starts, and of the other sums as many as are lacking to `count`."""
    return sorted({*starts, *thinned(sorted(sums - set(starts)), count - len(starts))})


def _every_job_at_its_cheapest(question: Question, result: PortfolioResult) -> bool:
    """Whether no plan can cost less, whenever its jobs start."""
    numbers = question.numbers
    if result.objective is None:
        return False
    least = np.full(numbers.n_jobs, np.iinfo(np.int64).max)
    np.minimum.at(least, numbers.job, numbers.objective)
    return result.objective <= int(least.sum())


def _drawing(question: Question, limit: int) -> tuple[Ints, Ints]:
    """Candidates that draw on a limit and fit it alone, and their draws."""
    numbers = question.numbers
    own = (numbers.entry_limit == limit) & (numbers.entry_units <= numbers.limit[limit])
    return numbers.entry_candidate[own], numbers.entry_units[own]


def _runs(question: Question, limit: int) -> Iterator[int]:
    """Seconds that each job runs in its cheapest way on a limit."""
    at, _ = _drawing(question, limit)
    order = at[
        np.lexsort((question.table.hours[at], question.numbers.objective[at], question.numbers.job[at]))
    ]
    new = (
        np.r_[True, np.diff(question.numbers.job[order]) != 0] if len(order) else np.zeros(0, dtype=np.bool_)
    )
    yield from (whole_seconds(hours) for hours in question.table.hours[order[new]].tolist())


def _horizon(question: Question, limit: int, latest_base: int, deadlines: Floats) -> int:
    """Seconds by which a list of jobs in any order has begun on a limit.

    That is twice its work, and a run (Graham 1966), or sooner: when the last job starts that would still be in time.
    """
    at, units = _drawing(question, limit)
    if not len(at):
        return 0
    hours, job = question.table.hours[at], question.numbers.job[at]
    work = np.zeros(question.numbers.n_jobs)
    np.maximum.at(work, job, units * hours)
    most = max(int(question.numbers.limit[limit]), 1)
    later = 2 * float(work.sum()) / most + float(hours.max())
    anew = (
        question.table.source[at] >= 0
    )  # workloads are planned anew at each start: by quicker ways where time is short
    last = float((deadlines[job] - np.where(anew, 0.0, hours)).max())
    return min(latest_base + whole_seconds(min(later, MOST_HOURS)), whole_seconds(min(last, MOST_HOURS)))


def start_sums(base: list[int], runs: list[int], horizon: int) -> set[int]:
    """Sums of a start in `base` and any of the runs, each at most once, up to the horizon."""
    sums = distinct_values(np.asarray(base, dtype=np.int64))
    for run in runs:
        both = np.concatenate([sums, sums[sums + run <= horizon] + run])
        both.sort(kind="stable")  # which merges the two, both ascending
        sums = both[np.diff(both, prepend=-1) > 0]
        if len(sums) > MOST_SUMS:
            sums = _thinned(sums, MOST_SUMS // 2)
    return set(sums.tolist())


def thinned(values: list[int], count: int) -> list[int]:
    """At most `count` of the values, ascending, as even as they come between 0 and the last, which is among them."""
    return _thinned(np.asarray(values, dtype=np.int64), count).tolist()  # type: ignore[no-any-return]


def _thinned(values: Ints, count: int) -> Ints:
    if len(values) <= count:
        return values
    if count <= 0:
        return values[:0]
    wanted, order = np.arange(1, count + 1) * (values[-1] / count), np.arange(count)
    at = np.searchsorted(values, wanted, side="right") - 1
    at[-1] = len(values) - 1
    at = np.minimum.accumulate((at - order)[::-1])[::-1] + order  # each another one
    return np.asarray(values[np.maximum(at, order)], dtype=np.int64)
