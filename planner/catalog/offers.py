"""Offers of the catalog, cheapest first, as an answer."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from catalogs.tables.model import OFFER_KEY, offer_id
from planner.render.model import Answer, Column, Value, table_section, versioned

if TYPE_CHECKING:
    from catalogs.tables.table import Table

_LISTED = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "purchase_option",
    "option_variant",
    "accelerator",
    "accelerator_count",
    "accelerator_memory_gib",
    "price_per_hour",
    "currency",
    "usd_per_hour",
    "usd_per_accelerator_hour",
    "usd_per_pflop_hour",
    "usd_per_gib_hour",
    "term_hours",
    "basis",
    "interruption_band",
    "flags",
    "refused_by",
    "source",
    "as_of",
)
_METRICS = {
    "usd_per_pflop_hour": "USD/PFLOP-h",
    "usd_per_accelerator_hour": "USD/accel-h",
    "usd_per_gib_hour": "USD/GiB-h",
}


def offers_answer(offers: Table, metric: str, said: str) -> Answer:
    """Offers as an answer.

    Args:
        offers: in the order to show.
        metric: column that they are sorted by; shown beside the price.
        said: how many there are and what was excluded.
    """
    records = list(offers.rows())
    rows = [{name: known(record[name]) for name in _LISTED} for record in records]
    ids = [offer_id(key) for key in offers.keys_of(*OFFER_KEY)]
    columns = [
        Column("place", "place", "place"), Column("instance_type", "instance type", "text"),
        Column("accelerators", "accelerators", "devices"), Column("option", "option", "option"),
        Column("price_per_hour", "price/h", "price"),
    ]  # fmt: skip
    if metric in _METRICS:
        columns.append(Column(metric, _METRICS[metric], "quantity"))
    columns += [Column("as_of", "as of", "date"), Column("refused_by", "excluded by", "text")]
    section = table_section(
        "offers", "Offers", columns, [_row(record, metric) for record in records], _legend(records)
    )
    values = {"offers": [{"offer_id": key, **row} for key, row in zip(ids, rows, strict=True)]}
    return Answer(
        "Offers of the catalog", said, (), (section,) if rows else (), versioned(values), _LISTED, rows
    )


def known(value: Any) -> Any:
    """The value; None where it is empty or no number."""
    return None if value == "" or (isinstance(value, float) and math.isnan(value)) else value


def _row(record: Any, metric: str) -> tuple[Value, ...]:
    dollars = (
        Decimal(f"{record['usd_per_hour']:.6f}") if record["usd_per_hour"] == record["usd_per_hour"] else None
    )
    return (
        (record["provider"], record["region"], record["zone"]), record["instance_type"],
        (record["accelerator_count"], record["accelerator"]), (record["purchase_option"], ""),
        None if dollars is None else (dollars, "USD", record["basis"] == "derived"),
        *((known(record[metric]),) if metric in _METRICS else ()), record["as_of"], record["refused_by"],
    )  # fmt: skip


def _legend(records: list[Any]) -> list[str]:
    out = []
    if any(record["basis"] == "derived" for record in records):
        out.append("~ derived from a ratio or a fixed share, not a published price")
    if any(record["refused_by"] for record in records):
        out.append("`catalog show TYPE` shows why a flag excludes an offer")
    return out
