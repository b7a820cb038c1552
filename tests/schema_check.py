"""A small JSON Schema validator: the keywords that the project's own schemas use, nothing else."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


def schema_faults(value: Any, schema: dict[str, Any], path: str = "$") -> list[str]:
    """Return what in `value` breaks `schema`, each with its path."""
    if "anyOf" in schema:
        tried = [schema_faults(value, option, path) for option in schema["anyOf"]]
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
        for name, item in value.items():
            faults += schema_faults(item, known.get(name, {}), f"{path}.{name}")
    if isinstance(value, list):
        for number, item in enumerate(value):
            faults += schema_faults(item, schema.get("items", {}), f"{path}[{number}]")
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
    if "minimum" in schema and isinstance(value, int | float) and value < schema["minimum"]:
        return [f"{path}: must be at least {schema['minimum']}"]
    return []
