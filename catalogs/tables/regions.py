"""Regions: place, country and residency group of every region in the catalog."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Table

_DATA = Path(__file__).parents[1] / "data"


def load_regions() -> Table:
    """Load regions.csv: one row per (provider, region).

    Raises:
        CatalogError: when the file is missing or wrong.
    """
    return _load()


@cache
def _load() -> Table:
    from catalogs.tables.columns import read_csv_table  # numpy: who shows a saved plan needs no table

    return read_csv_table("regions", _DATA / "regions.csv")


@cache
def residency_groups() -> dict[tuple[str, str], str]:
    """(provider, region) to residency group; "" where the country is not known."""
    table = load_regions()
    return dict(zip(_keys(table), table["residency"], strict=True))


def regions_in(residency: str) -> frozenset[tuple[str, str]]:
    """All (provider, region) of one residency group or country (`eu`, `us`, `DE`, ...)."""
    table = load_regions()
    lowered = residency.lower()
    keys = zip(_keys(table), table["residency"], table["country"], table["continent"], strict=True)
    return frozenset(
        key for key, group, country, continent in keys if lowered in (group, country.lower(), continent)
    )


def own_site_in(place: str, residency: Sequence[str]) -> bool:
    """Whether own machines, whose file names a country or group as their region, stand within one of some groups.

    Args:
        place: `provider/region`, such as `onprem/DE` or `onprem/uk`; regions of clouds are in none.
        residency: residency groups, countries or continents.
    """
    region = place.rpartition("/")[2]
    if region.lower() not in group_names():
        return False
    places = regions_in(region)
    return any(places <= regions_in(group) for group in residency)


@cache
def group_names() -> frozenset[str]:
    """Residency groups, countries and continents, in small letters: what `regions_in` takes."""
    table = load_regions()
    return frozenset(
        str(name).lower() for key in ("residency", "country", "continent") for name in table[key] if name
    )


@cache
def off_by_default() -> frozenset[str]:
    """Places (provider/region) that an account reaches only after it has enabled them (regions_off_by_default.csv)."""
    # read here, as the module of `bundled_rows` imports numpy: see `_load`
    with (_DATA / "regions_off_by_default.csv").open(encoding="utf-8", newline="") as file:
        return frozenset(row["place"] for row in csv.DictReader(file))


def _keys(table: Table) -> list[tuple[str, str]]:
    return list(zip(table["provider"], table["region"], strict=True))
