"""Sizes of one pool, before anything is known of how and where they are bought: what each costs and takes at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import SINGLE
from planner.normal.arrays import normal_quantile
from planner.pipelines.pool_pairs import Points
from planner.records import record

if TYPE_CHECKING:
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Size


_CHANCE_SLACK = 0.01  # of the level, in what no pair keeps
_LEAST_SHARE = 0.999  # of the least cost, for rounding


@record(frozen=True, eq=False)
class Sizes:
    """Every size of a pool.

    Attributes:
        points: of each, never interrupted and at its least price in any region, all in one place, shape `(n,)`.
        sizes: machines and how many of each.
    """

    points: Points
    sizes: list[Size]


def sizes_of(side: Side, level: float) -> Sizes:
    """Bound every size of a pool.

    Each pool has half of D - x W whatever the speed x, so none is in time with the level asked where D is less than the
    work at the speed of that level; half of it is each pool's, in case their speeds are known less and more closely.

    Args:
        side: the pool, searched without a deadline.
        level: probability with which it keeps its own deadline.
    """
    found = side.found
    candidates, market = found.candidates, found.context.market
    at = np.flatnonzero((candidates.bits == 0) & (candidates.kind == SINGLE))
    rows, nodes, shape = candidates.offer[at], candidates.nodes[at], candidates.shape[at]
    hardware = candidates.shapes["hardware_row"].astype(np.int64)[shape]
    hourly = nodes * market.costs.least_usd_per_hour[rows] * _LEAST_SHARE
    order = np.lexsort((hourly, nodes, hardware))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(hardware[order]) != 0) | (np.diff(nodes[order]) != 0)
    kept = order[new]
    one, none = np.ones(len(kept)), np.zeros(len(kept))
    step = np.asarray(candidates.shapes["step_time_s"])[shape[kept]]
    sure = np.exp(candidates.sigma[at[kept]] * _slowest(level) / 2.0)
    points = Points(
        at=at[kept], step_s=step, stretch=one, held=one, before_hours=none, fixed_usd=none,
        usd_per_hour=hourly[kept], sure=sure, nodes=nodes[kept], place=np.zeros(len(kept), dtype=np.int64),
        offer=rows[kept], most_nodes=np.full(len(kept), np.inf),  # a size may be bought in several ways
        **side.of_machines(at[kept]),
    )  # fmt: skip
    return Sizes(points, list(zip(hardware[kept].tolist(), nodes[kept].tolist(), strict=True)))


def _slowest(level: float) -> float:
    """Standard deviations of the speed that are in time at least; a little less, as chances of spot are calibrated."""
    return max(float(normal_quantile(np.asarray([level - _CHANCE_SLACK]))[0]), 0.0)
