"""Equal questions have equal answers on a busy machine: before the time limit no clock decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.instances.portfolio import generate
from planner.portfolios.elastic import ElasticWeights
from planner.portfolios.relax import Relaxed, relax_portfolio
from planner.portfolios.solve import PortfolioOptions
from tests.conftest import CliResult
from tests.quick_clock import let_clock_run

SPEED = 20.0
LIMIT_S = 7_200.0  # by the quick clock six minutes
EXAMPLES = Path("examples")
TIMINGS = ("seconds", "created_at", "stages", "at_s", "elapsed")
QUESTIONS = {
    "pipeline.yaml": ("pipeline",), "schedule.yaml": ("schedule",),
    "serving.yaml": ("serving",), "serving-llama-8b.yaml": ("serving",),
    "rolling.yaml": ("portfolio",),
}  # fmt: skip
pytestmark = pytest.mark.catalog("small")


def without_timings(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not any(word in key for word in TIMINGS)}
        return {key: without_timings(item) for key, item in kept.items()}
    return [without_timings(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("example", QUESTIONS)
def test_examples_have_the_same_answer_by_a_clock_that_is_twenty_times_as_quick(
    example: str, run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer() -> str:
        flags = ("-o", "json", "--as-of", "2026-11-22", "--time-limit", f"{LIMIT_S:.0f}s")
        asked = run_cli(*QUESTIONS[example], str(EXAMPLES / example), *flags)
        assert asked.code in (0, 3), asked.stderr
        return json.dumps(without_timings(json.loads(asked.stdout)))

    steady = answer()
    let_clock_run(monkeypatch, SPEED)
    assert answer() == steady


def test_what_gives_way_and_the_plan_within_it_do_not_hang_on_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = generate(1, 150, feasible=False).question
    question = replace(question, limit=np.floor(question.limit * 0.7).astype(np.int64))

    def answer() -> Relaxed:
        none = np.zeros(question.n_candidates)
        return relax_portfolio(
            question, none, ElasticWeights(), 100.0, PortfolioOptions(time_limit_s=LIMIT_S)
        )

    steady = answer()
    let_clock_run(monkeypatch, SPEED)
    quick = answer()
    assert np.array_equal(quick.raised, steady.raised) and quick.bound_usd == steady.bound_usd
    assert steady.plan.picks is not None and np.array_equal(quick.plan.picks, steady.plan.picks)
    assert quick.plan.exact_bound == steady.plan.exact_bound
    assert [stage for stage, *_ in quick.plan.stages] == [stage for stage, *_ in steady.plan.stages]
