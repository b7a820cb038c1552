"""Terraform's language as text: blocks, arguments and quoting, laid out as `terraform fmt` lays them out.

A text of a user is always a quoted string in which neither an expression nor a directive can begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_LINE = 80
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class Raw:
    """An expression that is written as it is; never made of a user's text."""

    text: str


@dataclass(frozen=True)
class Comment:
    """A line of remarks; a user's text may be part of it."""

    text: str


Value = str | int | float | Decimal | bool | None | Raw | Sequence["Value"] | Mapping[str, "Value"]


@dataclass(frozen=True)
class Block:
    """A block with its labels; `body` holds arguments, blocks and comments in order, None an empty line."""

    kind: str
    labels: tuple[str, ...] = ()
    body: tuple[Entry, ...] = field(default=())


Entry = tuple[str, Value] | Block | Comment | None


def quote(text: str) -> str:
    """Return `text` as a quoted string without expressions: `${` and `%{` are doubled, control characters escaped."""
    out = "".join(_ESCAPES.get(letter, letter) for letter in text)
    out = re.sub(r"[\x00-\x1f\x7f\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", out)
    return '"' + out.replace("${", "$${").replace("%{", "%%{") + '"'


def document(entries: Sequence[Entry]) -> str:
    """Return the text of a file: blocks apart by an empty line."""
    return "\n".join(_lines(entries, "", top=True)).rstrip("\n") + "\n"


def _lines(entries: Sequence[Entry], indent: str, *, top: bool = False) -> Iterator[str]:
    waiting: list[tuple[str, list[str]]] = []
    before: Entry = None
    for place, entry in enumerate(entries):
        if isinstance(entry, tuple):
            if place and isinstance(before, Block):
                yield from _flush(waiting, indent)
                yield ""
            waiting.append((_key(entry[0]), _value(entry[1], indent)))
            if len(waiting[-1][1]) > 1:
                yield from _flush(waiting, indent)
        else:
            yield from _flush(waiting, indent)
            apart = isinstance(entry, Block) and not isinstance(before, Comment | None)
            if place and (apart or (top and isinstance(entry, Comment) and isinstance(before, Block))):
                yield ""
            yield from _other(entry, indent)
        before = entry
    yield from _flush(waiting, indent)


def _other(entry: Block | Comment | None, indent: str) -> Iterator[str]:
    if entry is None:
        yield ""
    elif isinstance(entry, Comment):
        for line in entry.text.splitlines() or [""]:
            yield f"{indent}# {printable(line)}".rstrip()
    else:
        head = " ".join([entry.kind, *(quote(label) for label in entry.labels)])
        if not entry.body:
            yield f"{indent}{head} {{}}"
            return
        yield f"{indent}{head} {{"
        yield from _lines(entry.body, indent + "  ")
        yield f"{indent}}}"


def _flush(waiting: list[tuple[str, list[str]]], indent: str) -> Iterator[str]:
    """Write arguments that follow each other with their signs in one column."""
    singles = [key for key, lines in waiting if len(lines) == 1]
    width = max((len(key) for key in singles), default=0)
    for key, lines in waiting:
        pad = width if len(lines) == 1 else 0
        yield f"{indent}{key.ljust(pad)} = {lines[0]}"
        yield from lines[1:]
    waiting.clear()


def _key(key: str) -> str:
    return key if _KEY.match(key) else quote(key)


def _value(value: Value, indent: str) -> list[str]:
    """Return the lines of a value; the first goes behind its key."""
    if isinstance(value, Raw):
        return value.text.splitlines()
    if isinstance(value, str):
        return [quote(value)]
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float | Decimal):
        return [format(value, "f") if isinstance(value, Decimal) else repr(value)]
    if isinstance(value, Mapping):
        return _map(value, indent)
    parts = [_value(part, indent + "  ") for part in value]
    line = "[" + ", ".join(part[0] for part in parts) + "]"
    if all(len(part) == 1 for part in parts) and len(line) <= _LINE:
        return [line]
    inner = indent + "  "
    lines = ["["]
    for part in parts:
        first, *further = part
        lines += [
            f"{inner}{first}" + ("" if further else ","),
            *further[:-1],
            *(f"{last}," for last in further[-1:]),
        ]
    return [*lines, f"{indent}]"]


def _map(value: Mapping[str, Value], indent: str) -> list[str]:
    if not value:
        return ["{}"]
    inner = indent + "  "
    pairs = [(_key(key), _value(part, inner)) for key, part in value.items()]
    return ["{", *_flush(pairs, inner), f"{indent}}}"]


def printable(text: str) -> str:
    """Return `text` on one line for a comment: control characters and line separators become spaces."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]", " ", text)
