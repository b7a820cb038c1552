"""Columns of a file, and how each is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.finops.read.cells import USUAL, Spelling, is_plain, read_cell, read_typed
from planner.finops.read.columns import Kind
from planner.finops.read.select import quote
from planner.records import record


@record(frozen=True)
class Field:
    """A column of a file, or a field inside a struct of it.

    Attributes:
        name: `service.description`.
        value: its expression.
        type_name: DuckDB's, without parameters; `text` of a CSV is `varchar`.
        entries: a list of key and value pairs.
        records: fields of the records of a list (`amount`, `name`).
        spelling: of a CSV, or of a JSON file with a clock of its own.
        is_rewritten: the value is made by functions that only DuckDB has.
    """

    name: str
    value: str
    type_name: str
    entries: bool = False
    records: tuple[str, ...] = ()
    spelling: Spelling = USUAL
    is_rewritten: bool = False

    def read(self, kind: Kind, *, is_csv: bool) -> str:
        """Return the expression that reads it."""
        if is_csv:
            return read_cell(self.value, kind, self.spelling)
        return read_typed(
            self.value, self.type_name, kind, entries=self.entries, checked=True, spelling=self.spelling
        )

    def is_plain(self, kind: Kind) -> bool:
        """Whether reading it needs no work worth doing once."""
        return not self.is_rewritten and is_plain(self.type_name, kind)

    def in_place(self, kind: Kind, *, blank: bool) -> str:
        """Return the expression that reads a plain value, in words that every engine has.

        Args:
            kind: what it holds.
            blank: it may be an empty text, which means no value.
        """
        if self.type_name == "varchar":
            return f"NULLIF({self.value}, '')" if blank else self.value
        return read_typed(self.value, self.type_name, kind)


def fields_of(name: str, value: str, kind: Any) -> list[Field]:
    """Return a column of one of DuckDB's types, and the fields of a struct after it."""
    type_name = str(kind.id)
    if type_name == "list":
        child = kind.children[0][1]
        inside = tuple(item for item, _ in child.children) if child.id == "struct" else ()
        return [Field(name, value, "list", entries={"key", "value"} <= {*inside}, records=inside)]
    if str(kind) == "JSON":  # values of several types, such as "1.5" and 2: texts without their marks
        return [Field(name, f"({value} ->> '$')", "varchar")]
    out = [Field(name, value, type_name)]
    if type_name == "struct":
        for item, inner in kind.children:
            out += fields_of(f"{name}.{item}", f"{value}.{quote(item)}", inner)
    return out


def names_of(fields: Sequence[Field]) -> list[str]:
    """Return the names of fields."""
    return [field.name for field in fields]
