"""The candidates that may be in the best plan, at the exact sums of their cost lines: only those are summed."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from catalogs.tables.table import distinct_values
from planner.pipelines.local_search import local_choice
from planner.pipelines.question import PipelineInput, affordable, follow, reduce
from planner.pipelines.way import Offered

SLIP = (
    1e-6  # of the known plan's cost, and USD for each task: what costs not yet summed exactly may differ by
)


def worth_pricing(pipe: PipelineInput, limit_s: float) -> tuple[PipelineInput, dict[str, int]]:
    """The candidates that may be in the best plan, at the exact sums of their lines, and how many fell out by rule.

    Args:
        pipe: the question; its candidates are `Offered`.
        limit_s: seconds, at most, for a first plan. Without one, no candidate falls out.
    """
    smaller, dropped = reduce(pipe)
    if len(distinct_values(smaller.task)) < pipe.n_tasks:
        return priced(pipe), {}
    choice = local_choice(smaller, time.perf_counter() + limit_s)
    if choice is None:
        return priced(pipe), {}
    known_usd = follow(smaller, choice).cost_usd
    kept = affordable(smaller, known_usd + SLIP * (known_usd + pipe.n_tasks))
    dropped["more expensive than a known plan"] = int((~kept).sum())
    return priced(smaller.take(np.flatnonzero(kept))), dropped


def priced(pipe: PipelineInput) -> PipelineInput:
    """The same at the exact sums of the candidates' lines."""
    exact = [one.exact_usd if isinstance(one, Offered) else math.nan for one in pipe.keys]
    return replace(pipe, cost_usd=np.asarray(exact, dtype=np.float64))
