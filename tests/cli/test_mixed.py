"""`planner optimize` of a job that owned machines hold only in part, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_optimize import DAY, example
from tests.conftest import Run

NAME = "owned-top-up"
pytestmark = pytest.mark.catalog("small")


def test_the_headline_names_all_parts(run_cli: Run) -> None:
    screen = run_cli("optimize", example(NAME), *DAY)
    assert screen.code == 0, screen.stderr
    headline = " ".join(screen.stdout.split("COST")[0].split())
    assert "p4d.24xlarge" in headline
    assert "4 reserved_1y (already paid) + " in headline
    assert "on_demand, aws/us-east-1" in headline
    done = run_cli("optimize", example(NAME), "--details", "all", *DAY)
    assert "on_demand in aws/us-east-1" in " ".join(done.stdout.split("Warnings")[0].split())
    assert "clusters bought in parts" in " ".join(done.stdout.split())


def test_the_plan_verifies_and_a_tampered_one_does_not(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    assert run_cli("optimize", example(NAME), "-o", "json", "--out", str(target), *DAY).code == 0
    assert run_cli("verify", str(target), "--workload", example(NAME)).code == 0
    plan = json.loads(target.read_text(encoding="utf-8"))
    owned, bought = plan["lines"]
    owned["nodes"], bought["nodes"] = owned["nodes"] + 1, bought["nodes"] - 1
    target.write_text(json.dumps(plan), encoding="utf-8")
    done = run_cli("verify", str(target), "--workload", example(NAME))
    assert done.code == 5
    assert "5 nodes of commitments that hold 4" in " ".join(done.stdout.split())


def test_the_milp_gives_the_same_lines(run_cli: Run) -> None:
    exact, milp = (
        json.loads(run_cli("optimize", example(NAME), "-o", "json", *flags, *DAY).stdout)
        for flags in ((), ("--solver", "milp"))
    )
    assert [line["nodes"] for line in exact["lines"]] == [line["nodes"] for line in milp["lines"]]
    assert exact["total_usd"] == milp["total_usd"]


def test_why_not_and_the_layout_are_explained(run_cli: Run) -> None:
    done = run_cli("explain", example(NAME), "--why-not", "p5.48xlarge", *DAY)
    assert done.code == 0, done.stderr
    assert "instance_type" in done.stdout
