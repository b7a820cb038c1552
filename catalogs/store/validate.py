"""Validation by the data dictionary: every fault with its place; a wrong row is refused, never repaired."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalogs.offers.flags import load_flags, split_flags
from catalogs.store.plausible import band_of
from catalogs.tables.columns import Column, is_date, load_columns
from catalogs.tables.model import INSTANCE_TYPE_KEY, OFFER_KEY, offer_id
from catalogs.tables.regions import residency_groups

Row = Mapping[str, str]
KEYS: Mapping[str, tuple[str, ...]] = {
    "instance_types": INSTANCE_TYPE_KEY,
    "offers": OFFER_KEY,
    "accelerators": ("accelerator",),
    "interconnects": ("scope", "interconnect"),
    "regions": ("provider", "region"),
    "flags": ("flag",),
    "commitment_ratios": ("provider", "instance_type", "purchase_option", "option_variant"),
}


@dataclass(frozen=True)
class Fault:
    """One reason why a row is refused.

    Attributes:
        table: table name.
        provider: provider id, "" where the table has none.
        row: the row's key, printed.
        column: column name, "" for the row as a whole.
        reason: what is wrong.
    """

    table: str
    provider: str
    row: str
    column: str
    reason: str

    def __str__(self) -> str:
        place = f"{self.table}: {self.row}"
        return f"{place}: {self.column}: {self.reason}" if self.column else f"{place}: {self.reason}"


@dataclass(frozen=True)
class References:
    """What keys may point at.

    Attributes:
        accelerators: canonical ids.
        counts: (provider, instance_type) to (accelerator id, accelerator count).
        regions: known (provider, region); empty means any.
        usd_per: USD per unit of a currency, for the plausibility of prices.
    """

    accelerators: frozenset[str]
    counts: Mapping[tuple[str, str], tuple[str, float]]
    regions: frozenset[tuple[str, str]]
    usd_per: Mapping[str, float]

    @classmethod
    def of(
        cls, accelerators: Sequence[Row], types: Sequence[Row], usd_per: Mapping[str, float]
    ) -> References:
        """Take the keys of text rows, and the regions of regions.csv."""
        counts = {
            (row["provider"], row["instance_type"]): (row["accelerator"], _number(row["accelerator_count"]))
            for row in types
        }
        ids = frozenset(row["accelerator"] for row in accelerators)
        return cls(ids, counts, frozenset(residency_groups()), {"USD": 1.0, **usd_per})


def validate_rows(
    table: str, rows: Sequence[Row], references: References
) -> tuple[list[dict[str, str]], tuple[Fault, ...]]:
    """Check text rows against the data dictionary.

    Args:
        table: table name in the data dictionary.
        rows: text cells by column name.
        references: what keys may point at.

    Returns:
        The rows without a fault, and every fault of the others.
    """
    valid: list[dict[str, str]] = []
    faults: list[Fault] = []
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        key = tuple(row.get(name, "") for name in KEYS[table])
        row_faults = [
            _fault(table, row, key, column.name, reason)
            for column, reason in _cell_faults(table, row, references)
        ]
        if key in seen:
            row_faults.append(
                _fault(table, row, key, "", "the key is listed twice; the later row is refused")
            )
        if table == "offers" and not row_faults:
            row_faults = [
                _fault(table, row, key, column, reason) for column, reason in _offer_faults(row, references)
            ]
        if row_faults:
            faults.extend(row_faults)
        else:
            seen.add(key)
            valid.append(dict(row))
    return valid, tuple(faults)


def _fault(table: str, row: Row, key: tuple[str, ...], column: str, reason: str) -> Fault:
    return Fault(table, row.get("provider", ""), offer_id(key), column, reason)


def _cell_faults(table: str, row: Row, references: References) -> list[tuple[Column, str]]:
    out = []
    for column in load_columns()[table]:
        text = row.get(column.name, "")
        reason = _cell_fault(column, text, row, references)
        if reason:
            out.append((column, reason))
    return out


def _cell_fault(column: Column, text: str, row: Row, references: References) -> str:
    if not text:
        return "" if column.nullable else "is missing"
    if column.dtype in ("number", "decimal"):
        return _number_fault(column, text)
    if column.dtype == "date" and not is_date(text):
        return f"{text!r} is not an ISO date or month"
    if column.dtype == "bool" and text not in ("true", "false"):
        return f"{text!r} is neither true nor false"
    if column.dtype == "one_of" and text not in column.choices:
        return f"{text!r} is not one of {', '.join(column.choices)}"
    if column.references == "accelerators" and text not in references.accelerators:
        return f"unknown accelerator {text!r}"
    if column.references == "instance_types" and (row.get("provider", ""), text) not in references.counts:
        return f"unknown instance type {text!r}"
    return ""


def _number_fault(column: Column, text: str) -> str:
    value = _number(text)
    if not math.isfinite(value):
        return f"{text!r} is not a finite number"
    if column.low is not None and value < column.low:
        return f"{text} is below {column.low:g}"
    if column.high is not None and value > column.high:
        return f"{text} is above {column.high:g}"
    return ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _offer_faults(row: Row, references: References) -> list[tuple[str, str]]:
    """Faults of an offer whose cells are well formed: place, currency, flags and plausibility."""
    out = []
    if references.regions and (row["provider"], row["region"]) not in references.regions:
        out.append(("region", f"unknown region {row['region']!r} of {row['provider']}"))
    unknown = [flag for flag in split_flags(row.get("flags", "")) if flag not in load_flags()]
    if unknown:
        out.append(("flags", f"unknown flag {', '.join(unknown)}"))
    if row["currency"] not in references.usd_per:
        out.append(("currency", f"no exchange rate for {row['currency']!r}"))
        return out
    accelerator, count = references.counts[row["provider"], row["instance_type"]]
    price = _number(row["price_per_hour"]) * references.usd_per[row["currency"]] / count
    band = band_of(accelerator)
    if band and not band.low <= price <= band.high:
        place = f"{price:.4g} USD per {accelerator} and hour is outside {band.low:g} to {band.high:g}"
        out.append(("price_per_hour", f"implausible: {place}"))
    return out
