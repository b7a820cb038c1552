"""The data dictionaries of answers: complete, in step with the dataclasses, and printed by `planner schema`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.commitments import answer as commit
from planner.plan.fields import (
    TABLE,
    TEXT_FORMS,
    derived_hints,
    hints_of,
    kind_of,
    load_rules,
    part_types,
    split_optional,
)
from planner.plan.ids import CostId, TimePartId
from planner.plan.json_schema import plan_schema
from planner.plan.model import Plan
from tests.conftest import CliResult

ANSWERS = [pytest.param(Plan, TABLE, id="plan"), pytest.param(commit.CommitAnswer, commit.TABLE, id="commit")]
SUFFIXES = {"_usd": "USD", "_hours": "h", "_s": "s", "_gib": "GiB", "_ratio": "ratio"}


def fields_of(root: Any) -> dict[tuple[str, str], Any]:
    parts: dict[str, Any] = dict(part_types(root))
    return {
        (name, field): hint
        for name, part in parts.items()
        for field, hint in {**hints_of(part), **derived_hints(part)}.items()
    }


@pytest.mark.parametrize(("root", "table"), ANSWERS)
def test_every_field_of_every_part_is_documented_and_nothing_else(root: Any, table: Path) -> None:
    assert list(load_rules(table)) == list(fields_of(root))


@pytest.mark.parametrize(("root", "table"), ANSWERS)
def test_a_row_agrees_with_the_dataclass(root: Any, table: Path) -> None:
    # of a plan, money is text in JSON; in answers of commit it is a number
    forms = {"text": TEXT_FORMS, "decimal": ("decimal",) if root is Plan else ("number",)}
    for (part, field), hint in fields_of(root).items():
        rule, where = load_rules(table)[part, field], f"{part}.{field}"
        assert rule.kind in forms.get(kind_of(hint), (kind_of(hint),)), where
        assert rule.is_nullable == split_optional(hint)[1], where
        assert not rule.is_unbounded or hint is float, where
        assert rule.description and (rule.description[-1] != "." or rule.description.endswith("...")), where


@pytest.mark.parametrize(("root", "table"), ANSWERS)
def test_the_unit_is_that_of_the_name(root: Any, table: Path) -> None:
    for part, field in fields_of(root):
        wanted = next((unit for end, unit in SUFFIXES.items() if field.endswith(end)), None)
        if wanted and not field.endswith("_per_s"):
            assert load_rules(table)[part, field].unit == wanted, f"{part}.{field}"


def test_the_schema_is_printed_with_units_descriptions_and_ids(run_cli: Callable[..., CliResult]) -> None:
    result = run_cli("schema", "plan")
    assert result.code == 0
    schema = json.loads(result.stdout)
    assert schema == plan_schema() and schema["properties"]["hours"]["unit"] == "h"
    shown = {
        one["const"]: one["description"] for one in schema["$defs"]["CostLine"]["properties"]["id"]["oneOf"]
    }
    assert shown == {member.value: member.__doc__ for member in CostId}
    parts = schema["$defs"]["TimePart"]["properties"]["id"]["oneOf"]
    assert [one["const"] for one in parts] == list(TimePartId)
