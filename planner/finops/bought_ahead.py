"""What was bought ahead: purchases that bear the cost of machines whose use costs nothing, divided by the hours of use.

A capacity block is a purchase with a cost of its own, and so is a reservation in a bill without EffectiveCost. An hour
of its use bears the price over the hours that were bought, or over those that were used where they are more (a fee
without hours: over those alone). Hours that nobody used stay with the purchase, in its month.

The use of a month takes the hours that were bought in it, then those that purchases of other months have left, the
earliest first, and its cost goes with it. So the months, and the runs and what is left, add up to the price.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from planner.records import record

State = Literal["used", "unused", "left"]
_Key = tuple[str, ...]
_NIL = 1e-6  # hours or money


@record(frozen=True)
class Share:
    """A part of what was bought ahead.

    Attributes:
        provider, service, region, machine, reservation: as the charge of use names them, for hours that are left as the
            purchase does; empty where it does not.
        commitment: id of the commitment discount; empty for capacity blocks and the like.
        month: of the use, for hours that are left of the purchase, `2026-10`.
        run: id of the run that used it; empty for other use.
        state: `used`; `unused`: use charges that name their capacity as unused; `left`: of a purchase, in no charge.
        hours: GPU-hours; of machines without GPUs machine-hours.
        cost: its share of the price, in the bill's currency.
        has_gpus: whether the hours are GPU-hours.
        is_measured: whether the bill says how much was bought.
    """

    provider: str
    service: str
    region: str
    machine: str
    reservation: str
    commitment: str
    month: str
    run: str
    state: State
    hours: float
    cost: float
    has_gpus: bool
    is_measured: bool

    @property
    def place(self) -> _Key:
        """Provider, service, region and machine type."""
        return self.provider, self.service, self.region, self.machine


@record(frozen=True)
class Moved:
    """What a month's own charges do not tell of its GPUs that were bought ahead: hours and cost to add.

    `counted`: of the cost, what is of charges that tell their hours.
    """

    hours: float
    cost: float
    counted: float


def divide_ahead(rows: Iterable[Mapping[str, Any]]) -> tuple[Share, ...]:
    """Divide purchases by their use.

    Args:
        rows: of the KPI `bought_ahead`; months as dates, or as text that begins with `2026-10`.

    Returns:
        Parts that add up to the purchases. Commitment discounts of which the bill does not say how much was bought are
        left out: a bill seldom has all of their term.
    """
    pools: dict[_Key, list[Mapping[str, Any]]] = defaultdict(list)
    given = [{**row, "x_month": str(row["x_month"])[:7]} for row in rows]
    shared = _reservations(given, "Purchase") & _reservations(given, "Usage")
    for row in given:
        pools[_pool(row, shared)].append(row)
    return tuple(part for pool in pools.values() for part in _divided(pool))


def undivided(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Ids of commitment discounts that runs used for nothing, of which the bill does not say how much was bought."""
    given = [row for row in rows if _text(row["commitment_id"])]
    known = {share.commitment for share in divide_ahead(given)}
    return tuple(sorted({_text(row["commitment_id"]) for row in given if _text(row["run_id"])} - known))


def with_shares(runs: Any, parts: Iterable[Share]) -> Any:
    """Rows of the KPI `run_cost` with what the runs bear of what was bought ahead.

    It is in the cost of machines, of blocks priced as Other, of commitment discounts as Committed; `ahead_cost` is it
    alone.
    """
    shares: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for part in parts:
        if part.run:
            shares["committed_cost" if part.commitment else "other_cost"][part.run] += part.cost
    runs = runs.assign(ahead_cost=0.0)
    for name, costs in shares.items():
        more = runs["run_id"].map(costs).fillna(0.0).astype(float)
        for column in (name, "machine_cost", "effective_cost", "ahead_cost"):
            runs[column] = runs[column] + more
    return runs


