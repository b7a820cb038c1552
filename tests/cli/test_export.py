"""`planner export` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")
BERT = ROOT / "examples" / "bert-large.yaml"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planner.optimize(BERT, as_of="2026-11-20").save(tmp_path_factory.mktemp("plan") / "plan.json")


def test_one_file_goes_to_standard_output(run_cli: Run, plan: Path) -> None:
    result = run_cli("export", str(plan), "--to", "torchrun")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.startswith("#!/usr/bin/env bash\n# bert-large")
    assert f"export PLANNER_RUN_ID={json.loads(plan.read_text())['run_id']}\n" in result.stdout


def test_a_dash_is_standard_output_as_in_other_commands(
    run_cli: Run, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_cli("export", str(plan), "--to", "torchrun", "--out", "-")
    assert result.stdout.startswith("#!/usr/bin/env bash\n")
    assert list(tmp_path.iterdir()) == []


def test_files_with_other_content_are_kept_without_force(run_cli: Run, plan: Path, tmp_path: Path) -> None:
    words = ("export", str(plan), "--to", "torchrun", "--out", str(tmp_path / "launch"))
    assert run_cli(*words).code == 0
    script = tmp_path / "launch" / "run.sh"
    assert script.stat().st_mode & 0o111
    assert run_cli(*words).code == 0  # the same content
    script.write_text("mine\n")
    refused = run_cli(*words)
    assert refused.code == 2 and "--force" in refused.stderr and script.read_text() == "mine\n"
    assert run_cli(*words, "--force").code == 0 and script.read_text() != "mine\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "nomad"), "not a target"),
        (("--to", "torchrun", "--framework", "jax"), "not known; they are none, torchtitan"),
        (("--to", "torchrun", "--option", "x"), "KEY=VALUE"),
    ],
)
def test_what_is_not_known_is_refused_by_name(
    run_cli: Run, plan: Path, words: tuple[str, ...], said: str
) -> None:
    result = run_cli("export", str(plan), *words)
    assert result.code == 2 and said in result.stderr


def test_a_missing_target_is_answered_with_their_names(run_cli: Run, plan: Path) -> None:
    result = run_cli("export", str(plan))
    assert result.code == 2 and "Targets: torchrun, slurm, " in " ".join(result.stderr.split())


def test_answers_of_other_questions_are_refused_with_the_remedy(
    run_cli: Run, plan: Path, tmp_path: Path
) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(json.loads(plan.read_text()) | {"schedule": "s"}))
    result = run_cli("export", str(path), "--to", "torchrun")
    assert result.code == 2 and "Traceback" not in result.stderr
    assert "an answer of `planner schedule`; export takes" in result.stderr


def test_an_infeasible_plan_is_refused_with_the_remedy(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    words = ("--set", "constraints.budget_usd=1", "-o", "json", "--out", str(path))
    assert run_cli("optimize", str(BERT), "--as-of", "2026-11-20", *words).code == 3
    result = run_cli("export", str(path), "--to", "torchrun")
    assert result.code == 2 and "planner explain" in result.stderr


def test_the_list_names_every_target_and_framework(run_cli: Run) -> None:
    from planner.export.frameworks.registry import FRAMEWORKS
    from planner.export.registry import TARGETS

    listed = run_cli("export", "--list")
    assert listed.code == 0
    assert {line.split()[0] for line in listed.stdout.splitlines() if line} >= {*TARGETS, *FRAMEWORKS}
