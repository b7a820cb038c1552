"""Reading snapshots, bundled and stored: without a lock, the newest whole one, damage passed over."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from catalogs.errors import CatalogError
from catalogs.store.files import read_pointer, snapshot_directories
from catalogs.store.read import (
    MANIFEST,
    Source,
    bundled_directory,
    parse_file,
    provider_directories,
    provider_manifest,
    read_manifest,
    read_provider,
)
from catalogs.tables.columns import column_names
from catalogs.tables.model import ProviderManifest

PROVIDER_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_READS = 5


@dataclass(frozen=True)
class Snapshot:
    """One snapshot of one provider, by its manifest.

    Attributes:
        provider: provider id.
        as_of: the day it stands for.
        name: `bundled`, or the name of its directory.
        path: its directory.
        manifest: what it says of itself.
        is_bundled: whether it came with the package.
        is_current: whether it is the refreshed one in use.
        sequence: number in the order of writing; clocks may go backwards, this does not.
        saved_at: moment of writing (ISO, UTC), "" for the bundled one.
        content_sha256: hash of everything but the dates, "" for the bundled one.
        kept_regions: region to the oldest date of the offers that were kept from before.
    """

    provider: str
    as_of: date
    name: str
    path: Path
    manifest: ProviderManifest
    is_bundled: bool = False
    is_current: bool = False
    sequence: int = 0
    saved_at: str = ""
    content_sha256: str = ""
    kept_regions: Mapping[str, str] = field(default_factory=dict)

    @property
    def order(self) -> tuple[date, int]:
        """Sorts snapshots of one provider from old to new."""
        return self.as_of, self.sequence


def stored_snapshots(provider_directory: Path) -> list[Snapshot]:
    """Stored snapshots of one provider with a readable manifest, from old to new."""
    pointer = read_pointer(provider_directory)
    snapshots = []
    for path in snapshot_directories(provider_directory):
        try:
            snapshot = snapshot_at(path, is_current=pointer is not None and pointer.snapshot == path.name)
        except CatalogError:
            continue  # half removed, or damaged: `catalog doctor` names it
        snapshots.append(snapshot)
    return sorted(snapshots, key=lambda snapshot: snapshot.order)


def newest_sources(home: Path, day: date | None = None) -> list[Source]:
    """Read, per provider, the newest of the bundled and the stored snapshot (in use, or not after `day`).

    A damaged stored snapshot is passed over with a warning.

    Raises:
        CatalogError: when there is nothing at all.
    """
    sources, too_new = [], []
    for old, stored in provider_places(home).values():
        source = newest_source(old, stored, day)
        if source is not None:
            sources.append(source)
        elif old is not None:
            snapshot = bundled_snapshot(old)
            too_new.append(f"{snapshot.provider} ({snapshot.manifest.newest_as_of})")
    if not sources:
        limit = f" not after {day.isoformat()}" if day else ""
        since = f"; the oldest: {', '.join(too_new)}" if too_new else ""
        raise CatalogError(f"no snapshot{limit} is bundled or in {home}{since}")
    if too_new and day is not None:
        warn(f"no prices as old as {day.isoformat()} are stored for {', '.join(too_new)}: left out")
    return sources


def provider_places(home: Path) -> dict[str, tuple[Path | None, Path | None]]:
    """Directories of the bundled snapshot and of the history, per provider in order; None where there is none."""
    bundled = {path.name.removeprefix(".old-"): path for path in provider_directories(bundled_directory())}
    stored = {path.name: path for path in histories(home)}
    return {name: (bundled.get(name), stored.get(name)) for name in sorted({*bundled, *stored})}


def newest_source(bundled: Path | None, stored: Path | None, day: date | None = None) -> Source | None:
    """Read one provider's newest snapshot (not after `day`); None where there is none.

    Raises:
        CatalogError: when the bundled snapshot is needed and damaged.
    """
    source = stored_source(stored, day) if stored else None
    old = bundled_snapshot(bundled) if bundled else None
    if (
        old
        and (day is None or old.as_of <= day)
        and (source is None or old.as_of > day_of(source[0].newest_as_of))
    ):
        return read_provider(old.path)
    return source


def stored_source(provider_directory: Path, day: date | None = None) -> Source | None:
    """Read a provider's stored snapshot: the one in use, or the newest not after `day`; None without one."""
    if day is None:
        source = _read_current(provider_directory)
        if source is not None or not snapshot_directories(provider_directory):
            return source
        warn(
            f"{provider_directory / 'current.json'} or its snapshot is damaged: the newest whole one is used"
        )
    # Without a pointer the order of writing decides which is newest: the clock may have been wrong.
    snapshots = stored_snapshots(provider_directory)
    for snapshot in reversed(
        sorted(snapshots, key=lambda snapshot: snapshot.sequence) if day is None else snapshots
    ):
        if day is None or snapshot.as_of <= day:
            try:
                return _read_stored(snapshot.path)
            except CatalogError as error:
                warn(f"passed over: {error}")
    return None


