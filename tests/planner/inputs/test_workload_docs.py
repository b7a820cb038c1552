"""docs/workload.md: its field tables come from the models, and its YAML blocks are valid workloads."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from planner import units
from planner.inputs import fields, parse_workload
from planner.inputs.json_schema import SCHEMA_PATH
from planner.inputs.tasks import load_tasks

DOC = Path(__file__).parents[3] / "docs" / "workload.md"
BEGIN, END = "<!-- generated: fields -->\n", "<!-- end of generated part -->\n"


_PATTERNS = {
    units.DURATION_PATTERN: "duration",
    units.SIZE_PATTERN: "size",
    units.COUNT_PATTERN: "count",
    units.MONEY_PATTERN: "money",
    fields.DATE_PATTERN: "date",
    fields.DATETIME_PATTERN: "date",
}


def _kind(field: dict[str, Any]) -> str:
    """Say in a word or two what a field takes."""
    for key in ("anyOf", "oneOf"):
        if key in field:
            kinds = dict.fromkeys(_kind(each) for each in field[key] if each != {"type": "null"})
            return " or ".join(kinds)
    if "enum" in field:
        return ", ".join(f"`{each}`" for each in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return f"[{field['$ref'].rsplit('/', 1)[-1]}](#{field['$ref'].rsplit('/', 1)[-1].lower()})"
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    kind = _PATTERNS.get(str(field.get("pattern", "")))
    if kind is not None:
        return kind
    names = {"string": "text", "integer": "whole number", "boolean": "true/false", "object": "mapping"}
    return names.get(str(field.get("type")), str(field.get("type", "any")))


def _meaning(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the description of a field, or of the section it holds when they are the same."""
    own = field.get("description")
    return str(own or schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]["description"]).split("\n")[0]


def _default(field: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    default = field.get("default")
    if default in (None, "", [], {}) or isinstance(default, dict):
        return ""
    return f"`{json.dumps(default)}`".replace('"', "")


def render_reference() -> str:
    """Return the tables of all sections, the workload first."""
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    sections = {"Workload": schema, **schema["$defs"]}
    out = []
    for name, section in sections.items():
        out += [f"### {name}", "", section["description"].split("\n")[0], ""]
        out += ["| key | takes | default | meaning |", "|---|---|---|---|"]
        for key, field in section["properties"].items():
            required = key in section.get("required", ())
            kind = _kind(field).replace("whole number or size", "size").replace("number or ", "")
            out.append(f"| `{key}` | {kind} | {_default(field, required)} | {_meaning(field, schema)} |")
        out.append("")
    return "\n".join(out)


def test_the_field_tables_are_current() -> None:
    text = DOC.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    wanted = f"{head}{BEGIN}{render_reference()}{END}{tail}"
    if os.environ.get("UPDATE_GOLDENS"):
        DOC.write_text(wanted, encoding="utf-8")
    assert text == wanted or os.environ.get("UPDATE_GOLDENS"), (
        "run with UPDATE_GOLDENS=1 and commit docs/workload.md"
    )


def test_every_field_has_a_description() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    for section in (schema, *schema["$defs"].values()):
        assert section["description"]
        for key, field in section["properties"].items():
            assert _meaning(field, schema).endswith("."), key


def test_every_task_is_in_the_document() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert [name for name in load_tasks() if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    "block",
    re.findall(r"```yaml\n(.*?)```", DOC.read_text(encoding="utf-8") if DOC.exists() else "", re.DOTALL),
)
def test_yaml_blocks_are_valid(block: str) -> None:
    assert parse_workload(block, Path("docs.yaml")).workload.name


def test_editor_patterns_accept_what_the_parser_accepts() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    known = {**schema["$defs"]["Constraints"]["properties"], **schema["$defs"]["Data"]["properties"]}
    accepted = {
        "deadline": [
            "72h",
            "3d 4h",
            "2w",
            "P3DT4H",
            "72:00:00",
            "2026-12-01",
            "2026-12-01T08:00Z",
            "3 weeks",
        ],
        "budget_usd": ["$5,000", "5000 USD", "5000.50"],
        "size": ["100GB", "1.6 TB", "80GiB", "100gb", "1e3 kB"],
        "tokens": ["300e9", "1_000"],
    }
    for key, texts in accepted.items():
        patterns = [each["pattern"] for each in _flat(known[key]) if "pattern" in each]
        for text in texts:
            assert any(re.match(pattern, text) for pattern in patterns), (key, text)


def _flat(field: dict[str, Any]) -> list[dict[str, Any]]:
    return [field, *(item for each in field.get("anyOf", ()) for item in _flat(each))]
