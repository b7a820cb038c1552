"""A plain simulation of runs that nobody divides, on machines that come and go; written apart from the formulas.

A run goes on from its last second on any machine that is free: that is what a queue of runs with checkpoints does.
"""

from __future__ import annotations

import numpy as np

STEP_HOURS = 0.02


def share_in_time(
    *, machines: int, runs: int, hours: float, deadline: float, rate: float, wait: float, sigma: float,
    frailty_sd: float, outcomes: int, seed: int,
) -> float:  # fmt: skip
    """Share of outcomes in which all runs are done by the deadline.

    Args:
        machines: of one offer, from the start.
        runs: how many; hours: of up-time that one takes at the predicted speed.
        deadline: hours.
        rate: interruptions per hour up; wait: mean hours until a machine is back, both exponential.
        sigma: log sd of the speed, common to all; frailty_sd: log sd of the level of rate and wait, common to all.
        outcomes: how many; seed: of the draws.
    """
    random = np.random.default_rng(seed)
    level, longer = np.exp(frailty_sd * random.standard_normal((2, outcomes, 1)) - frailty_sd**2 / 2)
    own_rate, own_wait = rate * level, wait * longer
    left = np.repeat(hours * np.exp(sigma * random.standard_normal((outcomes, 1))), runs, axis=1)
    up = random.random((outcomes, machines)) < 1.0 / (1.0 + own_rate * own_wait)
    down_ratio, back_ratio = 1.0 - np.exp(-own_rate * STEP_HOURS), 1.0 - np.exp(-STEP_HOURS / own_wait)
    for _ in range(int(deadline / STEP_HOURS)):
        if not (left > 0).any():
            break
        # those that have begun go on first
        order = np.argsort(np.where(left > 0, left, np.inf), axis=1, kind="stable")
        goes_on = np.arange(runs) < up.sum(axis=1, keepdims=True)
        first = np.zeros(left.shape, dtype=np.bool_)
        np.put_along_axis(first, order, goes_on, axis=1)
        left -= STEP_HOURS * (first & (left > 0))
        change = random.random((outcomes, machines))
        up = np.where(up, change >= down_ratio, change < back_ratio)
    return float((left <= 0).all(axis=1).mean())


def hours_up(
    *, machines: int, deadline: float, rate: float, wait: float, frailty_sd: float, outcomes: int, seed: int
) -> np.ndarray:
    """Hours that all machines together are up until the deadline, shape `(outcomes,)`."""
    random = np.random.default_rng(seed)
    level, longer = np.exp(frailty_sd * random.standard_normal((2, outcomes, 1)) - frailty_sd**2 / 2)
    own_rate, own_wait = rate * level, wait * longer
    up = random.random((outcomes, machines)) < 1.0 / (1.0 + own_rate * own_wait)
    down_ratio, back_ratio = 1.0 - np.exp(-own_rate * STEP_HOURS), 1.0 - np.exp(-STEP_HOURS / own_wait)
    hours = np.zeros(outcomes)
    for _ in range(round(deadline / STEP_HOURS)):
        hours += up.sum(axis=1) * STEP_HOURS
        change = random.random((outcomes, machines))
        up = np.where(up, change >= down_ratio, change < back_ratio)
    return hours
