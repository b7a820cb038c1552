"""Offers that are the same to the question: which of them a fleet uses is said in one way.

Zones of a region often have one price and one risk. A solver takes any of them, and another one where a machine adds up
in another order; the plan is to be the same everywhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from catalogs.tables.table import Floats
from planner.fleet.greedy import Mix
from planner.fleet.question import FleetInput


def first_of_alike(fleet: FleetInput, counts: Mapping[Hashable, int], busy: Mapping[Hashable, float]) -> Mix:
    """Move workers and their work to the first of the offers alike, most workers first; cost and limits stay."""
    figures = _figures(fleet)
    number_of = {key: number for number, key in enumerate(fleet.keys)}
    left = sorted(counts, key=lambda key: (-counts[key], number_of[key]))
    moved: Mix = {}, {}
    while left:
        numbers = [number_of[key] for key in left]
        same = (figures[numbers] == figures[numbers[0]]).all(axis=1).tolist()
        used = [key for key, is_alike in zip(left, same, strict=True) if is_alike]
        left = [key for key, is_alike in zip(left, same, strict=True) if not is_alike]
        alike = np.flatnonzero((figures == figures[numbers[0]]).all(axis=1))
        for number, key in zip(alike.tolist(), used, strict=False):
            moved[0][fleet.keys[number]] = counts[key]
            moved[1][fleet.keys[number]] = busy[key]
    return moved


def _figures(fleet: FleetInput) -> Floats:
    """All that the question says of each offer, shape `(n_options, n_figures)`."""
    columns = [
        fleet.cost_usd, fleet.throughput, fleet.max_units, fleet.region, fleet.provider, fleet.is_spot,
        fleet.memory_gib, fleet.capacity_group, fleet.quota_group, fleet.quota_units,
    ]  # fmt: skip
    if fleet.fixed_cost_usd is not None:
        columns.append(fleet.fixed_cost_usd)
    for use in fleet.uses:
        columns += [use.per_worker] if use.per_busy is None else [use.per_worker, use.per_busy]
    return np.nan_to_num(np.column_stack(columns).astype(np.float64), nan=-1.0)
