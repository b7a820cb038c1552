"""Units in use by the hour as a bill charges them: usage rows of a pool, spread over their charge period."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError

if TYPE_CHECKING:
    from planner.inputs.commit_schema import Pool

_TYPES = ("InstanceType", "x_InstanceType", "SkuId", "SkuPriceId")
_HOUR = timedelta(hours=1)


def used_hours(path: Path, pools: Sequence[Pool]) -> Iterator[tuple[datetime, int, float]]:
    """Hour, pool and units of every usage row; a commitment that nobody used is no use."""
    from planner.finops.read import open_bill

    extra = tuple(dict.fromkeys([*_TYPES, *(column for pool in pools for column in pool.usage)]))
    with open_bill([path], extra_columns=extra, costs=False) as bill:
        if faults := [finding.message for finding in bill.findings if finding.severity == "error"]:
            raise InputError(faults[0])
        rows = bill.engine.query("SELECT * FROM focus").to_dict("records")
    for row in rows:
        cells = {str(name): cell if isinstance(cell, str) else "" for name, cell in row.items()}
        if (cells.get("ChargeCategory") or "Usage") != "Usage" or cells.get(
            "CommitmentDiscountStatus"
        ) == "Unused":
            continue
        pool = next((at for at, candidate in enumerate(pools) if _belongs(cells, candidate)), None)
        if pool is None:
            continue
        amount = row.get("ConsumedQuantity")
        if amount is None or amount != amount:
            amount = row.get("PricingQuantity")
        begin, end = (_utc(row[name]) for name in ("ChargePeriodStart", "ChargePeriodEnd"))
        hour, length = begin.replace(minute=0, second=0, microsecond=0), (end - begin) / _HOUR
        while hour < end:
            inside = (min(hour + _HOUR, end) - max(hour, begin)) / _HOUR
            yield hour, pool, float(amount or 0.0) * inside / length
            hour += _HOUR


def _utc(moment: Any) -> datetime:
    aware: datetime = moment.to_pydatetime()
    return aware.replace(tzinfo=UTC)


def _belongs(cells: dict[str, str], pool: Pool) -> bool:
    if pool.usage:
        return all(cells.get(column, "") == value for column, value in pool.usage.items())
    return (
        pool.instance_type is not None
        and cells.get("RegionId", "") == pool.region
        and _type(cells) == pool.instance_type
    )


def _type(cells: dict[str, str]) -> str:
    try:
        details = json.loads(cells.get("SkuPriceDetails") or "{}")
    except (ValueError, RecursionError):
        details = {}
    if not isinstance(details, dict):
        details = {}
    detailed = [details.get(name) for name in ("InstanceType", "x_InstanceType")]
    types = [name for name in detailed if isinstance(name, str)] + [
        cells[name] for name in _TYPES if cells.get(name)
    ]
    return types[0] if types else ""
