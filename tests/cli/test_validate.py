"""`planner validate`, standard input, and endings that name the format."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import ROOT, Run

EXAMPLES = ROOT / "examples"
BERT = EXAMPLES / "bert-large.yaml"
DAY = ("--as-of", "2026-11-20")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bert-large", "training"),
        ("hpo-fleet", "fleet"),
        ("images-100gb", "training"),
        ("portfolio", "portfolio"),
        ("pipeline", "pipeline"),
    ],
)
def test_examples_are_valid(name: str, kind: str, run_cli: Run) -> None:
    result = run_cli("validate", str(EXAMPLES / f"{name}.yaml"), *DAY, "-o", "json")
    assert result.code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["valid"] is True and found["kind"] == kind


@pytest.mark.parametrize(
    ("name", "following"),
    [("bert-large", "planner optimize"), ("sweep", "planner sweep"), ("onprem-machines", "list")],
)
def test_a_valid_file_is_said_in_a_line_with_the_next_step(name: str, following: str, run_cli: Run) -> None:
    result = run_cli("validate", str(EXAMPLES / f"{name}.yaml"), *DAY)
    first, empty, *rest = result.stdout.splitlines()
    assert first.split(": ")[1].startswith("valid (") and not empty
    assert rest[0].startswith(f"next: {following} ") and len(rest) <= 2  # a long path is wrapped


def test_all_faults_come_at_once(tmp_path: Path, run_cli: Run) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "version: 1\nmodel: {preset: bert-larg}\ntraining: {sequence_length: 128}\n"
        "constraints: {regions: [aws/us-est-1], deadline: 3d}\n", encoding="utf-8"
    )  # fmt: skip
    result = run_cli("validate", str(path), *DAY)
    assert result.code == 2 and not result.stdout
    for text in (
        "'name' is missing",
        "'global_batch' is missing",
        "bert-larg",
        "did you mean 'aws/us-east-1'?",
    ):
        assert text in result.stderr or text.replace("us-east", "us-west") in result.stderr, text


def test_a_region_that_is_none_is_an_error(tmp_path: Path, run_cli: Run) -> None:
    path = tmp_path / "w.yaml"
    text = BERT.read_text(encoding="utf-8")
    path.write_text(
        text.replace("constraints:\n", "constraints:\n  regions: [gcp/us-centrl1]\n"), encoding="utf-8"
    )
    result = run_cli("validate", str(path), *DAY)
    assert result.code == 2 and "did you mean 'gcp/us-central1'?" in result.stderr


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "\x00"])
def test_what_is_no_workload_is_said(text: str, tmp_path: Path, run_cli: Run) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    result = run_cli("validate", str(path), *DAY)
    assert result.code == 2 and str(path) in result.stderr


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("portfolio", "portfolio"), ("rolling", "portfolio"), ("pipeline", "pipeline"), ("schedule", "schedule"),
        ("serving", "serving"), ("serving-llama-8b", "serving"), ("commit", "commit"), ("budgets", "budget"),
        ("tco-2x4090", "tco"), ("sweep", "sweep"), ("spot-sweep", "simulate --sweep"),
        ("showback", "review --focus BILL --showback"),
    ],
)  # fmt: skip
def test_another_file_names_its_command(name: str, command: str, run_cli: Run) -> None:
    path = EXAMPLES / f"{name}.yaml"
    result = run_cli("optimize", str(path), *DAY)
    assert result.code == 2 and f"use `planner {command} {path}`" in result.stderr


def test_a_list_of_own_machines_says_where_it_belongs(run_cli: Run) -> None:
    result = run_cli("optimize", str(EXAMPLES / "onprem-machines.yaml"), *DAY)
    assert (
        result.code == 2
        and "lists machines that you own" in result.stderr
        and "prices.offers" in result.stderr
    )


def test_standard_input_is_a_workload(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def feed() -> None:
        monkeypatch.setattr(
            "sys.stdin", SimpleNamespace(buffer=io.BytesIO(BERT.read_bytes()), isatty=lambda: False)
        )

    feed()
    piped = json.loads(run_cli("estimate", "-", "--instance-type", "p4d.24xlarge", "-o", "json").stdout)
    read = json.loads(run_cli("estimate", str(BERT), "--instance-type", "p4d.24xlarge", "-o", "json").stdout)
    assert piped == read
    feed()
    assert run_cli("validate", "-", *DAY).stdout.startswith("-: valid (training bert-large")


def test_an_answer_in_a_file_is_named_with_its_verdict(tmp_path: Path, run_cli: Run) -> None:
    path = tmp_path / "valid.json"
    done = run_cli("validate", str(BERT), "--out", str(path), *DAY)
    assert done.stdout == "" and done.stderr == f"{path}: {BERT}: valid (training bert-large-pretrain)\n"
    assert run_cli("-q", "validate", str(BERT), "--out", str(path), *DAY).stderr == ""
    steering = tmp_path / "steering name.yaml"
    steering.write_text(re.sub("(?m)^name: .*", r'name: "a\\e[31m"', BERT.read_text()))
    done = run_cli("validate", str(steering), "--out", str(path), *DAY)
    assert done.stderr == rf"{path}: {steering}: valid (training a\x1b[31m)" "\n"
    assert f"next: planner optimize '{steering}'" in " ".join(
        run_cli("validate", str(steering), *DAY).stdout.split()
    )


@pytest.mark.parametrize(
    ("name", "options", "start"),
    [
        ("e.json", (), "{"), ("e.csv", (), "workload,"), ("e.md", (), "###"), ("e.html", (), "<!DOCTYPE"),
        ("e.json", ("-o", "csv"), "workload,"), ("e.log", (), "bert"),
    ],
)  # fmt: skip
def test_the_ending_names_the_format(
    name: str, options: tuple[str, ...], start: str, tmp_path: Path, run_cli: Run
) -> None:
    path = tmp_path / name
    result = run_cli("estimate", str(BERT), "--instance-type", "p4d.24xlarge", "--out", str(path), *options)
    assert result.code == 0 and not result.stdout
    assert path.read_text(encoding="utf-8").lower().startswith(start.lower())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budgets: [{name: a, amount: 1}]", "'kind' is missing: write 'kind: budget'"),
        ("workloads: [a.yaml]", "'kind' is missing: write 'kind: sweep'"),
        ("jobs: [{name: a}]", "is a portfolio file, not a workload: use `planner portfolio "),
        ("tasks: [{name: a}]", "is a pipeline file, not a workload: use `planner pipeline "),
        ("rules: []", "use `planner review --focus BILL --showback "),
        (
            "kind: budget\nbudgets: [{name: a, amount: 1, scope: {team: research}}]",
            "must be text, got a mapping; write the scope of the budget as by: tag:team",
        ),
    ],
)
def test_a_file_that_does_not_say_its_kind_is_known_by_its_keys(
    tmp_path: Path, run_cli: Run, text: str, said: str
) -> None:
    """It was taken for a workload, whose model and training are missing."""
    path = tmp_path / "file.yaml"
    path.write_text(f"version: 1\nname: x\n{text}\n", encoding="utf-8")
    done = run_cli("validate", path)
    assert (done.code, said in " ".join(done.stderr.split())) == (2, True), done.stderr
    assert "'model' is missing" not in done.stderr
