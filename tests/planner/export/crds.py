"""Custom resources against the schemas of their CRDs and the CEL rules in these, as an API server checks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CRDS = Path(__file__).parents[4] / "shared" / "export" / "crds"


@cache
def schemas() -> dict[tuple[str, str], Any]:
    """Schemas by apiVersion and kind."""
    found = {}
    for path in CRDS.glob("*.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        names = schema["properties"]
        found[names["apiVersion"]["const"], names["kind"]["const"]] = schema
    return found


def faults(document: dict[str, Any]) -> list[str]:
    """What an API server would say against a document, empty where it would take it."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    pytest.importorskip("celpy", reason="cel-python is not installed")
    if not schemas():
        pytest.skip("no CRD schemas: ../shared/export/crds is not there")
    schema = schemas().get((document["apiVersion"], document["kind"]))
    if schema is None:
        return [f"no schema of {document['apiVersion']} {document['kind']}"]
    shape = [
        f"{error.json_path}: {error.message}"
        for error in jsonschema.Draft202012Validator(schema).iter_errors(document)
    ]
    return shape or list(_broken_rules(schema, document, "$"))


def _broken_rules(schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", []):
        if "oldSelf" in rule["rule"]:  # rules of updates
            continue
        if not _holds(rule["rule"], json.dumps(value)):
            yield f"{where}: {rule.get('message', rule['rule'])}"
    if isinstance(value, dict):
        rest = schema.get("additionalProperties")
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key) or (rest if isinstance(rest, dict) else None)
            if inner:
                yield from _broken_rules(inner, item, f"{where}.{key}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for at, item in enumerate(value):
            yield from _broken_rules(schema["items"], item, f"{where}[{at}]")


@cache
def _holds(rule: str, document: str) -> bool:
    """Whether a rule holds for a value, in JSON: parts of most documents are the same."""
    import celpy

    try:
        return bool(_program(rule).evaluate({"self": celpy.adapter.json_to_cel(json.loads(document))}))
    except celpy.CELEvalError:  # of a key that is not there: the API server refuses that too
        return False


@cache
def _program(rule: str) -> Any:
    import celpy
    import celpy.celtypes as types

    more = {  # functions of Kubernetes that cel-python does not have
        "find": lambda text, pattern: types.StringType((re.search(str(pattern), str(text)) or [""])[0]),
        "split": lambda text, mark: types.ListType([types.StringType(x) for x in str(text).split(str(mark))]),
    }
    environment = celpy.Environment()
    return environment.program(environment.compile(rule), functions=more)
