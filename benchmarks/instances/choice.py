"""Bare models, synthetic and seeded: one candidate per job within limits, and the naive model of a single job."""

from __future__ import annotations

import numpy as np

from solvers.problem.milp import Milp, MilpBuilder

NODES = 64


def choice_model(n_jobs: int, per_job: int, seed: int) -> Milp:
    """One of `per_job` candidates for each job, each drawing on one of about half as many limits as jobs."""
    random = np.random.default_rng([seed, n_jobs, per_job])
    count = n_jobs * per_job
    job, group = np.repeat(np.arange(n_jobs), per_job), random.integers(0, max(2, n_jobs // 2), count)
    base = np.repeat(random.lognormal(6, 1, n_jobs), per_job)
    cost = np.round(base * random.uniform(1.0, 3.0, count), 6)
    units = 8.0 * random.integers(1, 64, count)
    cheapest = np.arange(n_jobs) * per_job + cost.reshape(n_jobs, per_job).argmin(axis=1)
    wanted = np.bincount(group[cheapest], weights=units[cheapest], minlength=int(group.max()) + 1)
    limit = np.rint(np.maximum(wanted * random.uniform(0.4, 1.2, len(wanted)), 1024))
    builder = MilpBuilder(f"choice {n_jobs} x {per_job}")
    x = builder.add_columns("x", range(count), cost=cost, upper=1.0, integer=True)
    choose = builder.add_rows("choose", n_jobs, lower=1.0, upper=1.0)
    quota = builder.add_rows("quota", len(limit), upper=limit)
    builder.add_entries(choose.start + job, np.arange(x.start, x.stop), 1.0)
    builder.add_entries(quota.start + group, np.arange(x.start, x.stop), units)
    return builder.build()


def naive_single(n_offers: int, seed: int) -> Milp:
    """A single job written as a MILP the ordinary way: one offer, up to 64 nodes, a big-M row for each offer."""
    random = np.random.default_rng([seed, n_offers])
    speed = np.round(random.lognormal(4, 1.2, n_offers), 3)
    price = np.round(speed * random.uniform(0.02, 0.06, n_offers), 4)
    builder = MilpBuilder(f"naive {n_offers}")
    nodes = builder.add_columns(
        "n", [("n", at) for at in range(n_offers)], cost=price, upper=NODES, integer=True
    )
    chosen = builder.add_columns("y", [("y", at) for at in range(n_offers)], upper=1.0, integer=True)
    n, y = np.arange(nodes.start, nodes.stop), np.arange(chosen.start, chosen.stop)
    work = builder.add_rows("work", 1, lower=float(np.round(20 * np.quantile(speed, 0.9), 1)))
    builder.add_entries(work.start, n, speed)
    one = builder.add_rows("one", 1, upper=1.0)
    builder.add_entries(one.start, y, 1.0)
    only = builder.add_rows("only", n_offers, upper=0.0)
    builder.add_entries(np.arange(only.start, only.stop), n, 1.0)
    builder.add_entries(np.arange(only.start, only.stop), y, -float(NODES))
    return builder.build()
