"""Snapshots: read, check, cache and write the catalog's tables.

A snapshot is one directory per provider with `instance_types.csv.gz`, `offers.csv.gz` and `manifest.json`:
the truth, which can be compared line by line. A compiled numpy copy, keyed by the hash of those files, makes
loading cheap; it is derived, may be deleted at any time, and a cache that cannot be written or read changes
nothing.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogs.accelerators import load_accelerators
from catalogs.cache import load_compiled, save_compiled
from catalogs.columns import COLUMNS_FILE, DATA_DIRECTORY, check_header, column_names, make_table
from catalogs.errors import CatalogError
from catalogs.model import SCHEMA_VERSION, Catalog, ProviderManifest
from catalogs.table import Table

if TYPE_CHECKING:
    from datetime import date

MANIFEST = "manifest.json"
SNAPSHOT_TABLES = ("instance_types", "offers")
Source = tuple[ProviderManifest, dict[Path, bytes]]
_REMEDY = "reinstall the package, or build the snapshot again with `planner catalog import`"


def bundled_directory() -> Path:
    """Directory of the snapshot shipped with the package."""
    return DATA_DIRECTORY / "snapshot"


def catalog_directory(directory: Path | None = None) -> Path:
    """The snapshot to use: `directory`, else `PLANNER_CATALOG_DIR`, else the bundled one.

    A directory that holds a `snapshot` directory stands for that one.
    """
    chosen = directory or Path(os.environ.get("PLANNER_CATALOG_DIR") or bundled_directory())
    return chosen / "snapshot" if (chosen / "snapshot").is_dir() else chosen


def history_directory() -> Path:
    """Where refreshed snapshots live: `catalog` in `PLANNER_DATA_DIR`, else in the user's data directory."""
    chosen = os.environ.get("PLANNER_DATA_DIR")
    if chosen:
        return Path(chosen) / "catalog"
    if sys.platform == "linux":
        # What platformdirs answers; its import alone would take longer than loading the catalog.
        data = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
        return Path(os.path.expanduser(data)) / "planner" / "catalog"  # noqa: PTH111 - no error without a home
    import platformdirs

    return Path(platformdirs.user_data_dir("planner", appauthor=False)) / "catalog"


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
        from catalogs.snapshots import newest_sources

        return newest_sources(history_directory(), as_of)
    return [read_provider(provider) for provider in provider_directories(catalog_directory(directory))]


def is_named(directory: Path | None) -> bool:
    """Whether the user named a snapshot directory, which is then used alone, without the history."""
    return directory is not None or bool(os.environ.get("PLANNER_CATALOG_DIR"))


def assemble(sources: Sequence[Source], *, cache: bool = True) -> Catalog:
    """Make one catalog of what was read of each provider.

    Raises:
        CatalogError: when the rows cannot be read.
    """
    manifests = [manifest for manifest, _ in sources]
    key = _cache_key(manifests)
    tables = load_compiled(key, SNAPSHOT_TABLES) if cache else None
    if tables is None:
        tables = _parse({path: data for _, files in sources for path, data in files.items()})
        if cache:
            save_compiled(key, tables)
    return Catalog(tables["instance_types"], tables["offers"], load_accelerators(), tuple(manifests))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _cache_key(manifests: Sequence[ProviderManifest]) -> str:
    digest = hashlib.sha256(COLUMNS_FILE.read_bytes())
    for manifest in manifests:
        digest.update(manifest.provider.encode())
        digest.update(manifest.sha256.encode())
    return digest.hexdigest()


def provider_directories(root: Path) -> list[Path]:
    """Directories of the providers, the kept old one where a writer was killed between two renames."""
    try:
        names = {path.name for path in root.iterdir() if path.is_dir()}
    except OSError as error:
        raise CatalogError(
            f"cannot read the catalog directory {root}: {error.strerror}; {_REMEDY}"
        ) from error
    found = [name for name in names if not name.startswith(".")]
    found += [name for name in names if name.startswith(".old-") and name.removeprefix(".old-") not in names]
    if not found:
        raise CatalogError(f"no provider in the catalog directory {root}; {_REMEDY}")
    return [root / name for name in sorted(found, key=lambda name: name.removeprefix(".old-"))]


def read_provider(directory: Path) -> Source:
    """Read one provider's manifest and the bytes of its files, checked against their hashes.

    Raises:
        CatalogError: when a file is missing, cut short, edited or of another schema version.
    """
    path = directory / MANIFEST
    manifest = read_manifest(path)
    files: dict[Path, bytes] = {}
    for name in SNAPSHOT_TABLES:
        file = directory / f"{name}.csv.gz"
        files[file] = _read(file)
        found, wanted = hashlib.sha256(files[file]).hexdigest(), manifest["files"].get(file.name)
        if found != wanted:
            raise CatalogError(
                f"{file} was changed or cut short: sha256 {found[:12]}... is not the {str(wanted)[:12]}... "
                f"of its manifest; {_REMEDY}"
            )
    return provider_manifest(manifest), files


