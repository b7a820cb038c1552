"""The importer's own facts: where each price came from, which currency, which rows are special."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from catalogs.errors import CatalogError

Row = dict[str, str]
HERE = Path(__file__).parent
IMPORT_DAY = "2026-11-20"  # the day that the bundled snapshot stands for in tables with a date of force


def read_rows(path: Path) -> list[Row]:
    """Read a CSV file as text rows.

    Raises:
        CatalogError: when it cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CatalogError(
            f"cannot read {path}: {error}; give the directory of the collected lists with --from"
        ) from error


def read_json(path: Path) -> Any:
    """Read a JSON file, gzipped or not.

    Raises:
        CatalogError: when it cannot be read.
    """
    try:
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (OSError, EOFError, ValueError) as error:
        raise CatalogError(
            f"cannot read {path}: {error}; give the directory of the collected lists with --from"
        ) from error


@dataclass(frozen=True)
class Origin:
    """Where a figure came from.

    Attributes:
        basis: `list`, `observed` or `derived` for prices, "" otherwise.
        source: citation; "" where the row's own is to be used.
        as_of: ISO date or month; "" where the row's own is to be used.
    """

    basis: str
    source: str
    as_of: str


@cache
def _table(name: str) -> tuple[Row, ...]:
    return tuple(read_rows(HERE / name))


@cache
def origin(provider: str, row_source: str, price: str) -> Origin:
    """Find the origin of a figure by provider, the list's own source text and the column it stands in.

    Raises:
        CatalogError: when sources.csv has no fitting row.
    """
    for row in _table("sources.csv"):
        same = row["provider"] == provider and row["price"] == price
        if same and fnmatchcase(row_source, row["row_source"]):
            return Origin(row["basis"], row["source"], row["as_of"])
    raise CatalogError(
        f"no origin for {provider} {price} from {row_source!r}; add it to importer/sources.csv"
    )


@cache
def rule(kind: str, provider: str, name: str) -> str | None:
    """Value of the first price rule of `kind` that fits; None where there is none ("" is a value)."""
    for row in _table("price_rules.csv"):
        if (row["kind"], row["provider"]) == (kind, provider) and fnmatchcase(name, row["pattern"]):
            return row["value"]
    return None


def fraction_of(provider: str, name: str) -> Decimal | None:
    """Share of an accelerator that a machine has where its list counts a whole one; None where it is right."""
    share = rule("fraction", provider, name)
    return Decimal(share) if share else None


def source_rates() -> dict[str, float]:
    """USD per unit of each currency, as the collected lists converted it."""
    texts = [row["value"].split() for row in _table("price_rules.csv") if row["kind"] == "currency"]
    return {currency: float(rate) for currency, rate in texts}


@cache
def options_of(provider: str) -> tuple[Row, ...]:
    """Price columns a provider's list has, with the purchase option each one is."""
    return tuple(row for row in _table("options.csv") if row["provider"] in ("*", provider))


def accelerator_seed() -> tuple[Row, ...]:
    """Canonical accelerators: vendor, generation, form, and the row of the peaks table each one takes."""
    return _table("accelerator_seed.csv")
