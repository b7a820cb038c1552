"""The decision table, followed by the script in examples/drivers without the planner, decides as the policy does."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.advice.rollout import Guarded
from planner.advice.table import CSV_COLUMNS, DecisionTable, build_table, table_text
from planner.errors import InputError
from planner.spot.hazards import AGE_EDGES_HOURS, HazardTable
from planner.spot.policy.job import Action, JobState, SpotJob, SpotZone
from planner.spot.policy.registry import make_policy
from planner.spot.policy.view import ArrayPolicy
from tests.conftest import ROOT
from tests.planner.spot.reference_replay import ReplayResult, replay


def hazard_table(down: float = 0.5, up: float = 0.7) -> HazardTable:
    """Falling hazards: young spells end soon, old ones last."""
    falling = 1.0 / (1.0 + np.arange(len(AGE_EDGES_HOURS)))
    return HazardTable(AGE_EDGES_HOURS, 4 * down * falling, 4 * up * falling, 0.0, 0.0, 0.55, 100.0, "test")


class Model:
    """A hazard model of one table per zone name."""

    def __init__(self, tables: dict[str, HazardTable]) -> None:
        self.tables = tables

    def table_for(self, zone: SpotZone) -> HazardTable:
        return self.tables[zone.name]


def follower() -> Any:
    """The script's module."""
    path = ROOT / "examples" / "drivers" / "follow_table.py"
    spec = importlib.util.spec_from_file_location("follow_table", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Follows:
    """A policy that knows the table only, as a launcher would see it."""

    def __init__(self, table: DecisionTable) -> None:
        self.table = json.loads(table_text(table, Path("t.json")))
        self.decide_by_table = follower().decide

    def decide(self, state: JobState) -> Action:
        zones = [
            {"name": z.name, "available": z.available, "since_hours": z.since_hours} for z in state.zones
        ]
        mode, zone = self.decide_by_table(
            self.table,
            {
                "elapsed_hours": state.elapsed_hours, "done_hours": state.done_hours, "mode": state.mode,
                "zone": state.zone, "restart_left_hours": state.restart_left_hours, "zones": zones,
            },
        )  # fmt: skip
        return Action(mode, zone)


class Both:
    """Asks two policies at every tick and keeps where they differ; acts on the first."""

    def __init__(self, first: Any, second: ArrayPolicy) -> None:
        self.first, self.second, self.differences, self.asked = first, second, 0, 0

    def decide(self, state: JobState) -> Action:
        action = self.first.decide(state)
        self.asked += 1
        self.differences += action != self.second.decide(state)
        return action


def job(zones: int = 1, **changes: Any) -> SpotJob:
    values: dict[str, Any] = {
        "work_hours": 4.0, "deadline_hours": 7.0, "restart_hours": 0.2, "on_demand_usd_per_hour": 3.0,
        "zones": tuple(SpotZone(f"z{k}", f"r{k}", "t", 1.0 + 0.1 * k, "aws") for k in range(zones)),
    }  # fmt: skip
    return SpotJob(**{**values, **changes})


def weather(zones: int, seed: int, ticks: int = 70) -> np.ndarray:
    """Spells of a few ticks to a few hours."""
    rng = np.random.default_rng(seed)
    flips = rng.random((zones, ticks)) < 0.09
    return (np.cumsum(flips, axis=1) + rng.integers(0, 2, (zones, 1))) % 2 == 0


@pytest.mark.parametrize("policy", ["survival", "uniform_progress", "greedy"])
@pytest.mark.parametrize("acquire", [0.0, 0.5])
def test_one_zone_decides_as_the_policy(policy: str, acquire: float) -> None:
    question, tables = job(on_demand_acquire_hours=acquire), {"z0": hazard_table()}
    table = Follows(build_table(question, Model(tables), policy))  # type: ignore[arg-type]
    both = Both(table, Guarded(make_policy(policy, question, tables)))
    for seed in range(12):
        assert replay(question, both, weather(1, seed)).finished
    assert both.asked > 300 and both.differences == 0


def test_several_zones_never_miss_and_cost_little_more_than_the_policy() -> None:
    question = job(3)
    tables = {zone.name: hazard_table(0.3 + 0.2 * k) for k, zone in enumerate(question.zones)}
    table = Follows(build_table(question, Model(tables), "survival"))  # type: ignore[arg-type]
    policy = make_policy("survival", question, tables)

    def cost(found: list[ReplayResult]) -> float:
        assert all(result.finished for result in found)
        return float(np.mean([result.cost_usd for result in found]))

    followed = cost([replay(question, table, weather(3, seed)) for seed in range(12)])
    assert followed <= 1.15 * cost([replay(question, policy, weather(3, seed)) for seed in range(12)])


@pytest.mark.parametrize("kind", ["never", "always", "once", "until_guard"])
def test_the_table_keeps_the_deadline_whatever_spot_does(kind: str) -> None:
    question = job()
    up = np.zeros((1, 70), dtype=bool)
    up[0, : {"never": 0, "always": 70, "once": 1, "until_guard": 27}[kind]] = True
    table = Follows(build_table(question, Model({"z0": hazard_table()}), "survival"))  # type: ignore[arg-type]
    assert replay(question, table, up).finished


def from_csv(text: str) -> dict[str, Any]:
    """What a reader of the CSV knows, in the words of the JSON."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == CSV_COLUMNS
    order = {int(row["zone_order"]): row["zone"] for row in rows if row["zone"]}
    entries: dict[tuple[Any, ...], dict[int, list[list[Any]]]] = {}
    for row in rows:
        key = (row["mode"], row["zone"], int(row["restart_left_ticks"]), int(row["age_from_ticks"]))
        runs = entries.setdefault(key, {}).setdefault(int(row["time_left_from_ticks"]), [])
        runs.append([int(row["slack_from_ticks"]), row["action"]])
    names = ("mode", "zone", "restart_left_ticks", "age_from_ticks")
    return {
        **{name: float(rows[0][name]) for name in ("tick_hours", "work_hours", "deadline_hours")},
        "leaves_out": rows[0]["leaves_out"].split(),
        "zones": [order[number] for number in sorted(order)],
        "entries": [
            dict(zip(names, key, strict=True)) | {"rows": [list(item) for item in found.items()]}
            for key, found in entries.items()
        ],
    }


@pytest.mark.parametrize("zones", [1, 3])
def test_csv_and_json_say_the_same(zones: int) -> None:
    model = Model({f"z{k}": hazard_table(0.3 + 0.4 * (2 - k)) for k in range(zones)})
    table = build_table(job(zones), model, "survival")  # type: ignore[arg-type]
    told = from_csv(table_text(table, Path("t.csv")))
    known = json.loads(table_text(table, Path("t.json")))
    for entry in known["entries"]:
        del entry["up"]
    assert told == {key: known[key] for key in told}


def test_the_table_says_what_it_leaves_out() -> None:
    one = build_table(job(), Model({"z0": hazard_table()}), "greedy")  # type: ignore[arg-type]
    assert json.loads(table_text(one, Path("t.json")))["leaves_out"] == []
    model = Model({"z0": hazard_table(), "z1": hazard_table()})
    two = json.loads(table_text(build_table(job(2), model, "greedy"), Path("t.json")))  # type: ignore[arg-type]
    assert two["leaves_out"] == ["migrate"] and "no migration" in two["meaning"]


def test_a_table_of_a_month_in_minutes_and_another_format_are_refused() -> None:
    month = job(work_hours=600.0, deadline_hours=700.0, tick_hours=1 / 60)
    with pytest.raises(InputError, match="--every 30m"):
        build_table(month, Model({"z0": hazard_table()}), "greedy")  # type: ignore[arg-type]
    table = build_table(job(), Model({"z0": hazard_table()}), "greedy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"must end in \.json or \.csv"):
        table_text(table, Path("t.xlsx"))
