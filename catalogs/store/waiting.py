"""Quotes that wait for a person, as a snapshot's manifest lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalogs.store.read import MANIFEST, Source, read_manifest


def listed_quotes(source: Source) -> list[Mapping[str, Any]]:
    """Quotes in quarantine, each with its `row`, `reason` and the accepted price in use instead, if any."""
    path = next(iter(source[1])).parent / MANIFEST
    return [
        entry for entry in read_manifest(path).get("quarantine", []) if isinstance(entry.get("row"), dict)
    ]
