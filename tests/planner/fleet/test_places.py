"""Deciding region after region gives the cheapest fleet of the whole model, in both forms of the question."""

from __future__ import annotations

import functools

import pytest

import planner.fleet.solve as stages
from benchmarks.instances.fleet import fleet_instance
from planner.fleet.model.build import build_fleet
from planner.fleet.question import FleetInput, violations
from planner.fleet.solve import solve_fleet
from solvers.execution.solve import solve
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search import switches


@functools.cache
def whole_model(seed: int, hours: bool) -> tuple[FleetInput, float]:
    """A question and its least cost, USD, by one model of all offers, whichever backend the stages have."""
    fleet = fleet_instance(200, seed, hours=hours)
    return fleet, solve(build_fleet(fleet), SolveOptions(gap=1e-5, backend="highspy")).objective


@pytest.mark.parametrize(("hours", "backend"), [(False, "highspy"), (True, "highspy"), (True, "scipy")])
def test_the_cheapest_fleet_is_that_of_the_whole_model(
    hours: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switches, "FEW", 20)
    monkeypatch.setattr(stages, "FEW", 20)
    options = SolveOptions(gap=1e-5, backend=backend, core_columns=30)
    names = set()
    for seed in (2, 4, 6):  # others take as many stages, and up to eight times as long
        fleet, whole = whole_model(seed, hours)
        found = solve_fleet(fleet, options)
        assert found.status is Status.OPTIMAL, seed
        assert found.objective_usd == pytest.approx(whole, rel=2e-5), seed
        assert found.bound_usd <= whole * (1 + 1e-9), seed
        busy = fleet.units(found.busy) if hours else None
        assert not violations(fleet, fleet.units(found.counts), busy), seed
        names |= {name for name, *_ in found.stages}
    assert {"restricted", "places"} <= names
