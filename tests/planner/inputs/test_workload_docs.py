"""docs/workload.md and workload-keys.md: the tables come from the models, the YAML blocks are valid workloads."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner import units
from planner.inputs import fields
from planner.inputs.json_schema import SCHEMA_PATH
from planner.inputs.load import parse_workload
from planner.inputs.tasks import load_tasks

DOC = Path(__file__).parents[3] / "docs" / "workload.md"
KEYS = DOC.with_name("workload-keys.md")
BEGIN, END = "<!-- generated: fields -->\n", "<!-- end of generated part -->\n"


_PATTERNS = {
    units.DURATION_PATTERN: "duration",
    units.SIZE_PATTERN: "size",
    units.COUNT_PATTERN: "count",
    units.MONEY_PATTERN: "money",
    fields.DATE_PATTERN: "date",
    fields.DATETIME_PATTERN: "date",
}


# Enumerations that several keys take: each stands in the page once, under its name.
SHARED = {"owned": "PurchaseOption", "neuron": "Software"}
# Bounds that only refuse slips of the pen, such as 1e9 instances.
SANITY = 1000


def _kind(field: dict[str, Any]) -> str:
    """Say in a word or two what a field takes, with its bounds where they say something."""
    for key in ("anyOf", "oneOf"):
        if key in field:
            kinds = dict.fromkeys(_kind(each) for each in field[key] if each != {"type": "null"})
            return " or ".join(kinds)
    if "enum" in field:
        name = next((name for value, name in SHARED.items() if value in field["enum"]), None)
        return _link(name) if name else ", ".join(f"`{each}`" for each in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return _link(field["$ref"].rsplit("/", 1)[-1])
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    kind = _PATTERNS.get(str(field.get("pattern", "")))
    if kind is not None:
        return kind
    names = {
        "string": "text",
        "integer": "integer",
        "number": "number",
        "boolean": "true/false",
        "object": "mapping",
    }
    return names.get(str(field.get("type")), "any") + _bounds(field)


def _bounds(field: dict[str, Any]) -> str:
    """Bounds other than the usual ones, which the page states: above 0, and whole numbers from 1 on."""
    low, above = field.get("minimum"), field.get("exclusiveMinimum")
    high, below = field.get("maximum"), field.get("exclusiveMaximum")
    if below is not None:
        return f" between {above} and {below}"
    if high is None or high > SANITY:
        return " >= 0" if low == 0 else ""
    return f" {low} to {high}" if above is None else f" <= {high}"


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


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


def _rows(section: dict[str, Any], schema: dict[str, Any]) -> dict[str, str]:
    """The line of each key of a section."""
    rows = {}
    for key, field in section["properties"].items():
        required = key in section.get("required", ())
        kind = (
            _kind(field)
            .replace("integer or size", "size")
            .replace("number or ", "")
            .replace("number <= 1", "ratio")
        )
        rows[key] = f"| `{key}` | {kind} | {_default(field, required)} | {_meaning(field, schema)} |"
    return rows


def render_reference() -> str:
    """Return the tables of all sections, the workload first; keys that a section shares with another stand there."""
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    sections = {"Workload": schema, **schema["$defs"]}
    tables = {name: _rows(section, schema) for name, section in sections.items()}
    out = []
    for name, rows in tables.items():
        out += [f"## {name}", "", sections[name]["description"].split("\n")[0], ""]
        alike = next((each for each in tables if each != name and _mostly_in(rows, tables[each])), None)
        if alike:
            other = tables[alike]
            missing = ", ".join(f"`{key}`" for key in other if key not in rows)
            out += [f"The keys of {_link(alike)} except {missing}, and:", ""]
            rows = {key: row for key, row in rows.items() if other.get(key) != row}
        out += ["| key | takes | default | meaning |", "|---|---|---|---|", *rows.values(), ""]
    for value, name in SHARED.items():
        values = next(each for each in _enums(schema) if value in each)
        out += [f"## {name}", "", ", ".join(f"`{each}`" for each in values), ""]
    return "\n".join(out)


def _mostly_in(rows: dict[str, str], other: dict[str, str]) -> bool:
    shared = sum(other.get(key) == row for key, row in rows.items())
    return len(rows) > 10 and shared > 0.9 * len(rows)


def _enums(node: Any) -> Iterator[list[str]]:
    """All enumerations of a schema."""
    if isinstance(node, dict) and "enum" in node:
        yield node["enum"]
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _enums(each)


def test_the_field_tables_are_current() -> None:
    text = KEYS.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    wanted = f"{head}{BEGIN}{render_reference()}{END}{tail}"
    if os.environ.get("UPDATE_GOLDENS"):
        KEYS.write_text(wanted, encoding="utf-8")
    assert text == wanted or os.environ.get("UPDATE_GOLDENS"), (
        "run with UPDATE_GOLDENS=1 and commit docs/workload-keys.md"
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
