"""All solves of a pipeline's answer draw on one time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.inputs.pipeline_load import load_pipeline
from planner.pipelines import answer
from planner.pipelines.answer import PLAIN_SHARE, plan_pipeline
from planner.pipelines.report import pipeline_report
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search import search
from solvers.search.search import LEAST_SHARE
from tests.planner.pipelines.test_words import FILE

LIMIT_S = 600.0


@pytest.mark.parametrize(
    ("deadline", "level", "expected"),
    [
        ("20h", 0.95, [("solve_shared", PLAIN_SHARE), ("choose_robust", 1.0 - PLAIN_SHARE)]),
        ("10h", None, [("solve_shared", 1.0), ("least_hours", LEAST_SHARE)]),
    ],
)
def test_a_search_that_uses_all_its_time_leaves_the_rest_to_what_follows(
    deadline: str,
    level: float | None,
    expected: list[tuple[str, float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment, given = [0.0], list[tuple[str, float]]()
    monkeypatch.setattr(search, "time", SimpleNamespace(perf_counter=lambda: moment[0]))

    def slow(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def solved(*arguments: Any, **named: Any) -> Any:
            limit_s = next(one for one in arguments if isinstance(one, SolveOptions)).time_limit_s
            given.append((name, limit_s / LIMIT_S))
            found = plain(*arguments, **named)
            moment[0] += limit_s
            return found

        return solved

    for name in ("solve_shared", "choose_robust", "least_hours"):
        monkeypatch.setattr(answer, name, slow(name, getattr(answer, name)))
    path = tmp_path / "pipeline.yaml"
    path.write_text(FILE.format(limits=f"deadline: {deadline}"), encoding="utf-8")
    options = Options(now=datetime(2026, 11, 24, tzinfo=UTC), time_limit_s=LIMIT_S)
    plan_pipeline(load_pipeline(path), options, catalog=load_catalog(), robust_level=level)
    assert [name for name, _ in given] == [name for name, _ in expected]
    assert [share for _, share in given] == pytest.approx([share for _, share in expected])


@pytest.mark.parametrize(
    ("status", "bound", "said"),
    [
        (Status.FEASIBLE, 1.0, "no_plan_in_time"),
        (Status.FEASIBLE, 1e6, "infeasible"),
        (Status.OPTIMAL, 1.0, "infeasible"),
    ],
)
def test_a_plan_over_the_budget_is_no_proof_that_none_is_within(
    status: Status, bound: float, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(FILE.format(limits="budget_usd: 2"), encoding="utf-8")
    options = Options(now=datetime(2026, 11, 24, tzinfo=UTC))
    found = plan_pipeline(load_pipeline(path), options, catalog=load_catalog())
    assert found.total_usd is not None and found.total_usd > 2
    ended = replace(found, result=replace(found.result, status=status, bound_usd=bound))
    report = pipeline_report(ended)
    assert isinstance(report.values, dict) and report.values["status"] == said
    assert ended.undecided is (said == "no_plan_in_time") and not ended.feasible
    assert ("not proven impossible" in str(report.front)) is ended.undecided
