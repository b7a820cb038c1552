"""How the chosen candidate of a job is bought: its parts with their cost lines, priced as `planner optimize` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from planner.market.pricing import total_usd
from planner.portfolios.own_machines import pool_name
from planner.portfolios.shared_limits import MICRO

if TYPE_CHECKING:
    from planner.portfolios.gather import Gathered
    from planner.portfolios.table import CandidateTable, Way

_ROUNDING_USD = 1e-5  # of sums of lines in floating point


@dataclass(frozen=True)
class Bought:
    """One job as bought.

    Attributes:
        how: purchase options in words, fall-back and zones included.
        nodes: instances that run together.
        in_turn: whether the parts are used one after another.
        parts: per offer: its id, instances, hours in use, draws on quota, the commitment of the file, cost lines.
    """

    how: str
    nodes: int
    in_turn: bool
    parts: tuple[dict[str, Any], ...]


def _pool(gathered: Gathered, way: Way, number: int) -> str | None:
    """What limits a part: a commitment of the portfolio, or a machine of a workload's file."""
    place = (way.provider, way.region, way.instance_type, way.purchase_option)
    return None if number < 0 else pool_name(number, gathered.declared, place)


def bought_of(gathered: Gathered, table: CandidateTable, at: int) -> Bought:
    """Describe candidate `at` of `table`.

    Raises:
        PlannerError: its lines cost something else than what the solver was told: a fault, never a plan.
    """
    used = [slot for slot in range(table.way.shape[1]) if table.way[at, slot] >= 0]
    ways = [gathered.ways[int(table.way[at, slot])] for slot in used]
    parts: list[dict[str, Any]] = [
        {
            "offer_id": way.offer_id, "nodes": int(table.nodes[at, slot]),
            "draws": dict(way.amounts), "owned": bool(0 <= table.pool[at, slot] < gathered.declared),
            "commitment": _pool(gathered, way, int(table.pool[at, slot])),
        }
        for way, slot in zip(ways, used, strict=True)
    ]  # fmt: skip
    if table.source[at] < 0:
        return Bought(ways[0].purchase_option, parts[0]["nodes"], False, tuple(parts))
    source, row = gathered.sources[int(table.source[at])], int(table.row[at])
    own = source.bought(row)
    for part, purchase in zip(parts, own.parts, strict=True):
        part |= {name: value for name, value in purchase.to_dict().items() if name not in part}
    total = total_usd([line for purchase in own.parts for line in purchase.lines])
    counted = int(table.cost_micro_usd[at]) / MICRO
    if abs(float(total) - counted) > 1e-9 * abs(counted) + _ROUNDING_USD:
        raise PlannerError(f"the lines of {own.how} cost {total}, the solver was given {counted}")
    nodes = parts[0]["nodes"] if own.in_turn else sum(part["nodes"] for part in parts)
    return Bought(own.how, nodes, own.in_turn, tuple(parts))
