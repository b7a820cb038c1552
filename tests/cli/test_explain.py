"""`planner explain`: what the plan is, what came next, what removed the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.test_optimize import BERT, DAY, example, write
from tests.conftest import CliResult

Run = Callable[..., CliResult]


def test_it_tells_the_plan_the_next_best_and_the_filters(run_cli: Run) -> None:
    done = run_cli("explain", str(BERT), "--why-not", "p4d.24xlarge", "--why-not", "zzz", *DAY)
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("plan: ")
    assert any(line.startswith("next: ") for line in lines)
    assert any(line.startswith("filter ") and "alone" in line for line in lines)
    assert any(line.startswith("filters ") and "together" in line for line in lines)
    assert "zzz: not in the catalog" in lines
    (layouts,) = [line for line in lines if line.startswith("layouts of ")]
    assert "ways to split" in layouts and "out of memory" in layouts
    assert any(line.startswith("layout best: ") for line in lines)
    assert any(line.startswith("layout next: ") for line in lines)


def test_it_names_the_limit_to_relax(run_cli: Run, tmp_path: Path) -> None:
    done = run_cli("explain", write(tmp_path, constraints={"budget_usd": 0.01}), *DAY)
    assert done.code == 3
    assert "no plan" in done.stdout
    (relax, *_) = [line for line in done.stdout.splitlines() if line.startswith("relax: ")]
    assert "budget" in relax


def test_it_tells_all_parts_of_a_fleet(run_cli: Run) -> None:
    done = run_cli("explain", example("hpo-fleet"), *DAY)
    assert done.code == 0
    assert len([line for line in done.stdout.splitlines() if line.startswith("plan: ")]) > 1


def test_a_fleet_has_an_answer_to_why_not(run_cli: Run) -> None:
    done = run_cli("explain", example("hpo-fleet"), "--why-not", "p4d.24xlarge", *DAY)
    assert done.code == 0
    assert "p4d.24xlarge: " in done.stdout
