"""One synchronous job bought in parts: which cluster, and how many of its instances from each offer.

A choice j is a cluster size with a number of instances of one spot offer (or none); the rest are of steady offers o:

    minimise   ... + sum_j fixed_j y_j + sum_j sum_o unit_jo x_jo
    subject to sum_k z_k + sum_j y_j = 1                       one candidate or one choice (row of `single`)
               sum_o x_jo = need_j y_j                         its steady instances, for every j
               x_jo <= most_jo y_j                             none without the choice, none beyond the capacity
               sum_j use_lj y_j + sum_j sum_o use_ljo x_jo <= limit_l     quotas and the budget
               y_j binary, x_jo whole

Hours follow from the size and the spot instances alone, so deadline and confidence were filters of the choices before.
The planner fills each choice by rising unit cost instead (`candidates.bought_in_parts`); this model is its oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Floats, Ints
from solvers.problem.milp import MilpBuilder


@dataclass(frozen=True, eq=False)
class MixInput:
    """Clusters bought in parts.

    Attributes:
        fixed: objective of a choice without its steady instances, shape `(n_choices,)`.
        need: steady instances, shape `(n_choices,)`.
        choice: choice that each count belongs to, shape `(n_counts,)`.
        unit: objective of one more instance, shape `(n_counts,)`, finite.
        most: most instances, shape `(n_counts,)`.
        limit: right-hand sides of quotas and budget, shape `(n_limits,)`.
        limit_fixed, limit_unit: what they limit, shapes `(n_limits, n_choices)`, `(n_limits, n_counts)`.
    """

    fixed: Floats
    need: Ints
    choice: Ints
    unit: Floats
    most: Floats
    limit: Floats
    limit_fixed: Floats
    limit_unit: Floats


def add_mix(builder: MilpBuilder, choose: int, mix: MixInput) -> None:
    """Add choices and counts to a model whose row `choose` picks one candidate."""
    n_choices, n_counts = len(mix.fixed), len(mix.choice)
    picks = builder.add_columns(
        "y", [("mix", j) for j in range(n_choices)], cost=mix.fixed, upper=1.0, integer=True
    )
    keys = [("count", k) for k in range(n_counts)]
    counts = builder.add_columns("x", keys, cost=mix.unit, upper=mix.most, integer=True)
    y, x = np.arange(picks.start, picks.stop), np.arange(counts.start, counts.stop)
    builder.add_entries(choose, y, 1.0)
    nodes = builder.add_rows("mix_nodes", n_choices, lower=0.0, upper=0.0)
    builder.add_entries(np.arange(nodes.start, nodes.stop), y, -mix.need.astype(np.float64))
    builder.add_entries(nodes.start + mix.choice, x, 1.0)
    capacity = builder.add_rows("mix_capacity", n_counts, upper=0.0)
    rows = np.arange(capacity.start, capacity.stop)
    builder.add_entries(rows, x, 1.0)
    builder.add_entries(rows, y[mix.choice], -mix.most)
    limits = builder.add_rows("mix_limit", len(mix.limit), upper=mix.limit)
    for number in range(len(mix.limit)):
        builder.add_entries(limits.start + number, y, mix.limit_fixed[number])
        builder.add_entries(limits.start + number, x, mix.limit_unit[number])
