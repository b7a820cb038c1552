"""Starts of jobs that take turns on scarce limits, one list after another: where later starts are worth a look.

Each job of a list takes its cheapest way on what is scarce as early as the jobs before it leave room (list scheduling,
Graham 1966). Two lists are made: by deadline, and by what a job saves there for each unit and hour that it draws. The
models choose freely; they only need the starts of such plans among theirs.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.question import Question

MOST_JOBS = 100  # of a list: a few starts are wanted, and its time grows with their cube
WAYS_EACH = 3  # cheapest ways of a job that are tried in turn
SECONDS = 3600  # per hour; starts are whole seconds, rounded up
_LONG = 2**62  # seconds

_Run = tuple[int, int, int]  # begin and end in seconds, units


@dataclass(frozen=True)
class _Way:
    """A way to run a job on what is scarce: its seconds and its draws, by limit."""

    seconds: int
    draws: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Job:
    earliest: int
    deadline: float
    density: float
    ways: tuple[_Way, ...]


def whole_seconds(hours: float) -> int:
    """Whole seconds, rounded up (but for what is rounding itself)."""
    return max(math.ceil(hours * SECONDS - 1e-6), 0)


def list_starts(question: Question, live: Ints, deadlines: Floats) -> set[int]:
    """Seconds after the portfolio's start at which jobs of the two lists begin.

    Args:
        question: candidates in time that start as early as they can.
        live: limits that can bind.
        deadlines: when each job must have ended, hours, infinity without a deadline, shape `(n_jobs,)`.
    """
    jobs = _jobs(question, live, deadlines)
    limit = question.numbers.limit.tolist()
    by_deadline = sorted(jobs, key=lambda job: (job.deadline, -job.density))
    by_saving = sorted(jobs, key=lambda job: (-job.density, job.deadline))
    return _begun(by_deadline[:MOST_JOBS], limit) | _begun(by_saving[:MOST_JOBS], limit)


def _jobs(question: Question, live: Ints, deadlines: Floats) -> list[_Job]:
    """Jobs that gain by a way on what is scarce, the one that fits and costs least."""
    numbers, table = question.numbers, question.table
    inside = np.isin(numbers.entry_limit, live)
    candidate, limit, units = (
        column[inside] for column in (numbers.entry_candidate, numbers.entry_limit, numbers.entry_units)
    )
    draws = np.bincount(candidate, minlength=numbers.n_candidates) > 0
    large = np.bincount(candidate, units > numbers.limit[limit], minlength=numbers.n_candidates) > 0
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
        choice = tuple(_Way(whole_seconds(float(table.hours[one])), tuple(of[one])) for one in own)
        earliest = whole_seconds(float(table.start_hours[best]))
        found.append(_Job(earliest, float(deadlines[job]) * SECONDS, saved / work, choice))
    return found


def _begun(jobs: Sequence[_Job], limit: Sequence[int]) -> set[int]:
    """Starts of the jobs that find room in time, in this order."""
    booked: dict[int, list[_Run]] = {}
    begun: set[int] = set()
    for job in jobs:
        for way in job.ways:
            start = _earliest(job.earliest, way, booked, limit)
            if start + way.seconds > job.deadline + 1:
                continue
            begun.add(start)
            for number, units in way.draws:
                insort(booked.setdefault(number, []), (start, start + way.seconds, units))
            break
    return begun


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
