"""The JSON Schema of a plan, from the dataclasses and their data dictionary: `planner schema plan`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args

from planner.plan.fields import (
    TEXT_FORMS,
    FieldRule,
    derived_hints,
    hints_of,
    kind_of,
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
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "decimal": {"type": "string", "pattern": "^-?[0-9]{1,40}([.][0-9]{1,40})?$"},
}


def plan_schema() -> dict[str, Any]:
    """The schema of the present version; `unit` beside a description is the unit of the value."""
    parts = {name: _part(kind) for name, kind in part_types(Plan).items()}
    root = parts.pop("Plan")
    root["properties"]["schema_version"] |= {"const": SCHEMA_VERSION}
    root["required"].append("schema_version")  # a default in Python, but no file is read without it
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"plan.v{SCHEMA_VERSION}.json",
        "title": "A plan of `planner optimize -o json`",
        **root,
        "$defs": parts,
    }


def render_plan_schema() -> str:
    """The schema as text."""
    return json.dumps(plan_schema(), indent=2, ensure_ascii=False) + "\n"


def _part(kind: Any) -> dict[str, Any]:
    rules, hints = load_rules(), {**hints_of(kind), **derived_hints(kind)}
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
    shape = _shape(inner, rule)
    if optional or rule.is_unbounded:
        shape = {"anyOf": [shape, {"type": "null"}]}
    unit = {"unit": rule.unit} if rule.unit else {}
    return {**shape, **unit, "description": rule.description}


def _shape(hint: Any, rule: FieldRule) -> dict[str, Any]:
    kind = rule.kind if rule.kind in TEXT_FORMS else kind_of(hint)
    word, _, argument = kind.partition(":")
    if word == "part":
        return {"$ref": f"#/$defs/{argument}"}
    if word == "list":
        return {"type": "array", "items": _shape(get_args(hint)[0], rule)}
    if word == "map":
        return {"type": "object", "additionalProperties": _shape(get_args(hint)[1], rule)}
    if word == "id":
        return {"oneOf": [{"const": member.value, "description": member.__doc__} for member in hint]}
    if word == "one_of":
        return {"enum": argument.split("|")}
    bounds = {"minimum": rule.minimum, "maximum": rule.maximum} if word in ("number", "integer") else {}
    return _FORMS[word] | {key: value for key, value in bounds.items() if value is not None}
