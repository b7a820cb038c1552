"""Too few workers allowed: known without a solver, and the least number that fits where nothing lighter can help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.fleet.greedy import reachable_work
from planner.fleet.model.build import build_fleet
from planner.fleet.model.prepared import Total, prepare
from planner.fleet.question import FleetInput
from planner.fleet.relaxation import (
    FleetWeights,
    _more_workers,
    _row_weights,
    _unlimited,
    explain_infeasible_fleet,
)
from planner.fleet.solve import SHORT, solve_fleet
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.elastic import least_violation
from tests.draws import share_of
from tests.planner.fleet.fleet_cases import brute_force_fleet, part_time, small_fleet
from tests.planner.fleet.relaxed import relaxed

EXACT = SolveOptions(gap=0.0)


def few_workers(seed: int) -> FleetInput:
    """A small question with few workers, of every second seed such as may stop early."""
    fleet = replace(
        small_fleet(seed), max_total_units=1 + seed % 3, max_share_per_region=(None, 0.4, 0.7)[seed % 3]
    )
    if seed % 4 < 3:  # else most have no fleet whatever the number of workers
        fleet = replace(fleet, max_regions=None, min_total_memory_gib=None, budget_usd=None)
        fleet = replace(fleet, max_share_per_offer=None, max_share_per_provider=None, max_spot_share=None)
    return part_time(fleet, seed) if seed % 2 else fleet


@pytest.mark.parametrize("first", [0, 100])
def test_workers_that_do_less_than_the_work_are_too_few(first: int) -> None:
    """No fleet exists where the bound says so, by enumeration."""
    too_few = 0
    for seed in range(first, first + share_of(75)):
        fleet = replace(few_workers(seed), fixed_cost_usd=None)
        offers = prepare(fleet)
        if len(offers.keep) and reachable_work(offers, fleet.max_total_units) < 1.0 - SHORT:
            too_few += 1
            assert brute_force_fleet(fleet) is None, seed
    assert too_few >= share_of(15)


def test_the_fewest_further_workers_are_the_lightest_relaxation() -> None:
    """Where it is known without the softened model, that model finds nothing lighter, and the fleet fits."""
    found = 0
    for seed in range(share_of(120)):
        fleet = few_workers(seed)
        offers = _unlimited(fleet)
        if not len(offers.keep):
            continue
        rows = _row_weights(offers, FleetWeights())
        throughput = rows.pop("throughput")
        more = _more_workers(offers, rows, throughput, EXACT)
        if more is None:
            continue
        found += 1
        problem = build_fleet(fleet, prepared=offers)
        least = least_violation(problem, rows, {Total(): throughput}, options=EXACT)
        assert more.weight_usd <= least.weighted * (1 + 1e-6) + 1e-6, seed
        assert [excess.limit_name for excess in more.relaxations] == ["max_total_units"]
        assert solve_fleet(relaxed(fleet, more), EXACT).has_plan, seed
        assert explain_infeasible_fleet(fleet).relaxations == more.relaxations
    assert found >= share_of(10)


def test_less_work_is_lighter_than_many_workers() -> None:
    """Nothing is said without the softened model where giving up some of the work weighs less."""
    fleet = replace(small_fleet(0), max_total_units=1)
    heavy = FleetWeights(total_units=1e4)
    assert explain_infeasible_fleet(fleet, heavy).status in (Status.OPTIMAL, Status.FEASIBLE)
    offers = _unlimited(fleet)
    rows = _row_weights(offers, heavy)
    assert _more_workers(offers, rows, rows.pop("throughput"), EXACT) is None
