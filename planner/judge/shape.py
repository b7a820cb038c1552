"""Whether a JSON value has the shape of a record: every field there, of its type; the first that is not is named."""

from __future__ import annotations

import dataclasses
import types
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.judge.document import Node


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def check_shape(node: Node, kind: Any) -> None:
    """Refuse a value that is not of the type `kind` (a record, or what its fields are declared as).

    Args:
        node: the value.
        kind: a type: str, int, float, bool, Decimal, a Literal, an optional, a tuple or dict of types, a record.

    Raises:
        MalformedError: names the JSON path.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        node.keys()
        hints = _hints(kind)
        for field in dataclasses.fields(kind):
            needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if needed or field.name in node:
                check_shape(node[field.name], hints[field.name])
    elif origin in (Union, types.UnionType):
        if not (node.is_null and type(None) in inner):
            check_shape(node, next(item for item in inner if item is not type(None)))
    elif origin is tuple:
        for item in node:
            check_shape(item, inner[0])
    elif origin is dict:
        for key in sorted(node.keys()):
            check_shape(node[key], inner[1])
    elif origin is Literal:
        if node.value not in inner:
            node.fail(f"one of {', '.join(map(repr, inner))}")
    elif isinstance(kind, type) and issubclass(kind, Enum):
        if node.value not in list(kind):
            node.fail(f"one of {', '.join(kind)}")
    else:
        _SCALARS[kind](node)


def _whole(node: Node) -> None:
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        node.fail("a whole number")


_SCALARS: dict[Any, Any] = {
    str: Node.text, float: Node.number, bool: Node.flag, Decimal: Node.money, int: _whole, type(None): lambda _: None,
}  # fmt: skip
