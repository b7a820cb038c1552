"""Accelerators: peaks per precision, memory and links, and the canonical id of a provider's word."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

from catalogs.errors import CatalogError
from catalogs.patterns import matches
from catalogs.tables.columns import DATA_DIRECTORY, bundled_rows, read_csv_table
from catalogs.tables.table import Table


class Alias(NamedTuple):
    """One row of an alias table.

    Attributes:
        provider_name: the provider's word.
        instance_type_pattern: glob over instance types it holds for; empty for all.
        accelerator: canonical id.
        source: the documented fact that decides the form.
    """

    provider_name: str
    instance_type_pattern: str
    accelerator: str
    source: str


def load_accelerators() -> Table:
    """Load accelerators.csv: one row per canonical accelerator id; empty peaks are NaN (unknown).

    Raises:
        CatalogError: when the file is missing or wrong.
    """
    return _load()


@cache
def _load() -> Table:
    return read_csv_table("accelerators", DATA_DIRECTORY / "accelerators.csv")


@lru_cache(maxsize=256)  # asked by names that callers give
def load_aliases(provider: str) -> tuple[Alias, ...]:
    """Load the aliases of a provider (or `performance`: the names of the measured rows); empty if none."""
    name = f"aliases/{provider}.csv"
    return tuple(Alias(**row) for row in bundled_rows(name)) if (DATA_DIRECTORY / name).is_file() else ()


def canonical(name: str, provider: str = "performance", instance_type: str = "") -> str:
    """Return the canonical accelerator id of a provider's word.

    Args:
        name: the provider's word, such as `A100-80GB`; a canonical id is returned as it is.
        provider: provider id, or `performance` for the names of the measured rows (`A100-SXM-80`).
        instance_type: instance type, which may decide the form.

    Raises:
        CatalogError: when no alias fits.
    """
    for alias in load_aliases(provider):
        fits = not alias.instance_type_pattern or matches(alias.instance_type_pattern, instance_type)
        if alias.provider_name == name and fits:
            return alias.accelerator
    if name in set(load_accelerators()["accelerator"]):
        return name
    raise CatalogError(
        f"accelerator {name!r} of {provider} {instance_type} has no canonical id; "
        f"add it to catalogs/data/aliases/{provider}.csv"
    )
