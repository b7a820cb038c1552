"""The history of refreshed snapshots: save, list, open, and the catalog as it was known on a day.

Layout: `<data>/catalog/<provider>/<as_of>-<sha12>/` with the same three files as a bundled snapshot, and
`current.json` beside them. Snapshots never change; a refresh that finds nothing new adds none and only notes the
day. Writers take a lock per provider; readers take none and try again when a snapshot moved under them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.store.files import (
    LOCK_TIMEOUT_S,
    Pointer,
    read_pointer,
    write_directory,
    write_pointer,
    writing,
)
from catalogs.store.load import assemble, load_catalog
from catalogs.store.merge import Merged, Scope, check_rows, content_hash, merge, text_rows
from catalogs.store.read import (
    MANIFEST,
    Source,
    bundled_directory,
    history_directory,
    listed_quotes,
    provider_directories,
    read_provider,
)
from catalogs.store.snapshots import (
    PROVIDER_ID,
    Snapshot,
    bundled_snapshot,
    day_of,
    histories,
    newest_sources,
    snapshot_at,
    source_rows,
    stored_snapshots,
    stored_source,
)
from catalogs.store.write import snapshot_bytes
from catalogs.tables.model import OFFER_KEY, Catalog, ProviderManifest

_GZIP_LEVEL = 6


@dataclass(frozen=True)
class SaveResult:
    """What saving did.

    Attributes:
        status: `added`, or `unchanged` where the snapshot in use holds the same already.
        manifest: manifest of the snapshot now in use.
        path: its directory.
        kept_regions: region to the oldest date of the offers that were kept from before.
        n_kept_offers: offers kept from before.
    """

    status: str
    manifest: ProviderManifest
    path: Path
    kept_regions: Mapping[str, str]
    n_kept_offers: int


def save_snapshot(
    provider: str,
    types_rows: Any,
    offers_rows: Any,
    *,
    merge_regions: Collection[str] = (),
    regions: Collection[str] | None = None,
    purchase_options: Collection[str] | None = None,
    quarantine: Sequence[Mapping[str, Any]] = (),
    as_of: date | None = None,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
) -> SaveResult:
    """Store what a refresh returned and make it the snapshot in use.

    What the refresh did not reach keeps its last good rows with their own dates: those of the stored
    snapshot, else of the bundled one.

    Args:
        provider: provider id.
        types_rows: text rows (or a DataFrame of texts) of the data dictionary's `instance_types`.
        offers_rows: the same of `offers`.
        merge_regions: regions that failed.
        regions: regions asked for; None is all.
        purchase_options: purchase options asked for; None is all.
        quarantine: quotes that wait for a person, each with its `row`; kept in the manifest.
        as_of: the day the snapshot stands for; default: of its newest row.
        lock_timeout_s: longest wait for another writer, in seconds.

    Raises:
        CatalogError: when the rows cannot replace good data (none, foreign, twice), another writer does not
            end, or the disk is full or not writable; what was stored before stays whole.
    """
    if not PROVIDER_ID.fullmatch(provider):
        raise CatalogError(f"{provider!r} is not a provider id (lower-case letters, digits, - and _)")
    new_types, new_offers = text_rows(types_rows), text_rows(offers_rows)
    scope = Scope.of(merge_regions, regions, purchase_options)
    with writing(history_directory(), provider, lock_timeout_s) as directory:
        last = stored_source(directory)
        base = last or (None if scope.is_whole else _bundled_source(provider))
        old = source_rows(base) if base and not scope.is_whole else ([], [])
        merged = merge(new_types, new_offers, *old, scope)
        check_rows(provider, merged.instance_types, merged.offers)
        waiting = [*quarantine, *_still_waiting(last, merged, new_offers, scope)]
        content = content_hash(merged.instance_types, merged.offers, waiting)
        newest = max(row["as_of"] for row in merged.offers or merged.instance_types)
        day = as_of or day_of(newest)
        current = _current(last)
        if current is not None and current.content_sha256 == content:
            _note_check(directory, current, day, scope)
            return SaveResult(
                "unchanged", current.manifest, current.path, current.kept_regions, merged.n_kept_offers
            )
        return _add(directory, provider, merged, day, content, waiting)


Edit = Callable[
    [Sequence[Mapping[str, str]], Sequence[Mapping[str, Any]]],
    "tuple[Sequence[Mapping[str, str]], Sequence[Mapping[str, Any]]] | None",
]


def edit_snapshot(provider: str, edit: Edit) -> None:
    """Add a snapshot with changed offers, made of the one in use (or of the bundled one).

    Args:
        provider: provider id.
        edit: gives the offers and the quotes in quarantine to store, of those in use; None changes nothing.

    Raises:
        CatalogError: when another writer does not end, or the disk is full or not writable.
    """
    with writing(history_directory(), provider) as directory:
        source = stored_source(directory) or _bundled_source(provider)
        if source is None:
            return
        types, offers = source_rows(source)
        edited = edit(offers, listed_quotes(source))
        if edited is None:
            return
        merged, waiting = Merged(types, edited[0]), edited[1]
        newest = max(row["as_of"] for row in merged.offers)
        day = max(day_of(source[0].newest_as_of), day_of(newest))
        _add(directory, provider, merged, day, content_hash(types, merged.offers, waiting), waiting)


def _key(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in OFFER_KEY)


def _still_waiting(
    last: Source | None, merged: Merged, new: Sequence[Mapping[str, str]], scope: Scope
) -> list[Mapping[str, Any]]:
    """Quotes of the quarantine that the refresh did not reach."""
    if last is None or scope.is_whole:
        return []
    fetched, present = {_key(row) for row in new}, {_key(row) for row in merged.offers}
    quotes = ((_key(entry["row"]), entry) for entry in listed_quotes(last))
    return [entry for key, entry in quotes if key in present and key not in fetched]


def _add(
    directory: Path,
    provider: str,
    merged: Merged,
    day: date,
    content: str,
    waiting: Sequence[Mapping[str, Any]] = (),
) -> SaveResult:
    """Write a new snapshot and make it the one in use."""
    more = {
        "as_of": day.isoformat(),
        "sequence": 1 + max((snapshot.sequence for snapshot in stored_snapshots(directory)), default=0),
        "saved_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "content_sha256": content,
        "kept_regions": dict(merged.kept_regions),
        **({"quarantine": list(waiting)} if waiting else {}),
    }
    manifest, files = snapshot_bytes(provider, merged.instance_types, merged.offers, more, level=_GZIP_LEVEL)
    name = f"{day.isoformat()}-{manifest.sha256[:12]}"
    if not _holds(directory / name, manifest):
        write_directory(directory, name, files)
    write_pointer(directory, Pointer(name))
    return SaveResult("added", manifest, directory / name, merged.kept_regions, merged.n_kept_offers)


def list_snapshots(provider: str | None = None) -> tuple[Snapshot, ...]:
    """List snapshots with a readable manifest, the bundled ones included, from old to new per provider.

    Args:
        provider: only of this provider.
    """
    snapshots = [bundled_snapshot(directory) for directory in provider_directories(bundled_directory())]
    for directory in histories(history_directory()):
        snapshots.extend(stored_snapshots(directory))
    chosen = [snapshot for snapshot in snapshots if provider in (None, snapshot.provider)]
    return tuple(sorted(chosen, key=lambda snapshot: (snapshot.provider, *snapshot.order)))


def catalog_as_of(day: date) -> Catalog:
    """The catalog as it was known on `day`: per provider the newest snapshot not after it.

    Raises:
        CatalogError: when no provider has one; names the oldest there is.
    """
    return assemble(newest_sources(history_directory(), day))


def catalog_by_hash(hashes: Mapping[str, str]) -> Catalog:
    """The very catalog that a plan was made from, whatever was refreshed since.

    Args:
        hashes: sha256 per provider, as a plan tells them.

    Raises:
        CatalogError: when a snapshot is no longer there; names each.
    """
    paths = {(snapshot.provider, snapshot.manifest.sha256): snapshot.path for snapshot in list_snapshots()}
    lost = [f"{name} ({digest[:12]})" for name, digest in hashes.items() if (name, digest) not in paths]
    if lost:
        raise CatalogError(
            f"no longer stored: the snapshot of {', '.join(lost)}; `planner catalog history` lists those there are"
        )
    return assemble([read_provider(paths[key]) for key in sorted(hashes.items())])


def open_snapshot(ref: str) -> Catalog:
    """Open a snapshot by its name.

    Args:
        ref: `bundled`, `latest`, a date, `provider@date` (the newest not after it), `provider@latest`,
            `provider@bundled`, `provider@<first digits of the hash>`, or a path.

    Raises:
        CatalogInputError: when nothing has that name; tells which there are.
        CatalogError: when it cannot be read.
    """
    provider, at, version = ref.partition("@")
    if at and PROVIDER_ID.fullmatch(provider):
        return assemble([read_provider(_version_of(provider, version, ref).path)])
    if ref == "bundled":
        return load_catalog(bundled_directory())
    if ref == "latest":
        return load_catalog()
    day = _date(ref)
    if day is not None:
        return catalog_as_of(day)
    path = Path(ref)
    if (path / MANIFEST).is_file():
        return assemble([read_provider(path)])
    if path.is_dir():
        return load_catalog(path)
    raise CatalogInputError(
        f"no snapshot {ref!r}: give bundled, latest, a date, provider@date or a directory "
        "(`planner catalog history` lists them)"
    )


def _current(source: Source | None) -> Snapshot | None:
    """The snapshot whose rows were read as `source`."""
    if source is None:
        return None
    path = next(iter(source[1])).parent
    return snapshot_at(path, is_current=True)


def _bundled_source(provider: str) -> Source | None:
    directory = bundled_directory() / provider
    return read_provider(directory) if directory.is_dir() else None


def _note_check(directory: Path, current: Snapshot, day: date, scope: Scope) -> None:
    """Point at the snapshot in use, with the day on which everything in it was found again."""
    pointer = read_pointer(directory)
    checked = pointer.checked_as_of if pointer and pointer.snapshot == current.name else ""
    if scope.is_whole and day > current.as_of:
        checked = max(checked, day.isoformat())
    if pointer != Pointer(current.name, checked):
        write_pointer(directory, Pointer(current.name, checked))


def _holds(path: Path, manifest: ProviderManifest) -> bool:
    try:
        return read_provider(path)[0].sha256 == manifest.sha256
    except CatalogError:
        return False


def _version_of(provider: str, version: str, ref: str) -> Snapshot:
    snapshots = list_snapshots(provider)
    day = _date(version)
    if day is not None:
        matching = [snapshot for snapshot in snapshots if snapshot.as_of <= day]
    elif version == "bundled":
        matching = [snapshot for snapshot in snapshots if snapshot.is_bundled]
    elif version == "latest":
        matching = [snapshot for snapshot in snapshots if snapshot.is_current] or list(snapshots)
    else:
        matching = [
            snapshot
            for snapshot in snapshots
            if len(version) >= 4 and snapshot.manifest.sha256.startswith(version)
        ]
    if not matching:
        newest = ", ".join(f"{snapshot.provider}@{snapshot.as_of.isoformat()}" for snapshot in snapshots[-5:])
        raise CatalogInputError(
            f"no snapshot {ref!r} ({f'there are {newest}' if newest else 'none of that provider'})"
        )
    return matching[-1]


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-11-20") else None
    except ValueError:
        return None
