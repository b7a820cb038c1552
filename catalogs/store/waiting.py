"""Quotes that wait for a person: read from a snapshot's manifest, or from the flags of its offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalogs.model import OFFER_KEY
from catalogs.offers.flags import join_flags, load_flags, split_flags
from catalogs.offers.suspicion import CONFIRMED, WAITING_FLAGS
from catalogs.store.read import MANIFEST, Source, read_manifest
from catalogs.store.snapshots import source_rows


def waiting_quotes(source: Source) -> list[Mapping[str, Any]]:
    """Quotes in quarantine, each with `row`, `reason` and the accepted price in use instead, if any.

    A bundled snapshot has no list of them: its offers that carry a flag of the quarantine wait.
    """
    path = next(iter(source[1])).parent / MANIFEST
    listed = [
        entry for entry in read_manifest(path).get("quarantine", []) if isinstance(entry.get("row"), dict)
    ]
    known = {_key(entry["row"]) for entry in listed}
    flagged = []
    for row in source_rows(source)[1]:
        flags = WAITING_FLAGS & set(split_flags(row["flags"]))
        if flags and _key(row) not in known:
            reason = " ".join(load_flags()[flag].description for flag in sorted(flags))
            flagged.append(
                {"row": row, "reason": reason, "accepted_price_per_hour": "", "accepted_as_of": ""}
            )
    return [*listed, *flagged]


def confirmed_row(row: Mapping[str, str]) -> dict[str, str]:
    """The offer as it was quoted, with the mark that a person confirmed it."""
    flags = tuple(flag for flag in split_flags(row.get("flags", "")) if flag not in WAITING_FLAGS)
    return {**row, "flags": join_flags((*flags, CONFIRMED))}


def _key(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in OFFER_KEY)
