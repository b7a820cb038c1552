"""The JSON Schema of a commitment answer, from its records and their docstrings: `planner schema commit-answer`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from datetime import date
from decimal import Decimal
from types import NoneType
from typing import Any, get_args, get_type_hints

from planner.commitments.answer import SCHEMA_VERSION, CommitAnswer, Level

_FORMS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"},
    Decimal: {"type": "number"}, date: {"type": "string", "format": "date"},
}  # fmt: skip
_ENTRY = re.compile(
    r"^    ([a-z_0-9]+(?:, [a-z_0-9]+)*): (.*(?:\n {8}.*)*)", re.MULTILINE
)  # of `Attributes:`


def commit_answer_schema() -> dict[str, Any]:
    """The schema of the present version; a description is that of the field where it has one of its own."""
    parts: dict[str, Any] = {}
    root = _part(CommitAnswer, parts)
    head = {
        "schema_version": {"const": SCHEMA_VERSION},
        "planner_version": {"type": "string"},
        "currency": {"const": "USD"},
    }
    root |= {"properties": head | root["properties"], "required": [*head, *root["required"]]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"commit-answer.v{SCHEMA_VERSION}.json",
        "title": "An answer of `planner commit -o json`",
        **root,
        "$defs": parts,
    }


def render_commit_answer_schema() -> str:
    """The schema as text."""
    return json.dumps(commit_answer_schema(), indent=2, ensure_ascii=False) + "\n"


def _part(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record; those of the records within it go to `parts`."""
    text, hints = inspect.cleandoc(kind.__doc__ or ""), get_type_hints(kind)
    said = {
        name: " ".join(words.split()).rstrip(".")
        for names, words in _ENTRY.findall(text)
        for name in names.split(", ")
    }
    properties = {
        field.name: _shape(hints[field.name], parts)
        | ({"description": said[field.name]} if field.name in said else {})
        for field in dataclasses.fields(kind)
    }
    if kind is Level:
        properties["savings_usd"] = _FORMS[float] | {"description": "what it costs less than `without_usd`"}
    return {
        "type": "object", "description": text.split("\n")[0], "properties": properties,
        "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _shape(hint: Any, parts: dict[str, Any]) -> dict[str, Any]:
    inner = [one for one in get_args(hint) if one is not NoneType]
    if NoneType in get_args(hint):
        return {"anyOf": [_shape(inner[0], parts), {"type": "null"}]}
    if inner:  # tuple[X, ...]
        return {"type": "array", "items": _shape(inner[0], parts)}
    if hint in _FORMS:
        return dict(_FORMS[hint])
    if hint.__name__ not in parts:
        parts[hint.__name__] = _part(hint, parts)
    return {"$ref": f"#/$defs/{hint.__name__}"}
