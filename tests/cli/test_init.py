"""`planner init`: an empty workload, or one from the user's own files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.conftest import CliResult
from tests.planner.trainer_files.test_formats import AXOLOTL, LLAMA_FACTORY, filled

Run = Callable[..., CliResult]


def test_the_empty_workload_can_be_estimated_at_once(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "workload.yaml"
    assert run_cli("init", "-o", str(out)).code == 0
    done = run_cli("estimate", str(out), "--instance-type", "p5.48xlarge")
    assert (done.code, done.stderr) == (0, "")


def test_a_draft_says_where_each_value_was_read_and_runs_once_filled(run_cli: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "run.yaml", tmp_path / "workload.yaml"
    source.write_text(AXOLOTL)
    done = run_cli("init", "--from", str(source), "--accelerators", "8")
    assert done.code == 0
    assert "sequence_length: 4096" in done.stdout
    assert "# sequence_len\n" in done.stdout
    assert "to fill: data.samples" in done.stderr
    out.write_text(filled(done.stdout))
    assert run_cli("estimate", str(out), "--instance-type", "p5.48xlarge").code == 0


def test_blanks_may_be_stated_at_once(run_cli: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "run.yaml", tmp_path / "workload.yaml"
    source.write_text(AXOLOTL)
    stated = ("--set", "data.samples=52_000", "--set", "constraints.deadline=3d")
    done = run_cli("init", "--from", str(source), *stated, "-o", str(out))
    assert done.code == 0
    assert "to fill" not in done.stderr
    assert run_cli("estimate", str(out), "--instance-type", "p5.48xlarge").code == 0


def test_what_is_stated_replaces_what_the_files_say(run_cli: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "run.yaml", tmp_path / "workload.yaml"
    source.write_text(AXOLOTL)
    stated = {
        "name": "mine", "training.steps": 100, "training.layout": "auto", "preferences.objective": "time",
        "constraints.deadline": "3d",
    }  # fmt: skip
    args = [part for key, value in stated.items() for part in ("--set", f"{key}={value}")]
    done = run_cli("init", "--from", str(source), *args, "-o", str(out))
    assert (done.code, done.stderr.count("to fill")) == (0, 0)
    written = yaml.safe_load(out.read_text())
    assert (written["name"], written["preferences"]) == ("mine", {"objective": "time"})
    assert (written["training"]["steps"], written["training"]["layout"]) == (100, "auto")
    assert "epochs" not in written["training"]
    assert run_cli("estimate", str(out), "--instance-type", "p5.48xlarge").code == 0


def test_a_file_is_never_replaced_without_force(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "workload.yaml"
    out.write_text("mine")
    done = run_cli("init", "-o", str(out))
    assert (done.code, out.read_text()) == (2, "mine")
    assert "--force" in done.stderr
    assert run_cli("init", "-o", str(out), "--force").code == 0
    assert out.read_text() != "mine"


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--from", "absent.yaml"], "absent.yaml: no such file"),
        (["some.yaml"], "planner init --from some.yaml"),
        (["--model-config", "config.json"], "--from"),
        (["--set", "training.tokens=1"], "--from"),
    ],
)
def test_wrong_use_is_told_with_the_remedy(args: list[str], reason: str, run_cli: Run) -> None:
    done = run_cli("init", *args)
    assert (done.code, done.stdout) == (2, "")
    assert reason in done.stderr


@pytest.mark.parametrize("stated", ["tokens", "training.tokenz=1", "training.tokens="])
def test_stated_values_name_keys_of_a_workload(stated: str, run_cli: Run, tmp_path: Path) -> None:
    source = tmp_path / "run.yaml"
    source.write_text(LLAMA_FACTORY)
    done = run_cli("init", "--from", str(source), "--set", stated)
    assert done.code == 2
    assert f"--set {stated}" in done.stderr
