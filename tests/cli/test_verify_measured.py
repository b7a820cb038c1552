"""Answers that rest on the user's measurements hold, and say what was not recomputed; the rest is still checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run

pytestmark = pytest.mark.catalog("small")
DAY = ("--as-of", "2026-11-20")
WORKLOAD = """\
version: 1
name: mine
model: {preset: bert-large}
training: {samples: 1e8, global_batch: 1024, sequence_length: 128}
constraints: {deadline: 7d, instance_types: {allow: [p4d.24xlarge, p3.16xlarge]}, max_nodes: 4}
"""
MEASURED = f"{WORKLOAD}measured: 2500 samples/s on 1 x p4d.24xlarge\n"
OTHERS = {
    "portfolio": "version: 1\nkind: portfolio\nname: p\njobs: [{name: a, workload: w.yaml, deadline: 7d}]\n",
    "pipeline": "version: 1\nkind: pipeline\nname: p\ntasks: [{name: a, workload: w.yaml}]\ndeadline: 7d\n",
}


def saved(run_cli: Run, tmp_path: Path, command: str, workload: str) -> tuple[str, str]:
    file = tmp_path / "w.yaml"
    file.write_text(workload, encoding="utf-8")
    if command in OTHERS:
        file = tmp_path / f"{command}.yaml"
        file.write_text(OTHERS[command], encoding="utf-8")
    answer = str(tmp_path / "answer.json")
    done = run_cli(command, str(file), *DAY, "-o", "json", "--out", answer)
    assert done.code == 0, done.stderr
    return str(file), answer


@pytest.mark.parametrize("command", ["optimize", "frontier", "portfolio", "pipeline"])
def test_an_answer_on_a_measurement_holds(command: str, run_cli: Run, tmp_path: Path) -> None:
    file, answer = saved(run_cli, tmp_path, command, MEASURED)
    done = run_cli("verify", answer, "--workload", file, "-o", "json")
    found = json.loads(done.stdout)
    assert done.code == 0 and found["holds"], found["faults"]
    assert "speed" not in found["checked"] and "costs" not in found["checked"]
    assert any("your measurements" in reason for reason in found["not_recomputed"].values())


def test_without_a_measurement_all_is_recomputed(run_cli: Run, tmp_path: Path) -> None:
    file, answer = saved(run_cli, tmp_path, "frontier", WORKLOAD)
    found = json.loads(run_cli("verify", answer, "--workload", file, "-o", "json").stdout)
    assert found["holds"] and {"speed", "hours", "chances", "costs"} <= set(found["checked"])


def test_prices_and_sums_are_checked_all_the_same(run_cli: Run, tmp_path: Path) -> None:
    file, answer = saved(run_cli, tmp_path, "optimize", MEASURED)
    plan = json.loads(Path(answer).read_text(encoding="utf-8"))
    plan["lines"][0]["costs"][0]["unit_price"] = "0.01"
    Path(answer).write_text(json.dumps(plan), encoding="utf-8")
    assert run_cli("verify", answer, "--workload", file).code == 5
