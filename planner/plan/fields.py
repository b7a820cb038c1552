"""The data dictionaries of answers: what each field of each part is, in which unit, and within which bounds.

`fields.csv` beside an answer's dataclasses holds one row per field and derived value. Types and nullability are those
of the dataclasses, which a test compares with the table; JSON Schemas and the reader of saved plans take bounds and
texts from here.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import types
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.plan.ids import PartId
from planner.records import record

TABLE = Path(__file__).parent / "fields.csv"
_NAMES = {str: "text", float: "number", int: "integer", bool: "boolean", Decimal: "decimal", date: "date"}
# Texts of a certain form: the table says so, the dataclass just says `str`.
TEXT_FORMS = ("text", "moment", "month")


@record(frozen=True)
class FieldRule:
    """One row of the table; `is_unbounded`: null in the JSON stands for infinity; bounds are None where there are none.

    `kind` is text | moment | month | date | number | integer | boolean | decimal | one_of:A|B | id:ENUM | part:PART |
    list:KIND | map:KIND.
    """

    part: str
    field: str
    kind: str
    unit: str
    is_nullable: bool
    is_unbounded: bool
    minimum: float | None
    maximum: float | None
    description: str


@functools.cache
def load_rules(table: Path = TABLE) -> Mapping[tuple[str, str], FieldRule]:
    """The rules by part and field, in the order of the table: a plan's, or those of another answer."""
    with table.open(encoding="utf-8", newline="") as file:
        return {
            (row["part"], row["field"]): FieldRule(
                row["part"], row["field"], row["type"], row["unit"], row["nullable"] == "yes",
                row["nullable"] == "unbounded", _number(row["min"]), _number(row["max"]), row["description"],
            )
            for row in csv.DictReader(file)
        }  # fmt: skip


def _number(text: str) -> float | None:
    return float(text) if text else None


def part_types(root: Any) -> Mapping[str, type[Any]]:
    """Every class that `root` is made of, by name, itself first."""
    by_name: dict[str, type[Any]] = {}
    waiting: list[Any] = [root]
    while waiting:
        part = waiting.pop(0)
        if part.__name__ in by_name:
            continue
        by_name[part.__name__] = part
        waiting += [inner for hint in hints_of(part).values() for inner in _parts_in(hint)]
    return by_name


def _parts_in(hint: Any) -> list[type[Any]]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return [hint]
    return [part for inner in get_args(hint) for part in _parts_in(inner)]


@functools.cache
def hints_of(part: Any) -> Mapping[str, Any]:
    """Type of each saved field of a part."""
    hints = get_type_hints(part)
    hidden = getattr(part, "unsaved", ())
    return {f.name: hints[f.name] for f in dataclasses.fields(part) if f.name not in hidden}


@functools.cache
def derived_hints(part: Any) -> Mapping[str, Any]:
    """Type of each derived value of a part."""
    return {name: get_type_hints(getattr(part, name).fget)["return"] for name in getattr(part, "derived", ())}


@functools.cache
def split_optional(hint: Any) -> tuple[Any, bool]:
    """The type without `None`, and whether it had it."""
    if get_origin(hint) in (types.UnionType, Union):
        (inner,) = (member for member in get_args(hint) if member is not type(None))
        return inner, True
    return hint, False


@functools.cache
def kind_of(hint: Any) -> str:
    """The table's name of a type, without `None`; a text may be of a certain form in the table."""
    hint, _ = split_optional(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one_of:" + "|".join(inner)
    if origin is tuple:
        return f"list:{kind_of(inner[0])}"
    if origin is dict:
        return f"map:{kind_of(inner[1])}"
    return f"id:{hint.__name__}" if issubclass(hint, PartId) else f"part:{hint.__name__}"
