"""Reading one snapshot: where snapshots are, what a provider's directory holds, checked against its manifest."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalogs.cache.copies import is_folder, user_folder
from catalogs.errors import CatalogError
from catalogs.tables.columns import DATA_DIRECTORY, check_cells, check_header, is_date, with_later_columns
from catalogs.tables.model import SCHEMA_VERSION, ProviderManifest

MANIFEST = "manifest.json"
SNAPSHOT_TABLES = ("instance_types", "offers")
# 250,000 offers are 60 MB as text and 4 MB packed.
_MAX_FILE_BYTES = 256 << 20
_MAX_UNPACKED_BYTES = 512 << 20
Source = tuple[ProviderManifest, dict[Path, bytes]]


def bundled_directory() -> Path:
    """Directory of the snapshot shipped with the package."""
    return DATA_DIRECTORY / "snapshot"


def _remedy(path: Path) -> str:
    """What mends a broken snapshot: the bundled one comes with the package, others from elsewhere."""
    if path.is_relative_to(bundled_directory()):
        return "reinstall the package, or build the snapshot again with `python -m tools.import_catalog`"
    return "copy the directory again from where it came, or fetch prices anew (`planner catalog refresh`)"


def catalog_directory(directory: Path | None = None) -> Path:
    """The snapshot to use: `directory`, else `PLANNER_CATALOG_DIR`, else the bundled one.

    A directory that holds a `snapshot` directory stands for that one.
    """
    chosen = directory or Path(os.environ.get("PLANNER_CATALOG_DIR") or bundled_directory())
    return chosen / "snapshot" if is_folder(chosen / "snapshot") else chosen


def history_directory() -> Path:
    """Where refreshed snapshots live: `catalog` in `PLANNER_DATA_DIR`, else in the user's data directory."""
    chosen = os.environ.get("PLANNER_DATA_DIR")
    if chosen:
        return Path(chosen) / "catalog"
    if sys.platform == "linux":
        # What platformdirs answers; its import alone would take longer than loading the catalog.
        return user_folder("XDG_DATA_HOME", "~/.local/share") / "planner" / "catalog"
    import platformdirs

    return Path(platformdirs.user_data_dir("planner", appauthor=False)) / "catalog"


def is_named(directory: Path | None) -> bool:
    """Whether the user named a snapshot directory, which is then used alone, without the history."""
    return directory is not None or bool(os.environ.get("PLANNER_CATALOG_DIR"))


def provider_directories(root: Path) -> list[Path]:
    """Directories of the providers, the kept old one where a writer was killed between two renames."""
    try:
        names = {path.name for path in root.iterdir() if path.is_dir()}
    except OSError as error:
        raise CatalogError(
            f"cannot read the catalog directory {root}: {error.strerror}; {_remedy(root)}"
        ) from error
    chosen = [name for name in names if not name.startswith(".")]
    chosen += [name for name in names if name.startswith(".old-") and name.removeprefix(".old-") not in names]
    if not chosen:
        raise CatalogError(f"no provider in the catalog directory {root}; {_remedy(root)}")
    return [root / name for name in sorted(chosen, key=lambda name: name.removeprefix(".old-"))]


def read_provider(directory: Path) -> Source:
    """Read one provider's manifest and the bytes of its files, checked against their hashes.

    Raises:
        CatalogError: when a file is missing, cut short, edited or of another schema version.
    """
    path = directory / MANIFEST
    manifest = read_manifest(path)
    files: dict[Path, bytes] = {}
    digest: dict[Path, str] = {}
    for name in SNAPSHOT_TABLES:
        file = directory / f"{name}.csv.gz"
        files[file] = _read(file)
        actual = digest[file] = hashlib.sha256(files[file]).hexdigest()
        expected = manifest["files"].get(file.name)
        if actual != expected:
            raise CatalogError(
                f"{file} was changed or cut short: sha256 {actual[:12]}... is not the {str(expected)[:12]}... "
                f"of its manifest; {_remedy(file)}"
            )
    digests = "".join(digest[file] for file in sorted(files))
    # This hash names the compiled copy: rows of another snapshot must not enter under it.
    if manifest["sha256"] != hashlib.sha256(digests.encode()).hexdigest():
        raise CatalogError(f"{path}: its sha256 is not that of its files; {_remedy(path)}")
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
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{path} is not valid JSON ({error}); {_remedy(path)}") from error
    required = {*ProviderManifest.__annotations__, "files"}
    if (
        not isinstance(manifest, dict)
        or not required <= set(manifest)
        or not isinstance(manifest["files"], dict)
    ):
        lacking = sorted(required - set(manifest)) if isinstance(manifest, dict) else ["an object"]
        raise CatalogError(f"{path} lacks {', '.join(lacking) or 'its list of files'}; {_remedy(path)}")
    version = manifest["schema_version"]
    if version != SCHEMA_VERSION:
        raise CatalogError(
            f"{path} has schema version {version}, this planner reads version {SCHEMA_VERSION}; update the "
            f"planner or build the snapshot again with `python -m tools.import_catalog`"
        )
    wrong = _manifest_fault(manifest)
    if wrong:
        raise CatalogError(f"{path}: {wrong}; {_remedy(path)}")
    return manifest


