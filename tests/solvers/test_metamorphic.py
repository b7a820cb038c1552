"""What must not matter to a model does not: order, units, doublings, reductions; what must, does in the right way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.instances.fleet import fleet_instance
from planner.fleet.model.build import build_fleet
from planner.fleet.model.prepared import prepare
from planner.fleet.question import FleetInput
from planner.fleet.solve import solve_fleet
from planner.job.model import SingleInput, build_single
from solvers.execution.solve import solve
from solvers.problem.milp import Block, Milp
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution, Status
from tests.planner.fleet.fleet_cases import part_time, random_fleet

GAP = 1e-7
Ints = np.ndarray[Any, np.dtype[np.int64]]


def models() -> list[Milp]:
    """Fleets in both forms and single jobs, feasible and not."""
    made = []
    for seed in range(24):
        fleet = random_fleet(8000 + seed)
        made.append(build_fleet(part_time(fleet, seed) if seed % 2 else fleet))
    random = np.random.default_rng(3)
    for _ in range(8):
        n = int(random.integers(2, 30))
        cost, group = random.uniform(1, 1e4, n), random.integers(-1, 3, n)
        units, limit = random.integers(1, 9, n) * 8.0, random.integers(0, 60, 3).astype(float)
        made.append(build_single(SingleInput(tuple(range(n)), cost, np.ones(n), group, units, limit)))
    return [problem for problem in made if problem.n_columns]


MODELS = models()


def solved(problem: Milp, gap: float = GAP) -> Solution:
    return solve(problem, SolveOptions(gap=gap, time_limit_s=60.0))


def same(one: Solution, two: Solution, factor: float = 1.0) -> None:
    """Same status; proven costs within the gaps of both, `two` in a unit `factor` times as large."""
    assert one.status is two.status
    if one.has_point:
        assert two.objective == pytest.approx(one.objective * factor, rel=3 * GAP, abs=1e-9 * factor)
        assert two.bound <= one.objective * factor * (1 + 3 * GAP) + 1e-9 * factor


def permuted(problem: Milp, columns: Ints, rows: Ints) -> Milp:
    """Column i of the result is column `columns[i]`, row i is row `rows[i]`."""
    new_row = np.empty(problem.n_rows, dtype=np.int32)
    new_row[rows] = np.arange(problem.n_rows)
    parts = [slice(int(problem.indptr[at]), int(problem.indptr[at + 1])) for at in columns]
    data = np.concatenate([problem.data[part] for part in parts])
    indices = np.concatenate([new_row[problem.indices[part]] for part in parts]).astype(np.int32)
    indptr = np.r_[0, np.cumsum([part.stop - part.start for part in parts])].astype(np.int32)
    return replace(
        problem,
        c=problem.c[columns],
        lb=problem.lb[columns],
        ub=problem.ub[columns],
        integrality=problem.integrality[columns],
        row_lo=problem.row_lo[rows],
        row_hi=problem.row_hi[rows],
        data=data,
        indices=indices,
        indptr=indptr,
        column_keys=tuple(problem.column_keys[at] for at in columns),
        column_blocks=(Block("x", 0, problem.n_columns),),
        row_blocks=(Block("r", 0, problem.n_rows),),
    )


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_order_of_rows_and_columns(number: int) -> None:
    problem, random = MODELS[number], np.random.default_rng(number)
    other = permuted(problem, random.permutation(problem.n_columns), random.permutation(problem.n_rows))
    one, two = solved(problem), solved(other)
    same(one, two)
    if two.has_point:  # answers travel by key: the point of one is a point of the other at the same cost
        assert float(problem.c @ problem.vector(two.x)) == pytest.approx(two.objective, rel=1e-12)


@pytest.mark.parametrize("unit", [1e3, 2.0, 1e-6])
def test_unit_of_money(unit: float) -> None:
    for problem in MODELS:
        same(solved(problem), solved(replace(problem, c=problem.c * unit)), unit)


def test_unit_of_every_row() -> None:
    """Samples/s or tokens/s, GiB or bytes: each row in a unit of its own."""
    for number, problem in enumerate(MODELS):
        factor = 10.0 ** np.random.default_rng(number).integers(-6, 10, problem.n_rows)
        other = replace(
            problem,
            data=problem.data * factor[problem.indices],
            row_lo=problem.row_lo * factor,
            row_hi=problem.row_hi * factor,
        )
        same(solved(problem), solved(other))


def test_a_relaxed_row_never_costs_more_and_a_tightened_one_never_less() -> None:
    """Compared on proven bounds: the relaxed model's bound is at most the other's cost."""
    for number, problem in enumerate(MODELS):
        row = int(np.random.default_rng(number).integers(problem.n_rows))
        step = np.zeros(problem.n_rows)
        step[row] = 0.25 * max(
            1.0, *(abs(side) for side in (problem.row_lo[row], problem.row_hi[row]) if np.isfinite(side))
        )
        one = solved(problem)
        looser = solved(replace(problem, row_lo=problem.row_lo - step, row_hi=problem.row_hi + step))
        if one.has_point:
            assert looser.has_point
            assert looser.bound <= one.objective * (1 + GAP) + 1e-9
        elif looser.status is Status.INFEASIBLE:
            assert one.status is Status.INFEASIBLE


@pytest.mark.parametrize("hours", [False, True])
def test_dominance_changes_no_cost(hours: bool) -> None:
    for seed in range(20):
        fleet = random_fleet(8500 + seed)
        fleet = part_time(fleet, seed) if hours else fleet
        offers = (prepare(fleet, drop_dominated=drop) for drop in (True, False))
        with_drop, without = (
            solved(build_fleet(fleet, prepared=kept)) if len(kept.keep) else None for kept in offers
        )
        if with_drop is None or without is None:
            assert with_drop is None and (without is None or not without.has_point)
            continue
        same(with_drop, without)


def by_zone(fleet: FleetInput, zones: int) -> FleetInput:
    """The same offers, each sold in `zones` zones of its region that share its capacity."""
    number = np.repeat(np.arange(fleet.n_options), zones)
    return replace(
        fleet,
        keys=tuple((key, zone) for key in fleet.keys for zone in range(zones)),
        **{
            name: getattr(fleet, name)[number]
            for name in ("cost_usd", "throughput", "max_units", "region", "provider", "is_spot", "memory_gib",
                         "offer_group", "quota_group", "quota_units")
        },
        capacity_group=number,
        capacity_limit=fleet.max_units,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_zones_of_one_price_are_one_offer(seed: int) -> None:
    """Merged or not, zones with equal data and one capacity give the same optimum."""
    fleet = replace(fleet_instance(60, seed), max_share_per_offer=None)
    merged, split = (solve_fleet(item, SolveOptions(gap=1e-6)) for item in (fleet, by_zone(fleet, 3)))
    assert merged.status is split.status
    if merged.has_plan:
        assert split.objective_usd == pytest.approx(merged.objective_usd, rel=2e-6)
