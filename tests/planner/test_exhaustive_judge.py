"""Every question against the exhaustive judge: portfolio, pipeline, serving, commitments, and the frontier of a job.

200 small instances of each here, `python -m benchmarks.brute_force --family exhaustive` as many as there is time for.
Single jobs, mixes, fleets and schedules have judges of their own, written apart too: `job/test_spine_brute_force.py`
(315 instances), `candidates/test_bought_in_parts.py` (200), `fleet/test_brute_force.py` (240) and
`schedules/test_schedule.py` (240).
"""

from __future__ import annotations

import math
from unittest import mock

import pytest

from planner.asked.options import Options
from planner.candidates.engine import Engine
from planner.candidates.prepare import prepare, unlimited
from planner.job.frontier import find_frontier
from planner.pipelines.solve import solve_pipeline
from planner.portfolios.solve import PortfolioOptions, solve_portfolio
from planner.serving.model import solve_serving
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.planner.commitments.commit_cases import random_model
from tests.planner.commitments.test_commit_model import benders
from tests.planner.exhaustive import least_commitment, least_pipeline, least_portfolio, least_serving
from tests.planner.job.test_spine_brute_force import brute_force, brute_force_mixes, random_instance
from tests.planner.pipelines.test_model import small as small_pipeline
from tests.planner.portfolios.portfolio_cases import random_portfolio
from tests.planner.serving.test_serving import small as small_serving
from tests.planner.spine_catalogs import NOW, bundled_tariffs, loaded, make_catalog

EXACT = SolveOptions(gap=0.0)
FIRST = 500_000  # seeds that no other test uses
BLOCK = 50
DEADLINES = (2, 5, 9, 14, 30)
FRONTIERS = 40  # of five points each


def check_portfolio(seed: int) -> None:
    """The optimum is the least of all choices."""
    question = random_portfolio(seed)
    best = least_portfolio(question)
    found = solve_portfolio(question, PortfolioOptions(gap=0.0, time_limit_s=60))
    assert found.objective == best, seed
    assert found.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)


def check_pipeline(seed: int) -> None:
    """So it is for a pipeline."""
    pipe = small_pipeline(seed)
    found, best = solve_pipeline(pipe, EXACT), least_pipeline(pipe)
    cost = math.inf if found.course is None else found.course.cost_usd
    assert cost == pytest.approx(best, rel=1e-7), seed
    assert math.isinf(best) or found.bound_usd <= best * (1 + 1e-9)


def check_serving(seed: int) -> None:
    """And for a serving fleet."""
    question = small_serving(seed)
    found, best = solve_serving(question, EXACT), least_serving(question)
    assert (found.usd_per_hour if found.counts else math.inf) == pytest.approx(best), seed


def check_commitment(seed: int) -> None:
    """And for reservations under uncertain demand."""
    model = random_model(seed, plans=0)
    found, best = benders(model), least_commitment(model)
    assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-7), seed
    assert found.bound <= best * (1 + 1e-8) + 1e-8, seed


def check_frontier(seed: int) -> None:
    """Each point of a job's frontier is the cheapest of all ways to buy that keep its deadline."""
    sections, offers = random_instance(seed)
    limits = {
        key: value for key, value in sections["constraints"].items() if key not in ("deadline", "budget_usd")
    }
    asked = sections | {"constraints": limits, "preferences": {"objective": "cost"}}
    given = loaded(asked)
    own = unlimited(given.workload).model_copy(update={"start": NOW, "earliest_start": None})
    with mock.patch("planner.candidates.prepare.load_tariffs", bundled_tariffs):
        engine = Engine(prepare(given, own, make_catalog(offers), Options(NOW)))
        found = find_frontier(engine, own, tuple(map(float, DEADLINES)))
    points = {point.deadline_hours: float(point.best.cost_usd) for point in found.points}
    every = brute_force(asked, offers) + brute_force_mixes(asked, offers)
    sure = own.constraints.deadline_confidence
    for hours in DEADLINES:
        best = min((one.cost for one in every if one.keeps(hours, sure)), default=math.inf)
        assert points.get(float(hours), math.inf) == pytest.approx(best, rel=1e-8), (seed, hours)


CHECKS = {
    "portfolio": check_portfolio, "pipeline": check_pipeline, "serving": check_serving, "commitment": check_commitment,
}  # fmt: skip


@pytest.mark.parametrize("block", range(200 // BLOCK))
@pytest.mark.parametrize("question", CHECKS)
def test_the_optimum_is_the_least_of_all_choices(question: str, block: int) -> None:
    for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
        CHECKS[question](seed)


@pytest.mark.parametrize("seed", [4751, 10387, 43714])
def test_a_greedy_plan_is_not_taken_for_the_optimum(seed: int) -> None:
    """HiGHS returned the plan that it began with, for cheaper than it is: up to 22 % dearer than the least."""
    check_portfolio(seed)


@pytest.mark.parametrize("block", range(4))
def test_a_frontier_has_the_cheapest_of_all_at_each_deadline(block: int) -> None:
    each = FRONTIERS // 4
    for seed in range(FIRST + block * each, FIRST + (block + 1) * each):
        check_frontier(seed)
