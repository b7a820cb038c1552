"""What an accepted action has saved: the cost that its use would have had, less the cost that it had.

The counterfactual, by what the action changes:

- `sku` (spot, another region): its quantity in the accepted month's mix of regions and pricing, at the prices of the
  later month, or the accepted month's where the later one has none;
- `resource` (deletions): the accepted month's cost of a day, each day;
- `commitment` (unused commitments): the accepted month's unused cost of a day, each day;
- `service` (more commitments): its use at contracted prices times the accepted month's cost over contracted cost, less
  what other actions on parts of that use saved, which lower the same ratio.

The range is the counterfactual at the 10th and at the 90th percentile of the accepted month's days.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.finops.ledger.book import Entry, Mix
from planner.records import record

# kind of action -> what it is measured by
SCOPES = {
    "switch_option": "sku", "move_region": "sku", "delete_idle": "resource", "commit_less": "commitment",
    "commit_more": "service",
}  # fmt: skip
WHY_NOT = {
    "renew": "what a renewed commitment saves is in the section on commitments",
    "look_into": "an excess that is over saves nothing later",
}


@record(frozen=True)
class Saved:
    """Realised saving of one month, in the bill's currency; below 0: it cost more.

    Attributes:
        low, high: with the counterfactual at the 10th and 90th percentile of the days before.
        days: days of the month that were measured.
    """

    month: str
    amount: float
    low: float
    high: float
    days: int


def action_id(kind: str, provider: str, service: str, thing: str) -> str:
    """A stable name of an action: the same in every month in which it is named."""
    text = "\x1f".join((kind, provider, service, thing))
    return f"{kind.replace('_', '-')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def baseline(entry: dict[str, Any], frame: Any, days: int) -> Entry:
    """Complete an entry with what its use was in the month.

    Args:
        entry: its other fields.
        frame: rows of the KPI `use_by_day` of the month.
        days: of the month that the bill covers.
    """
    scope = entry["scope"]
    if not scope or frame.empty:
        return Entry(**{**entry, "scope": ""})
    entry = entry | {"services": tuple(sorted(frame["service"].dropna().astype(str).unique()))}
    by_day = frame.groupby("x_day")[["quantity", "effective_cost", "contracted_cost"]].sum()
    cost = by_day["effective_cost"].tolist()
    if scope in ("resource", "commitment"):
        daily = [*cost, *([0.0] * (days - len(cost)))]
        low, high = _spread(daily)
        return Entry(**entry, per_day=math.fsum(cost) / days, low=low, high=high)
    below = by_day["quantity" if scope == "sku" else "contracted_cost"].tolist()
    ratios = [c / b for c, b in zip(cost, below, strict=True) if b > 0]
    low, high = _spread(ratios)
    if scope == "service":
        return Entry(**entry, rate=math.fsum(cost) / math.fsum(below), low=low, high=high)
    return Entry(**entry, mix=_mix(frame), low=low, high=high)


def _mix(frame: Any) -> tuple[Mix, ...]:
    own = _by_place(frame)
    whole = math.fsum(quantity for quantity, _ in own.values())
    return tuple(
        Mix(*place, quantity / whole, cost / quantity)
        for place, (quantity, cost) in sorted(own.items())
        if quantity > 0
    )


def _by_place(frame: Any) -> dict[tuple[str, str], tuple[float, float]]:
    names = ["region_id", "pricing_category"]
    own = frame.assign(**{name: frame[name].fillna("").astype(str) for name in names})
    sums = own.groupby(names)[["quantity", "effective_cost"]].sum()
    return {
        (str(r), str(p)): (float(row["quantity"]), float(row["effective_cost"]))
        for (r, p), row in sums.iterrows()
    }


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """The 10th and the 90th percentile over the mean, around 1."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if mean <= 0:
        return 1.0, 1.0
    ranked = sorted(values)
    at = [ranked[min(len(ranked) - 1, math.floor(q * len(ranked)))] / mean for q in (0.1, 0.9)]
    return min(at[0], 1.0), max(at[1], 1.0)


def saved(entry: Entry, frame: Any, month: str, days: int) -> Saved:
    """What an entry saved in a month.

    Args:
        entry: accepted in an earlier month.
        frame: rows of the KPI `use_by_day` of the month.
        month: `2026-11`.
        days: of the month that the bill covers.
    """
    cost = float(frame["effective_cost"].sum())
    if entry.scope in ("resource", "commitment"):
        without = entry.per_day * days
    elif entry.scope == "service":
        without = entry.rate * float(frame["contracted_cost"].sum())
    else:
        without = _at_old_mix(entry, frame)
    return Saved(month, without - cost, without * entry.low - cost, without * entry.high - cost, days)


def parts_of(entry: Entry, others: Sequence[Entry]) -> list[Entry]:
    """Actions on parts of a service whose savings its measure holds too: those on its commitments and to spot.

    Not those accepted before it, whose saving its baseline has already. A move lowers cost and contracted cost alike.
    """
    return [
        one
        for one in others
        if entry.scope == "service"
        and one.kind in ("commit_less", "switch_option")
        and one.provider == entry.provider
        and entry.thing in one.services
        and one.accepted >= entry.accepted
    ]


def less(savings: Sequence[Saved], others: Sequence[Saved]) -> list[Saved]:
    """Savings by month less what others saved in it."""
    counted: dict[str, float] = {}
    for one in others:
        counted[one.month] = counted.get(one.month, 0.0) + one.amount
    return [
        replace(
            one,
            **{name: getattr(one, name) - counted.get(one.month, 0.0) for name in ("amount", "low", "high")},
        )
        for one in savings
    ]


def _at_old_mix(entry: Entry, frame: Any) -> float:
    now = _by_place(frame)
    prices = {place: cost / quantity for place, (quantity, cost) in now.items() if quantity > 0}
    price = math.fsum(part.share * prices.get((part.region, part.pricing), part.price) for part in entry.mix)
    return price * math.fsum(quantity for quantity, _ in now.values())
