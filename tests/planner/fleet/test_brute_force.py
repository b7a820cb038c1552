"""The optimum of the models equals exhaustive enumeration in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from planner.fleet.question import violations
from planner.fleet.solve import solve_fleet
from planner.job.model import SingleInput, solve_single
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.planner.fleet.fleet_cases import (
    brute_force_fleet,
    brute_force_part_time,
    exactly,
    part_time,
    small_fleet,
)

EXACT = SolveOptions(gap=0.0, time_limit_s=30.0)


def check_fleet(seed: int) -> bool:
    """Hold the model against every mix; True where there is a fleet."""
    fleet = small_fleet(seed)
    expected = brute_force_fleet(fleet)
    result = solve_fleet(fleet, exactly(seed))
    if expected is None:
        assert result.status is Status.INFEASIBLE, seed
        assert not result.counts
        return False
    assert result.status is Status.OPTIMAL, (seed, result)
    assert result.objective_usd == pytest.approx(float(expected), rel=1e-9), seed
    assert result.bound_usd <= result.objective_usd
    assert not violations(fleet, fleet.units(result.counts))
    return True


def check_tight_budget(seed: int) -> bool:
    """With a budget of exactly the least cost the same fleet is the optimum: money bounds the work to a hair."""
    fleet = small_fleet(seed)
    expected = brute_force_fleet(fleet)
    if expected is None:
        return False
    result = solve_fleet(replace(fleet, budget_usd=float(expected)), exactly(seed))
    assert result.status is Status.OPTIMAL, (seed, result)
    assert result.objective_usd == pytest.approx(float(expected), rel=1e-9), seed
    assert result.bound_usd <= result.objective_usd
    return True


def check_part_time(seed: int) -> bool:
    """Workers that stop early: whole workers enumerated, their work divided by a linear program."""
    fleet = part_time(small_fleet(seed), seed)
    expected = brute_force_part_time(fleet)
    result = solve_fleet(fleet, exactly(seed))
    if expected is None:
        assert result.status is Status.INFEASIBLE, seed
        assert not result.counts
        return False
    assert result.status is Status.OPTIMAL, (seed, result)
    assert result.objective_usd == pytest.approx(expected, rel=1e-6), seed
    assert result.bound_usd <= result.objective_usd
    units, busy = fleet.units(result.counts), fleet.units(result.busy)
    assert not violations(fleet, units, busy)
    assert fleet.cost_of(units, busy) == pytest.approx(result.objective_usd, rel=1e-12)
    return True


def check_single(seed: int) -> None:
    """One job, one candidate: the cheapest that its quota allows, of equals the soonest."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 40))
    job = SingleInput(
        keys=tuple(f"k{number}" for number in range(n)),
        cost_usd=random.integers(1, 5_000, n) / 7,
        hours=random.uniform(1, 99, n),
        quota_group=random.integers(-1, 3, n),
        quota_units=random.integers(1, 100, n).astype(float),
        quota_limit=np.array([10.0, 60.0, np.nan]),
    )
    limit = np.append(job.quota_limit, np.inf)[job.quota_group]
    fits = ~(job.quota_units > limit)
    result = solve_single(job, EXACT)
    if not fits.any():
        assert result.status is Status.INFEASIBLE
        assert result.key is None
        return
    cost = job.cost_usd[fits].min()
    ties = np.flatnonzero(fits & (job.cost_usd == cost))
    assert result.status is Status.OPTIMAL
    assert result.objective_usd == cost
    assert result.key == job.keys[ties[np.argmin(job.hours[ties])]]


@pytest.mark.parametrize("check", [check_fleet, check_part_time])
@pytest.mark.parametrize("block", range(2))
def test_fleets_equal_brute_force(block: int, check: Callable[[int], bool]) -> None:
    """The first seeds; `python -m benchmarks.brute_force --family "fleet: w"` tries as many as the clock allows."""
    feasible = sum(check(seed) for seed in range(block * 30, block * 30 + 30))
    assert feasible >= 7  # the questions must not be trivially empty


def test_a_budget_of_the_least_cost_changes_nothing() -> None:
    assert sum(check_tight_budget(seed) for seed in range(25)) >= 8


@pytest.mark.parametrize("seed", [1720])
def test_fleets_that_were_wrong_once(seed: int) -> None:
    """1720: the total's upper bound lay 1e-7 above the only optimum, which HiGHS' presolve then cut off."""
    assert check_fleet(seed)


def test_an_optimum_under_a_bound_on_its_work_is_called_one() -> None:
    """11949: with most_busy 1e-9 above the only optimum HiGHS' bound stayed 1.1e-9 below it, so the gap stayed open."""
    assert check_part_time(11949)


@pytest.mark.parametrize("block", range(5))
def test_single_equals_enumeration(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        check_single(seed)
