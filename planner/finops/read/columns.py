"""The columns of FOCUS by version, from `planner/finops/data/focus_columns.csv`, and telling a file by its columns."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from planner.records import record

Kind = Literal["text", "number", "moment", "json", "flag"]
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
COST = "CostAndUsage"
# One column that only this dataset has, and that it always has.
_MARKS = {
    "BillingPeriod": "BillingPeriodStatus",
    "InvoiceDetail": "InvoiceDetailCreated",
    "ContractCommitment": "ContractCommitmentId",
}
_DATA = Path(__file__).resolve().parents[1] / "data"


@record(frozen=True)
class FocusColumn:
    """A column of a dataset.

    Attributes:
        kind: how it is stored; `json` is text that holds JSON.
        since, until: first and last version that has it; `until` is empty where it still stands.
        fed_by: column of other versions with the same meaning, used where this one is absent or empty.
        aliases: other spellings met in exports.
        mandatory: version 1.4 asks for it in every row.
    """

    dataset: str
    name: str
    kind: Kind
    since: str
    until: str
    fed_by: str
    aliases: tuple[str, ...]
    mandatory: bool


@lru_cache(maxsize=1)
def focus_columns() -> Mapping[str, Mapping[str, FocusColumn]]:
    """Return the columns by dataset and name."""
    out: dict[str, dict[str, FocusColumn]] = {}
    with (_DATA / "focus_columns.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            column = FocusColumn(
                dataset=row["dataset"],
                name=row["column"],
                kind=cast("Kind", row["type"]),
                since=row["since"],
                until=row["until"],
                fed_by=row["fed_by"],
                aliases=tuple(row["aliases"].split()),
                mandatory=row["mandatory"] == "yes",
            )
            out.setdefault(column.dataset, {})[column.name] = column
    return out


@lru_cache(maxsize=1)
def focus_values() -> Mapping[str, Mapping[str, str]]:
    """Return the allowed values of columns that have such: column -> letters of the value -> value.

    Some exports write them their own way (`usage`, `ONE_TIME`); by their letters they are told all the same. FOCUS
    1.0-preview had other words for some; an empty value is none (a refund says nothing of a commitment's status).
    """
    out: dict[str, dict[str, str]] = {}
    with (_DATA / "focus_values.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            out.setdefault(row["column"], {})[plain(row["spelling"] or row["value"])] = row["value"]
    return MappingProxyType(out)


def allowed_values(column: str) -> list[str]:
    """Return the values that FOCUS has for a column of `focus_values`, in order."""
    return sorted({*focus_values()[column].values()} - {""})


@lru_cache(maxsize=1)
def hour_units() -> Mapping[str, Mapping[str, str]]:
    """Return pricing units of time: letters of the unit -> what it counts the hours of (`of`), and `hours` of one."""
    with (_DATA / "hour_units.csv").open(encoding="utf-8", newline="") as file:
        return MappingProxyType({row["unit"]: row for row in csv.DictReader(file)})


@lru_cache(maxsize=10_000)  # a bill's columns are compared with all that are known, again and again
def plain(name: str) -> str:
    """Return a column's name without case, underscores and blanks: exports differ in these only."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def match_columns(header: Sequence[str], dataset: str = COST) -> dict[str, str]:
    """Return FOCUS name -> name in the file, for the columns that the file has."""
    by_plain: dict[str, str] = {}
    for name in header:
        by_plain.setdefault(plain(name), name)
    found = {}
    for column in focus_columns()[dataset].values():
        for spelling in (column.name, *column.aliases):
            if plain(spelling) in by_plain:
                found[column.name] = by_plain[plain(spelling)]
                break
    return found


def detect_dataset(header: Sequence[str], *, costs: bool = True) -> str | None:
    """Return the dataset that a header belongs to; None where it is no FOCUS.

    Args:
        header: the columns of a file.
        costs: charges must have a cost; without it a file of quantities alone will do.
    """
    names = {plain(name) for name in header}
    if "chargeperiodstart" in names and (not costs or names & {"billedcost", "effectivecost"}):
        return COST
    return next((dataset for dataset, mark in _MARKS.items() if plain(mark) in names), None)


def detect_version(names: Iterable[str], dataset: str = COST) -> str:
    """Return the FOCUS version that the columns present show.

    It is the oldest version that has them all; where the columns that the next version takes away are missing
    and the newest of their kind are there, it is that next version.
    """
    columns = focus_columns()[dataset]
    present = [columns[name] for name in names]
    version = max((column.since for column in present), default=VERSIONS[0])
    removed = {column.until for column in columns.values() if column.until}
    if version in removed and not any(column.until for column in present):
        return VERSIONS[VERSIONS.index(version) + 1]
    return version


_LIKELY = Path(__file__).resolve().parents[1] / "data"


@lru_cache(maxsize=1)
def _known() -> tuple[tuple[frozenset[str], str, str], ...]:
    with (_LIKELY / "known_exports.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            (frozenset(plain(name) for name in row["columns"].split()), row["product"], row["remedy"])
            for row in csv.DictReader(file)
        )


def likely_product(header: Iterable[str]) -> tuple[str, str] | None:
    """Return the product whose columns a header has, and what to do instead; None where none is known."""
    names = {plain(name) for name in header}
    return next(((product, remedy) for marks, product, remedy in _known() if marks <= names), None)
