"""The data dictionary of a plan: complete, in step with the dataclasses, and printed by `planner schema plan`."""

from __future__ import annotations

import json
from collections.abc import Callable

from planner.plan.fields import (
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

FIELDS = {(name, field): hint for name, part in part_types(Plan).items()
          for field, hint in {**hints_of(part), **derived_hints(part)}.items()}  # fmt: skip
SUFFIXES = {"_usd": "USD", "_hours": "h", "_s": "s", "_gib": "GiB", "_ratio": "ratio"}


def test_every_field_of_every_part_is_documented_and_nothing_else() -> None:
    assert list(load_rules()) == list(FIELDS)


def test_a_row_agrees_with_the_dataclass() -> None:
    for (part, field), hint in FIELDS.items():
        rule, where = load_rules()[part, field], f"{part}.{field}"
        assert rule.kind == kind_of(hint) or (kind_of(hint) == "text" and rule.kind in TEXT_FORMS), where
        assert rule.is_nullable == split_optional(hint)[1], where
        assert not rule.is_unbounded or hint is float, where
        assert rule.description and (rule.description[-1] != "." or rule.description.endswith("...")), where


def test_the_unit_is_that_of_the_name() -> None:
    for part, field in FIELDS:
        wanted = next((unit for end, unit in SUFFIXES.items() if field.endswith(end)), None)
        if wanted and not field.endswith("_per_s"):
            assert load_rules()[part, field].unit == wanted, f"{part}.{field}"


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
