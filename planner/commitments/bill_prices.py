"""What an hour of a machine costs by a bill, on demand and under the commitments that it shows.

The price of a commitment is the machine's own price on demand times what its covered hours cost (EffectiveCost) over
what they would have cost without (ContractedCost, else ListCost), of the last 30 days: a machine that is sold in
several sizes under one name keeps its ratio. It is what is paid today, no offer. A catalog's price stands before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.purchase_options import CommitOption

Key = tuple[str, str, str]  # provider id, region, machine type


@record(frozen=True)
class BillPrices:
    """Prices of one kind of machine, USD per hour.

    Attributes:
        on_demand: contracted, else list, of all its use but spot.
        committed: by the option that its commitments are nearest to; those that save nothing are left out.
    """

    on_demand: float
    committed: Mapping[CommitOption, float]


def bill_prices(
    rows: Sequence[Mapping[str, Any]],
    covered: Sequence[Mapping[str, Any]],
    options: Mapping[str, CommitOption],
) -> dict[Key, BillPrices]:
    """Prices by pool; pools without a commitment of their own have none.

    Args:
        rows: use by pool: `key`, `hours` and `priced`, its cost at known contracted or list prices.
        covered: use under commitments by pool: `key`, `id`, `used_hours`, `known_cost`, `known_price`.
        options: the option that each commitment is nearest to.
    """
    hours, cost = _sums(rows, "hours"), _sums(rows, "priced")
    paid: dict[tuple[Key, CommitOption], float] = {}
    instead: dict[tuple[Key, CommitOption], float] = {}
    for row in covered:
        if (name := str(row["id"])) in options:
            of = (row["key"], options[name])
            paid[of] = paid.get(of, 0.0) + _number(row["known_cost"])
            instead[of] = instead.get(of, 0.0) + _number(row["known_price"])
    out: dict[Key, BillPrices] = {}
    for (key, option), price in sorted(instead.items()):
        on_demand = cost.get(key, 0.0) / hours[key] if hours.get(key, 0.0) > 0 else 0.0
        if on_demand > 0 and 0 < paid[key, option] < price:
            known = out[key].committed if key in out else {}
            committed = {**known, option: round(on_demand * paid[key, option] / price, 6)}
            out[key] = BillPrices(round(on_demand, 6), committed)
    return out


def _sums(rows: Sequence[Mapping[str, Any]], name: str) -> dict[Key, float]:
    """Sum of a column by pool, of rows whose price is known."""
    out: dict[Key, float] = {}
    for row in rows:
        if math.isfinite(_number(row["priced"], math.nan)):
            out[row["key"]] = out.get(row["key"], 0.0) + _number(row[name])
    return out


def _number(value: Any, otherwise: float = 0.0) -> float:
    """A cell as a number; NULL and NaN are `otherwise`."""
    return otherwise if value is None or not math.isfinite(float(value)) else float(value)
