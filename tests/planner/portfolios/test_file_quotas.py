"""Quotas that a job's own file declares bind that job, are checked, and are named where jobs together exceed one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.portfolios.file_quotas import most_at_once
from tests.conftest import Run

JOB = """\
version: 1
name: job
model: {{preset: bert-large}}
training: {{samples: 300000000, sequence_length: 128, global_batch: 256, precision: fp16}}
constraints:
  deadline: 30d
  providers: [aws]
  regions: [us-east-1]
  purchase_options: [on_demand]
  accelerators: {{allow: [a10g]}}
  quota: [{{provider: aws, region: us-east-1, quota: g5, unit: GPU, limit: {limit}}}]
"""


def portfolio(folder: Path, limits: list[int], quota: str = "") -> str:
    jobs = []
    for at, limit in enumerate(limits):
        (folder / f"job{at}.yaml").write_text(JOB.format(limit=limit))
        jobs.append(f"  - {{name: job{at}, workload: job{at}.yaml, delay_usd_per_hour: 100}}\n")
    path = folder / "jobs.yaml"
    path.write_text(f"version: 1\nkind: portfolio\nname: jobs\n{quota}jobs:\n{''.join(jobs)}")
    return str(path)


def gpus(answer: dict[str, Any]) -> list[int]:
    size = {"g5.12xlarge": 4, "g5.24xlarge": 4, "g5.48xlarge": 8}
    return [job["nodes"] * size.get(job["instance_type"], 1) for job in answer["jobs"]]


@pytest.fixture
def planned(tmp_path: Path, run_cli: Run) -> Callable[..., dict[str, Any]]:
    def plan(limits: list[int], quota: str = "") -> dict[str, Any]:
        path = portfolio(tmp_path, limits, quota)
        done = run_cli("portfolio", path, "-o", "json", "--out", str(tmp_path / "answer.json"))
        assert done.code == 0, done.stderr
        answer: dict[str, Any] = json.loads((tmp_path / "answer.json").read_text())
        return answer

    return plan


def test_the_most_at_once_is_that_of_each_moment() -> None:
    draw = np.random.default_rng(3)
    for n in (0, 1, 2, 7, 40):
        draws, starts = draw.integers(0, 5, n).astype(float), draw.integers(0, 9, n).astype(float)
        ends = starts + draw.integers(0, 6, n)
        each = [draws[(starts <= moment) & (ends > moment)].sum() for moment in starts]
        assert most_at_once(draws, starts, ends) == max(each, default=0.0)


def test_each_job_keeps_the_quota_of_its_own_file(planned: Callable[..., dict[str, Any]]) -> None:
    small, large = gpus(planned([4, 16]))
    assert small <= 4 < large <= 16


def test_what_jobs_draw_together_beyond_it_is_named(planned: Callable[..., dict[str, Any]]) -> None:
    answer = planned([4, 4])
    (note,) = [note for note in answer["notes"] if "each job separately" in note]
    assert note.startswith("aws/us-east-1 g5: the files of 2 jobs declare 4 GPU")
    assert f"use {sum(gpus(answer))} at once" in note
    assert not any("each job separately" in note for note in planned([4, 16])["notes"])


def test_declared_by_the_portfolio_it_binds_all(planned: Callable[..., dict[str, Any]]) -> None:
    shared = "quota: [{provider: aws, region: us-east-1, quota: g5, unit: GPU, limit: 4}]\n"
    answer = planned([4, 4], shared)
    assert not any("each job separately" in note for note in answer["notes"])
    assert all(row["used"] <= 4 for row in answer["limits"])


def test_verify_finds_a_job_beyond_its_own_quota(
    planned: Callable[..., dict[str, Any]], tmp_path: Path, run_cli: Run
) -> None:
    planned([16, 16])
    path = portfolio(tmp_path, [16, 4])
    done = run_cli("verify", str(tmp_path / "answer.json"), "--workload", path)
    assert done.code != 0
    assert "its file declares 4" in done.stdout
    assert done.stdout.count("its file declares") == 1
