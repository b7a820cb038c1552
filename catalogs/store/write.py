"""Writing one snapshot, whole or not at all; the same rows give the same bytes."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalogs.store.read import MANIFEST, SNAPSHOT_TABLES, provider_manifest
from catalogs.tables.columns import column_names
from catalogs.tables.model import SCHEMA_VERSION, ProviderManifest


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
    temporary, old, final = root / f".new-{name}-{os.getpid()}", root / f".old-{name}", root / name
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for file, data in files.items():
        (temporary / file).write_bytes(data)
    if final.exists():
        # A killed writer left the old copy behind: the final one is complete, so the old may go.
        shutil.rmtree(old, ignore_errors=True)
        final.rename(old)
    temporary.rename(final)
    shutil.rmtree(old, ignore_errors=True)
