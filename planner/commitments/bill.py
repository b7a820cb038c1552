"""Machines in use by the hour or day, and commitments owned, from a bill.

Use is of rows with ChargeCategory Usage whose quantity counts hours of machines, on demand and covered by commitments;
spot (PricingCategory Dynamic) and unused commitments are none. A commitment counts as owned where it covered use in
the last 30 days: as many machines per pool as it covered on average, times what was paid over what was used
(EffectiveCost).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.answer import File
from planner.commitments.bill_prices import BillPrices, Key, bill_prices
from planner.commitments.history import type_of
from planner.commitments.stated_ends import with_stated
from planner.errors import InputError
from planner.finops.forecast.clean import history_start
from planner.finops.read import open_bill
from planner.finops.units.names import provider_id
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read import Bill
    from planner.inputs.purchase_options import CommitOption

KNOWN_DAYS = 396  # thirteen months
OWNED_DAYS = 30
LEAST_DAYS = 14
_DAY = timedelta(days=1)
_SILENT = timedelta(
    days=2
)  # at the bill's end: a commitment is charged, used or not, every day that it lasts
_HOUR = timedelta(hours=1)
_EXTRA = ("InstanceType", "x_InstanceType")
_KEYS = ("ServiceProviderName", "RegionId", "SkuPriceDetails", "SkuId", *_EXTRA)
_HOURS = (
    "CASE WHEN x_hours_of = 'machine' THEN PricingQuantity * x_unit_hours "
    "WHEN PricingUnit IS NULL AND LOWER(ConsumedUnit) IN ('hour', 'hours', 'hrs', 'h') THEN ConsumedQuantity END"
)
_IS_PRICED = "(x_contracted_known OR x_list_known)"
_PRICE = "CASE WHEN x_contracted_known THEN ContractedCost WHEN x_list_known THEN ListCost END"
_IS_USE = "ChargeCategory = 'Usage' AND COALESCE(PricingCategory, '') <> 'Dynamic'"
_NOT_UNUSED = " AND ".join(
    f"COALESCE({status}, '') <> 'Unused'"
    for status in ("CommitmentDiscountStatus", "CapacityReservationStatus")
)


@record(frozen=True)
class OwnedUse:
    """A commitment that the bill shows.

    Attributes:
        option: what it is nearest to; its term is 1 year where the bill does not tell it.
        key: the pool that it covers; one that covers several is as many of these.
        instances: machines that it covers.
        last_day: its last day; None where the bill does not tell.
    """

    option: CommitOption
    key: Key
    instances: float
    last_day: date | None


@record(frozen=True, eq=False)
class BillUse:
    """What a bill says of machines.

    Attributes:
        first, last: first and last day that is used of the bill.
        step_hours: 1 where the bill has hours, else 24.
        keys: the pools, the most expensive first.
        skus: those of them whose type no row names: the SKU stands for it, which may be no machine (a cluster's fee).
        use: machines in use per step, shape `(n, P)`.
        spend: cost of each pool's use at contracted prices, else at list, else effective, shape `(P,)`.
        owned: commitments.
        prices: of pools with commitments that save; of a bill in US dollars alone.
        files: the bill's files with the hash of their bytes.
        notes: what a reader must know.
    """

    first: date
    last: date
    step_hours: int
    keys: tuple[Key, ...]
    skus: frozenset[Key]
    use: Floats
    spend: Floats
    owned: tuple[OwnedUse, ...]
    prices: Mapping[Key, BillPrices]
    files: tuple[File, ...]
    notes: tuple[str, ...]


def read_use(
    paths: Sequence[str],
    *,
    currency: str | None = None,
    expires: Mapping[str, date] | None = None,
    mapping: Mapping[str, str] | None = None,
) -> BillUse:
    """Read machines in use and commitments of the last thirteen months of a bill.

    Args:
        paths: files, folders and globs of a bill.
        currency: rows of this currency only, where the bill has several.
        expires: last day of commitments, by their ids, where their owner knows it.
        mapping: FOCUS column -> column of the bill, for one in columns of its own.

    Raises:
        InputError: no bill, errors in it, no hours of machines, or fewer than 14 days of them, or it shows no
            commitment of an id in `expires`.
    """
    with open_bill(paths, currency=currency, extra_columns=_EXTRA, mapping=mapping) as bill:
        if faults := [finding for finding in bill.findings if finding.severity == "error"]:
            raise InputError(f"{paths[0]}: {faults[0].message}")
        notes = [finding.message for finding in bill.findings if finding.severity == "warning"]
        rows = _use_rows(bill)
        if not rows:
            raise InputError(
                f"{', '.join(paths)}: no usage row counts hours of a machine (ChargeCategory Usage, not spot, hours in "
                "PricingUnit, an instance type in SkuPriceDetails or x_InstanceType): there is nothing to commit to"
            )
        covered = _covered_rows(bill)
        ends = with_stated(_ends(bill), expires or {}, (str(row["id"]) for row in covered))
        files = tuple(File(source.path, source.sha256) for source in bill.sources)
        in_usd = bill.currency == "USD"
    first, last = _window(rows, ", ".join(paths))
    step = 1 if min(row["end_at"] - row["begin_at"] for row in rows) <= _HOUR else 24
    keys, use, spend = _table(rows, first, last, step)
    if (use < -1e-9).any():
        notes.append("corrections exceed the use of some hours or days: these count as without use")
    owned, said = _owned(covered, ends, last)
    days = (last - first).days + 1
    if days < KNOWN_DAYS:
        notes.append(f"the bill has {days} days of use, not thirteen months: changes by season are not seen")
    if step == 24:
        notes.append(
            "the bill counts by the day: peaks within a day are not seen, so commitments look better used"
        )
    options = {str(row["id"]): _option(row, ends.get(str(row["id"]))) for row in covered}
    prices = bill_prices(rows, _typed(covered), options) if in_usd else {}
    skus = frozenset(keys) - {row["key"] for row in rows if row["is_named"]}
    return BillUse(
        first, last, step, keys, skus, np.maximum(use, 0.0), spend, owned, prices, files, (*notes, *said)
    )


def _use_rows(bill: Bill) -> list[dict[str, Any]]:
    cost = f"COALESCE({_PRICE}, EffectiveCost)"
    keys = _present(bill)
    frame = bill.engine.query(
        f"SELECT ChargePeriodStart AS begin_at, COALESCE(ChargePeriodEnd, ChargePeriodStart + INTERVAL 1 DAY) "  # noqa: S608
        f"AS end_at, SUM({_HOURS}) AS hours, SUM({cost}) AS cost, "
        f"CASE WHEN COUNT({_PRICE}) = COUNT(*) THEN SUM({_PRICE}) END AS priced, {keys} "
        f"FROM focus WHERE {_IS_USE} AND {_NOT_UNUSED} "
        f"AND ({_HOURS}) IS NOT NULL AND x_day > (SELECT MAX(x_day) FROM focus WHERE {_IS_USE}) - "
        f"INTERVAL {KNOWN_DAYS + 1} DAY GROUP BY begin_at, end_at, {keys} ORDER BY begin_at, end_at, {keys}"
    )
    return [row for row in _typed(frame.to_dict("records")) if row["end_at"] > row["begin_at"]]


def _present(bill: Bill) -> str:
    there = bill.engine.query("SELECT * FROM focus WHERE 1 = 0").columns
    return ", ".join(f'"{name}"' for name in _KEYS if name in there)


def _typed(rows: Sequence[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """Rows of machines whose provider, region and type are known, with their `key`; a SKU alone does not name one."""
    out = []
    for row in rows:
        words = {str(name): value for name, value in row.items() if isinstance(value, str)}
        provider = words.get("ServiceProviderName", "")
        kind = type_of(words)
        if kind and words.get("RegionId"):
            key = (provider_id(provider) or provider.lower(), words["RegionId"], kind)
            is_named = bool(type_of(words | {"SkuId": ""}))
            out.append({str(name): value for name, value in row.items()} | {"key": key, "is_named": is_named})
    return out


def _window(rows: Sequence[Mapping[str, Any]], named: str) -> tuple[date, date]:
    """First and last whole day of use, at most thirteen months."""
    until = max(row["end_at"] for row in rows)
    last = (until - _DAY if until.time() == datetime.min.time() else until).date()
    if until.time() != datetime.min.time() and (until - datetime.combine(last, datetime.min.time())) < _DAY:
        last -= _DAY  # a day that has not ended
    first = max(_begun(rows), last - timedelta(days=KNOWN_DAYS - 1))
    if (days := (last - first).days + 1) < LEAST_DAYS:
        raise InputError(
            f"{named}: has {max(days, 0)} whole days of machines in use; {LEAST_DAYS} are needed to tell a level: "
            "give more months of the bill"
        )
    return first, last


def _begun(rows: Sequence[Mapping[str, Any]]) -> date:
    """First day of the history: corrections of a time before it are no use."""
    hours: dict[date, float] = {}
    for row in rows:
        day = row["begin_at"].date()
        hours[day] = hours.get(day, 0.0) + float(row["hours"])
    days = sorted(hours)
    found = history_start(np.array(days, dtype="datetime64[D]"), np.array([hours[day] for day in days]))
    return days[found]


def _table(
    rows: Sequence[Mapping[str, Any]], first: date, last: date, step: int
) -> tuple[tuple[Key, ...], Floats, Floats]:
    """Machines in use per step and pool, and what each pool cost, the most expensive first."""
    cost: dict[Key, float] = {}
    for row in rows:
        amount = float(row["cost"])
        cost[row["key"]] = cost.get(row["key"], 0.0) + (amount if np.isfinite(amount) else 0.0)
    keys = tuple(sorted(cost, key=lambda key: (-cost[key], key)))
    index = {key: number for number, key in enumerate(keys)}
    n = ((last - first).days + 1) * 24 // step
    use = np.zeros((n, len(keys)))
    begin = datetime.combine(first, datetime.min.time())
    for row in rows:
        low = (row["begin_at"] - begin) / _HOUR / step
        high = (row["end_at"] - begin) / _HOUR / step
        machines = float(row["hours"]) / (high - low) / step
        steps = np.arange(max(int(np.floor(low)), 0), min(int(np.ceil(high)), n))
        share = np.minimum(high, steps + 1) - np.maximum(low, steps)
        use[steps, index[row["key"]]] += machines * share
    return keys, use, np.array([cost[key] for key in keys])


def _covered_rows(bill: Bill) -> list[dict[str, Any]]:
    """Use and waste of each commitment in the last 30 days, by machine."""
    keys = _present(bill)
    used = "COALESCE(CommitmentDiscountStatus, 'Used') = 'Used'"
    frame = bill.engine.query(
        f"SELECT CommitmentDiscountId AS id, MAX(CommitmentDiscountCategory) AS category, "  # noqa: S608
        f"MAX(CommitmentDiscountType) AS type, MIN(x_day) AS first_day, "
        f"MAX(x_day) AS last_day, SUM(CASE WHEN {used} THEN {_HOURS} END) AS used_hours, "
        f"SUM(CASE WHEN NOT ({used}) THEN {_HOURS} END) AS unused_hours, "
        f"SUM(CASE WHEN {used} THEN EffectiveCost END) AS used_cost, "
        f"SUM(CASE WHEN NOT ({used}) THEN EffectiveCost END) AS unused_cost, "
        f"SUM(CASE WHEN {used} AND {_IS_PRICED} THEN EffectiveCost END) AS known_cost, "
        f"SUM(CASE WHEN {used} THEN {_PRICE} END) AS known_price, {keys} FROM focus "
        f"WHERE CommitmentDiscountId IS NOT NULL AND {_IS_USE} AND x_day > "
        f"(SELECT MAX(x_day) FROM focus WHERE {_IS_USE}) - INTERVAL {OWNED_DAYS} DAY "
        f"GROUP BY CommitmentDiscountId, {keys} ORDER BY CommitmentDiscountId, {keys}"
    )
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _ends(bill: Bill) -> dict[str, tuple[datetime, datetime]]:
    """First and last moment of each commitment whose end the bill tells; the contract's word counts more."""
    found: dict[str, tuple[datetime, datetime]] = {}
    for sql in (
        "SELECT CommitmentDiscountId AS id, MIN(ChargePeriodStart) AS begin_at, MAX(ChargePeriodEnd) AS end_at "
        "FROM focus WHERE ChargeCategory = 'Purchase' AND ChargeFrequency = 'One-Time' "
        "AND CommitmentDiscountId IS NOT NULL GROUP BY CommitmentDiscountId",
        "SELECT ContractCommitmentId AS id, MIN(ContractCommitmentPeriodStart) AS begin_at, "
        "MAX(ContractCommitmentPeriodEnd) AS end_at FROM ContractCommitment GROUP BY ContractCommitmentId",
    ):
        for row in bill.engine.query(sql).to_dict("records"):
            if row["begin_at"] == row["begin_at"] and row["end_at"] == row["end_at"]:  # not NaT
                found[str(row["id"])] = (row["begin_at"].to_pydatetime(), row["end_at"].to_pydatetime())
    return found


def _owned(
    rows: Sequence[Mapping[str, Any]], ends: Mapping[str, tuple[datetime, datetime]], last: date
) -> tuple[tuple[OwnedUse, ...], list[str]]:
    """Machines that each commitment covers, and what is not known of them."""
    notes, out = [], []
    endless: list[str] = []
    for name in sorted({str(row["id"]) for row in rows}):
        mine = [row for row in rows if row["id"] == name]
        used = _sum(mine, "used_cost")
        scale = 1 + _sum(mine, "unused_cost") / used if used > 0 else 1.0
        period = ends.get(name)
        if period is not None and period[1].date() <= last + _DAY:
            continue
        seen = [min(row["first_day"] for row in mine), max(row["last_day"] for row in mine)]
        begun, gone = (moment.to_pydatetime().date() for moment in seen)
        if last - gone > _SILENT:
            notes.append(f"commitment {name} has no charge after {gone}: it counts as ended")
            continue
        span_hours = ((gone - begun).days + 1) * 24
        hours: dict[Key, float] = {}
        for row in _typed(mine):
            counted = _sum([row], "used_hours") * scale if used > 0 else _sum([row], "unused_hours")
            hours[row["key"]] = hours.get(row["key"], 0.0) + counted
        if not any(amount > 0 for amount in hours.values()):
            notes.append(
                f"commitment {name} covers no hours of machines that are known: nothing is taken off for it"
            )
            continue
        endless += [name] if period is None else []
        last_day = None if period is None else (period[1] - timedelta(microseconds=1)).date()
        option = _option(mine[0], period)
        out += [
            OwnedUse(option, key, round(amount / span_hours, 3), last_day)
            for key, amount in sorted(hours.items())
            if amount / span_hours >= 0.0005
        ]
    if endless:
        notes.append(
            "the bill does not say when these commitments end, so they count as owned all year "
            "(--expires ID=DATE states it): "
            + ", ".join(endless[:5])
            + (f" and {len(endless) - 5} more" if len(endless) > 5 else "")
        )
    return tuple(out), notes


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    values = [float(row[name]) for row in rows if row[name] is not None]
    return float(sum(value for value in values if np.isfinite(value)))


def _option(row: Mapping[str, Any], period: tuple[datetime, datetime] | None) -> CommitOption:
    """The purchase option that a commitment is nearest to."""
    long = period is not None and (period[1] - period[0]).days > 2 * 365
    words = f"{row['category']} {row['type']}".lower()
    if "saving" in words or "spend" in words.split():
        return "savings_plan_3y" if long else "savings_plan_1y"
    if "committed" in words or "cud" in words:
        return "cud_3y" if long else "cud_1y"
    return "reserved_3y" if long else "reserved_1y"
