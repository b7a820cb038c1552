"""Whether a JSON value has the shape of a record: every field there, of its type; the first that is not is named."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from planner.judge.document import Node

Check = Callable[[Node], None]


def check_shape(node: Node, kind: Any) -> None:
    """Refuse a value that is not of the type `kind` (a record, or what its fields are declared as).

    Args:
        node: the value.
        kind: a type: str, int, float, bool, Decimal, a Literal, an optional, a tuple or dict of types, a record.

    Raises:
        MalformedError: names the JSON path.
    """
    _check_of(kind)(node)


@cache
def _check_of(kind: Any) -> Check:
    """What checks values of a type: the type is looked at once, not at each value."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record_check(kind)
    if origin in (Union, types.UnionType):
        check = _check_of(next(item for item in inner if item is not type(None)))
        return partial(_optional, check) if type(None) in inner else check
    if origin is tuple:
        return partial(_each, _check_of(inner[0]))
    if origin is dict:
        return partial(_members, _check_of(inner[1]))
    if origin is Literal:
        return partial(_one_of, inner, ", ".join(map(repr, inner)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(_one_of, list(kind), ", ".join(kind))
    return cast("Check", _SCALARS[kind])


def _record_check(kind: type) -> Check:
    hints = get_type_hints(kind)
    none = dataclasses.MISSING
    fields = [
        (field.name, field.default is none and field.default_factory is none, _check_of(hints[field.name]))
        for field in dataclasses.fields(kind)
    ]

    def check(node: Node) -> None:
        node.keys()
        for name, needed, check_field in fields:
            if needed or name in node:
                check_field(node[name])

    return check


def _optional(check: Check, node: Node) -> None:
    if not node.is_null:
        check(node)


def _each(check: Check, node: Node) -> None:
    for item in node:
        check(item)


def _members(check: Check, node: Node) -> None:
    for key in sorted(node.keys()):
        check(node[key])


def _one_of(known: Sequence[Any], words: str, node: Node) -> None:
    if node.value not in known:
        node.fail(f"one of {words}")


def _whole(node: Node) -> None:
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        node.fail("a whole number")


_SCALARS: dict[Any, Any] = {
    str: Node.text, float: Node.number, bool: Node.flag, Decimal: Node.money, int: _whole, type(None): lambda _: None,
}  # fmt: skip
