"""Quotes in quarantine of the catalog in use, and their confirmation by a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogs.errors import CatalogInputError
from catalogs.offers.flags import join_flags, load_flags, split_flags
from catalogs.offers.suspicion import CONFIRMED, WAITING_FLAGS, key_of
from catalogs.tables.model import offer_id

if TYPE_CHECKING:
    from catalogs.store.read import Source

Entry = Mapping[str, Any]


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


def quarantine(directory: Path | None = None, *, provider: str = "") -> tuple[Quote, ...]:
    """Quotes that wait in the catalog in use, by offer.

    Args:
        directory: snapshot directory; default see `catalogs.store.read.catalog_directory`.
        provider: only of this provider; default: of all.

    Raises:
        CatalogInputError: the catalog has no such provider.
    """
    from catalogs.offers.query import check_provider
    from catalogs.store.load import read_sources

    sources = read_sources(directory)
    check_provider(provider, (source[0].provider for source in sources))
    chosen = [source for source in sources if provider in ("", source[0].provider)]
    quotes = [Quote.of(entry) for source in chosen for entry in _entries(source)]
    return tuple(sorted(quotes, key=lambda quote: quote.offer_id))


def _entries(source: Source) -> list[Entry]:
    from catalogs.store.read import listed_quotes
    from catalogs.store.snapshots import source_rows

    return waiting_quotes(source_rows(source)[1], listed_quotes(source))


def waiting_quotes(offers: Iterable[Mapping[str, str]], listed: Sequence[Entry]) -> list[Entry]:
    """Quotes in quarantine: those listed by a refresh, and offers that carry a flag of the quarantine themselves."""
    listed_keys = {key_of(entry["row"]) for entry in listed}
    flagged: list[Entry] = []
    for row in offers:
        flags = WAITING_FLAGS & set(split_flags(row["flags"]))
        if flags and key_of(row) not in listed_keys:
            flagged.append(
                {"row": row, "reason": " ".join(load_flags()[flag].description for flag in sorted(flags))}
            )
    return [*listed, *flagged]


def accept(patterns: Sequence[str]) -> tuple[str, ...]:
    """Confirm quotes in quarantine: from now on they are the accepted prices of their offers.

    Args:
        patterns: offer ids, or globs over them, such as `aws/us-east-1/*/spot/*`.

    Returns:
        Ids of the offers confirmed.

    Raises:
        CatalogInputError: when a pattern fits no quote in quarantine.
    """
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
    return tuple(name for provider in providers for name in _confirm(provider, chosen))


def _confirm(provider: str, choose: Callable[[Entry], bool]) -> list[str]:
    """Put the chosen quotes of one provider in use; ids of the offers."""
    from catalogs.store.history import edit_snapshot

    offer_ids: list[str] = []

    def edit(
        offers: Sequence[Mapping[str, str]], listed: Sequence[Entry]
    ) -> tuple[list[Mapping[str, str]], list[Entry]] | None:
        entries = waiting_quotes(offers, listed)
        confirmed = {key_of(entry["row"]): _confirmed(entry["row"]) for entry in entries if choose(entry)}
        offer_ids.extend(sorted(offer_id(key) for key in confirmed))
        remaining = [entry for entry in listed if key_of(entry["row"]) not in confirmed]
        return ([confirmed.get(key_of(row), row) for row in offers], remaining) if confirmed else None

    edit_snapshot(provider, edit)
    return offer_ids


def _confirmed(row: Mapping[str, str]) -> dict[str, str]:
    """The offer as it was quoted, with the mark that a person confirmed it."""
    flags = tuple(flag for flag in split_flags(row.get("flags", "")) if flag not in WAITING_FLAGS)
    return {**row, "flags": join_flags((*flags, CONFIRMED))}


def _id(row: Mapping[str, str]) -> str:
    return offer_id(key_of(row))


def _near(text: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
