"""A budget that no fleet keeps is told from the cheapest fleet without it, and the least to give way is still found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.fleet import relaxation
from planner.fleet.model.build import build_fleet
from planner.fleet.model.prepared import Total
from planner.fleet.question import FleetInput
from planner.fleet.relaxation import FleetWeights, explain_infeasible_fleet
from planner.fleet.solve import solve_fleet
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.elastic import least_violation
from tests.draws import share_of
from tests.planner.fleet.fleet_cases import part_time, small_fleet
from tests.planner.fleet.relaxed import relaxed

EXACT = SolveOptions(gap=0.0)
SEEDS = range(9100, 9100 + share_of(24))


def question(seed: int) -> tuple[FleetInput, float]:
    """A random fleet without a budget, and the least that it costs; NaN where none fits."""
    fleet = part_time(small_fleet(seed), seed) if seed % 2 else small_fleet(seed)
    fleet = replace(fleet, budget_usd=None)
    return fleet, solve_fleet(fleet, EXACT).objective_usd


@pytest.mark.parametrize("share", [0.4, 0.9, 0.999])
def test_a_budget_below_the_least_cost_is_infeasible_and_the_least_set_is_named(share: float) -> None:
    looked = 0
    for seed in SEEDS:
        fleet, least = question(seed)
        if not least > 0:
            continue
        looked += 1
        short = replace(fleet, budget_usd=share * least)
        assert solve_fleet(short, EXACT).status is Status.INFEASIBLE
        told = explain_infeasible_fleet(short)
        offers = relaxation._unlimited(short)
        rows = relaxation._row_weights(offers, FleetWeights())
        missing = {Total(): rows.pop("throughput")}
        plain = least_violation(build_fleet(short, prepared=offers), rows, missing, options=EXACT)
        little = relaxation.LITTLE * share * least  # a dollar of budget weighs 1
        assert told.weight_usd <= max(plain.weighted * (1 + 1e-3), little) + 1e-9, seed
        assert told.relaxations and solve_fleet(relaxed(short, told)).has_plan
    assert looked >= len(SEEDS) / 2


def test_a_budget_of_the_least_cost_is_kept() -> None:
    for seed in SEEDS:
        fleet, least = question(seed)
        if least > 0:
            found = solve_fleet(replace(fleet, budget_usd=least * (1 + 1e-9)), EXACT)
            assert found.has_plan and found.objective_usd == pytest.approx(least, rel=1e-9)
