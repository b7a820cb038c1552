"""JSON Schemas of answers, from their dataclasses and data dictionaries: `planner schema plan`, `commit-answer`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from planner.plan.fields import (
    TABLE,
    FieldRule,
    derived_hints,
    hints_of,
    load_rules,
    part_types,
    split_optional,
)
from planner.plan.model import Plan
from planner.plan.upgrade import SCHEMA_VERSION

_FORMS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "moment": {"type": "string", "format": "date-time"},
    "month": {"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$"},
    "date": {"type": "string", "format": "date"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "decimal": {"type": "string", "pattern": "^-?[0-9]{1,40}([.][0-9]{1,40})?$"},
}


def plan_schema() -> dict[str, Any]:
    """The schema of a plan of the present version."""
    # a default in Python, but no file is read without it
    head = {"schema_version": {"const": SCHEMA_VERSION}}
    return answer_schema(
        Plan, TABLE, f"plan.v{SCHEMA_VERSION}.json", "A plan of `planner optimize -o json`", head
    )


def answer_schema(
    root: Any, table: Path, file: str, title: str, head: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The schema of an answer; `unit` beside a description is the unit of the value.

    Args:
        root: dataclass of the answer.
        table: the data dictionary of it and of its parts.
        file: id of the schema.
        title: what follows it.
        head: values that stand before the fields, or what else is said of fields; all of them are required.
    """
    rules = load_rules(table)
    parts = {name: _part(kind, rules) for name, kind in part_types(root).items()}
    top = parts.pop(root.__name__)
    known = top["properties"]
    said = {name: {**known.get(name, {}), **more} for name, more in head.items()}
    top["properties"] = dict.fromkeys(head) | known | said
    top["required"] = list(dict.fromkeys([*head, *top["required"]]))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": file,
        "title": title,
        **top,
        "$defs": parts,
    }


def _part(kind: Any, rules: Mapping[tuple[str, str], FieldRule]) -> dict[str, Any]:
    hints = {**hints_of(kind), **derived_hints(kind)}
    return {
        "type": "object",
        "description": (kind.__doc__ or "").split("\n")[0],
        "properties": {name: _field(hint, rules[kind.__name__, name]) for name, hint in hints.items()},
        "required": [
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ],
        "additionalProperties": False,
    }


def _field(hint: Any, rule: FieldRule) -> dict[str, Any]:
    inner, optional = split_optional(hint)
    shape = _shape(inner, rule.kind, rule)
    if optional or rule.is_unbounded:
        shape = {"anyOf": [shape, {"type": "null"}]}
    unit = {"unit": rule.unit} if rule.unit else {}
    return {**shape, **unit, "description": rule.description}


def _shape(hint: Any, kind: str, rule: FieldRule) -> dict[str, Any]:
    word, _, argument = kind.partition(":")
    if word == "part":
        return {"$ref": f"#/$defs/{argument}"}
    if word == "list":
        return {"type": "array", "items": _shape(get_args(hint)[0], argument, rule)}
    if word == "map":
        return {"type": "object", "additionalProperties": _shape(get_args(hint)[1], argument, rule)}
    if word == "id":
        return {"oneOf": [{"const": member.value, "description": member.__doc__} for member in hint]}
    if word == "one_of":
        return {"enum": argument.split("|")}
    bounds = {"minimum": rule.minimum, "maximum": rule.maximum} if word in ("number", "integer") else {}
    return _FORMS[word] | {key: value for key, value in bounds.items() if value is not None}
