"""Limits on what workers use: several may hold for one offer, and work may count as well as workers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from planner.candidates.constraints.base import Use
from planner.fleet.question import FleetInput, violations
from planner.fleet.relaxation import explain_infeasible_fleet
from planner.fleet.solve import solve_fleet
from solvers.problem.options import SolveOptions
from tests.planner.fleet.fleet_cases import part_time, random_fleet
from tests.planner.fleet.relaxed import relaxed

EXACT = SolveOptions(gap=1e-9)
SEEDS = range(12)


def as_uses(fleet: FleetInput) -> FleetInput:
    """The same question with each quota group as a limit on what its offers use."""
    uses = tuple(
        Use("quota", str(code), np.where(fleet.quota_group == code, fleet.quota_units, 0.0), float(limit))
        for code, limit in enumerate(fleet.quota_limit)
        if np.isfinite(limit)
    )
    return replace(fleet, quota_group=np.full(fleet.n_options, -1), uses=uses)


@pytest.mark.parametrize("hours", [False, True])
def test_quota_groups_and_uses_are_the_same_question(hours: bool) -> None:
    for seed in SEEDS:
        fleet = random_fleet(seed)
        fleet = part_time(fleet, seed) if hours else fleet
        grouped, used = solve_fleet(fleet, EXACT), solve_fleet(as_uses(fleet), EXACT)
        assert grouped.has_plan == used.has_plan, seed
        if used.has_plan:
            assert used.objective_usd == pytest.approx(grouped.objective_usd, rel=1e-7), seed


def overlapping(seed: int, *, hours: bool) -> FleetInput:
    """Four offers under two limits per worker that overlap and one on work."""
    random = np.random.default_rng([seed, 7])
    cost = random.integers(4, 40, 4) / 4
    uses = (
        Use("quota", "a", random.choice([0.0, 4.0, 8.0], 4), float(random.integers(8, 30))),
        Use("quota", "b", random.choice([0.0, 1.0, 2.0], 4), float(random.integers(2, 8))),
        Use("carbon", "", random.choice([0.0, 1.0], 4), float(random.integers(5, 25)),
            per_busy=random.integers(1, 9, 4).astype(float)),
    )  # fmt: skip
    return FleetInput(
        keys=("p", "q", "r", "s"), cost_usd=cost, throughput=random.integers(2, 9, 4).astype(float),
        required_throughput=float(random.integers(6, 20)), max_units=np.full(4, 3.0), region=np.array([0, 0, 1, 1]),
        region_cost_usd=np.array([0.5, 0.25]), uses=uses, fixed_cost_usd=cost * 0.25 if hours else None,
    )  # fmt: skip


def least(fleet: FleetInput) -> float | None:
    """The least cost over every number of workers; where they may work a part, a linear program divides the work."""
    best = None
    rows = [-fleet.throughput] + [np.zeros(4) if use.per_busy is None else use.per_busy for use in fleet.uses]
    for counts in itertools.product(range(4), repeat=4):
        units = np.array(counts, dtype=float)
        opened = sum(
            float(fleet.region_cost_usd[code])
            for code in {int(fleet.region[n]) for n in np.flatnonzero(units)}
        )
        room = [-fleet.required_throughput] + [
            use.limit - float(use.per_worker @ units) for use in fleet.uses
        ]
        cost = opened + float(fleet.worker_usd @ units)
        if best is not None and cost >= best:
            continue  # work costs nothing at the least
        busy = _least_busy_usd(fleet, units, rows, room)
        if busy is not None:
            best = cost + busy if best is None else min(best, cost + busy)
    return best


def _least_busy_usd(
    fleet: FleetInput, units: np.ndarray, rows: list[np.ndarray], room: list[float]
) -> float | None:
    """The least cost of work by these workers, all of them at work unless they may work a part; None: impossible."""
    assert (fleet.busy_usd >= 0).all()
    if not fleet.part_time:
        fits = all(row @ units <= most + 1e-9 for row, most in zip(rows, room, strict=True))
        return float(fleet.busy_usd @ units) if fits else None
    if rows[0] @ units > room[0] + 1e-9 or min(room[1:]) < -1e-9:
        return None  # all of them at work are too slow, or nobody at work is too much
    found = linprog(fleet.busy_usd, A_ub=rows, b_ub=room, bounds=[(0.0, most) for most in units])
    return float(found.fun) if found.status == 0 else None


@pytest.mark.parametrize("hours", [False, True])
def test_the_optimum_is_that_of_trying_everything(hours: bool) -> None:
    feasible = 0
    for seed in SEEDS:
        fleet = overlapping(seed, hours=hours)
        result, best = solve_fleet(fleet, EXACT), least(fleet)
        assert result.has_plan == (best is not None), seed
        if best is None:
            continue
        feasible += 1
        assert result.objective_usd == pytest.approx(best, rel=1e-6, abs=1e-9), seed
        busy = fleet.units(result.busy) if fleet.part_time else None
        assert violations(fleet, fleet.units(result.counts), busy) == []
    assert 3 <= feasible < len(SEEDS), "the cases must be mixed"


def test_what_gives_way_is_named_and_enough() -> None:
    fleet = FleetInput(
        ("a", "b"), np.array([2.0, 3.0]), np.array([5.0, 5.0]), 10.0,
        uses=(Use("quota", "P", np.array([8.0, 8.0]), 8.0), Use("carbon", "", np.zeros(2), 1.0, np.array([2.0, 2.0]))),
    )  # fmt: skip
    told = explain_infeasible_fleet(fleet)
    assert {(item.limit_name, item.member, item.used, item.limit) for item in told.relaxations} == {
        ("quota", "P", 16.0, 8.0),
        ("carbon", "", 4.0, 1.0),
    }
    assert solve_fleet(relaxed(fleet, told), EXACT).has_plan
