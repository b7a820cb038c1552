"""Machines that are racks in parts: how many are sold together, and how far their accelerators' own link reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from catalogs.patterns import matches
from catalogs.tables.columns import bundled_rows

_COLUMNS = ("allocation_unit", "link_domain_accelerators")


@dataclass(frozen=True)
class Rack:
    """One row of racks.csv.

    Attributes:
        provider: provider id.
        pattern: glob over instance types.
        allocation_unit: machines sold together, "" where one is sold or nothing is stated.
        link_domain_accelerators: accelerators on one link across machines.
        sold_as: names of the units, separated by blanks, where they have names of their own.
        note: what a reader must know.
        source: where.
        as_of: when.
    """

    provider: str
    pattern: str
    allocation_unit: str
    link_domain_accelerators: str
    sold_as: str
    note: str
    source: str
    as_of: str


@cache
def load_racks() -> tuple[Rack, ...]:
    """Read racks.csv."""
    return tuple(Rack(**row) for row in bundled_rows("racks.csv"))


def with_racks(types: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Rows of `instance_types` with unit and domain from racks.csv where they do not say themselves."""
    return [_with_rack(dict(row)) for row in types]


def rack_of(provider: str, instance_type: str) -> Rack | None:
    """The rack that a machine is part of, None for one of its own."""
    fitting = (rack for rack in load_racks() if rack.provider == provider)
    return next((rack for rack in fitting if matches(rack.pattern, instance_type)), None)


def _with_rack(row: dict[str, str]) -> dict[str, str]:
    rack = rack_of(row.get("provider", ""), row.get("instance_type", ""))
    if rack is None:
        return row
    stated = {column: getattr(rack, column) for column in _COLUMNS}
    return row | {column: row.get(column) or value for column, value in stated.items()}
