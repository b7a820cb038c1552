"""Places that need an account, or rules on data, of their own: partitions of a cloud (partitions.csv)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from catalogs.patterns import matches
from catalogs.tables.columns import bundled_rows
from catalogs.tables.regions import load_regions

if TYPE_CHECKING:
    from collections.abc import Collection

    from catalogs.tables.table import Bools, Table


@dataclass(frozen=True)
class Partition:
    """A row of partitions.csv.

    Attributes:
        place: pattern over provider/region.
        partition: name; empty where the place is like any other in spite of a later pattern.
        needs: what using it takes.
        source: where it was read; as_of: when.
    """

    place: str
    partition: str
    needs: str
    source: str
    as_of: str


@cache
def load_partitions() -> tuple[Partition, ...]:
    """Read partitions.csv."""
    return tuple(Partition(**row) for row in bundled_rows("partitions.csv"))


def partition_of(place: str) -> Partition | None:
    """The partition that provider/region lies in, None where the account that everybody has is enough.

    >>> partition_of("aws/cn-north-1").partition, partition_of("aws/eu-north-1")
    ('aws-cn', None)
    """
    row = _row_of(place)
    return row if row is not None and row.partition else None


def not_asked(
    offers: Table, regions: Collection[str] = (), residency: Collection[str] = (), home: str = ""
) -> Bools:
    """Mask of offers in partitions that nobody asks for, shape `(n_offers,)`.

    Args:
        offers: with provider and region.
        regions: patterns that a user writes (`asked_places`).
        residency: groups of regions.
        home: provider/region of the data, whose partition is asked for.
    """
    codes, keys = offers.distinct_keys("provider", "region")
    apart = {place: row for place in map("/".join, keys) if (row := partition_of(place))}
    mine = partition_of(home)
    requested = asked_places(apart, regions, residency) if apart else set()
    requested |= {
        place for place, row in apart.items() if mine is not None and row.partition == mine.partition
    }
    removed = np.asarray(
        [place in apart and place not in requested for place in map("/".join, keys)], np.bool_
    )
    return np.asarray(removed[codes], dtype=np.bool_)


def asked_places(places: Collection[str], regions: Collection[str], residency: Collection[str]) -> set[str]:
    """Those of `places` (provider/region) in partitions that a user names.

    A pattern or group names them where it holds no known place outside of the rows of partitions.csv: `us-gov-*` and
    `cn`, but neither `us-*` nor `asia`.

    Args:
        places: to choose from.
        regions: patterns over provider/region, or over the region alone where there is no slash.
        residency: groups of regions.
    """
    groups = tuple(group.lower() for group in residency)
    groups_of, ordinary = _known_places()
    naming = [pattern for pattern in regions if not any(_fits(place, pattern) for place in ordinary)]
    groups = tuple(group for group in groups if not any(group in groups_of[place] for place in ordinary))
    return {
        place
        for place in places
        if any(_fits(place, pattern) for pattern in naming)
        or any(group in groups_of.get(place, ()) for group in groups)
    }


@cache
def _known_places() -> tuple[dict[str, tuple[str, str, str]], list[str]]:
    """Groups of each place of regions.csv, and the places outside of the rows of partitions.csv."""
    table = load_regions()
    columns = (table[name].tolist() for name in ("provider", "region", "residency", "country", "continent"))
    groups_of = {
        f"{provider}/{region}": (residency, country.lower(), continent)
        for provider, region, residency, country, continent in zip(*columns, strict=True)
    }
    return groups_of, [place for place in groups_of if _row_of(place) is None]


def _fits(place: str, pattern: str) -> bool:
    return matches(pattern, place if "/" in pattern else place.partition("/")[2])


@lru_cache(maxsize=1024)
def _row_of(place: str) -> Partition | None:
    return next((row for row in _rows_of(place.partition("/")[0]) if matches(row.place, place)), None)


@lru_cache(maxsize=128)
def _rows_of(provider: str) -> tuple[Partition, ...]:
    """Rows that may fit places of a provider: none names several."""
    return tuple(row for row in load_partitions() if row.place.partition("/")[0] == provider)
