"""A small JSON Schema validator: the keywords that the project's own schemas use, nothing else."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


def schema_faults(
    value: Any, schema: dict[str, Any], path: str = "$", root: dict[str, Any] | None = None
) -> list[str]:
    """Return what in `value` breaks `schema`, each with its path; `root` holds the `$defs`."""
    root = schema if root is None else root
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        tried = [schema_faults(value, option, path, root) for option in choices]
        return [] if [] in tried else min(tried, key=len)
    if "const" in schema and value != schema["const"]:
        return [f"{path}: must be {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path}: must be one of {schema['enum']}"]
    faults = _type_faults(value, schema, path)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        faults += [f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        if schema.get("additionalProperties") is False:
            faults += [f"{path}: {name} is not in the schema" for name in value if name not in known]
        others = schema.get("additionalProperties")
        for name, item in value.items():
            rule = known.get(name, others if isinstance(others, dict) else {})
            faults += schema_faults(item, rule, f"{path}.{name}", root)
    if isinstance(value, list):
        for number, item in enumerate(value):
            faults += schema_faults(item, schema.get("items", {}), f"{path}[{number}]", root)
    return faults


def _type_faults(value: Any, schema: dict[str, Any], path: str) -> list[str]:
    wanted = schema.get("type", ())
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    right = any(
        isinstance(value, _TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))
        for name in names
    )
    if names and not right:
        return [f"{path}: must be {' or '.join(names)}, not {value!r}"]
    if (
        "exclusiveMinimum" in schema
        and isinstance(value, int | float)
        and value <= schema["exclusiveMinimum"]
    ):
        return [f"{path}: must be above {schema['exclusiveMinimum']}"]
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        return [f"{path}: must match {schema['pattern']}, not {value!r}"]
    if "maximum" in schema and isinstance(value, int | float) and value > schema["maximum"]:
        return [f"{path}: must be at most {schema['maximum']}"]
    if "minimum" in schema and isinstance(value, int | float) and value < schema["minimum"]:
        return [f"{path}: must be at least {schema['minimum']}"]
    return []
