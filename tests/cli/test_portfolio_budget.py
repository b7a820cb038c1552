"""A portfolio over its budget: the budget that the answer names is one at which there is a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from planner.portfolios.shared_limits import PortfolioInput
from tests.conftest import ROOT, CliResult, Run
from tests.planner.portfolios.portfolio_cases import every_choice, random_portfolio

pytestmark = pytest.mark.catalog("small")
EXAMPLES = ROOT / "examples"


def least_cost(question: PortfolioInput) -> int:
    """The least cost of any choice, whatever the limits."""
    return min(int(question.cost[choice].sum()) for choice in every_choice(question))


def test_jobs_that_cost_more_than_the_budget_are_known_without_a_solver() -> None:
    over = [
        (question.over_budget, least_cost(question) > (question.budget or 0))
        for question in (random_portfolio(seed, with_budget=True) for seed in range(60))
    ]
    assert all(said == so for said, so in over)
    assert 10 <= sum(said for said, _ in over) <= 50
    assert not random_portfolio(1, with_budget=False).over_budget


def test_the_budget_named_is_enough(tmp_path: Path, run_cli: Run) -> None:
    """Jobs follow each other on owned machines there too; the least that is claimed is what all jobs cost at least."""
    section = yaml.safe_load((EXAMPLES / "portfolio.yaml").read_text(encoding="utf-8"))
    for job in section["jobs"]:
        if "workload" in job:
            job["workload"] = str(EXAMPLES / job["workload"])

    def plan(budget: float) -> CliResult:
        path.write_text(yaml.safe_dump(section | {"budget_usd": budget}), encoding="utf-8")
        return run_cli("portfolio", str(path), "-o", "json", "--as-of", "2026-11-20")

    path = tmp_path / "jobs.yaml"
    short = plan(200)
    assert short.code == 3
    answer = json.loads(short.stdout)
    relaxation = answer["relaxation"]
    needed = relaxation["budget"]["needed_usd"]
    assert not relaxation["limits"] and not relaxation["deadlines"]
    assert relaxation["least"]
    least = 200 + relaxation["bound_usd"]
    assert needed * (1 - 1e-3) <= least <= needed
    saved = tmp_path / "answer.json"
    saved.write_text(short.stdout, encoding="utf-8")
    assert run_cli("verify", str(saved), "--workload", str(path)).code == 0
    assert plan(needed).code == 0
    assert plan(least - 0.01).code == 3
