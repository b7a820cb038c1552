"""By when a job of a portfolio is done with the confidence asked, where that is after its deadline."""

from __future__ import annotations

from math import inf

from planner.judge.bench import Candidate
from planner.judge.chance import chance_within
from planner.judge.quote import sure_hours, table_ratio

_SPOT_RATIO = 2e-3  # stated hours of spot are found on a grid
_HALVINGS = 40


def hours_kept(candidate: Candidate, confidence: float) -> tuple[float, float]:
    """Hours from the start, no less than expected, and how far stated ones may be off; infinity: never so sure."""
    if candidate.had <= confidence:
        return inf, 0.0
    level = confidence / candidate.had
    if candidate.situation is None:
        sure = max(sure_hours(candidate, level, candidate.steps.sigma), candidate.hours)
        return sure, table_ratio(candidate) * sure
    before = candidate.waiting + candidate.steps.fixed
    course, pool = candidate.situation.course, candidate.situation.pool

    def is_sure(hours: float) -> bool:
        return chance_within(course, pool, hours - before, candidate.steps.sigma) >= level

    low, high = before, max(2.0 * candidate.hours, before)
    while not is_sure(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_sure(middle) else (middle, high)
    sure = max(high, candidate.hours)
    return sure, _SPOT_RATIO * sure
