"""Values of a Python script that follow from constants, and calls of what it does not define with constants."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from planner.records import record

_MOST = 10**15
_LONGEST = 10_000
# questions whose answer the accelerator decides
BY_HARDWARE = re.compile(r"(.*\.)?(is_bfloat16_supported|is_bf16_supported|is_torch_bf16_gpu_available)")
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
# what a launcher sets: a default is not what a run has
_LAUNCHED = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES", "CUDA_VISIBLE_DEVICES")
CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "str": str, "bool": bool}


class _Unknown:
    """The one value that is not known."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()


@record(frozen=True)
class Call:
    """A call of what the script does not define with constants: a configuration, a trainer, a loaded model.

    Attributes:
        name: with its dots, such as `FastLanguageModel.from_pretrained`.
        positional: values by place, `UNKNOWN` among them.
        named: values by name, known ones alone.
        unread: names whose value is not known, `**more` among them.
    """

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    unread: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"{self.name}(...)"  # what it is given may hold one call many times

    @property
    def last(self) -> str:
        """The name behind the last dot."""
        return self.name.rpartition(".")[2]


@record(frozen=True)
class Imported:
    """A class that the script imports."""

    name: str


def by_default(positional: tuple[Any, ...]) -> Any:
    """The default of `.get(name, default)`, unless a launcher sets the name."""
    return positional[1] if len(positional) > 1 and positional[0] not in _LAUNCHED else UNKNOWN


def is_plain(value: Any) -> bool:
    """Whether a value follows from constants."""
    return value is None or isinstance(value, bool | int | float | str | list | dict)


def as_read(target: ast.expr) -> ast.expr:
    """What is assigned to, as the expression of its value."""
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def dotted(node: ast.expr) -> str:
    """`a.b.c` of names and their attributes; a call or an item among them is left out."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return ".".join(reversed(parts))
    return ".".join([node.id, *reversed(parts)])


def calculated(kind: ast.operator, left: Any, right: Any) -> Any:
    """A sum of numbers of usual size, or texts put together."""
    operation = _OPERATORS.get(type(kind))
    texts = isinstance(left, str) and isinstance(right, str)
    numbers = all(isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= _MOST
                  for part in (left, right))  # fmt: skip
    if operation is None or not (numbers or (texts and isinstance(kind, ast.Add))):
        return UNKNOWN
    if texts and len(left) + len(right) > _LONGEST:
        return UNKNOWN
    try:
        return operation(left, right)
    except (ZeroDivisionError, OverflowError):
        return UNKNOWN


def compared(kind: ast.cmpop, left: Any, right: Any) -> Any:
    """Whether a comparison of known texts or numbers holds, or whether a known value is None."""
    if isinstance(kind, ast.Is | ast.IsNot):
        is_known = is_plain(left) and right is None
        return (left is None) is isinstance(kind, ast.Is) if is_known else UNKNOWN
    operation = _COMPARISONS.get(type(kind))
    if operation is None or not all(isinstance(part, int | float | str) for part in (left, right)):
        return UNKNOWN
    try:
        return operation(left, right)
    except TypeError:  # a text beside a number
        return UNKNOWN


def converted(kind: Callable[[Any], Any], value: Any) -> Any:
    """A text or number as another type."""
    if not isinstance(value, bool | int | float | str):
        return UNKNOWN
    try:
        return kind(value)
    except (ValueError, OverflowError):
        return UNKNOWN
