"""Quotes in quarantine of the catalog in use, and their confirmation by a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from catalogs.errors import CatalogInputError
from catalogs.model import OFFER_KEY, offer_id


@dataclass(frozen=True)
class Quote:
    """A quote that waits for a person.

    Attributes:
        offer_id: the offer.
        price_per_hour: what was quoted, in `currency`.
        currency: ISO 4217 code.
        as_of: date of the quote.
        reason: why it waits.
        accepted_price_per_hour: the price in use instead, "" where there is none.
        accepted_as_of: date of that price.
        source: where the quote was read.
    """

    offer_id: str
    price_per_hour: str
    currency: str
    as_of: str
    reason: str
    accepted_price_per_hour: str
    accepted_as_of: str
    source: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Quote:
        """Read one entry of a snapshot's list."""
        row = entry["row"]
        return cls(
            _id(row),
            row["price_per_hour"],
            row["currency"],
            row["as_of"],
            str(entry.get("reason", "")),
            str(entry.get("accepted_price_per_hour", "")),
            str(entry.get("accepted_as_of", "")),
            row["source"],
        )


def quarantine(directory: Path | None = None) -> tuple[Quote, ...]:
    """Quotes that wait in the catalog in use, by offer.

    Args:
        directory: snapshot directory; default see `catalogs.store.read.catalog_directory`.
    """
    from catalogs.store.load import read_sources
    from catalogs.store.waiting import waiting_quotes

    entries = [entry for source in read_sources(directory) for entry in waiting_quotes(source)]
    return tuple(sorted((Quote.of(entry) for entry in entries), key=lambda quote: quote.offer_id))


def accept(patterns: Sequence[str], *, home: Path | None = None) -> tuple[str, ...]:
    """Confirm quotes in quarantine: from now on they are the accepted prices of their offers.

    Args:
        patterns: offer ids, or globs over them, such as `aws/us-east-1/*/spot/*`.
        home: directory of the history; default see `catalogs.store.read.history_directory`.

    Returns:
        Ids of the offers confirmed.

    Raises:
        CatalogInputError: when a pattern fits no quote in quarantine.
    """
    from catalogs.store.history import confirm_prices

    waiting = [quote.offer_id for quote in quarantine()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in waiting):
            raise CatalogInputError(
                f"no quote in quarantine fits {pattern!r}{_near(pattern, waiting)}: "
                "`planner catalog quarantine` lists them"
            )

    def chosen(entry: Mapping[str, Any]) -> bool:
        return any(fnmatchcase(_id(entry["row"]), pattern) for pattern in patterns)

    providers = sorted(
        {name.partition("/")[0] for name in waiting if any(fnmatchcase(name, p) for p in patterns)}
    )
    return tuple(name for one in providers for name in confirm_prices(one, chosen, home=home))


def _id(row: Mapping[str, str]) -> str:
    return offer_id(tuple(row.get(name, "") for name in OFFER_KEY))


def _near(text: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
