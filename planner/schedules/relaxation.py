"""Why no schedule fits, and the least that each way out needs. Mathematics: docs/optimisation/schedule.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record
from planner.schedules.greedy import greedy_schedule
from planner.schedules.model import least_missing
from planner.schedules.question import HAIR, ScheduleInput, most_work
from solvers.problem.options import SolveOptions


@record(frozen=True)
class Remedy:
    """One change that alone lets the work be done.

    Attributes:
        kind: `later` (hours), `available` (nodes more in every hour that the forecast offers the pool `target`),
            `max_nodes` (nodes more for the job `target`), or `both`: so many more of the pool and for every job.
    """

    kind: str
    target: str
    amount: int


@record(frozen=True)
class Explanation:
    """What can be done at best.

    Attributes:
        missing: work that each job lacks at best, shape (J,); several jobs share what there is so that the sum of
            the shares missing is least. None where that was not found in time.
        remedies: the least amounts, each enough alone, the fewest first; empty where there is none or no time.
        in_time: whether the search for remedies ended in time; else there may be others, and smaller amounts.
    """

    missing: Floats | None
    remedies: tuple[Remedy, ...]
    in_time: bool


def apply_remedy(question: ScheduleInput, remedy: Remedy) -> ScheduleInput:
    """The question with the change."""
    if remedy.kind == "later":
        last = np.minimum(question.last + remedy.amount, question.n_hours)
        return replace(question, last=last)
    if remedy.kind == "max_nodes":
        is_target = np.asarray([name == remedy.target for name in question.jobs])
        return replace(question, max_nodes=question.max_nodes + is_target * remedy.amount)
    if remedy.kind == "both":
        question = replace(question, max_nodes=question.max_nodes + remedy.amount)
    more = np.asarray([name == remedy.target for name in question.pools]) * float(remedy.amount)
    return replace(question, available=question.available + np.where(question.offered, more, 0.0))


def explain_schedule(question: ScheduleInput, options: SolveOptions) -> Explanation:
    """Find what is missing at best, and the least change of each kind that helps.

    Args:
        question: one that has no schedule.
        options: backend, and the time limit of all of it.
    """
    until = time.perf_counter() + options.time_limit_s
    missing = missing_work(question, options, until)
    spare = int(question.n_hours - question.last.min(initial=question.n_hours))
    useful = _useful(question)
    ways = [("later", "", spare)] + [("available", name, useful) for name in question.pools]
    ways += [("max_nodes", name, useful) for name in question.jobs]

    def least(kind: str, target: str, most: int) -> Remedy | None:
        def helps(amount: int) -> bool:
            return _fits(apply_remedy(question, Remedy(kind, target, amount)), options, until)

        amount = _least(helps, most)
        return None if amount is None else Remedy(kind, target, amount)

    candidates = [least(*way) for way in ways]
    if not any(candidates):
        candidates = [least("both", name, useful) for name in question.pools]
    remedies = sorted((item for item in candidates if item is not None), key=lambda item: item.amount)
    return Explanation(missing, tuple(remedies), in_time=time.perf_counter() <= until)


def _useful(question: ScheduleInput) -> int:
    """More nodes than this in every hour of a pool do not help."""
    speed = np.where(question.speed > 0, question.speed, np.inf).min(axis=1)
    return int(np.ceil((question.work / speed).max(initial=1.0))) + int(question.min_nodes.max(initial=1))


def _least(helps: Callable[[int], bool], most: int) -> int | None:
    """The least amount of 1..most that helps; more never hurts. Where time ends earlier, the least known to help."""
    if most < 1 or not helps(most):
        return None
    low, high = 0, 1
    while high < most and not helps(high):  # `most` helps: once time is up, nothing is known to help any more
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if helps(middle) else (middle, high)
    return high


def _fits(question: ScheduleInput, options: SolveOptions, until: float) -> bool:
    """Whether it is known in time that all work can be done: without a solver where a job alone cannot do its own."""
    if time.perf_counter() > until or (question.work - most_work(question) > HAIR * question.work).any():
        return False
    if len(question.jobs) > 1 and _contended(question) and greedy_schedule(question) is not None:
        return True
    left = missing_work(question, options, until)
    return left is not None and not (left > HAIR * question.work).any()


def missing_work(question: ScheduleInput, options: SolveOptions, until: float) -> Floats | None:
    """Work missing at best, shape (J,); None where it was not found by `until` (`time.perf_counter`)."""
    alone = np.maximum(question.work - most_work(question), 0.0)
    alone[alone <= 1e-12 * question.work] = 0.0
    if len(question.jobs) == 1 or not _contended(question):
        return alone
    left = until - time.perf_counter()
    if left <= 0:
        return None
    return least_missing(question, replace(options, time_limit_s=left, gap=1e-4))


def _contended(question: ScheduleInput) -> bool:
    """Whether jobs may want the same nodes."""
    return bool((question.most_nodes.sum(axis=0) > question.available).any())
