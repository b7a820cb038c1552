"""Hazards that a saved plan carries decide as those that would be fitted, and only while they are as written."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.advice import hazards
from planner.advice.carried import with_hazards
from planner.judge.carried import hazards_of
from planner.judge.document import Node
from planner.judge.findings import Findings
from planner.plan.launch import SpotPlace, SpotRecords
from planner.plan.model import Plan
from planner.plan.plain import plain
from planner.spot.hazards_table import mean_spell_hours
from tests.conftest import Run
from tests.planner.advice.plans import line_values, plan_values, state_values, write
from tests.planner.render.render_plans import LAUNCH

BAND = "band: 5-10 % a month (2026-01)"
RECORD = "recorded: aws p3.2xlarge x1, zone us-east-2a"
OTHER_ZONES = [
    {"name": "us-east-2a", "available": True, "since": 1.5},
    {"name": "us-east-2c", "region": "us-east-2", "available": False, "since": 3},
]


def plan_of(evidence: str, zone: str = "us-east-2a", records: SpotRecords | None = None) -> dict[str, Any]:
    """A plan for one zone (an empty one: the region) that is up for 40 h at a time and down for 10."""
    line = line_values(zone=zone)
    place = SpotPlace(line["offer_id"], 10.0, 40.0, 10.0, 0.8, None, evidence, records)
    return plan_values(lines=[line], launch=plain(replace(LAUNCH, places=(place,))))


def carrying(values: dict[str, Any]) -> dict[str, Any]:
    """The same plan as it is saved to a file."""
    return {**with_hazards(Plan.from_dict(values)).to_dict(), "start": values["start"]}


def answer(run_cli: Run, folder: Path, plan: dict[str, Any], *more: str, **changes: Any) -> dict[str, Any]:
    files = write(folder, plan, state_values(**changes))
    result = run_cli("advise", files[0], "--state", files[1], "-o", "json", "--futures", "20", *more)
    assert result.code == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_a_fleet_carries_none_as_advice_does_not_follow_fleets() -> None:
    job = plan_of(BAND)
    fleet = Plan.from_dict({**job, "kind": "fleet"})
    assert with_hazards(fleet) == fleet
    assert with_hazards(Plan.from_dict(job)) != Plan.from_dict(job)


@pytest.mark.parametrize(
    ("evidence", "zone", "zones"),
    [  # every pair of two
        (BAND, "us-east-2a", OTHER_ZONES[:1]), (BAND, "", OTHER_ZONES),
        (RECORD, "us-east-2a", OTHER_ZONES), (RECORD, "", OTHER_ZONES[:1]),
    ],
)  # fmt: skip
def test_a_plan_with_its_hazards_decides_as_one_without(
    evidence: str, zone: str, zones: list[dict[str, Any]], tmp_path: Path, run_cli: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "no" / "folder"))
    values = plan_of(evidence, zone)
    assert answer(run_cli, tmp_path, carrying(values), zones=zones) == answer(
        run_cli, tmp_path, values, zones=zones
    )


@pytest.mark.parametrize(("evidence", "zones"), [(BAND, OTHER_ZONES), (RECORD, OTHER_ZONES[:1])])
def test_no_record_is_fitted_where_the_plan_has_every_table(
    evidence: str, zones: list[dict[str, Any]], tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    plan = carrying(plan_of(evidence))
    monkeypatch.delattr(hazards, "derived_table")
    assert answer(run_cli, tmp_path, plan, "--futures", "0", zones=zones)["notes"] == []


def test_a_table_that_was_changed_is_said_and_not_used(tmp_path: Path, run_cli: Run) -> None:
    plan = carrying(plan_of(BAND))
    whole = answer(run_cli, tmp_path, plan)
    for name in ("down_per_hour", "up_per_hour", "age_edges_hours"):
        changed = copy.deepcopy(plan)
        changed["launch"]["places"][0]["hazards"][name][0] *= 3.0
        changed["launch"]["places"][0]["hazards"][name][-1] += 1.0
        found = answer(run_cli, tmp_path, changed)
        assert any("were changed or have other ages" in note for note in found["notes"])
        assert found["options"] == whole["options"] and found["hazards"] == whole["hazards"]


def test_records_that_are_named_count_above_the_plans_tables(tmp_path: Path, run_cli: Run) -> None:
    rows = [f"2026-02-{day:02}T00:00Z,us-east-2a,aws,p3.2xlarge,2,0" for day in range(1, 9)]
    seen = tmp_path / "seen.csv"
    seen.write_text(
        "\n".join(["time,zone,provider,instance_type,gang,available", *rows, ""]), encoding="utf-8"
    )
    values = plan_of(RECORD)
    own = answer(run_cli, tmp_path, carrying(values), "--spot-evidence", str(seen))
    assert own == answer(run_cli, tmp_path, values, "--spot-evidence", str(seen))
    assert own["hazards"] != answer(run_cli, tmp_path, carrying(values))["hazards"]


def test_a_place_takes_about_a_kilobyte_and_plans_that_cannot_be_followed_nothing() -> None:
    held = carrying(plan_of(RECORD))["launch"]["places"][0]["hazards"]
    assert len(json.dumps(held)) < 1_500
    own = SpotRecords((0.1,) * 10, (0.1,) * 10, 0.1, 0.1, 200.0, "own")
    without = [{**plan_of(BAND), "deadline": None}, plan_values(), plan_of(BAND, records=own)]
    for values in without:
        assert carrying(values) == {**Plan.from_dict(values).to_dict(), "start": values["start"]}


def _faults(plan: dict[str, Any]) -> list[str]:
    found = Findings(Node(plan), {})
    found.expect(Node(plan)["launch"]["places"][0]["hazards"], hazards_of(Node(plan), 0)["hazards"])
    return found.faults


@pytest.mark.parametrize(
    ("evidence", "away", "holds"), [(BAND, 1.01, False), (RECORD, 1.5, True), (RECORD, 4.0, False)]
)
def test_verify_checks_the_mean_spells_as_closely_as_the_evidence_allows(
    evidence: str, away: float, holds: bool
) -> None:
    plan = carrying(plan_of(evidence))
    place = plan["launch"]["places"][0]
    sides = (("mean_up_hours", "down_per_hour"), ("mean_wait_hours", "up_per_hour"))
    for mean, side in sides:
        place[mean] = mean_spell_hours(np.asarray(place["hazards"][side]))
    assert _faults(plan) == []
    for mean, side in sides:
        changed = copy.deepcopy(plan)
        changed["launch"]["places"][0][mean] *= away
        assert any(side in fault for fault in _faults(changed)) != holds


def test_verify_checks_the_hash_of_every_field() -> None:
    plan = carrying(plan_of(BAND))
    assert _faults(plan) == []
    for name, value in plan["launch"]["places"][0]["hazards"].items():
        changed = copy.deepcopy(plan)
        other = [*value, 1.0] if isinstance(value, list) else f"{value}x" if isinstance(value, str) else 0.123
        changed["launch"]["places"][0]["hazards"][name] = other
        assert any("sha256" in fault for fault in _faults(changed)), name
