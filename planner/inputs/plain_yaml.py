"""A reader of plainly written YAML: mappings and lists by indentation, words, numbers and simple quotes.

It exists for the first run of a file: importing the YAML library and taking its events costs more than reading a plain
file line by line. It knows one answer beside the data: None, for anything that it is not sure of. `yaml12` then reads
the text, and it alone says what is wrong and where, so that there is one truth. Tests compare both readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.inputs.faults import Document, Fault, Place, Source
from planner.inputs.yaml_scalars import resolve_scalar
from planner.records import record

if TYPE_CHECKING:
    from planner.errors import InputError
    from planner.inputs.faults import Path as FaultPath

_LONGEST = 64 << 10  # characters, so that no limit of `yaml12` is reached
_DEEPEST = 12
_LONGEST_KEY = 100
_BEGINS = frozenset("_/.$~+")  # what a plain scalar may begin with, beside letters and digits
_FLOW = frozenset("[]{}\"'#&*!|>%@`?")  # what the items of a list on one line may not hold
_Line = tuple[int, str]  # indentation and what follows


class _UnsureError(Exception):
    """The text is not plain, or not YAML."""


@record(frozen=True)
class UnreadSource(Source):
    """A text whose places are found only when a fault must be shown."""

    def locate(self, path: FaultPath, *, at_key: bool = False) -> Place | None:
        """Place of a key or value."""
        return self._read().locate(path, at_key=at_key)

    def error(self, faults: Iterable[Fault]) -> InputError:
        """The error for faults, with their places."""
        return self._read().error(faults)

    def _read(self) -> Source:
        from planner.inputs.yaml12 import parse_yaml

        return parse_yaml(self.text, self.name).source


def read_document(text: str, name: str) -> Document:
    """The data of a text, whose places are looked for when a fault must be shown where it is plainly written.

    Raises:
        InputError: the text is not YAML.
    """
    plain = read_plain_yaml(text)
    if plain is not None:
        return Document(plain, UnreadSource(name, text), [], frozenset())
    from planner.inputs.yaml12 import YamlError, parse_yaml

    try:
        return parse_yaml(text, name)
    except YamlError as error:
        raise Source(name, text).error(error.faults) from None


def read_plain_yaml(text: str) -> dict[str, Any] | None:
    """Return the mapping that a text holds, None where `yaml12` must look at it."""
    if len(text) > _LONGEST or not text.isascii() or not text.replace("\n", "").isprintable():
        return None
    lines = [
        (len(line) - len(line.lstrip(" ")), line.strip(" "))
        for line in text.split("\n")
        if line.strip(" ") and line.lstrip(" ")[0] != "#"
    ]
    if not lines or lines[0][0]:
        return None
    try:
        data, end = _mapping(lines, 0, 0, 1)
    except (_UnsureError, ValueError):
        return None
    return data if end == len(lines) else None


def _mapping(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[dict[str, Any], int]:
    """The mapping whose keys begin at line `at`, and the line behind it."""
    out: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        key, value = _split(lines[at][1])
        if key in out:
            raise _UnsureError
        out[key], at = _behind(value, lines, at + 1, indent, depth)
    if not out or (at < len(lines) and lines[at][0] > indent):  # more of a text, or a fault
        raise _UnsureError
    return out, at


def _sequence(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[list[Any], int]:
    """The list whose items begin at line `at`, and the line behind it."""
    out: list[Any] = []
    while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
        item = lines[at][1][2:].lstrip(" ")
        inner = indent + len(lines[at][1]) - len(item)
        if _is_pair(item):
            lines[at] = inner, item
            value, at = _mapping(lines, at, inner, depth + 1)
            out.append(value)
        else:
            out.append(_value(item))
            at += 1
    if not out or (at < len(lines) and lines[at][0] > indent):
        raise _UnsureError
    return out, at


def _behind(value: str, lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    """What a key holds: its value, or the block on the lines from `at` on; and the line behind it."""
    if value and value[0] != "#":
        return _value(value), at
    if depth > _DEEPEST:
        raise _UnsureError
    if at == len(lines) or lines[at][0] < indent or (lines[at][0] == indent and lines[at][1][0] != "-"):
        return None, at
    inner = lines[at][0]
    return (_sequence if lines[at][1][0] == "-" else _mapping)(lines, at, inner, depth + 1)


def _split(content: str) -> tuple[str, str]:
    """A key, and what follows it on its line."""
    key, colon, value = content.partition(":")
    word = key.replace("_", "").replace("-", "").replace(".", "")
    if not colon or value[:1] not in ("", " ") or not (word.isalnum() and key[0].isalpha()):
        raise _UnsureError
    if len(key) > _LONGEST_KEY:
        raise _UnsureError
    return key, value.strip(" ")


def _is_pair(item: str) -> bool:
    """Whether an item of a list begins a mapping."""
    return item[:1].isalpha() and (": " in item.partition(" #")[0] or item.endswith(":"))


def _value(text: str) -> Any:
    """A value on the line of its key or dash."""
    if text[0] in "\"'":
        return _quoted(text)
    text = text.partition(" #")[0].rstrip(" ")
    if text[0] in "[{":
        return _flow(text)
    if text[-1] == ":":
        raise _UnsureError
    return _plain(text)


def _quoted(text: str) -> str:
    """A text in quotes that end on its line, without escapes."""
    inner, end, rest = text[1:].partition(text[0])
    if (
        not end
        or "\\" in inner
        or (rest and not rest.startswith(" "))
        or rest.strip(" ")[:1] not in ("", "#")
    ):
        raise _UnsureError
    return inner


def _flow(text: str) -> Any:
    """A list or mapping of plain scalars on one line."""
    closing, inner = {"[": "]", "{": "}"}[text[0]], text[1:-1].strip(" ")
    if text[-1] != closing or len(text) < 2 or not _FLOW.isdisjoint(inner):
        raise _UnsureError
    items = [item.strip(" ") for item in inner.split(",")] if inner else []
    if closing == "]":
        if ":" in inner:
            raise _UnsureError
        return [_plain(item) for item in items]
    pairs = [_split(item) for item in items]
    if len({key for key, _ in pairs}) < len(pairs) or not all(":" not in value for _, value in pairs):
        raise _UnsureError
    return {key: _plain(value) for key, value in pairs}


def _plain(text: str) -> Any:
    """A scalar without quotes."""
    first = text[:1]
    begins = first.isalnum() or first in _BEGINS or (first == "-" and text[1:2].isdigit())
    if not first or not begins or ": " in text:
        raise _UnsureError
    return resolve_scalar(text)
