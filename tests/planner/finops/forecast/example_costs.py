"""The generator of examples/daily-costs.csv: `python -m tests.planner.finops.forecast.example_costs`."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[4] / "examples" / "daily-costs.csv"
FIRST, LAST = date(2026, 5, 1), date(2026, 11, 18)


def example_costs() -> str:
    """Half a year of four teams: a steady one, a growing one, one with training runs, one whose bill moved up once."""
    rng = np.random.default_rng(20261118)
    days = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
    n = len(days)
    week = np.array([0.8 if day.weekday() >= 5 else 1.08 for day in days])
    runs = np.zeros(n)
    for start in range(9, n, 31):
        runs[start : start + 8] = 900
    cost = {
        "platform": 420 * week * rng.normal(1, 0.02, n),
        "data": (180 + 0.9 * np.arange(n)) * rng.normal(1, 0.01, n),
        "research": (260 + runs) * rng.normal(1, 0.05, n),
        "web": np.where(np.arange(n) < 110, 300, 390) * week * rng.normal(1, 0.03, n),
    }
    cost["platform"] += [250.0 if day.day == 1 else 0.0 for day in days]  # a subscription
    rows = [f"{day},{scope},{cost[scope][at]:.2f}" for at, day in enumerate(days) for scope in cost]
    return "\n".join(["date,scope,cost", *rows]) + "\n"


if __name__ == "__main__":
    FILE.write_text(example_costs(), encoding="utf-8")
