"""A plain simulation of what a fleet costs, written apart from the formulas it checks: draw, run, bill, add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from tests.planner.spot.simulate_spot import Case, simulate

# Levels of the hazards beyond the 99th of 100 are not drawn: nobody lets a run go on that is taken away hourly, and
# with the spread of places that nobody recorded the mean would be that of a few runs which never end.
WORST_LEVEL = 2.33


@dataclass(frozen=True)
class Line:
    """Workers of one offer: `runs` runs of `case`, USD per paid hour of one of them (expected, P10, P90), and the rest.

    `once_usd` does not depend on the outcome; `usd_per_day` is paid until the work of the line is done.
    """

    runs: float
    workers: int
    case: Case
    sigma: float
    frailty_sd: float
    fixed_hours: float
    granule_hours: float
    usd_per_hour: tuple[float, float, float]
    once_usd: float
    usd_per_day: float
    stay_hours: float


def costs(lines: Sequence[Line], outcomes: int, seed: int, *, mean_speed: bool = False) -> np.ndarray:
    """Cost in USD of fleets that differ by speed, luck and prices.

    Args:
        lines: of the fleet.
        outcomes: how many.
        seed: of the draws.
        mean_speed: the predicted speed is the mean of what may come, else the median.
    """
    random = np.random.default_rng(seed)
    normal = NormalDist()
    even = [normal.inv_cdf((at + 0.5) / outcomes) for at in range(outcomes)]
    speeds, prices = random.permutation(even).tolist(), random.permutation(even).tolist()
    total = np.zeros(outcomes)
    for line in lines:
        levels = np.clip(random.permutation(even), -WORST_LEVEL, WORST_LEVEL).tolist()
        drawn = zip(speeds, prices, levels, strict=True)
        total += [_cost(line, z, p, level, random, mean_speed=mean_speed) for z, p, level in drawn]
    return total


def _cost(
    line: Line, z: float, price_z: float, level: float, random: np.random.Generator, *, mean_speed: bool
) -> float:
    slower = math.exp(line.sigma * z - (line.sigma**2 / 2 if mean_speed else 0.0))
    number = max(round(line.runs), 1)
    sd = line.frailty_sd
    case = replace(
        line.case,
        work=line.case.work * slower * line.runs / number,
        rate=line.case.rate * math.exp(sd * level - sd * sd / 2),
    )
    if case.rate > 0:
        paid = float(simulate(case, number, int(random.integers(2**31)), 0.0)[1].sum())
    else:
        checkpoints = (
            max(math.ceil(case.work / case.interval - 1e-9) - 1, 0) if math.isfinite(case.interval) else 0
        )
        paid = number * (case.work + checkpoints * case.write)
    each = (
        math.ceil((line.fixed_hours + paid / line.workers) / line.granule_hours - 1e-9) * line.granule_hours
    )
    days = (line.stay_hours - line.fixed_hours) * slower / 24.0
    return each * line.workers * _price(line, price_z) + line.once_usd + line.usd_per_day * days


def _price(line: Line, z: float) -> float:
    """A log-normal price of the mean and the P10-P90 that are known of it."""
    mean, low, high = line.usd_per_hour
    if high <= low:
        return mean
    spread = math.log(high / low) / 2.563
    return mean * math.exp(spread * z - spread * spread / 2)
