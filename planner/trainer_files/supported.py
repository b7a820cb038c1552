"""Which keys and values a workload may have, from its committed JSON Schema: what it lacks is named, not written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_SCHEMA = Path(__file__).parent.parent / "data" / "schemas" / "workload.v1.json"


@cache
def _schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return loaded


def supports(path: str, value: object = None) -> bool:
    """Whether the workload has a key at a dotted path, and takes a value that is one of a list there.

    Args:
        path: like `training.method`.
        value: one of the key's words; None: the key alone is asked for.
    """
    node: Mapping[str, Any] | None = _schema()
    for part in path.split("."):
        node = _property(node, part)
        if node is None:
            return False
    words = _words(node)
    return value is None or not words or value in words


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


def _words(node: Mapping[str, Any] | None) -> list[Any]:
    return [word for option in _options(node or {}) for word in option.get("enum", ())]
