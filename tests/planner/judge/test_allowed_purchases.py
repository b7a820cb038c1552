"""Points of a frontier and tasks of a pipeline buy only what the workload allows, however right their figures are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import planner
from tests.conftest import Run

DAY = ("--as-of", "2026-11-20")
JOB = """\
version: 1
name: job
model: {preset: bert-large}
training: {tokens: 2e9, global_batch: 512, sequence_length: 512}
data: {tokens: 2e9, location: aws/us-east-1}
constraints: {deadline: 2d, max_nodes: 2LIMITS}
"""
PIPELINE = """\
version: 1
kind: pipeline
name: two
start: 2026-12-01
deadline: 5d
tasks:
- {name: train, workload: job.yaml}
- name: evaluate
  reads: [{task: train, size: 10GB}]
  candidates:
  - {provider: aws, region: us-east-1, instance_type: g5.xlarge, nodes: 1, hours: 2, cost_usd: 4}
"""
FORBIDDEN = {
    "an option": ", purchase_options: [reserved_1y]",
    "a region": ", regions: [gcp/us-central1]",
    "a fall-back": "}\nspot: {fallback: none",
}
pytestmark = pytest.mark.catalog("small")


def written(folder: Path, limits: str) -> tuple[Path, str]:
    path = folder / "job.yaml"
    path.write_text(JOB.replace("LIMITS", limits), encoding="utf-8")
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def frontier(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The frontier of the job without a limit, as saved."""
    folder = tmp_path_factory.mktemp("frontier")
    path, _ = written(folder, "")
    return planner.frontier(path, as_of=DAY[1]).save(folder / "frontier.json").read_text(encoding="utf-8")


def test_a_frontier_without_such_a_limit_holds(frontier: str, run_cli: Run, tmp_path: Path) -> None:
    path, _ = written(tmp_path, "")
    saved = tmp_path / "frontier.json"
    saved.write_text(frontier, encoding="utf-8")
    assert run_cli("verify", str(saved), "--workload", str(path)).code == 0


@pytest.mark.parametrize("limit", FORBIDDEN)
def test_a_point_that_buys_what_is_not_allowed_is_a_fault(
    limit: str, frontier: str, run_cli: Run, tmp_path: Path
) -> None:
    saved, answer = tmp_path / "frontier.json", json.loads(frontier)
    path, answer["workload_sha256"] = written(tmp_path, FORBIDDEN[limit])
    saved.write_text(json.dumps(answer), encoding="utf-8")
    verdict = run_cli("verify", str(saved), "--workload", str(path))
    assert verdict.code == 5, verdict.stdout
    assert ".parts" in verdict.stdout


def test_a_task_that_buys_what_is_not_allowed_is_a_fault(run_cli: Run, tmp_path: Path) -> None:
    written(tmp_path, "")
    question, saved = tmp_path / "two.yaml", tmp_path / "two.json"
    question.write_text(PIPELINE, encoding="utf-8")
    done = run_cli("pipeline", str(question), "-o", "json", "--out", str(saved), *DAY)
    assert done.code == 0, done.stderr
    holds = run_cli("verify", str(saved), "--workload", str(question))
    assert holds.code == 0, holds.stdout
    written(tmp_path, FORBIDDEN["a region"])
    verdict = run_cli("verify", str(saved), "--workload", str(question))
    assert verdict.code == 5 and "is not allowed" in verdict.stdout, verdict.stdout
