"""The portfolio's certificate: what is true passes, and every way of claiming more is caught."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from benchmarks.instances.portfolio import generate
from planner.plan.certificates import check_certificate
from planner.portfolios.certificate import build_certificate
from planner.portfolios.solve import PortfolioOptions, solve_portfolio
from tests.planner.portfolios.portfolio_cases import best_choice, random_portfolio


def made(seed: int) -> dict[str, Any]:
    result = solve_portfolio(random_portfolio(seed), PortfolioOptions(gap=0.0, mode="fast"))
    return dict(json.loads(json.dumps(build_certificate(result))))


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    """Of a portfolio large enough to have knapsacks, prices and dominated candidates."""
    question = generate(3, 40, 60).question
    result = solve_portfolio(question, PortfolioOptions(gap=1e-3, mode="fast"))
    return dict(json.loads(json.dumps(build_certificate(result))))


def restated(certificate: dict[str, Any]) -> dict[str, Any]:
    """With the gap that follows from its objective and bound, so that only the real fault shows."""
    objective, bound = certificate["objective"], certificate["bound"]
    return certificate | {"gap_ratio": max(0, objective - bound) / objective}


def test_true_certificates_pass_and_never_claim_too_much() -> None:
    bounds = 0
    for seed in range(150):
        content, best = made(seed), best_choice(random_portfolio(seed))
        assert check_certificate(content) == []
        if content["bound"] is not None and best is not None:
            assert content["bound"] <= best
            bounds += 1
    assert bounds > 50


def test_a_real_one_passes(certificate: dict[str, Any]) -> None:
    assert check_certificate(certificate) == []
    assert certificate["dominated"]
    assert any(home >= 0 for home in certificate["homes"])


def test_a_higher_bound_is_caught(certificate: dict[str, Any]) -> None:
    faults = check_certificate(restated(certificate | {"bound": certificate["bound"] + 1}))
    assert "the prices prove" in faults[0]


def test_a_cheaper_plan_is_caught(certificate: dict[str, Any]) -> None:
    faults = check_certificate(restated(certificate | {"objective": certificate["objective"] - 1}))
    assert any("the plan counts" in fault for fault in faults)


def test_a_broken_limit_is_caught(certificate: dict[str, Any]) -> None:
    content = copy.deepcopy(certificate)
    content["question"]["limit"] = [0] * len(content["question"]["limit"])
    assert any("drawn of 0" in fault for fault in check_certificate(content))


def test_a_left_out_candidate_is_caught(certificate: dict[str, Any]) -> None:
    """A cheap candidate called dominated by a dear one would let the bound rise."""
    content = copy.deepcopy(certificate)
    edges = content["question"]["candidates_per_job"]
    content["dominated"].append(0)
    content["dominators"].append(edges[0] - 1)
    content["homes"].pop(0)
    assert any(
        "does not dominate" in fault or "cannot replace" in fault for fault in check_certificate(content)
    )


def test_two_that_dominate_each_other_are_caught(certificate: dict[str, Any]) -> None:
    content = copy.deepcopy(certificate)
    loser, winner = content["dominated"][0], content["dominators"][0]
    content["dominated"].append(winner)
    content["dominators"].append(loser)
    assert check_certificate(content)


@pytest.mark.parametrize("key", ["mu", "lambda"])
def test_a_price_that_is_no_whole_number_is_caught(certificate: dict[str, Any], key: str) -> None:
    content = copy.deepcopy(certificate)
    content["prices"][key][0] = 0.5
    assert check_certificate(content)


def test_a_negative_limit_price_is_caught(certificate: dict[str, Any]) -> None:
    content = copy.deepcopy(certificate)
    content["prices"]["lambda"][0] = -1
    assert check_certificate(content)


def test_a_home_without_draw_is_caught(certificate: dict[str, Any]) -> None:
    content = copy.deepcopy(certificate)
    limits = len(content["question"]["limit"])
    content["homes"] = [(home + 1) % limits if home >= 0 else home for home in content["homes"]]
    assert any("at home in a limit" in fault for fault in check_certificate(content))


@pytest.mark.parametrize("change", [{"picks": None}, {"gap_ratio": 0.0}, {"question": {}}, {"homes": []}])
def test_missing_parts_are_caught(certificate: dict[str, Any], change: dict[str, Any]) -> None:
    assert check_certificate(certificate | change)
