"""What the limits of a serving fleet must become where the machines allowed cannot carry the load.

Limits of single kinds give way only if they must: the least machines beyond them carry the load. Then `max_nodes` of
all rises to the least number that carries it. The fleet shown is the cheapest within the limits so changed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.serving.model import ServingResult, solve_serving
from planner.serving.question import ServingInput
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.search import Clock

_GAP = 1e-6  # of counts of machines


class Change(NamedTuple):
    """A limit, the most machines it allows and those it must allow; no machine: that of all together."""

    machine: str
    now: int
    needed: int


def least_change(
    question: ServingInput, options: SolveOptions, clock: Clock | None = None
) -> tuple[tuple[Change, ...], ServingInput, ServingResult] | None:
    """The limits to change, the question with them changed and its cheapest fleet; None where none was found in time.

    Args:
        question: no fleet within its limits carries the load, though each bucket has a machine.
        options: how to solve.
        clock: of the answer, by default one that begins now.
    """
    clock = clock or Clock(options.time_limit_s)

    def left(gap: float) -> SolveOptions:
        return replace(options, gap=gap, time_limit_s=clock.for_next_s())

    free = replace(question, max_nodes=math.inf)
    limit = _least_limits(free, left(_GAP))
    if limit is None:
        return None
    most = question.max_nodes
    if math.isfinite(most):
        least = solve_serving(replace(free, limit=limit, usd_per_hour=np.ones_like(limit)), left(_GAP))
        if least.status is not Status.OPTIMAL:
            return None
        most = max(most, float(sum(least.counts.values())))
    changed = replace(question, limit=limit, max_nodes=most)
    changes = [
        Change(str(key), round(now), round(needed))
        for key, now, needed in zip(question.keys, question.limit.tolist(), limit.tolist(), strict=True)
        if needed > now
    ]
    if most > question.max_nodes:
        changes.append(Change("", round(question.max_nodes), round(most)))
    return tuple(changes), changed, solve_serving(changed, left(options.gap))


def _least_limits(
    question: ServingInput, options: SolveOptions
) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Limits of the kinds, raised by as few machines as carry the load; None where that was not found in time."""
    limited = np.flatnonzero(np.isfinite(question.limit))
    beyond = [(question.keys[at],) for at in limited.tolist()]  # machines of a kind beyond its limit
    wider = replace(
        question,
        keys=(*question.keys, *beyond),
        speed=np.vstack([question.speed, question.speed[limited]]),
        limit=np.append(question.limit, np.full(len(limited), np.inf)),
        usd_per_hour=np.append(np.zeros(len(question.keys)), np.ones(len(limited))),
    )
    found = solve_serving(wider, options)
    if found.status is not Status.OPTIMAL:
        return None
    limit = question.limit.copy()
    for at, key in zip(limited.tolist(), beyond, strict=True):
        limit[at] += found.counts.get(key, 0)
    return limit
