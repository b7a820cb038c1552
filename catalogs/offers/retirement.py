"""Machines that their provider no longer sells, by a dated table: old prices of theirs remain in price lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from catalogs.offers.flags import join_flags, split_flags
from catalogs.patterns import matches
from catalogs.tables.columns import bundled_rows

Row = Mapping[str, str]
RETIRED = "retired"


@dataclass(frozen=True)
class Retirement:
    """One row of retired.csv.

    Attributes:
        provider: provider id.
        pattern: glob over instance types.
        retired_on: ISO date of the end, "" where only its absence from current lists is known.
        note: what a reader must know.
        source: where.
        as_of: when.
    """

    provider: str
    pattern: str
    retired_on: str
    note: str
    source: str
    as_of: str


@cache
def load_retirements() -> tuple[Retirement, ...]:
    """Read retired.csv."""
    return tuple(Retirement(**row) for row in bundled_rows("retired.csv"))


def retirement_of(provider: str, instance_type: str, day: str) -> Retirement | None:
    """The retirement of a machine in force on `day` (ISO date); None where it is sold or nothing is known."""
    return next(
        (
            retirement
            for retirement in load_retirements()
            if retirement.provider == provider
            and retirement.retired_on <= day
            and matches(retirement.pattern, instance_type)
        ),
        None,
    )


def mark_retired(
    types: Sequence[Row], offers: Sequence[Row], day: str
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Types with their status, and offers with the flag, of what is retired on `day` (ISO date)."""
    retired = {
        (row.get("provider", ""), row.get("instance_type", ""))
        for row in types
        if retirement_of(row.get("provider", ""), row.get("instance_type", ""), day)
    }
    return (
        [{**row, "status": RETIRED} if _key(row) in retired else dict(row) for row in types],
        [_flagged(row) if _key(row) in retired else dict(row) for row in offers],
    )


def _flagged(row: Row) -> dict[str, str]:
    return {**row, "flags": join_flags((*split_flags(row.get("flags", "")), RETIRED))}


def _key(row: Row) -> tuple[str, str]:
    return row.get("provider", ""), row.get("instance_type", "")
