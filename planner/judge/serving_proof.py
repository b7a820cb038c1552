"""The bound of a serving fleet, recomputed in whole fractions from the prices that its answer gives as a proof.

For any prices p_b >= 0 of serving a bucket and m >= 0 of a machine, and counts from `low` to `high`, no fleet costs
less than sum p_b - m max_nodes + sum over machines of the least, over whole n, of (usd + m) n - V(n), where V(n) is the
most that shares of buckets earn on n machines: those that earn most per machine first (Fisher 1981 on Lagrangian
bounds). A tree of splits of the counts covers every fleet; the least bound of its leaves is one for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.serving_load import LoadedServing
    from planner.judge.document import Node

MOST_NODES = 2000
_OVERLOAD = Fraction(1, 10**6)  # of a machine; a solver keeps a load no closer, and such a fleet is a fleet


@record(frozen=True)
class Kind:
    """A kind of machine: its price, and how many the whole of each bucket that it can serve needs."""

    name: str
    usd: Fraction
    needed: dict[str, Fraction]
    most: int


def kinds_of(loaded: LoadedServing, prices: dict[str, Fraction]) -> list[Kind]:
    """Kinds of the question; more machines than all its buckets need are of no use."""
    serving, out = loaded.serving, []
    free = 1 - Fraction(float(serving.headroom_ratio))
    for machine in serving.machines:
        if machine.name not in prices:
            continue
        speeds = {b.name: loaded.speeds.get((machine.name, b.name), 0.0) for b in serving.buckets}
        needed = {
            b.name: Fraction(float(b.requests_per_s)) / (Fraction(speeds[b.name]) * free)
            for b in serving.buckets
            if speeds[b.name] > 0
        }
        useful = ceil(sum(needed.values(), Fraction(0)) + _OVERLOAD)
        most = min(useful, machine.max_nodes or useful, serving.max_nodes or useful)
        out.append(Kind(machine.name, prices[machine.name], needed, most))
    return out


def proven(kinds: list[Kind], buckets: list[str], max_nodes: int | None, tree: Node) -> Fraction:
    """The bound that a tree proves: the least of its leaves'.

    Raises:
        MalformedError: it is no tree over these machines and buckets.
    """
    nodes = list(tree)
    if not 0 < len(nodes) <= MOST_NODES:
        tree.fail(f"a tree of 1 to {MOST_NODES} nodes")
    rows = iter(nodes)
    bound: Fraction | None = None
    open_ranges = [{kind.name: (0, kind.most) for kind in kinds}]
    while open_ranges:
        ranges = open_ranges.pop()
        node = next(rows, None)
        if node is None:
            tree.fail("a tree whose splits all have two sides")
        if "machine" in node:
            open_ranges += _split(ranges, node)
        else:
            of_leaf = _leaf(kinds, buckets, max_nodes, ranges, node)
            bound = of_leaf if bound is None else min(bound, of_leaf)
    if next(rows, None) is not None:
        tree.fail("a tree without further nodes")
    return max(bound or Fraction(0), Fraction(0))


def _split(ranges: dict[str, tuple[int, int]], node: Node) -> Iterator[dict[str, tuple[int, int]]]:
    """Both sides of a split, the one taken last first."""
    name, most = node["machine"].text(), node["most"].count()
    if name not in ranges:
        node["machine"].fail("a machine of the question")
    low, high = ranges[name]
    yield {**ranges, name: (max(low, most + 1), high)}
    yield {**ranges, name: (low, min(high, most))}


def _leaf(
    kinds: list[Kind],
    buckets: list[str],
    max_nodes: int | None,
    ranges: dict[str, tuple[int, int]],
    node: Node,
) -> Fraction:
    prices, machine_price = {}, node["machine_price"].money()
    for bucket in buckets:
        prices[bucket] = node["prices"][bucket].money()
        if prices[bucket] < 0:
            node["prices"][bucket].fail("a price of at least 0")
    if machine_price < 0 or (machine_price and max_nodes is None):
        node["machine_price"].fail("a price of at least 0, and 0 where machines are not limited")
    bound = sum(prices.values(), Fraction(0)) - machine_price * (max_nodes or 0)
    for kind in kinds:
        low, high = ranges[kind.name]
        if low > high:  # no fleet has such counts: any bound holds
            return Fraction(10) ** 30
        bound += _least(kind, prices, machine_price, low, high)
    return bound


def _least(kind: Kind, prices: dict[str, Fraction], machine_price: Fraction, low: int, high: int) -> Fraction:
    """Least of what whole machines cost beyond what they earn: convex in their number, so next to its bend."""
    cost = kind.usd + machine_price
    rows = sorted(
        ((prices[name] / load, load) for name, load in kind.needed.items() if prices[name] > 0), reverse=True
    )
    # n machines have a hair more room than n, none as much as one has more
    room = 1 + _OVERLOAD
    bend = floor(sum((load for density, load in rows if density * room > cost), Fraction(0)) / room)
    counts = {min(max(count, low), high) for count in (0, 1, bend - 1, bend, bend + 1)}
    return min(cost * count - _earned(rows, count + _OVERLOAD * max(1, count)) for count in counts)


def _earned(rows: list[tuple[Fraction, Fraction]], room: Fraction) -> Fraction:
    """What shares earn on so many machines, those first that earn most per machine."""
    value = Fraction(0)
    for density, load in rows:
        served = min(load, room)
        value, room = value + density * served, room - served
    return value
