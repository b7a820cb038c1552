"""Planned use comes true in the share of scenarios that its probability says; the judge knows what may be bought."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.commitments.scenarios import draw_futures
from planner.inputs.commit_load import load_commit
from tests.conftest import CliResult

Run = Callable[..., CliResult]

FILE = """\
version: 1
name: one pool
start: 2027-01-01
horizon_years: 1
pools:
  - {{name: p, provider: aws, region: us-east-1, unit: vCPU, prices: {{on_demand: 1.0, reserved_1y: 0.6}}}}
demand:
  planned:
    - {{pool: p, instances: 10, start: 2027-01-01, end: 2027-12-31}}
    - {{pool: p, instances: 5, start: 2027-01-01, end: 2027-12-31, probability: {chance}}}
scenarios: {{count: {count}, seed: {seed}, hours_per_year: 24}}
options: {{allow: [reserved_1y]{cap}}}
"""


def _write(folder: Path, **values: object) -> Path:
    file = folder / "commit.yaml"
    file.write_text(
        FILE.format(**{"chance": 0.5, "count": 10, "seed": 3, "cap": ""} | values), encoding="utf-8"
    )
    return file


@pytest.mark.parametrize(
    ("chance", "count"), [(0.5, 10), (0.3, 10), (0.7, 40), (0.25, 50), (1.0, 7), (0.05, 20)]
)
def test_a_plan_comes_true_in_its_share_of_the_scenarios(tmp_path: Path, chance: float, count: int) -> None:
    for seed in range(10):
        loaded = load_commit(_write(tmp_path, chance=chance, count=count, seed=seed))
        futures = draw_futures(loaded.question, None, 1)
        true = sum(float(block.demand.max()) == 15.0 for block in futures.blocks)
        assert abs(true - chance * count) < 1.0, seed


def test_the_expected_cost_is_that_of_the_probabilities(tmp_path: Path, run_cli: Run) -> None:
    """10 of 10, 5 in every second scenario, reserved at 0.6: 10 are reserved, half of 5 is bought on demand."""
    found = json.loads(run_cli("commit", str(_write(tmp_path)), "-o", "json", "--as-of", "2026-11-20").stdout)
    assert float(found["plan"]["expected_usd"]) == pytest.approx((10 * 0.6 + 2.5) * 8760, rel=1e-9)


def test_an_answer_at_a_limit_is_not_blamed_for_what_the_limit_forbids(tmp_path: Path, run_cli: Run) -> None:
    file, answer = _write(tmp_path, cap=", max_instances: {p: 4}"), tmp_path / "answer.json"
    result = run_cli("commit", str(file), "-o", "json", "--as-of", "2026-11-20")
    assert [float(line["units"]) for line in json.loads(result.stdout)["lines"]] == [4.0]
    answer.write_text(result.stdout, encoding="utf-8")
    verified = run_cli("verify", str(answer), "--workload", str(file))
    assert verified.code == 0, verified.stdout
