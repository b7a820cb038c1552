"""Invented pipelines: a random graph of tasks, candidates in regions of three providers, data between them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from planner.pipelines.local_search import least
from planner.pipelines.question import PipelineInput, follow

N_PROVIDERS = 3
N_PLACES = 30
BETWEEN_PROVIDERS_USD, BETWEEN_REGIONS_USD = 0.09, 0.02  # per GB
BETWEEN_PROVIDERS_GBPS, BETWEEN_REGIONS_GBPS = 1.5, 5.0
REACH = 6  # how many tasks back a task may read from


def pipeline_instance(
    n_tasks: int, n_candidates: int, seed: int, *, slack: float | None = None, n_places: int = N_PLACES,
    shape: str = "graph",
) -> PipelineInput:  # fmt: skip
    """One instance.

    Args:
        n_tasks: tasks.
        n_candidates: candidates of each.
        seed: seed.
        slack: deadline between the fastest (0) and the cheapest (1) choice; None for none.
        n_places: regions, spread over three providers.
        shape: `graph`, or `chain`, `fork`, `join` for trees.
    """
    draw = np.random.default_rng(seed)
    edges = _edges(draw, n_tasks, shape)
    task = np.repeat(np.arange(n_tasks), n_candidates)
    place = draw.integers(0, n_places, len(task))
    speed = draw.uniform(0.3, 3.0, len(task))
    cost = (
        np.repeat(draw.lognormal(3.5, 1.0, n_tasks), n_candidates)
        * draw.uniform(0.7, 1.6, len(task))
        * speed**0.45
    )
    hours = np.repeat(draw.lognormal(1.2, 0.6, n_tasks), n_candidates) / speed
    gb = np.round(draw.lognormal(5.0, 1.3, len(edges)), 1)
    same = np.eye(N_PROVIDERS, dtype=bool)
    usd = np.where(same, BETWEEN_REGIONS_USD, BETWEEN_PROVIDERS_USD)
    rate = np.where(same, BETWEEN_REGIONS_GBPS, BETWEEN_PROVIDERS_GBPS) * 3600 / 8
    pipe = PipelineInput(
        tuple(f"t{k}" for k in range(n_tasks)), tuple(range(len(task))), task, place, np.round(cost, 2),
        np.round(hours, 3), np.arange(n_places) % N_PROVIDERS, edges[:, 0], edges[:, 1], gb[:, None, None] * usd,
        gb[:, None, None] / rate,
    )  # fmt: skip
    return pipe if slack is None else _with_deadline(pipe, slack)


def _edges(
    draw: np.random.Generator, n_tasks: int, shape: str
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    if shape == "chain":
        pairs = [(v - 1, v) for v in range(1, n_tasks)]
    elif shape in ("fork", "join"):
        pairs = [(int(draw.integers(max(0, v - REACH), v)), v) for v in range(1, n_tasks)]
        if shape == "join":
            pairs = [(n_tasks - 1 - v, n_tasks - 1 - u) for u, v in pairs]
    else:
        pairs = []
        for v in range(1, n_tasks):
            read = draw.integers(max(0, v - REACH), v, int(np.minimum(v, draw.integers(1, 4))))
            pairs += [(int(u), v) for u in np.unique(read)]
    return np.asarray(pairs, dtype=np.int64).reshape(-1, 2)


def _with_deadline(pipe: PipelineInput, slack: float) -> PipelineInput:
    still = replace(pipe, move_hours=np.zeros_like(pipe.move_hours))
    fast, cheap = (
        float(follow(still, least(pipe, value)).end_hours.max()) for value in (pipe.hours, pipe.cost_usd)
    )
    return replace(pipe, deadline_hours=math.ceil(1000 * (fast + slack * (cheap - fast) + 0.5)) / 1000)
