"""`planner init`: an empty workload, or one from the user's own files."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from benchmarks.trainer_files import filled
from planner.errors import InputError
from planner.trainer_files.answer import workload_from
from planner.trainer_files.questions import ask_for_wishes
from tests.conftest import ROOT, CliResult
from tests.planner.trainer_files.test_formats import AXOLOTL, LLAMA_FACTORY

Run = Callable[..., CliResult]


def test_the_empty_workload_can_be_estimated_at_once(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "workload.yaml"
    assert run_cli("init", "-o", str(out)).code == 0
    done = run_cli("estimate", str(out), "--instance-type", "p5.48xlarge")
    assert (done.code, done.stderr) == (0, "")


def test_an_objective_that_generates_is_asked_for_its_lengths(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "workload.yaml"
    words = (
        "init",
        "--model",
        "llama-3.1-8b",
        "--set",
        "training.objective=grpo",
        "--set",
        "training.steps=100",
    )
    done = run_cli(*words)
    assert "to fill: training.rollouts" in done.stderr
    out.write_text(filled(done.stdout))
    assert run_cli("estimate", str(out), "--instance-type", "p5.48xlarge").code == 0
    assert "rollouts" not in run_cli(*words, "--set", "training.rollouts.response_tokens.mean=9").stderr


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
    values = ("data.samples=52_000", "constraints.deadline=3d", "training.lengths.mean=300")
    stated = [part for value in values for part in ("--set", value)]
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
        (["--model-config", "config.json"], "config.json: no such file"),
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


def test_a_model_alone_gives_a_workload_that_names_what_is_missing(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "workload.yaml"
    stated = ("--model", "meta-llama/Llama-3.1-8B-Instruct", "--set", "training.tokens=2e9")
    done = run_cli("init", *stated, "-o", str(out))
    assert done.code == 0
    assert "to fill: constraints.deadline" in done.stderr
    assert yaml.safe_load(out.read_text())["model"] == {"preset": "llama-3.1-8b"}
    assert run_cli("estimate", str(out), "--instance-type", "p5.48xlarge").code == 0


def test_a_vision_model_is_asked_for_samples(run_cli: Run) -> None:
    done = run_cli("init", "--model", "resnet50")
    assert "to fill: training.samples" in done.stderr
    assert "sequence_length" not in done.stdout


def test_an_unknown_model_names_a_near_one(run_cli: Run) -> None:
    done = run_cli("init", "--model", "lama-3.1-8b")
    assert (done.code, done.stdout) == (2, "")
    assert "did you mean llama-3.1-8b?" in done.stderr


def _at_a_terminal(answers: list[str], folder: Path) -> tuple[int, str]:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "init"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    said = b""
    with contextlib.suppress(OSError):  # the terminal ends with the process
        while piece := os.read(ours, 4096):
            said += piece
    os.close(ours)
    return process.wait(timeout=60), said.decode()


def test_three_answers_at_a_terminal_are_a_workload(run_cli: Run, tmp_path: Path) -> None:
    code, said = _at_a_terminal(["llama-3.1-8b", "2.5G tokens", "7d, $2,000"], tmp_path)
    assert (code, said.count("?")) == (0, 3)
    written = yaml.safe_load((tmp_path / "workload.yaml").read_text())
    assert written["training"]["tokens"] == 2_500_000_000
    assert written["constraints"] == {"budget_usd": 2000, "deadline": "7d"}
    code, said = _at_a_terminal(["llama-3.1-8b", "", ""], tmp_path)
    assert (code, "exists already" in said) == (2, True)


def test_a_question_is_put_again_until_its_answer_can_be_read(tmp_path: Path) -> None:
    answers = ["gpt5000", "gpt2", "a lot", "1G tokens", "by christmas", "9d"]
    code, said = _at_a_terminal(answers, tmp_path)
    assert code == 0 and "gpt5000: is not a preset" in said and "such as 2G tokens" in said
    written = yaml.safe_load((tmp_path / "workload.yaml").read_text(encoding="utf-8"))
    assert written["model"] == {"preset": "gpt-2-124m"} and written["constraints"]["deadline"] == "9d"


@pytest.mark.parametrize(
    ("answers", "remedy"),
    [
        (("gpt2", "a lot", "7d"), "such as 2G tokens"),
        (("gpt2", "1M samples", "by christmas"), "by christmas"),
        (("gpt5000", "1 epoch", "$5k"), "planner schema presets"),
    ],
)
def test_an_answer_that_cannot_be_read_says_how_to_write_it(answers: tuple[str, ...], remedy: str) -> None:
    said = iter(answers)
    with pytest.raises(InputError, match=remedy):
        workload_from([], ask_for_wishes(lambda _text, _usual, read: read(next(said))))


def test_a_draft_points_editors_at_a_schema_only_where_there_is_one(run_cli: Run, tmp_path: Path) -> None:
    written = tmp_path / "workload.yaml"
    for there in (False, True):
        if there:
            (tmp_path / "workload.v1.json").write_text(run_cli("schema").stdout, encoding="utf-8")
        assert run_cli("init", "--out", str(written), "--force").code == 0
        first, second = written.read_text(encoding="utf-8").splitlines()[:2]
        assert first.startswith("# yaml-language-server:") is there
        assert ("planner schema workload > workload.v1.json" in first) is not there
        assert second.startswith("#")


def test_a_workload_given_as_a_trainers_file_is_named_as_one(run_cli: Run) -> None:
    told = run_cli("init", "--from", str(ROOT / "examples" / "bert-large.yaml"))
    assert told.code == 2
    assert "planner validate" in told.stderr


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        ("tokens=1e9", "'training.tokens' or 'data.tokens'"),
        ("trainng.tokens=1e9", "'training.tokens'"),
        ("seq_len=2048", "'training.sequence_length'"),
        ("layout.tp=4", "'training.layout.tensor_parallel'"),
    ],
)
def test_a_key_without_its_section_is_answered_with_where_it_is(
    stated: str, meant: str, run_cli: Run
) -> None:
    done = run_cli("init", "--model", "llama-3.1-8b", "--set", stated)
    assert done.code == 2 and f"did you mean {meant}?" in done.stderr, done.stderr


def test_a_dash_is_standard_output(run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w.yaml"
    asked = (
        "init",
        "--model",
        "bert-base",
        "--set",
        "training.samples=1e6",
        "--set",
        "training.global_batch=256",
    )
    file.write_text(run_cli(*asked).stdout, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run_cli(*asked, "-o", "-").stdout == file.read_text(encoding="utf-8")
    plain = ("estimate", str(file), "--instance-type", "p4d.24xlarge", "--as-of", "2026-11-20")
    assert run_cli(*plain, "--out", "-").stdout == run_cli(*plain).stdout != ""
    assert [path.name for path in tmp_path.iterdir()] == ["w.yaml"]
