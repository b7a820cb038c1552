"""A plain simulation of the spot model, written apart from the formulas it checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    work: float
    rate: float
    wait: float
    interval: float
    write: float
    restart: float
    notice: float

    def arguments(self) -> dict[str, float]:
        return {
            "rate_per_hour": self.rate,
            "nodes": 1,
            "gang_exponent": 1.0,
            "mean_wait_hours": self.wait,
            "checkpoint_interval_hours": self.interval,
            "checkpoint_write_hours": self.write,
            "restart_hours": self.restart,
            "notice_hours": self.notice,
        }


def simulate(
    case: Case, runs: int, seed: int, frailty_sd: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Elapsed hours, paid hours and interruptions of `runs` runs."""
    random = np.random.default_rng(seed)
    draws = _exponentials(np.random.default_rng([seed, 1]))
    made = [_run(case, random, draws, frailty_sd) for _ in range(runs)]
    elapsed, paid, count = (np.asarray(column) for column in zip(*made, strict=True))
    return elapsed, paid, count


def _exponentials(random: np.random.Generator) -> Iterator[float]:
    """Draws of mean 1, many at a time: one by one they took most of a simulation."""
    while True:
        yield from random.standard_exponential(4096).tolist()


def _run(
    case: Case, random: np.random.Generator, draws: Iterator[float], sd: float
) -> tuple[float, float, int]:
    rate = case.rate * math.exp(sd * random.standard_normal() - sd * sd / 2)
    wait = case.wait * math.exp(sd * random.standard_normal() - sd * sd / 2)
    elapsed = wait * next(draws) if random.random() < rate * wait / (1 + rate * wait) else 0.0
    whole = max(math.ceil(case.work / case.interval - 1e-9) - 1, 0)
    segments = [case.interval + case.write] * whole + [case.work - whole * case.interval]
    paid, count, restart = 0.0, 0, 0.0
    life = next(draws) / rate
    for segment in segments:
        left = segment
        while life < restart + left:
            elapsed += life + (pause := wait * next(draws))
            paid += life
            count += 1
            if case.notice >= case.write:
                left -= max(life - restart, 0.0)
                restart = case.restart + case.notice
            else:
                left, restart = segment, case.restart
            life = next(draws) / rate
            assert pause >= 0
        elapsed += restart + left
        paid += restart + left
        life -= restart + left
        restart = 0.0
    return elapsed, paid, count
