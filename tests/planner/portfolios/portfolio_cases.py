"""Small random portfolios, and their answers by trying every choice."""

from __future__ import annotations

from itertools import product

import numpy as np

from planner.portfolios.shared_limits import CAPACITY, QUOTA, PortfolioInput


def random_portfolio(seed: int, *, with_budget: bool | None = None) -> PortfolioInput:
    """Up to 5 jobs of up to 5 candidates on up to 5 limits: shared, repeated, tight; some cannot be had at all."""
    random = np.random.default_rng([seed, 77])
    n_jobs = int(random.integers(1, 6))
    sizes = random.integers(1, 6, n_jobs)
    job = np.repeat(np.arange(n_jobs), sizes)
    n = len(job)
    cost = random.integers(1, 40, n) * 250_000  # ties are frequent
    optional = random.random() < 0.4
    objective = cost + (random.integers(0, 8, n) * 500_000 if random.random() < 0.4 else 0)
    n_limits = int(random.integers(1, 6))
    entries = []
    for at in range(n):
        count = int(random.choice([0, 1, 1, 1, 2, 3]))
        limits_drawn = random.choice(n_limits, min(count, n_limits), replace=False)
        entries += [
            (at, int(limit), int(random.integers(1, 9) * random.choice([1, 4]))) for limit in limits_drawn
        ]
    if optional:  # leaving a job out costs nothing and counts its value
        cost = np.where(random.random(n) < 0.2, 0, cost)
    limits = random.integers(0, 40, n_limits) * random.choice([1, 1, 3])
    candidate, limit, units = (
        np.array([entry[part] for entry in entries], dtype=np.int64) for part in range(3)
    )
    budget = None
    if with_budget if with_budget is not None else random.random() < 0.5:
        budget = int(random.uniform(0.3, 1.2) * cost.mean() * n_jobs)
    return PortfolioInput(
        n_jobs, job, cost.astype(np.int64), objective.astype(np.int64), candidate, limit, units,
        limits.astype(np.int64),        random.choice([QUOTA, CAPACITY], n_limits).astype(np.int64), budget,
    )  # fmt: skip


def every_choice(question: PortfolioInput) -> list[np.ndarray]:
    """Every choice of one candidate per job, feasible or not."""
    edges = question.first_of_job()
    ranges = [range(edges[job], edges[job + 1]) for job in range(question.n_jobs)]
    return [np.array(choice, dtype=np.int64) for choice in product(*ranges)]


def best_choice(question: PortfolioInput) -> int | None:
    """The least objective of a feasible choice, None where there is none."""
    found = [
        int(question.objective[choice].sum())
        for choice in every_choice(question)
        if not question.faults(choice)
    ]
    return min(found, default=None)
