"""One job over 200,000 offers x 64 node counts: the factored optimum and the whole cost/time front."""

from __future__ import annotations

import numpy as np

from benchmarks.solver_families.base import Clock, Figure, in_child
from catalogs.tables.table import Floats, Ints
from planner.candidates.sizes import least_by_group
from solvers.search.pareto import pareto_front

NAME = "kernel"
GOALS = ("optimum <= 10 ms", "exact front <= 60 ms")
N_OFFERS, N_HARDWARE, N_COUNTS = 202_543, 888, 64
REPEATS = 10


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


def optimum(n_offers: int, seed: int) -> Figure:
    """Time the optimum and hold it against the whole grid, a few thousand offers at a time."""
    price, hardware, hours, nodes = _instance(n_offers, seed)
    node_hours = hours * nodes
    with Clock() as clock:
        for _ in range(REPEATS):
            _, _, cost = cheapest(price, hardware, node_hours)
    blocks = [slice(start, start + 4096) for start in range(0, n_offers, 4096)]
    least = min(float((price[b, None] * node_hours[hardware[b]]).min()) for b in blocks)
    note = "equals the whole grid" if least == cost else "MISSED: differs from the whole grid"
    return _figure(f"{n_offers:,} x {N_COUNTS} optimum", seed, clock, cost, note)


def front(n_offers: int, seed: int) -> Figure:
    """Time the whole cost/time front."""
    price, hardware, hours, nodes = _instance(n_offers, seed)
    with Clock() as clock:
        for _ in range(REPEATS):
            *_, times, costs = cost_time_front(price, hardware, hours, nodes)
    return _figure(f"{n_offers:,} x {N_COUNTS} front", seed, clock, float(costs[-1]), f"{len(times)} points")


def _instance(n_offers: int, seed: int) -> tuple[Floats, Ints, Floats, Ints]:
    """Prices in micro-dollars per hour, the hardware of each offer, hours per hardware and node count, node counts."""
    draw = np.random.default_rng(seed)
    hardware = draw.integers(0, N_HARDWARE, n_offers)
    price = draw.integers(500_000, 60_000_000, n_offers).astype(np.float64)
    nodes = np.arange(1, N_COUNTS + 1)
    hours = draw.uniform(20, 2_000, (N_HARDWARE, 1)) / nodes ** draw.uniform(0.6, 0.99, (N_HARDWARE, 1))
    hours[draw.random(hours.shape) < 0.3] = np.inf
    return price, hardware, hours, nodes


def _figure(size: str, seed: int, clock: Clock, objective: float, note: str) -> Figure:
    cpu, wall = clock.cpu_s / REPEATS, clock.wall_s / REPEATS
    return Figure(NAME, size, seed, "optimal", cpu, wall, objective, objective, 0.0, 0.0, note=note)


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure the stated size."""
    n_offers = N_OFFERS // (10 if quick else 1)
    return [in_child(optimum, n_offers, seed), in_child(front, n_offers, seed)]