def moved_gpu_hours(
    rows: Iterable[Mapping[str, Any]], parts: Iterable[Share], month: str
) -> dict[_Key, Moved]:
    """What to add to a month's own GPU-hours and cost, so that the use of other months' purchases bears its share.

    A month's own are the larger of the hours bought and used in it, and the cost of its purchases.

    Args:
        rows: of the KPI `bought_ahead`.
        parts: of these rows, `divide_ahead`.
        month: `2026-10`.

    Returns:
        By provider, service, region and machine type; places without a difference are left out.
    """
    own: dict[_Key, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in rows:
        if row["x_month"] == month and row["has_gpus"] and not _text(row["commitment_id"]):
            key = tuple(_text(row[name]) for name in ("provider", "service", "region_id", "machine"))
            own[key][row["charge_category"] == "Usage"] += float(row["gpu_hours"])
            own[key][2] += float(row["effective_cost"])
    wanted: dict[_Key, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for part in parts:
        if part.month == month and part.has_gpus and not part.commitment:
            wanted[part.place][0] += part.hours
            wanted[part.place][1] += part.cost
    found = {}
    for key in own.keys() | wanted.keys():
        (bought, used, paid), (hours, cost) = own[key], wanted[key]
        counted = (cost if hours > 0 else 0.0) - (paid if max(bought, used) > 0 else 0.0)
        found[key] = Moved(hours - max(bought, used), cost - paid, counted)
    return {
        key: one
        for key, one in sorted(found.items())
        if max(map(abs, (one.hours, one.cost, one.counted))) > _NIL
    }


def _reservations(rows: Iterable[Mapping[str, Any]], category: str) -> set[str]:
    return {_text(row["reservation_id"]) for row in rows if row["charge_category"] == category}


def _pool(row: Mapping[str, Any], shared: set[str]) -> _Key:
    """Charges that belong together: by commitment, by reservation where use and purchase name it, else by machine."""
    provider, commitment, reservation = (
        _text(row[name]) for name in ("provider", "commitment_id", "reservation_id")
    )
    if commitment:
        return "commitment", provider, commitment
    if reservation and (reservation in shared or not row["has_gpus"]):
        return "reservation", provider, reservation
    return "machine", provider, *(_text(row[name]) for name in ("service", "region_id", "machine"))


def _divided(pool: list[Mapping[str, Any]]) -> list[Share]:
    bought = [row for row in pool if row["charge_category"] == "Purchase"]
    used = [row for row in pool if row["charge_category"] == "Usage"]
    amount = _amount(bought, used)
    known, use = (math.fsum(map(amount, some)) for some in (bought, used))
    if _text(pool[0]["commitment_id"]) and known <= 0:
        return []
    rates: dict[str, float] = {}
    left: Mapping[str, tuple[float, float]] = {}
    if bought and (total := max(known, use)) > 0:
        rates, left = _spent(bought, used, amount, total)
    parts = [_part(row, _hours(row), amount(row) * rates.get(row["x_month"], 0.0), known > 0) for row in used]
    for row in bought:
        share = _share(row, [one for one in bought if one["x_month"] == row["x_month"]], amount)
        hours, cost = left.get(row["x_month"], (0.0, math.nan))
        cost = float(row["effective_cost"]) if cost != cost else cost * share
        parts.append(_part(row, hours * share, cost, known > 0))
    return parts


_Amount = Callable[[Mapping[str, Any]], float]


def _amount(bought: list[Mapping[str, Any]], used: list[Mapping[str, Any]]) -> _Amount:
    """What use and purchases are compared by: units of the commitment, GPU-hours or hours, whatever both have."""
    for name in ("committed_quantity", "gpu_hours", "hours"):
        if all(math.fsum(float(row[name]) for row in side) > 0 for side in (bought, used)):
            return lambda row: float(row[name])
    return _hours


def _hours(row: Mapping[str, Any]) -> float:
    """GPU-hours of a row; of machines without GPUs machine-hours."""
    return float(row["gpu_hours"] if row["has_gpus"] else row["hours"])


def _spent(
    bought: list[Mapping[str, Any]], used: list[Mapping[str, Any]], amount: _Amount, total: float
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Cost of an hour by month of use, and hours and cost that are left by month of purchase.

    Where no hours are stated, or a part was returned, all hours have one price.
    """
    hours: dict[str, float] = defaultdict(float)
    paid: dict[str, float] = defaultdict(float)
    need: dict[str, float] = defaultdict(float)
    for row in bought:
        hours[row["x_month"]] += amount(row)
        paid[row["x_month"]] += float(row["effective_cost"])
    for row in used:
        need[row["x_month"]] += amount(row)
    cost = math.fsum(paid.values())
    one_price = any(amount(row) <= 0 or float(row["effective_cost"]) < 0 for row in bought)
    weights = {month: max(0.0, value) for month, value in (paid if one_price else hours).items()}
    whole = math.fsum(weights.values())
    if whole <= 0:
        return {}, {}
    supply = {month: total * weight / whole for month, weight in sorted(weights.items())}
    price = {month: cost / total if one_price else paid[month] / own for month, own in supply.items()}
    costs: dict[str, float] = defaultdict(float)
    wanted = dict(sorted(need.items()))
    own_first = [(month, month) for month in wanted if month in supply]
    for month, source in (*own_first, *((month, source) for month in wanted for source in supply)):
        taken = max(0.0, min(wanted[month], supply[source]))
        costs[month] += taken * price[source]
        supply[source] -= taken
        wanted[month] -= taken
    rates = {month: costs[month] / own for month, own in need.items() if own > 0}
    return rates, {month: (own, own * price[month]) for month, own in supply.items()}


def _share(row: Mapping[str, Any], rows: list[Mapping[str, Any]], amount: _Amount) -> float:
    """A purchase's part of those of its month: by what was bought, else by cost."""
    for of in (amount, lambda one: float(one["effective_cost"])):
        whole = math.fsum(map(of, rows))
        if whole > 0:
            return of(row) / whole
    return 1 / len(rows)


def _part(row: Mapping[str, Any], hours: float, cost: float, is_measured: bool) -> Share:
    is_use = row["charge_category"] == "Usage"
    state: State = "left" if not is_use else "unused" if row["is_unused"] else "used"
    return Share(
        provider=_text(row["provider"]), service=_text(row["service"]), region=_text(row["region_id"]),
        machine=_text(row["machine"]), reservation=_text(row["reservation_id"]),
        commitment=_text(row["commitment_id"]), month=row["x_month"], run=_text(row["run_id"]) if is_use else "",
        state=state, hours=hours, cost=cost, has_gpus=bool(row["has_gpus"]), is_measured=is_measured,
    )  # fmt: skip


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)
