"""GPU machines that were paid ahead: the purchase bears the cost, and the use of them costs nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any


def spread_ahead(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the KPI `gpu_resources` in which the use of what was bought ahead bears its share of the purchase.

    Of one kind of machine in a region, an hour costs the purchases over the hours that were bought, or over those that
    were used where they are more; hours that nobody used stay with the purchase. The cost of all rows is the same.
    """
    out: list[dict[str, Any]] = []
    pools: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        key = tuple(str(row[name]) for name in ("provider", "region_id", "details"))
        (out if row["kind"] == "paid" else pools[key]).append(row)
    for pool in pools.values():
        out += _spread(pool)
    return out


def _spread(pool: list[dict[str, Any]]) -> list[dict[str, Any]]:
    bought = [row for row in pool if row["kind"] == "bought"]
    cost = math.fsum(float(row["effective_cost"]) for row in bought)
    paid, used = (
        math.fsum(float(row["gpu_hours"]) for row in pool if row["kind"] == kind)
        for kind in ("bought", "free")
    )
    if not bought or used <= 0:
        return pool
    price, left = cost / max(paid, used), max(0.0, paid - used)
    share = [float(row["gpu_hours"]) / paid if paid > 0 else 1 / len(bought) for row in bought]
    return [
        *(row | {"effective_cost": price * float(row["gpu_hours"])} for row in pool if row["kind"] == "free"),
        *(row | {"gpu_hours": left * part, "effective_cost": price * left * part}
          for row, part in zip(bought, share, strict=True) if left),
    ]  # fmt: skip
