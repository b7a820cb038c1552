"""Which keys and values a workload may have, from its committed JSON Schema: what it lacks is named, not written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.inputs.faults import near
from planner.inputs.other_words import KEYS

_SCHEMA = Path(__file__).parent.parent / "data" / "schemas" / "workload.v1.json"


@cache
def _schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return loaded


def supports(path: str) -> bool:
    """Whether the workload has a key at a dotted path such as `training.method`."""
    node: Mapping[str, Any] | None = _schema()
    for part in path.split("."):
        node = _property(node, part)
        if node is None:
            return False
    return True


def meant(path: str) -> list[str]:
    """The keys of a workload that a dotted path may have been meant for: those that end like it, else the nearest.

    Args:
        path: a path that is no key, like `tokens` or `trainng.tokens`.
    """
    section, dot, last = path.rpartition(".")
    ending = f".{section}{dot}{KEYS.get(last.lower(), last)}"
    alike = [key for key in _keys() if f".{key}".endswith(ending)]
    return alike or list(filter(None, [near(path, _keys())]))


@cache
def _keys() -> tuple[str, ...]:
    return tuple(_below(_schema(), ""))


def _below(node: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Dotted keys of a section and of the sections in it."""
    for option in _options(node):
        for name, entry in option.get("properties", {}).items():
            yield f"{prefix}{name}"
            yield from _below(entry, f"{prefix}{name}.")


def _options(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in node:
        return _options(_schema()["$defs"][str(node["$ref"]).rpartition("/")[2]])
    inner = [option for key in ("anyOf", "oneOf") for option in node.get(key, ())]
    return [node, *(each for option in inner for each in _options(option))]


def _property(node: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    for option in _options(node or {}):
        if name in option.get("properties", {}):
            entry: Mapping[str, Any] = option["properties"][name]
            return entry
    return None