def source_rows(source: Source) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Text rows of instance types and offers of what was read of a provider."""
    rows: dict[str, list[dict[str, str]]] = {}
    for path, data in source[1].items():
        table = path.name.partition(".")[0]
        names = column_names(table)
        rows[table] = [dict(zip(names, cells, strict=True)) for cells in parse_file(table, path, data)]
    return rows["instance_types"], rows["offers"]


def day_of(as_of: str) -> date:
    """The day of an ISO date; a month counts from its first day."""
    year, month, day = (*(int(part) for part in as_of.split("-")), 1)[:3]
    return date(year, month, day)


def _read_current(directory: Path) -> Source | None:
    """Read what the pointer names; again when the pointer moved meanwhile."""
    pointer = read_pointer(directory)
    for _ in range(_READS):
        if pointer is None:
            return None
        try:
            manifest, files = _read_stored(directory / pointer.snapshot)
        except CatalogError:
            before, pointer = pointer, read_pointer(directory)
            if pointer == before:
                return None
            continue
        return _checked(manifest, pointer.checked_as_of), files
    return None


def _read_stored(path: Path) -> Source:
    source = read_provider(path)
    snapshot_at(path, is_current=False)  # a manifest whose days make no sense is damaged too
    return source


def _checked(manifest: ProviderManifest, checked_as_of: str) -> ProviderManifest:
    """The manifest with the day on which a later refresh found nothing else."""
    if checked_as_of <= manifest.newest_as_of:
        return manifest
    return manifest._replace(newest_as_of=checked_as_of)


def snapshot_at(path: Path, *, is_current: bool) -> Snapshot:
    """Describe the snapshot in the directory `path`.

    Raises:
        CatalogError: when its manifest cannot be read.
    """
    values = read_manifest(path / MANIFEST)
    manifest = provider_manifest(values)
    try:
        newest = day_of(manifest.newest_as_of)
        return Snapshot(
            manifest.provider,
            day_of(values["as_of"]) if values.get("as_of") else newest,
            path.name,
            path,
            manifest,
            is_current=is_current,
            sequence=int(values.get("sequence", 0)),
            saved_at=str(values.get("saved_at", "")),
            content_sha256=str(values.get("content_sha256", "")),
            kept_regions={
                region: day for region, day in values.get("kept_regions", {}).items() if day_of(day)
            },
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise CatalogError(f"{path / MANIFEST} is damaged ({error}); refresh the catalog again") from error


def bundled_snapshot(directory: Path) -> Snapshot:
    """Describe a bundled snapshot."""
    manifest = provider_manifest(read_manifest(directory / MANIFEST))
    day = day_of(manifest.newest_as_of)
    return Snapshot(manifest.provider, day, "bundled", directory, manifest, is_bundled=True)


def histories(home: Path) -> list[Path]:
    """Directories of the providers that have a history; none, with a warning, where they cannot be read."""
    try:
        return sorted(path for path in home.iterdir() if PROVIDER_ID.fullmatch(path.name) and path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        warn(f"cannot read {home}: {error.strerror}; the bundled prices are used")
        return []


def warn(message: str) -> None:
    """Tell the user on standard error what was passed over."""
    import logging

    sys.audit("planner.warned", message)
    logging.getLogger(__name__).warning(message)
