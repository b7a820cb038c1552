"""Of plans that cost the same, the one whose jobs end sooner."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from planner.portfolios.question import Question
from planner.portfolios.shared_limits import PortfolioInput
from planner.portfolios.table import CandidateTable
from planner.portfolios.tie_breaking import break_ties
from tests.conftest import Run

FILE = """\
version: 1
kind: portfolio
name: windows
start: 2027-01-01
starts: windows
windows:
  - {name: january, start: 2027-01-01}
  - {name: february, start: 2027-02-01}
  - {name: march, start: 2027-03-01}
quota:
  - {provider: aws, region: "*", quota: L-417A185B, unit: vCPU, limit: 192, window: january}
  - {provider: aws, region: "*", quota: L-417A185B, unit: vCPU, limit: 384, window: february}
  - {provider: aws, region: "*", quota: L-417A185B, unit: vCPU, limit: 768, window: march}
jobs:
  - name: pretrain
    deadline: 2027-03-31
    count: 3
    candidates:
      - {provider: aws, region: us-east-1, instance_type: p5.48xlarge, family: L-417A185B, nodes: 1, hours: 300,
         usd_per_hour: 55.04, quota_units: 192}
"""


def test_jobs_that_may_start_at_once_do(tmp_path: Path, run_cli: Run) -> None:
    """Every start costs the same; one fits into January, two into February."""
    file, answer = tmp_path / "jobs.yaml", tmp_path / "answer.json"
    file.write_text(FILE, encoding="utf-8")
    result = run_cli("portfolio", str(file), "-o", "json", "--as-of", "2026-11-20")
    starts = sorted(job["start"][:10] for job in json.loads(result.stdout)["jobs"])
    assert starts == ["2027-01-01", "2027-02-01", "2027-02-01"]
    answer.write_text(result.stdout, encoding="utf-8")
    assert run_cli("verify", str(answer), "--workload", str(file)).code == 0


def test_random_plans_stay_within_their_limits_and_cost_and_end_no_later() -> None:
    moved = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        jobs, each = int(draw.integers(1, 6)), int(draw.integers(1, 5))
        count = jobs * each
        job = np.repeat(np.arange(jobs), each)
        cost = draw.integers(1, 3, count)
        limits = int(draw.integers(1, 4))
        entry = np.flatnonzero(draw.random(count * limits) < 0.7)
        picks = np.arange(jobs) * each + draw.integers(0, each, jobs)
        numbers = PortfolioInput(
            jobs, job, cost, cost + draw.integers(0, 2, count), entry // limits, entry % limits,
            draw.integers(1, 4, len(entry)), np.zeros(limits, dtype=np.int64), np.zeros(limits, dtype=np.int64),
        )  # fmt: skip
        object.__setattr__(numbers, "limit", numbers.used(picks) + draw.integers(0, 4, limits))
        none = np.zeros(count, dtype=np.int64)
        table = CandidateTable(
            job, none[:, None], none[:, None], none[:, None], none[:, None], none > 0,
            draw.integers(0, 5, count).astype(float), draw.integers(1, 9, count).astype(float), numbers.cost,
            numbers.objective, none.astype(float), none, none,
        )  # fmt: skip
        ends = table.start_hours + table.hours
        found = break_ties(Question(table, numbers, ()), picks)
        assert not numbers.faults(found), seed
        assert (numbers.cost[found] == numbers.cost[picks]).all()
        assert (numbers.objective[found] == numbers.objective[picks]).all()
        assert (ends[found] <= ends[picks]).all(), seed
        moved += int((found != picks).sum())
        for at in range(jobs):  # no job alone can still end sooner at its cost
            for other in range(at * each, at * each + each):
                trial = found.copy()
                trial[at] = other
                alike = numbers.objective[other] == numbers.objective[found[at]]
                if alike and numbers.cost[other] == numbers.cost[found[at]] and not numbers.faults(trial):
                    assert ends[other] >= ends[found[at]] - 1e-9, seed
    assert moved > 50  # plans that could move did
