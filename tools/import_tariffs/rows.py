"""Reading the collected tables and writing ours."""

from __future__ import annotations

import csv
from pathlib import Path

from catalogs.errors import CatalogInputError

Row = dict[str, str]


def read_rows(directory: Path, name: str, required: tuple[str, ...]) -> list[Row]:
    """Read `directory/name` as dicts.

    Raises:
        CatalogInputError: the file is missing, not text, or lacks one of the `required` columns.
    """
    path = directory / name
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CatalogInputError(
            f"{path}: cannot be read ({error}); give the directory of the tables"
        ) from error
    if not rows:
        raise CatalogInputError(f"{path}: the table is empty")
    lacking = [column for column in required if column not in rows[0]]
    if lacking:
        raise CatalogInputError(f"{path}: column(s) {', '.join(lacking)} missing")
    return rows


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write `rows` (all with the same keys) as CSV with Unix line ends."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def provenance(row: Row, *, confidence: str | None = None, note: str | None = None) -> Row:
    """Return the closing columns `confidence,note,source,as_of` of one of our rows."""
    return {
        "confidence": confidence or row["confidence"],
        "note": row["note"].strip() if note is None else note,
        "source": row["source_url_or_repo"].strip() or "not found in any readable source",
        "as_of": row["as_of"].strip() or "undated",
    }