def _manifest_fault(manifest: Mapping[str, Any]) -> str:
    """What no writer of snapshots wrote, in words; "" where there is nothing."""
    for name in ("oldest_as_of", "newest_as_of"):
        if not isinstance(manifest[name], str) or not is_date(manifest[name]):
            return f"{name} is not an ISO date or month: {manifest[name]!r:.60}"
    for name in ("n_offers", "n_instance_types"):
        if type(manifest[name]) is not int or manifest[name] < 0:
            return f"{name} is not a number of rows: {manifest[name]!r:.60}"
    texts = [manifest["provider"], manifest["sha256"], *manifest["files"].values()]
    sources = manifest["sources"]
    if not isinstance(sources, list) or not all(isinstance(text, str) for text in [*texts, *sources]):
        return "provider, sha256, files and sources are not all texts"
    return ""


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise CatalogError(f"{path} is larger than {_MAX_FILE_BYTES >> 20} MiB; {_remedy(path)}")
        return path.read_bytes()
    except OSError as error:
        raise CatalogError(f"cannot read {path}: {error.strerror}; {_remedy(path)}") from error


def parse_file(name: str, path: Path, data: bytes) -> list[list[str]]:
    """Return the text rows of a `.csv.gz` file of table `name`, without the header.

    Raises:
        CatalogError: when the bytes are no gzip of UTF-8 CSV with that table's columns.
    """
    import gzip

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(_MAX_UNPACKED_BYTES + 1)
        if len(plain) > _MAX_UNPACKED_BYTES:
            raise CatalogError(
                f"{path} unpacks to more than {_MAX_UNPACKED_BYTES >> 20} MiB; {_remedy(path)}"
            )
        rows = list(csv.reader(io.StringIO(plain.decode("utf-8"))))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise CatalogError(f"cannot read {path}: {error}; {_remedy(path)}") from error
    rows = with_later_columns(name, rows)
    check_header(name, rows[0] if rows else [], str(path))
    return rows[1:]


def parse_source(source: Source) -> dict[str, list[list[str]]]:
    """Text rows of each table of one provider, checked against the data dictionary and the manifest.

    Raises:
        CatalogError: naming the file, and the row and column where it is one cell.
    """
    manifest, files = source
    tables: dict[str, list[list[str]]] = {}
    for path, data in files.items():
        name = path.name.partition(".")[0]
        rows = parse_file(name, path, data)
        check_cells(name, rows, str(path))
        check_count(manifest, name, len(rows), path)
        tables[name] = rows
    return tables


def check_count(manifest: ProviderManifest, name: str, n_rows: int, path: Path) -> None:
    """Refuse a file of another number of rows than its manifest says.

    Raises:
        CatalogError: naming the file.
    """
    stated = manifest.n_offers if name == "offers" else manifest.n_instance_types
    if n_rows != stated:
        raise CatalogError(f"{path} has {n_rows:,} rows, its manifest says {stated:,}; {_remedy(path)}")


def listed_quotes(source: Source) -> list[Mapping[str, Any]]:
    """Quotes in quarantine, each with its `row`, `reason` and the accepted price in use instead, if any."""
    path = next(iter(source[1])).parent / MANIFEST
    return [
        entry for entry in read_manifest(path).get("quarantine", []) if isinstance(entry.get("row"), dict)
    ]
