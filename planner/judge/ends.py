"""When a candidate is there and done with a given probability, if its capacity comes."""

from __future__ import annotations

from math import exp
from statistics import NormalDist
from typing import TYPE_CHECKING

from planner.judge.in_time import sure

if TYPE_CHECKING:
    from planner.judge.bench import Candidate


# Where the wait has a spread, the search reads the normal distribution from a table, the judge computes it.
_TABLE_RATIO = 1e-5


def table_ratio(made: Candidate) -> float:
    """How far, of themselves, stated hours of steady capacity may be off `sure_hours`."""
    return 0.0 if made.waits is None or made.waits.are_certain else _TABLE_RATIO


def until_there(made: Candidate, level: float) -> float:
    """Hours until the cluster is there that are not exceeded with probability `level`."""
    assert made.waits is not None
    return made.waiting - made.waits.mean + made.waits.at(level)


def sure_hours(made: Candidate, level: float, sigma: float) -> float:
    """Hours from the start that steady capacity keeps with probability `level`, the log of its speed off by `sigma`."""
    if made.waits is None or made.waits.are_certain:
        slow = exp(NormalDist().inv_cdf(level) * sigma)
        return made.waiting + made.steps.fixed + made.need * slow
    before = until_there(made, 0.0) - made.waits.at(0.0) + made.steps.fixed
    return before + sure(made.waits, made.need, level, sigma)
