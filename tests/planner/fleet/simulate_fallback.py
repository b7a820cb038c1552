"""A plain simulation of workers that fall back on on-demand, written apart from the formulas it checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np


@dataclass(frozen=True)
class Worker:
    """A worker's share of the work and its machine; hours, USD per hour.

    `change`: from asking for on-demand to progress on it, of which `restart` is paid; nothing is done again, as the
    notice is long enough for a checkpoint. `room`: from the first request to the deadline.
    """

    work: float
    restart: float
    change: float
    room: float
    rate: float
    wait: float
    spot_usd: float
    on_demand_usd: float


def fleet_costs(
    worker: Worker, count: int, outcomes: int, seed: int, sigma: float, frailty_sd: float
) -> np.ndarray:
    """Cost in USD of `count` workers, which share the error of the speed and the levels of the hazards."""
    random, even = np.random.default_rng(seed), NormalDist()
    speeds = random.permutation([even.inv_cdf((at + 0.5) / outcomes) for at in range(outcomes)])
    levels = np.exp(frailty_sd * random.standard_normal((outcomes, 2)) - frailty_sd**2 / 2.0)
    return np.asarray(
        [
            sum(
                _cost(worker, math.exp(sigma * z), worker.rate * rate, worker.wait * wait, random)
                for _ in range(count)
            )
            for z, (rate, wait) in zip(speeds.tolist(), levels.tolist(), strict=True)
        ]
    )


def _cost(worker: Worker, slower: float, rate: float, wait: float, random: np.random.Generator) -> float:
    """Run on spot, wait while there is none, change when waits and restarts use up what can be afforded."""
    work = worker.work * slower
    slack = worker.room - worker.change - work
    left, wasted, paid = work, 0.0, 0.0
    if slack < 0:
        return (worker.restart + left) * worker.on_demand_usd
    if random.random() < rate * wait / (1.0 + rate * wait):
        wasted += wait * random.standard_exponential()
    while wasted <= slack:
        up = random.standard_exponential() / rate
        again = worker.restart if paid else 0.0
        restarted = min(up, again)
        if wasted + restarted > slack:
            break
        wasted += restarted
        paid += restarted
        done = min(up - restarted, left)
        left, paid = left - done, paid + done
        if left <= 0:
            return paid * worker.spot_usd
        wasted += wait * random.standard_exponential()
    return paid * worker.spot_usd + (worker.restart + left) * worker.on_demand_usd
