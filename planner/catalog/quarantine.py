"""Quotes in quarantine as an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.render.model import Answer, Column, Value, table_section, versioned

if TYPE_CHECKING:
    from catalogs.refresh.confirm import Quote


def quarantine_answer(quotes: Sequence[Quote]) -> Answer:
    """The list of quotes that wait for a person."""
    from catalogs.refresh.confirm import Quote

    columns = (
        Column("offer_id", "offer", "text"), Column("price_per_hour", "quote/h", "price"),
        Column("as_of", "of", "date"), Column("accepted_price_per_hour", "in use/h", "text"),
        Column("accepted_as_of", "of", "date"), Column("reason", "why", "count"),
    )  # fmt: skip
    reasons = list(dict.fromkeys(quote.reason for quote in quotes))
    rows: list[tuple[Value, ...]] = [
        (
            quote.offer_id, (Decimal(quote.price_per_hour), quote.currency, False), quote.as_of,
            quote.accepted_price_per_hour or "none", quote.accepted_as_of, 1 + reasons.index(quote.reason),
        )
        for quote in quotes
    ]  # fmt: skip
    values = [
        {name: None if value == "" else value for name, value in asdict(quote).items()} for quote in quotes
    ]
    note = "`planner catalog accept OFFER_ID` confirms a quote; globs such as 'aws/us-east-1/*' confirm many"
    notes = [*(f"why {number}: {reason}" for number, reason in enumerate(reasons, start=1)), note]
    section = table_section("quarantine", "Quotes in quarantine", columns, rows, notes if quotes else [])
    return Answer(
        "Quotes in quarantine", f"{len(quotes)} quotes wait for a person", (), (section,),
        versioned({"quotes": values}), [one.name for one in fields(Quote)], [asdict(quote) for quote in quotes],
    )  # fmt: skip