def provider_manifest(manifest: Mapping[str, Any]) -> ProviderManifest:
    """Take the fields of a manifest file."""
    fields = {name: manifest[name] for name in ProviderManifest.__annotations__ if name != "sources"}
    return ProviderManifest(**fields, sources=tuple(manifest["sources"]))


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a `manifest.json`; `provider_manifest` takes its fields.

    Raises:
        CatalogError: when it cannot be read, lacks a field or is of another schema version.
    """
    try:
        manifest = json.loads(_read(path))
    except ValueError as error:
        raise CatalogError(f"{path} is not valid JSON ({error}); {_REMEDY}") from error
    wanted = {*ProviderManifest.__annotations__, "files"}
    if (
        not isinstance(manifest, dict)
        or not wanted <= set(manifest)
        or not isinstance(manifest["files"], dict)
    ):
        lacking = sorted(wanted - set(manifest)) if isinstance(manifest, dict) else ["an object"]
        raise CatalogError(f"{path} lacks {', '.join(lacking) or 'its list of files'}; {_REMEDY}")
    version = manifest["schema_version"]
    if version != SCHEMA_VERSION:
        raise CatalogError(
            f"{path} has schema version {version}, this planner reads version {SCHEMA_VERSION}; update the "
            f"planner or build the snapshot again with `planner catalog import`"
        )
    return manifest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CatalogError(f"cannot read {path}: {error.strerror}; {_REMEDY}") from error


def _parse(contents: Mapping[Path, bytes]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for name in SNAPSHOT_TABLES:
        rows: list[list[str]] = []
        for path, data in contents.items():
            if path.name == f"{name}.csv.gz":
                rows.extend(parse_file(name, path, data))
        tables[name] = make_table(name, rows, f"{name}.csv.gz")
    return tables


def parse_file(name: str, path: Path, data: bytes) -> list[list[str]]:
    """Return the text rows of a `.csv.gz` file of table `name`, without the header.

    Raises:
        CatalogError: when the bytes are no gzip of UTF-8 CSV with that table's columns.
    """
    try:
        text = gzip.decompress(data).decode("utf-8")
        rows = list(csv.reader(io.StringIO(text)))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise CatalogError(f"cannot read {path}: {error}; {_REMEDY}") from error
    check_header(name, rows[0] if rows else [], str(path))
    return rows[1:]


def csv_bytes(table: str, rows: Sequence[Mapping[str, str]]) -> bytes:
    """Render rows as CSV in the data dictionary's column order."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = column_names(table)
    writer.writerow(names)
    writer.writerows([row.get(name, "") for name in names] for row in rows)
    return out.getvalue().encode()


def write_snapshot(
    root: Path,
    provider: str,
    instance_types: Sequence[Mapping[str, str]],
    offers: Sequence[Mapping[str, str]],
) -> ProviderManifest:
    """Write one provider's snapshot so that a reader sees the old or the new one, never a mix.

    Args:
        root: snapshot directory; the provider's own directory is replaced.
        provider: provider id.
        instance_types: text rows of the data dictionary's `instance_types`.
        offers: text rows of the data dictionary's `offers`.
    """
    manifest, files = snapshot_bytes(provider, instance_types, offers)
    _replace_directory(root, provider, files)
    return manifest


def snapshot_bytes(
    provider: str,
    instance_types: Sequence[Mapping[str, str]],
    offers: Sequence[Mapping[str, str]],
    more: Mapping[str, Any] | None = None,
    *,
    level: int = 9,
) -> tuple[ProviderManifest, dict[str, bytes]]:
    """Render one provider's snapshot: the same rows give the same bytes.

    Rows are sorted and the gzip header has no time.

    Args:
        provider: provider id.
        instance_types: text rows of the data dictionary's `instance_types`.
        offers: text rows of the data dictionary's `offers`.
        more: what else the manifest tells.
        level: of compression, 1 (fast) to 9 (small).

    Returns:
        The manifest, and the bytes per file name, `manifest.json` last.
    """
    tables = {"instance_types": instance_types, "offers": offers}
    files: dict[str, bytes] = {}
    for name in SNAPSHOT_TABLES:
        names = column_names(name)
        ordered = sorted(tables[name], key=lambda row: tuple(row.get(column, "") for column in names))
        files[f"{name}.csv.gz"] = gzip.compress(csv_bytes(name, ordered), compresslevel=level, mtime=0)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    dates = sorted(row["as_of"] for row in offers or instance_types)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "provider": provider,
        "oldest_as_of": dates[0],
        "newest_as_of": dates[-1],
        "n_instance_types": len(instance_types),
        "n_offers": len(offers),
        "sha256": hashlib.sha256("".join(hashes[name] for name in sorted(hashes)).encode()).hexdigest(),
        "files": hashes,
        "sources": sorted({row["source"] for row in offers}),
        **(more or {}),
    }
    files[MANIFEST] = (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode()
    return provider_manifest(manifest), files


def _replace_directory(root: Path, name: str, files: Mapping[str, bytes]) -> None:
    import shutil

    root.mkdir(parents=True, exist_ok=True)
    made, old, final = root / f".new-{name}-{os.getpid()}", root / f".old-{name}", root / name
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    for file, data in files.items():
        (made / file).write_bytes(data)
    if final.exists():
        # A killed writer left the old copy behind: the final one is complete, so the old may go.
        shutil.rmtree(old, ignore_errors=True)
        final.rename(old)
    made.rename(final)
    shutil.rmtree(old, ignore_errors=True)
