"""All solves of a portfolio's answer draw on one time limit, and one that does not fit is answered at any limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.instances.portfolio import generate
from planner.asked.options import Options
from planner.inputs.portfolio_load import load_portfolio
from planner.portfolios import answer
from planner.portfolios.answer import plan_portfolio
from planner.portfolios.elastic import ElasticWeights
from planner.portfolios.relax import Relaxed, relax_portfolio
from planner.portfolios.solve import PortfolioOptions, solve_portfolio
from solvers.problem.solution import Status
from solvers.search import search
from solvers.search.search import LEAST_SHARE

LIMIT_S = 40.0
NOW = datetime(2026, 11, 24, tzinfo=UTC)
RACK = "{provider: onprem, region: rack, instance_type: box, purchase_option: owned, nodes: 1, hours: 5, cost_usd: 1}"
CLOUD = "{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 1, hours: 5, cost_usd: 100}"


def _file(folder: Path, deadline: str, *, cloud: bool, budget: str = "") -> Path:
    """Three jobs for one owned machine."""
    candidates = f"[{RACK}, {CLOUD}]" if cloud else f"[{RACK}]"
    jobs = "\n".join(f"  - {{name: j{k}, deadline: {deadline}, candidates: {candidates}}}" for k in range(3))
    owned = "{provider: onprem, region: rack, instance_type: box, purchase_option: owned, nodes: 1}"
    path = folder / "jobs.yaml"
    path.write_text(
        f"version: 1\nkind: portfolio\nname: three\nstart: 2026-12-01\n{budget}\n"
        f"commitments:\n  - {owned}\njobs:\n{jobs}\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    ("deadline", "cloud", "budget", "status", "solves"),
    [
        ("30h", True, "", Status.OPTIMAL, 2),  # all at once, then one after the other
        ("6h", False, "", Status.INFEASIBLE, 2),  # the proof, then what gives way
        ("30h", True, "budget_usd: 2", Status.INFEASIBLE, 3),  # whatever it costs, and the budget alone
    ],
)
def test_searches_that_use_all_their_time_leave_little_to_those_that_follow(
    deadline: str,
    cloud: bool,
    budget: str,
    status: Status,
    solves: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment, given = [0.0], list[float]()
    monkeypatch.setattr(search, "time", SimpleNamespace(perf_counter=lambda: moment[0]))

    def slow(plain: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any, **named: Any) -> Any:
            options = next(one for one in arguments if isinstance(one, PortfolioOptions))
            given.append(options.time_limit_s)
            moment[0] += options.time_limit_s
            return plain(*arguments, **named)

        return asked

    for name in ("solve_portfolio", "relax_portfolio", "relax_budget"):
        monkeypatch.setattr(answer, name, slow(getattr(answer, name)))
    loaded = load_portfolio(_file(tmp_path, deadline, cloud=cloud, budget=budget))
    found = plan_portfolio(loaded, Options(now=NOW), PortfolioOptions(time_limit_s=LIMIT_S))
    assert found.result.status is status
    assert len(given) >= solves
    assert sum(given) <= LIMIT_S * (1 + LEAST_SHARE * len(given)) * (1 + 1e-9)


def _plan_within(found: Relaxed) -> bool:
    return found.plan.picks is not None and not found.question.faults(found.plan.picks)


@pytest.mark.parametrize("seed", range(3))
def test_what_does_not_fit_is_answered_with_a_bound_at_any_limit(seed: int) -> None:
    question = generate(seed, 100, 100, feasible=False).question
    question = replace(question, limit=np.floor(question.limit * 0.45).astype(np.int64))
    none = np.zeros(question.n_candidates)

    def asked(limit_s: float) -> Relaxed:
        options = PortfolioOptions(time_limit_s=limit_s)
        first = solve_portfolio(question, options)
        assert first.status in (Status.INFEASIBLE, Status.NO_SOLUTION)
        assert first.status is Status.INFEASIBLE or first.exact_bound is not None
        return relax_portfolio(question, none, ElasticWeights(), 100.0, options)

    settled = asked(60.0)
    assert settled.weighted_usd >= settled.bound_usd > 0
    for limit_s in (1e-3, 0.05, 0.3):
        found = asked(limit_s)
        assert _plan_within(found)
        assert 0 <= found.bound_usd <= settled.weighted_usd * (1 + 1e-9)
        assert found.weighted_usd >= settled.bound_usd * (1 - 1e-9)
