"""When a cluster that waits for its capacity is there and done, over its wait and the error of its speed."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING

from planner.judge.capacity_waits import unit_quadrature
from planner.judge.chance import normal, normal_point

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.judge.capacity_waits import Waits

POINTS = 12  # of the speeds in time, and of the waits beside spot


def done(waits: Waits, need: float, room: float, sigma: float) -> float:
    """P(wait and work of `need` hours, the log of its speed off by `sigma`, end within `room` hours)."""
    left = room - waits.at(0.0)
    if left <= 0:
        return 0.0
    if sigma < 1e-9:
        return waits.within(room - need) if left >= need * (1.0 - 1e-12) else 0.0
    cap = normal(log(left / need) / sigma)
    return cap * sum(
        weight * waits.within(max(room - need * exp(sigma * normal_point(cap * level)), 0.0))
        for level, weight in unit_quadrature(POINTS)
    )


def sure(waits: Waits, need: float, level: float, sigma: float) -> float:
    """Hours that wait and work do not exceed with probability `level`."""
    half = 1.0 - (1.0 - level) / 2.0
    low, high = waits.at(0.0), need * exp(sigma * normal_point(half)) + waits.at(half)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if done(waits, need, middle, sigma) < level else (low, middle)
    return high


def beside(waits: Waits, chance: Callable[[float], float]) -> float:
    """The mean over the wait of a chance that depends on it."""
    if waits.are_certain:
        return chance(waits.at(0.0))
    return sum(weight * chance(waits.at(level)) for level, weight in unit_quadrature(POINTS))


def until_there(waits: Waits, waiting: float, level: float) -> float:
    """Hours until a cluster is there that are not exceeded with probability `level`; `waiting`: in the mean."""
    return waiting - waits.mean + waits.at(level)
