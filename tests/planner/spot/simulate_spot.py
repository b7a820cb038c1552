"""A plain simulation of the spot model, written apart from the formulas it checks."""

from __future__ import annotations

import math
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
    made = [_run(case, random, frailty_sd) for _ in range(runs)]
    elapsed, paid, count = (np.asarray(column) for column in zip(*made, strict=True))
    return elapsed, paid, count


def _run(case: Case, random: np.random.Generator, sd: float) -> tuple[float, float, int]:
    rate = case.rate * math.exp(sd * random.standard_normal() - sd * sd / 2)
    wait = case.wait * math.exp(sd * random.standard_normal() - sd * sd / 2)
    elapsed = random.exponential(wait) if random.random() < rate * wait / (1 + rate * wait) else 0.0
    whole = max(math.ceil(case.work / case.interval - 1e-9) - 1, 0)
    segments = [case.interval + case.write] * whole + [case.work - whole * case.interval]
    paid, count, restart = 0.0, 0, 0.0
    life = random.exponential(1 / rate)
    for segment in segments:
        left = segment
        while life < restart + left:
            elapsed += life + (pause := random.exponential(wait))
            paid += life
            count += 1
            if case.notice >= case.write:
                left -= max(life - restart, 0.0)
                restart = case.restart + case.notice
            else:
                left, restart = segment, case.restart
            life = random.exponential(1 / rate)
            assert pause >= 0
        elapsed += restart + left
        paid += restart + left
        life -= restart + left
        restart = 0.0
    return elapsed, paid, count
