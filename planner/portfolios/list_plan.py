"""Starts of jobs that take turns on scarce limits, one list after another: where later starts are worth a look.

Jobs of a list take turns on what is scarce, each as early as the jobs before it leave room (list scheduling,
Graham 1966). Two lists are made: by deadline, and by what a job saves there for each unit and hour that it draws; and a
third by what its delay counts for each unit and hour, where delay counts (Smith 1956). A job takes the way there that
counts least from when it has room, if it still saves. The models choose freely; they only need these starts.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.question import Question
from planner.portfolios.shared_limits import CAPACITY

MOST_JOBS = 100  # of a list: a few starts are wanted, and its time grows with their cube
WAYS_EACH = 3  # cheapest ways of a job that are tried in turn
SECONDS = 3600  # per hour; starts are whole seconds, rounded up
_LONG = 2**62  # seconds
GIVEN = -1  # group of the jobs whose candidates are given, not built

Busy = tuple[float, int]  # hours until nodes come free, and how many

_Run = tuple[int, int, int]  # begin and end in seconds, units


@dataclass(frozen=True)
class _Way:
    """A way to run a job on what is scarce: its seconds, what it counts at its earliest, and its draws by limit."""

    seconds: int
    counted: int
    draws: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Job:
    number: int
    earliest: int
    deadline: float
    density: float
    per_second: float
    urgency: float
    elsewhere: float
    ways: tuple[_Way, ...]


def whole_seconds(hours: float) -> int:
    """Whole seconds, rounded up (but for what is rounding itself)."""
    return max(math.ceil(hours * SECONDS - 1e-6), 0)


def list_starts(
    question: Question, live: Ints, deadlines: Floats, busy: Mapping[int, Busy]
) -> dict[int, set[int]]:
    """Seconds after the portfolio's start at which each job of the lists begins, by job.

    Args:
        question: candidates in time that start as early as they can.
        live: limits that can bind.
        deadlines: when each job must have ended, hours, infinity without a deadline, shape `(n_jobs,)`.
        busy: nodes that come free later, by number of the commitment.
    """
    limit, taken = question.numbers.limit.copy(), dict[int, _Run]()
    for number, (hours, nodes) in busy.items():
        at = next(
            at for at, one in enumerate(question.limits) if (one.kind, one.number) == (CAPACITY, number)
        )
        taken[at] = (0, whole_seconds(hours), nodes)
        limit[at] += nodes
    jobs = _jobs(question, live, deadlines, limit)
    by_deadline = sorted(jobs, key=lambda job: (job.deadline, -job.density))
    by_saving = sorted(jobs, key=lambda job: (-job.density, job.deadline))
    found: dict[int, set[int]] = {job.number: set() for job in jobs}
    lists = [by_deadline, by_saving]
    if any(job.urgency > 0 for job in jobs):
        lists.append(sorted(by_saving, key=lambda job: -job.urgency))
    for order in lists:
        for job, start in _begun(order[:MOST_JOBS], limit.tolist(), taken):
            found[job].add(start)
    return found


def _jobs(question: Question, live: Ints, deadlines: Floats, most: Ints) -> list[_Job]:
    """Jobs that gain by a way on what is scarce, the one that fits and costs least."""
    numbers, table = question.numbers, question.table
    inside = np.isin(numbers.entry_limit, live)
    candidate, limit, units = (
        column[inside] for column in (numbers.entry_candidate, numbers.entry_limit, numbers.entry_units)
    )
    draws = np.bincount(candidate, minlength=numbers.n_candidates) > 0
    large = np.bincount(candidate, units > most[limit], minlength=numbers.n_candidates) > 0
    elsewhere = np.full(numbers.n_jobs, np.inf)
    np.minimum.at(elsewhere, numbers.job[~draws], numbers.objective[~draws])
    at = np.flatnonzero(draws & ~large & (numbers.objective < elsewhere[numbers.job]))
    at = at[np.lexsort((table.hours[at], numbers.objective[at], numbers.job[at]))]
    rank = np.arange(len(at)) - np.searchsorted(numbers.job[at], numbers.job[at])
    at = at[rank < WAYS_EACH]
    wanted = np.isin(candidate, at)
    of: dict[int, list[tuple[int, int]]] = {}
    for one, number, drawn in zip(
        candidate[wanted].tolist(), limit[wanted].tolist(), units[wanted].tolist(), strict=True
    ):
        of.setdefault(one, []).append((number, drawn))
    ways: dict[int, list[int]] = {}
    for one, job in zip(at.tolist(), numbers.job[at].tolist(), strict=True):
        ways.setdefault(job, []).append(one)
    found: list[_Job] = []
    for job, own in ways.items():
        best = own[0]
        work = max(sum(drawn for _, drawn in of[best]) * float(table.hours[best]), 1e-9)
        saved = float(elsewhere[job]) - float(numbers.objective[best])
        choice = tuple(
            _Way(whole_seconds(float(table.hours[one])), int(numbers.objective[one]), tuple(of[one]))
            for one in own
        )
        earliest = whole_seconds(float(table.start_hours[best]))
        end = max(float(table.start_hours[best] + table.hours[best]), 1e-9)
        delay = float(numbers.objective[best] - numbers.cost[best]) / end
        found.append(_Job(
            job, earliest, float(deadlines[job]) * SECONDS, saved / work, delay / SECONDS, delay / work,
            float(elsewhere[job]), choice,
        ))  # fmt: skip
    return found


def _begun(
    jobs: Sequence[_Job], limit: Sequence[int], taken: Mapping[int, _Run]
) -> Iterator[tuple[int, int]]:
    """The jobs that find room in time, in this order, and their starts."""
    booked = {number: [run] for number, run in taken.items()}
    for job in jobs:
        best: tuple[int, _Way] | None = None
        least = job.elsewhere
        for way in job.ways:
            start = _earliest(job.earliest, way, booked, limit)
            counted = way.counted + job.per_second * (start - job.earliest)
            if start + way.seconds <= job.deadline + 1 and counted < least:
                best, least = (start, way), counted
        if best is None:
            continue
        start, way = best
        yield job.number, start
        for number, units in way.draws:
            insort(booked.setdefault(number, []), (start, start + way.seconds, units))


def _earliest(earliest: int, way: _Way, booked: dict[int, list[_Run]], limit: Sequence[int]) -> int:
    """When a way can begin: at its earliest, or when a run ends, so that no limit is exceeded while it runs."""
    moments = {end for number, _ in way.draws for _, end, _ in booked.get(number, ()) if end > earliest}
    for start in sorted({earliest, *moments}):
        stop = start + way.seconds
        if all(
            _peak(booked.get(number, ()), start, stop) + units <= limit[number] for number, units in way.draws
        ):
            return start
    return _LONG


def _peak(runs: Sequence[_Run], start: int, stop: int) -> int:
    """The most units in use at once between two moments: at the first, or when a run begins."""
    inside = [(begin, end, units) for begin, end, units in runs if begin < stop and end > start]
    at = [start, *(begin for begin, _, _ in inside if begin > start)]
    return max(sum(units for begin, end, units in inside if begin <= now < end) for now in at)
