"""Snapshots: read, check, cache and write the catalog's tables.

A snapshot is one directory per provider with `instance_types.csv.gz`, `offers.csv.gz` and `manifest.json`:
the truth, which can be compared line by line. A compiled numpy copy, keyed by the hash of those files, makes
loading cheap; it is derived, may be deleted at any time, and a cache that cannot be written or read changes
nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.cache.copies import is_folder
from catalogs.store.cache import load_compiled, save_compiled
from catalogs.store.read import (
    SNAPSHOT_TABLES,
    Source,
    catalog_directory,
    history_directory,
    is_named,
    parse_source,
    provider_directories,
    read_provider,
)
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.columns import COLUMNS_FILE, make_table
from catalogs.tables.model import Catalog, ProviderManifest
from catalogs.tables.table import Table

if TYPE_CHECKING:
    from datetime import date


def load_catalog(directory: Path | None = None, *, cache: bool = True, as_of: date | None = None) -> Catalog:
    """Load the catalog, checked against its manifests.

    Where no directory is named, each provider's newest snapshot is taken: the refreshed one in use, or the
    bundled one.

    Args:
        directory: snapshot directory; default see `catalog_directory`.
        cache: use (and write) the compiled copy.
        as_of: take the newest snapshot not after this day instead; a directory that was named (here or by
            `PLANNER_CATALOG_DIR`) is used whatever its date.

    Raises:
        CatalogError: when a file is missing, truncated, edited or of another schema version, or nothing is as
            old as `as_of`; names the file and the remedy.
    """
    return assemble(read_sources(directory, as_of), cache=cache)


def read_sources(directory: Path | None = None, as_of: date | None = None) -> list[Source]:
    """Read the snapshot of every provider that `load_catalog` would use, in order of providers.

    Raises:
        CatalogError: as for `load_catalog`.
    """
    if not is_named(directory) and (as_of is not None or _is_directory(history_directory())):
        from catalogs.store.snapshots import newest_sources

        return newest_sources(history_directory(), as_of)
    return [read_provider(provider) for provider in provider_directories(catalog_directory(directory))]


def assemble(sources: Sequence[Source], *, cache: bool = True) -> Catalog:
    """Make one catalog of what was read of each provider.

    While a key is pinned (`PLANNER_CATALOG_KEY`), only what it signed is taken, and no compiled copy is used: nobody
    signs those.

    Raises:
        CatalogError: when the rows cannot be read.
        CatalogTrustError: when a key is pinned and the catalog is unsigned, foreign, tampered, expired or replayed.
    """
    if os.environ.get("PLANNER_CATALOG_KEY"):
        from catalogs.store.trust import pinned_key, require_trusted

        if (key_file := pinned_key()) is not None:
            require_trusted(sources, key_file)
            cache = False
    manifests = tuple(manifest for manifest, _ in sources)
    return _remembered(manifests, sources) if cache else _assembled(parse_sources(sources), manifests)


def _remembered(manifests: tuple[ProviderManifest, ...], sources: Sequence[Source]) -> Catalog:
    """The catalog of these sources, made once in a process: what asks again shares what was worked out of it."""
    for remembered in list(_LAST):
        if remembered.manifests == manifests:  # so are all files: reading checked their hashes
            return remembered
    key = _cache_key(manifests)
    tables = load_compiled(key, SNAPSHOT_TABLES)
    if tables is None:
        tables = parse_sources(sources)
        save_compiled(key, tables)
    catalog = _assembled(tables, manifests)
    _LAST.append(catalog)
    return catalog


_LAST: deque[Catalog] = deque(maxlen=2)


def _assembled(tables: Mapping[str, Table], manifests: tuple[ProviderManifest, ...]) -> Catalog:
    return Catalog(tables["instance_types"], tables["offers"], load_accelerators(), manifests)


def _is_directory(path: Path) -> bool:
    try:
        return is_folder(path)
    except OSError:
        return False


def _cache_key(manifests: Sequence[ProviderManifest]) -> str:
    digest = hashlib.sha256(COLUMNS_FILE.read_bytes())
    for manifest in manifests:
        digest.update(manifest.provider.encode())
        digest.update(manifest.sha256.encode())
    return digest.hexdigest()


def parse_sources(sources: Sequence[Source]) -> dict[str, Table]:
    """The tables of what was read of each provider.

    Raises:
        CatalogError: when the rows cannot be read.
    """
    from catalogs.store.plausible import flag_implausible

    rows: dict[str, list[list[str]]] = {name: [] for name in SNAPSHOT_TABLES}
    for source in sources:
        for name, more in parse_source(source).items():
            rows[name].extend(more)
    types, offers = (make_table(name, rows[name], f"{name}.csv.gz") for name in SNAPSHOT_TABLES)
    return {"instance_types": types, "offers": flag_implausible(types, offers)}
