"""Exact answers for one job over very many offers, factored by hardware.

Speed and fit depend on (hardware, node count) alone, and the price of the hours on the offer alone. So the least
node-hours of each hardware are found once, and an offer's least cost is one product: as many multiplications as
offers, not offers x node counts. Costs that are not price x node-hours (storage, transfer, granularity) are at least 0,
which makes these figures exact lower bounds of what the planner prices in full.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats, Ints
from solvers.search.pareto import pareto_front


def least_by_group(value: Floats, group: Ints, n_groups: int) -> Floats:
    """Least value of each group, infinity where a group has none, shape `(n_groups,)`."""
    least = np.full(n_groups, np.inf)
    np.minimum.at(least, group, value)
    return least


def offer_bounds(price: Floats, hardware: Ints, node_hours: Floats) -> Floats:
    """Least cost of each offer: its price x the least node-hours of its hardware, shape `(n_offers,)`.

    Args:
        price: money per node-hour, shape `(n_offers,)`.
        hardware: hardware row of each offer, shape `(n_offers,)`.
        node_hours: nodes x hours per hardware and node count, infinity where it does not run in time,
            shape `(n_hardware, n_counts)`.
    """
    bounds: Floats = price * node_hours.min(axis=1)[hardware]
    return bounds


def cheapest(price: Floats, hardware: Ints, node_hours: Floats) -> tuple[int, int, float]:
    """The offer and position of the node count with the least price x node-hours, and that cost.

    Raises:
        ValueError: nothing runs in time.
    """
    bounds = offer_bounds(price, hardware, node_hours)
    offer = int(np.argmin(bounds))
    if not np.isfinite(bounds[offer]):
        raise ValueError("no offer runs the job within its limits")
    return offer, int(np.argmin(node_hours[hardware[offer]])), float(bounds[offer])


def cost_time_front(
    price: Floats, hardware: Ints, hours: Floats, nodes: Ints
) -> tuple[Ints, Ints, Floats, Floats]:
    """The whole front of hours against price x nodes x hours.

    Args:
        price: money per node-hour, shape `(n_offers,)`.
        hardware: hardware row of each offer, shape `(n_offers,)`.
        hours: hours of the job per hardware and node count, infinity where it does not run, shape `(n_hardware, n)`.
        nodes: the node counts, shape `(n,)`.

    Returns:
        Offer, position of the node count, hours (rising) and cost (falling), each of shape `(n_points,)`.
    """
    least = least_by_group(price, hardware, len(hours))
    cost = least[:, None] * hours * nodes[None, :]
    # hardware without an offer has no price: infinity x 0 hours never occurs, infinite cells drop out of the front
    front = pareto_front(hours.ravel(), cost.ravel())
    row, column = front // len(nodes), front % len(nodes)
    first = np.full(len(hours), len(price), dtype=np.int64)
    at = np.flatnonzero(price == least[hardware])
    np.minimum.at(first, hardware[at], at)
    return first[row], column, hours[row, column], cost[row, column]
