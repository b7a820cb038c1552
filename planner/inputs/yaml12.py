"""YAML 1.2 (core schema) with places: every key and value knows its line and column.

PyYAML reads YAML 1.1, where `no` is False, `1e12` is text, `010` is 8 and `72:00:00` is 259200. This reader
takes only PyYAML's events (libyaml where present) and resolves scalars by the YAML 1.2 core schema itself.
Building from events instead of recursion also bounds depth, aliases and size before memory is spent on them.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

import yaml

from planner.inputs.faults import Fault, Path, Place, Source
from planner.records import record

MAX_DEPTH = 32
MAX_NODES = 50_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+$")
_OCT = r"0o[0-7]+$"  # seldom there: `re` compiles it when it is
_HEX = r"0x[0-9a-fA-F]+$"
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_INF = r"([-+]?)\.(?:inf|Inf|INF)$"
_NAN = frozenset((".nan", ".NaN", ".NAN"))
_MAX_DIGITS = 400  # Python refuses to read integers of more than 4,300 digits; nothing sensible needs 400
_TAGS = {"tag:yaml.org,2002:" + name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


class YamlError(Exception):
    """The text is not YAML we can read; carries the faults found."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(f.message for f in faults))


@record
class Document:
    """The data of one document and the place of every path in it.

    `faults` did not prevent reading on; `stand_ins` are the paths whose value could not be read.
    """

    data: Any
    source: Source
    faults: list[Fault]
    stand_ins: frozenset[Path]


@record
class _Frame:
    """A mapping or sequence being built."""

    container: dict[str, Any] | list[Any]
    path: Path
    anchor: str | None
    key: str | None = None
    key_known: bool = False
    keep: bool = True
    nodes: int = 1


@record
class _Builder:
    """Turns events into plain data; one instance per document.

    `foreign` texts were written for another reader: merge keys merge, and of a key given twice the last value counts.
    """

    foreign: bool = False

    places: dict[Path, Place] = field(default_factory=dict)
    key_places: dict[Path, Place] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    stand_ins: set[Path] = field(default_factory=set)
    anchors: dict[str, tuple[Any, int] | None] = field(default_factory=dict)
    stack: list[_Frame] = field(default_factory=list)
    nodes: int = 0
    data: Any = None

    def event(self, event: yaml.Event) -> None:
        """Take the next event of the document."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _stop(self, message: str, event: yaml.Event) -> YamlError:
        return YamlError([*self.faults, Fault(self._path(), message, place=_place(event))])

    def _path(self) -> Path:
        if not self.stack:
            return ()
        top = self.stack[-1]
        if isinstance(top.container, list):
            return (*top.path, len(top.container))
        return (*top.path, top.key) if top.key_known and top.key is not None else top.path

    def _wants_key(self) -> bool:
        return (
            bool(self.stack) and isinstance(self.stack[-1].container, dict) and not self.stack[-1].key_known
        )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        place = _place(event)
        if self._wants_key():
            self._key(event.value, place)
            return
        path = self._path()
        if event.tag is not None and event.tag not in _TAGS and event.tag != "!":
            self.faults.append(Fault(path, f"tag {event.tag!r} is not allowed: remove it", place=place))
            self.stand_ins.add(path)
        plain = bool(event.implicit[0]) if event.tag is None else event.tag not in (f"{_STR_TAG}", "!")
        try:
            value = resolve_scalar(event.value) if plain else event.value
            if "\0" in event.value:
                raise ValueError("holds a NUL character (\\0): remove it")
        except ValueError as error:
            self.faults.append(Fault(path, str(error), place=place))
            self.stand_ins.add(path)
            value = 0
        self._add(value, place, event, event.anchor, 1)

    def _key(self, key: str, place: Place) -> None:
        top = self.stack[-1]
        path = (*top.path, key)
        assert isinstance(top.container, dict)
        top.key, top.key_known, top.keep = key, True, True
        if key == "<<" and self.foreign:
            return
        if key == "<<":
            text = "merge keys ('<<') are not part of YAML 1.2: write the keys out"
            self.faults.append(Fault(path, text, place=place))
            top.keep = False
        elif key in top.container and path in self.key_places:
            first = self.key_places[path]
            self.faults.append(
                Fault(
                    path,
                    f"key {key!r} is given twice: first on line {first.line}, again on line {place.line}",
                    place=place,
                )
            )
            top.keep = self.foreign
        else:
            self.key_places[path] = place

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if self._wants_key():
            raise self._stop("a mapping or list cannot be a key: write a plain word before the colon", event)
        if len(self.stack) >= MAX_DEPTH:
            raise self._stop(f"is nested more than {MAX_DEPTH} levels deep", event)
        path = self._path()
        if event.tag is not None and event.tag not in _TAGS and event.tag != "!":
            self.faults.append(
                Fault(path, f"tag {event.tag!r} is not allowed: remove it", place=_place(event))
            )
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        keep = not self.stack or self.stack[-1].keep
        if keep:
            self.places[path] = _place(event, point=True)
        container: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        frame = _Frame(container, path, event.anchor)
        frame.keep = keep
        self.stack.append(frame)
        self._count(1, event)

    def _close(self) -> None:
        frame = self.stack.pop()
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (frame.container, frame.nodes)
        self._attach(frame.container, frame.nodes)

    def _alias(self, event: yaml.AliasEvent) -> None:
        place = _place(event)
        if self._wants_key():
            raise self._stop("an alias cannot be a key", event)
        anchor = self.anchors.get(event.anchor or "", False)
        if anchor is False:
            raise self._stop(f"alias '*{event.anchor}' has no anchor '&{event.anchor}' before it", event)
        if anchor is None:
            raise self._stop(f"alias '*{event.anchor}' refers to itself", event)
        assert isinstance(anchor, tuple)
        self._add(anchor[0], place, event, None, anchor[1])

    def _add(self, value: Any, place: Place, event: yaml.Event, anchor: str | None, nodes: int) -> None:
        path = self._path()
        if not self.stack or self.stack[-1].keep:
            self.places.setdefault(path, place)
        if anchor is not None:
            self.anchors[anchor] = (value, nodes)
        self._count(nodes, event)
        self._attach(value, nodes)

    def _count(self, nodes: int, event: yaml.Event) -> None:
        """Aliases count as what they stand for, so a chain of them cannot grow without bound."""
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise self._stop(
                f"holds more than {MAX_NODES:,} values (aliases counted as what they stand for)", event
            )

    def _attach(self, value: Any, nodes: int) -> None:
        if not self.stack:
            self.data = value
            return
        top = self.stack[-1]
        top.nodes += nodes
        if isinstance(top.container, list):
            top.container.append(value)
            return
        if top.key == "<<" and self.foreign:
            _merge(top.container, value)
        elif top.key is not None and (self.foreign or top.key not in top.container) and top.key != "<<":
            top.container[top.key] = value
        top.key, top.key_known, top.keep = None, False, True


def _merge(container: dict[str, Any], value: Any) -> None:
    """Add the keys of a mapping, or of a list of mappings, that are not given yet."""
    for mapping in value if isinstance(value, list) else [value]:
        for key, item in mapping.items() if isinstance(mapping, dict) else ():
            container.setdefault(key, item)


_STR_TAG = "tag:yaml.org,2002:str"


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """Resolve a plain scalar by the YAML 1.2 core schema (section 10.3.2 of the YAML 1.2.2 specification)."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    first = text[0]
    if first not in "0123456789+-.":
        return text
    if len(text) > _MAX_DIGITS and (_INT.match(text) or re.match(_HEX, text) or re.match(_OCT, text)):
        raise ValueError(f"number of {len(text)} digits is too long")
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if text.startswith("0o") and re.match(_OCT, text):
        return int(text[2:], 8)
    if text.startswith("0x") and re.match(_HEX, text):
        return int(text[2:], 16)
    infinite = re.match(_INF, text) if "." in text else None
    if infinite is not None:
        return float(f"{infinite.group(1)}inf")
    return float("nan") if text in _NAN else text


