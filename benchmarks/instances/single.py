"""Single-job questions: candidates (offer x node count) with costs, hours and quotas, synthetic and seeded."""

from __future__ import annotations

import numpy as np

from planner.job.model import SingleInput


def single_instance(n_candidates: int, seed: int) -> SingleInput:
    """A job of `n_candidates` candidates over 40 quota groups."""
    random = np.random.default_rng([seed, n_candidates])
    cost = np.round(random.lognormal(8, 1.5, n_candidates), 2)
    group = random.integers(-1, 40, n_candidates)
    units = np.asarray(random.integers(1, 64, n_candidates) * 8.0, dtype=np.float64)
    limit = np.asarray(np.rint(random.pareto(1.1, 40) * 256), dtype=np.float64)
    hours = random.uniform(1, 500, n_candidates)
    return SingleInput(tuple(range(n_candidates)), cost, hours, group, units, limit)
