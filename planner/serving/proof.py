"""A bound of a serving fleet with its proof, which `planner verify` checks without a solver.

For any prices pi_b >= 0 of serving a whole bucket and mu >= 0 of a machine (where their number is limited), with counts
n_g within [low_g, high_g], no fleet costs less than

    sum_b pi_b - mu max_nodes + sum_g min over whole n of  (usd_g + mu) n - V_g(n),
    V_g(n) = most that shares 0 <= a_b <= 1 earn at these prices on n machines (a fractional knapsack)

(Lagrangian relaxation of "each bucket is served once"; counts stay whole, so it is no less than the linear bound). A
tree splits a count at a number; its leaves cover all counts, so the least of their bounds is one for all.
"""

from __future__ import annotations

import heapq
import math
import time
from itertools import count
from typing import Any

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record
from planner.serving.model import HAIR
from planner.serving.question import ServingInput
from solvers.execution.solve import relax
from solvers.problem.milp import MilpBuilder

MOST_LEAVES = 400
MOST_PRICES = 20_000  # of all leaves together
MOST_DEPTH = 40
MOST_WORK, FIXED_WORK = 330_000, 600  # speeds priced over the leaves, and what a leaf counts beside its own
_UNSERVED = 100.0  # times the fleet's cost: what leaving a bucket out counts in the relaxation
_ROUND = 1e-6  # USD: bounds are stated to the micro-dollar, rounded down


@record(frozen=True)
class Proof:
    """A proven bound in USD per hour, and the tree in preorder: splits (`machine`, `most`), and leaves (`prices`)."""

    bound_usd_per_hour: float
    tree: tuple[dict[str, Any], ...]


class _Node:
    """Counts from `low` to `high`, the bound there, and the prices that prove it; or a split at `most` of `kind`."""

    def __init__(self, low: Floats, high: Floats, depth: int) -> None:
        self.low, self.high, self.depth = low, high, depth
        self.bound, self.prices, self.machine_price = -math.inf, np.zeros(0), 0.0
        self.branch: int | None = None
        self.most = 0.0
        self.children: tuple[_Node, _Node] | None = None


def prove(
    question: ServingInput, usd_per_hour: float, gap: float, limit_s: float = math.inf, backend: str = "auto"
) -> Proof:
    """Prove a bound of the question, up to a gap to a fleet that is known.

    Args:
        question: the question.
        usd_per_hour: cost of the fleet.
        gap: relative gap at which to stop.
        limit_s: longest search, CPU seconds; what is proven until then is returned. Leaves are counted too, about 3 s
            of work at most, so that equal questions have equal proofs on a busy machine.
        backend: of the relaxations that find prices, by its name in the registry.
    """
    useful = np.ceil(np.where(np.isfinite(question.machines), question.machines, 0.0).sum(axis=1) + HAIR)
    high = np.minimum(np.minimum(question.limit, question.max_nodes), useful)
    ends, order = time.process_time() + limit_s, count()
    root = _Node(np.zeros(len(high)), high, 0)
    _price(question, root, usd_per_hour, backend)
    queue, leaves = [(root.bound, next(order), root)], 1
    most = min(
        MOST_LEAVES,
        MOST_PRICES // max(len(question.buckets), 1),
        MOST_WORK // (FIXED_WORK + question.machines.size),
    )
    while leaves < most and time.process_time() < ends:
        bound, _, node = queue[0]
        if bound >= usd_per_hour * (1 - gap) - _ROUND or node.branch is None or node.depth >= MOST_DEPTH:
            break
        heapq.heappop(queue)
        below, above = node.high.copy(), node.low.copy()
        below[node.branch], above[node.branch] = node.most, node.most + 1
        node.children = _Node(node.low, below, node.depth + 1), _Node(above, node.high, node.depth + 1)
        for child in node.children:
            _price(question, child, usd_per_hour, backend)
            heapq.heappush(queue, (child.bound, next(order), child))
        leaves += 1
    bound = math.floor(queue[0][0] / _ROUND * (1 - 1e-12)) * _ROUND
    return Proof(max(0.0, round(bound, 6)), tuple(_written(question, root)))


