"""GPU machines that were paid ahead: the purchase bears the cost, and the use of them costs nothing."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from planner.finops.bought_ahead import Share


def spread_ahead(rows: Iterable[dict[str, Any]], parts: Iterable[Share]) -> list[dict[str, Any]]:
    """Rows of the KPI `gpu_resources` in which the use of what was bought ahead bears its share of the purchase.

    Of one kind of machine in a region an hour of use has one price, and hours that nobody used stay with the purchase.

    Args:
        rows: of one month.
        parts: what was bought ahead, divided, of the same month.
    """
    own = list(parts)
    out: list[dict[str, Any]] = []
    pools: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        key = (*(_text(row[name]) for name in ("provider", "region_id")), _machine(row["details"]))
        (out if row["kind"] == "paid" else pools[key]).append(row)
    for key, pool in pools.items():
        found = [one for one in own if (one.provider, one.region, one.machine) == key and not one.commitment]
        out += _spread(pool, found) if found else pool
    return out


def _spread(pool: list[dict[str, Any]], parts: list[Share]) -> list[dict[str, Any]]:
    bought, used = ([row for row in pool if row["kind"] == kind] for kind in ("bought", "free"))
    hours = math.fsum(float(row["gpu_hours"]) for row in used)
    paid = math.fsum(float(row["effective_cost"]) for row in bought)
    ours, left = ([one for one in parts if (one.state == "left") == is_left] for is_left in (False, True))
    price = math.fsum(one.cost for one in ours) / hours if hours else 0.0
    left_hours, left_cost = math.fsum(one.hours for one in left), math.fsum(one.cost for one in left)
    share = [float(row["effective_cost"]) / paid if paid else 1 / len(bought) for row in bought]
    return [
        *(row | {"effective_cost": price * float(row["gpu_hours"])} for row in used),
        *(row | {"gpu_hours": left_hours * part, "effective_cost": left_cost * part}
          for row, part in zip(bought, share, strict=True) if left_hours or left_cost),
    ]  # fmt: skip


def _machine(details: Any) -> str:
    """The machine type in SkuPriceDetails."""
    try:
        read = json.loads(_text(details) or "{}")
    except ValueError:
        return ""
    return _text(read.get("InstanceType")) if isinstance(read, dict) else ""


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)
