"""Rounded limits that one model was tightened with hold in the model that is tightened after it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.instances.fleet import fleet_instance
from planner.fleet.model.build import build_fleet
from planner.fleet.model.part_time import last_workers
from planner.fleet.model.prepared import Switch, prepare
from planner.fleet.question import FleetInput
from planner.fleet.tighten import ROUNDED, rounded_too
from solvers.execution.solve import solve
from solvers.problem.milp import with_rows
from solvers.problem.options import SolveOptions
from solvers.search.rounding import rounding_rows

FLEET = FleetInput(
    keys=("large", "small", "elsewhere", "too dear"),
    cost_usd=np.array([4.0, 1.5, 2.0, 30.0]),
    throughput=np.array([8.0, 2.0, 3.0, 9.0]),
    required_throughput=20.0,
    max_units=np.full(4, 4.0),
    region=np.array([0, 0, 1, 2]),
    quota_group=np.array([0, 0, -1, -1]),
    quota_units=np.array([192.0, 64.0, 1.0, 1.0]),
    quota_limit=np.array([480.0]),
    max_regions=2,
)
EXACT = SolveOptions(gap=0.0)


def test_a_region_that_needs_no_switch_any_more_stays_open() -> None:
    """The region too dear is gone under the cost of a known fleet, so two of two regions may be open."""
    known = build_fleet(FLEET, prepared=prepare(FLEET))
    x = np.zeros(known.n_columns)
    x[known.position["large"]], x[known.position[Switch(0)]] = 2.5, 1.0
    known = with_rows(known, *rounding_rows(known, x), ROUNDED)
    left = build_fleet(FLEET, prepared=prepare(FLEET, cost_cap_usd=29.0))
    assert Switch(0) in known.position and Switch(0) not in left.position
    again = rounded_too(known, left)
    assert again.row_block(ROUNDED) is not None
    found, expected = solve(again, EXACT), solve(left, EXACT)
    assert found.objective == pytest.approx(expected.objective) and found.x["large"] == 2.0
    x = np.zeros(again.n_columns)
    x[again.position["large"]] = 2.5
    assert (again.activity(x) < again.row_lo)[again.n_rows - 1]


def test_rounded_work_holds_for_whole_workers_in_exact_arithmetic() -> None:
    """With the region open and its whole workers at work, or one more and all the work that shares leave."""
    fleet = fleet_instance(200, 1, hours=True)
    offers = prepare(fleet)
    problem = build_fleet(fleet, prepared=offers, links=np.arange(len(offers.keep)))
    block = problem.row_block("part_time_whole")
    assert block is not None and len(block) > 10
    count, (rest, whole, able) = len(offers.keep), last_workers(offers)
    entry = {
        (int(row), int(column)): Fraction(value)
        for row, column, value in zip(problem.indices, problem.column_of_entry(), problem.data.tolist(), strict=True)
    }  # fmt: skip
    for row, at in enumerate(np.flatnonzero(able).tolist(), block.start):
        switch = problem.position.get(Switch(int(offers.of("region")[at])))
        right = Fraction(problem.row_hi[row]) if switch is None else -entry[row, switch]
        for workers, work in ((whole[at], whole[at]), (whole[at] + 1, whole[at] + rest[at])):
            assert Fraction(work) + entry[row, at] * Fraction(workers) <= right
            assert entry[row, count + at] == 1