def _price(question: ServingInput, node: _Node, usd_per_hour: float, backend: str) -> None:
    """Find the node's prices by its linear relaxation, and where it is best split."""
    needed, builder = question.machines, MilpBuilder("serving relaxation")
    n = builder.add_columns("n", question.keys, cost=question.usd_per_hour, lower=node.low, upper=node.high)
    kind, bucket = np.nonzero(np.isfinite(needed))
    a = builder.add_columns(
        "a", [("a", k, b) for k, b in zip(kind.tolist(), bucket.tolist(), strict=True)], upper=1.0
    )
    out = builder.add_columns(
        "out", [("out", b) for b in question.buckets], cost=_UNSERVED * max(usd_per_hour, 1.0)
    )
    serve = builder.add_rows("serve", len(question.buckets), lower=1.0, tags=question.buckets)
    columns = np.arange(a.start, a.stop)
    builder.add_entries(serve.start + bucket, columns, 1.0)
    builder.add_entries(np.arange(serve.start, serve.stop), np.arange(out.start, out.stop), 1.0)
    load = builder.add_rows("load", len(question.keys), upper=0.0, tags=question.keys)
    builder.add_entries(load.start + kind, columns, needed[kind, bucket])
    builder.add_entries(np.arange(load.start, load.stop), np.arange(n.start, n.stop), -1.0)
    if math.isfinite(question.max_nodes):
        total = builder.add_rows("total", 1, upper=question.max_nodes)
        builder.add_entries(total.start, np.arange(n.start, n.stop), 1.0)
    # milliseconds of work; a busy machine would pass a limit while it imports the solver. The search keeps the clock
    relaxation = relax(builder.build(), math.inf, backend)
    buckets = len(question.buckets)
    if relaxation.x is None or relaxation.duals is None:
        node.prices = np.zeros(buckets)
    else:
        node.prices = np.maximum(relaxation.duals[:buckets], 0.0)
        if math.isfinite(question.max_nodes):
            node.machine_price = abs(float(relaxation.duals[-1]))
        part = np.minimum(
            relaxation.x[: len(question.keys)] % 1.0, 1.0 - relaxation.x[: len(question.keys)] % 1.0
        )
        if part.max(initial=0.0) > 1e-6:
            node.branch = int(np.argmax(part))
            node.most = math.floor(float(relaxation.x[node.branch]))
    node.bound = lagrangian(question, node.low, node.high, node.prices, node.machine_price)


def lagrangian(
    question: ServingInput, low: Floats, high: Floats, prices: Floats, machine_price: float
) -> float:
    """What prices prove for counts from `low` to `high`, USD per hour."""
    total = float(prices.sum())
    if machine_price:
        total -= machine_price * question.max_nodes
    for kind, needed in enumerate(question.machines):
        earned = [
            (float(prices[b] / needed[b]) if needed[b] else math.inf, float(needed[b]), float(prices[b]))
            for b in np.flatnonzero(np.isfinite(needed)).tolist()
            if prices[b] > 0
        ]
        earned.sort(reverse=True)
        cost = float(question.usd_per_hour[kind]) + machine_price
        # machines that earn their cost: a whole number next to it is best, the hair of room counted
        bend = math.floor(
            sum(load for density, load, _ in earned if density * (1 + HAIR) > cost) / (1 + HAIR)
        )
        counts = {
            min(max(float(n), float(low[kind])), float(high[kind])) for n in (0, 1, bend - 1, bend, bend + 1)
        }
        total += min(cost * n - _earned(earned, n + HAIR * max(1.0, n)) for n in counts)
    return total


def _earned(items: list[tuple[float, float, float]], room: float) -> float:
    """Most that shares earn on `room` machines; items by what they earn per machine."""
    value = 0.0
    for _, load, price in items:
        share = 1.0 if load <= room else room / load
        value, room = value + share * price, room - share * load
        if room <= 0:
            break
    return value


def _written(question: ServingInput, node: _Node) -> list[dict[str, Any]]:
    if node.children is None:
        prices = {name: float(price) for name, price in zip(question.buckets, node.prices, strict=True)}
        return [{"prices": prices, "machine_price": node.machine_price}]
    assert node.branch is not None
    split = {"machine": str(question.keys[node.branch]), "most": int(node.most)}
    return [split, *_written(question, node.children[0]), *_written(question, node.children[1])]