def parse_yaml(text: str, name: str, *, foreign: bool = False) -> Document:
    """Read one YAML document.

    Args:
        text: the document; `name` is how messages call it (a path).
        name: label of the source in messages.
        foreign: the text was written for another reader: merge keys and repeated keys mean what they mean there.

    Raises:
        YamlError: not YAML, several documents, or beyond the limits on depth and size.
    """
    builder, documents = _Builder(foreign=foreign), 0
    loader = None
    try:
        loader = _Loader(text)
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlError(
                        [Fault((), "holds a second document ('---'): one per file", place=_place(event))]
                    )
            builder.event(event)
    except yaml.YAMLError as error:
        raise YamlError([*builder.faults, _syntax_fault(error)]) from None
    finally:
        if loader is not None:
            loader.dispose()
    source = Source(name, text, builder.places, builder.key_places)
    return Document(builder.data, source, builder.faults, frozenset(builder.stand_ins))


def _place(event: yaml.Event, *, point: bool = False) -> Place:
    start, end = event.start_mark, event.end_mark
    assert start is not None  # a parser's event always has one
    width = 1
    if not point and end is not None and end.line == start.line:
        width = max(1, end.column - start.column)
    return Place(start.line + 1, start.column + 1, width)


def _syntax_fault(error: yaml.YAMLError) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read")
    if "\\t" in problem or "'\\t'" in problem or "cannot start any token" in problem:
        problem += " (indent with spaces, not tabs; quote text that begins with a special character)"
    place = Place(mark.line + 1, mark.column + 1, 1) if mark is not None else None
    if (
        "nesting depth" in problem
    ):  # PyYAML 6.0.4 reads ahead, and has a limit that is reached before MAX_DEPTH is seen
        return Fault((), f"is nested more than {MAX_DEPTH} levels deep", place=place)
    return Fault((), f"is not valid YAML: {problem}", place=place)
