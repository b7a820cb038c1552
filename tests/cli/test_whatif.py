"""`--set` and `planner whatif`: as if the file said so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import planner
from planner.inputs.load import load_workload
from planner.inputs.settings import with_settings
from tests.conftest import ROOT, Run

DAY = ("--as-of", "2026-11-20")
BERT = ROOT / "examples" / "bert-large.yaml"
LLAMA = ROOT / "examples" / "llama-3-8b.yaml"
pytestmark = pytest.mark.catalog("small")


def test_a_value_counts_as_if_the_file_said_so(tmp_path: Path) -> None:
    other = tmp_path / "w.yaml"
    other.write_text(
        LLAMA.read_text(encoding="utf-8").replace("deadline: 3w", "deadline: 10d"), encoding="utf-8"
    )
    changed = with_settings(load_workload(LLAMA), ["constraints.deadline=10d"])
    assert changed.workload == load_workload(other).workload
    assert changed.sha256 != load_workload(LLAMA).sha256


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("constraints.deadline=null", lambda w: w.constraints.deadline is None),
        ("constraints.regions=[aws/us-east-1]", lambda w: w.constraints.regions == ("aws/us-east-1",)),
        ("checkpoint.keep=4", lambda w: w.checkpoint.keep == 4),  # a section that the file lacks
        ("constraints.instance_types={deny: [p5*]}", lambda w: w.constraints.instance_types.deny == ("p5*",)),
    ],
)
def test_values_are_yaml(text: str, read: Callable[[object], bool]) -> None:
    assert read(with_settings(load_workload(LLAMA), [text]).workload)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("constraints.dedline=2d", "unknown key 'dedline' (did you mean 'deadline'?)"),
        ("constraint.deadline=2d", "unknown key 'constraint' (did you mean 'constraints'?)"),
        ("constraints.deadline=soon", "is not a duration: 'soon'"),
        ("constraints.deadline.x=2d", "constraints.deadline is no section"),
        ("constraints.regions=[aws/us-est-1]", "did you mean 'aws/us-east-1'?"),
        ("training.tokens=-5", "must be more than zero"),
        ("deadline", "is not KEY=VALUE"),
        ("constraints.deadline=[", "the value is not YAML"),
    ],
)
def test_a_wrong_value_names_its_set(text: str, message: str, run_cli: Run) -> None:
    result = run_cli("optimize", str(LLAMA), "--set", text, *DAY)
    assert result.code == 2 and f"--set {text}: " in result.stderr and message in result.stderr
    assert "Traceback" not in result.stderr and not result.stdout


def test_scenarios_stand_beside_the_file(run_cli: Run) -> None:
    sets = (
        "--set",
        "constraints.max_nodes=1",
        "--set",
        "preferences.objective=time",
        "--set",
        "constraints.deadline=1min",
    )
    found = json.loads(run_cli("whatif", str(BERT), *sets, *DAY, "-o", "json").stdout)
    plan, fast = planner.optimize(BERT, as_of=DAY[1]), planner.optimize(BERT, as_of=DAY[1], objective="time")
    assert found["before"]["total_usd"] == str(plan.total_usd)
    one, soonest, never = found["scenarios"]
    assert one["choice"].startswith("1 x ") and float(one["change_usd"]) >= 0
    assert soonest["total_usd"] == str(fast.total_usd) and soonest["change_hours"] < 0
    assert never["status"] == "infeasible" and never["total_usd"] is None and never["needs"]


def test_together_is_one_scenario(run_cli: Run) -> None:
    sets = ("--set", "constraints.max_nodes=1", "--set", "constraints.providers=[gcp]")
    found = json.loads(run_cli("whatif", str(BERT), *sets, "--together", *DAY, "-o", "json").stdout)
    (only,) = found["scenarios"]
    assert (
        only["scenario"] == "constraints.max_nodes=1, constraints.providers=[gcp]"
        and "gcp/" in only["choice"]
    )


def test_no_plan_in_any_scenario_is_exit_3(run_cli: Run) -> None:
    result = run_cli("whatif", str(BERT), "--set", "constraints.deadline=1min", *DAY)
    assert (
        result.code == 3
        and "WHAT WOULD MAKE A PLAN POSSIBLE" in result.stdout
        and "no plan meets" in result.stdout
    )


@pytest.mark.catalog("whole")
def test_figures_have_the_digits_of_the_plan(run_cli: Run) -> None:
    """The plan is known to some tens of dollars and to the day, so are the scenarios; json is exact."""
    shown = run_cli("whatif", str(BERT), "--set", "constraints.max_nodes=1", *DAY).stdout
    assert shown.startswith("constraints.max_nodes=1 changes nothing: $610, done Nov 22")
    assert "$607" not in shown and "$608" not in shown and "next: planner optimize" in shown


def test_scenarios_are_listed_once_in_every_text(run_cli: Run) -> None:
    asked = ("whatif", str(BERT), "--set", "constraints.max_nodes=1", *DAY)
    assert run_cli(*asked, "-o", "md").stdout.count("| as the file says |") == 1
    assert run_cli(*asked, "-o", "html").stdout.count('data-label="choice"') == len(
        ("as the file says", "scenario")
    )


def test_the_api_takes_values() -> None:
    found = planner.whatif(BERT, {"constraints.max_nodes": 1, "constraints.deadline": None}, as_of=DAY[1])
    assert found.scenarios[0].choice.startswith("1 x ") and len(found.to_frame()) == 2
