"""A choice with risk stays within the time left: candidates that cannot be priced in it are not considered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.asked.options import Options
from planner.inputs.risk_schema import RiskAversion
from planner.plan.robust import Terms
from planner.portfolios.answer import NOT_ALL_PRICED, PortfolioAnswer, plan_portfolio
from planner.portfolios.report_values import values_of
from planner.portfolios.robust import choose_robust
from tests.planner.portfolios.test_robust import NOW, OPTIONS, _planned, _portfolio

pytestmark = pytest.mark.catalog("small")
TERMS = Terms(0.9, 0.5, 60, seed=4)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> PortfolioAnswer:
    folder: Path = tmp_path_factory.mktemp("plain")
    return _planned(_portfolio(folder), level=0.9)  # with the candidates that a choice with risk may need


def test_without_time_the_plan_by_expected_cost_stays_and_its_risk_is_told(plain: PortfolioAnswer) -> None:
    settled = choose_robust(plain.gathered, plain.question, plain.result, TERMS, OPTIONS)[1]
    hurried = replace(OPTIONS, time_limit_s=1e-9)
    result, made = choose_robust(plain.gathered, plain.question, plain.result, TERMS, hurried)
    assert result.picks is not None and plain.result.picks is not None
    assert result.picks.tolist() == plain.result.picks.tolist()
    assert made.considered < settled.considered
    assert (made.partial, settled.partial) == (True, False)
    assert made.plain.worst_usd == pytest.approx(settled.plain.worst_usd)
    assert (
        made.bound_usd <= settled.chosen.objective_usd * (1 + 1e-6) <= made.chosen.objective_usd * (1 + 2e-6)
    )


def test_the_answer_says_that_candidates_were_left_aside(plain: PortfolioAnswer) -> None:
    terms = plain.loaded.portfolio.model_copy(
        update={"risk": RiskAversion(level=0.9, weight=0.5, scenarios=60)}
    )
    loaded, planning = replace(plain.loaded, portfolio=terms), Options(now=NOW)
    hurried, settled = (
        values_of(plan_portfolio(loaded, planning, replace(OPTIONS, time_limit_s=limit_s)))["notes"]
        for limit_s in (1e-9, OPTIONS.time_limit_s)
    )
    assert [NOT_ALL_PRICED in notes for notes in (hurried, settled)] == [True, False]
