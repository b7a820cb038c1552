"""The record of a search: its status follows from what was offered and proven, and all solves share one clock."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination
from solvers.search.search import Search


class Clock:
    """A clock that only moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _search(gap: float = 0.01, limit_s: float = 10.0) -> tuple[Search[str], Clock]:
    clock = Clock()
    return Search(SolveOptions(gap=gap, time_limit_s=limit_s), clock=clock), clock


def _knapsack() -> Milp:
    builder = MilpBuilder("knapsack")
    builder.add_columns("x", ("a", "b", "c"), cost=np.array([-3.0, -4.0, -5.0]), upper=1.0, integer=True)
    rows = builder.add_rows("weight", 1, upper=5.0)
    builder.add_entries(rows.start, np.arange(3), np.array([2.0, 3.0, 4.0]))
    return builder.build()


def test_only_a_cheaper_point_replaces_the_best() -> None:
    search, _ = _search()
    assert search.offer("first", 12.0)
    assert not search.offer("dearer", 13.0)
    assert not search.offer("equal", 12.0)
    assert not search.offer(None, 1.0)
    assert not search.offer("without a cost", math.nan)
    assert (search.best, search.cost) == ("first", 12.0)
    assert search.offer("cheaper", 11.0)
    assert (search.best, search.cost) == ("cheaper", 11.0)


def test_the_bound_is_the_best_one_taken_and_at_most_the_cost() -> None:
    search, _ = _search()
    assert search.bound == -math.inf
    search.raise_bound(5.0)
    search.raise_bound(math.nan)
    search.raise_bound(4.0)
    assert (search.bound, search.exact_bound) == (5.0, -math.inf)
    search.raise_bound(7.0, exact=True)
    assert (search.bound, search.exact_bound) == (7.0, 7.0)
    search.offer("point", 6.5)
    assert search.bound == 6.5
    assert search.gap == 0.0


def test_optimal_is_a_gap_that_was_reached() -> None:
    search, _ = _search(gap=0.1)
    search.offer("point", 100.0)
    seen = [(search.status, search.done)]
    for bound in (89.9, 90.0):
        search.raise_bound(bound)
        seen.append((search.status, search.done))
    assert seen == [(Status.FEASIBLE, False), (Status.FEASIBLE, False), (Status.OPTIMAL, True)]


def test_time_without_a_point_is_no_solution_and_never_infeasible() -> None:
    search, clock = _search(limit_s=10.0)
    clock.now += 11.0
    assert search.done
    search.settle()
    assert search.termination is Termination.TIME_LIMIT
    assert search.status is Status.NO_SOLUTION
    assert search.bound == -math.inf


def test_infeasible_needs_a_proof_and_a_known_point_denies_it() -> None:
    search, _ = _search()
    search.end(Termination.INFEASIBLE, "no choice meets the deadline")
    assert (search.status, search.bound, search.done) == (Status.INFEASIBLE, math.inf, True)
    search.offer("point", 3.0)
    assert search.status is Status.ERROR


def test_settling_keeps_a_reason_that_is_recorded() -> None:
    search, _ = _search()
    search.end(Termination.INTERRUPTED, "interrupted by the user")
    search.settle()
    assert search.termination is Termination.INTERRUPTED
    closed, _ = _search()
    closed.offer("point", 1.0)
    closed.raise_bound(1.0)
    closed.settle()
    assert closed.termination is Termination.GAP_REACHED


def test_every_solve_gets_what_is_left_of_one_clock() -> None:
    search, clock = _search(limit_s=10.0)
    clock.now += 4.0
    options = search.within(gap=0.5)
    assert options is not None
    assert options.time_limit_s == pytest.approx(6.0)
    assert options.gap == 0.5
    short = search.within(2.0)
    assert short is not None and short.time_limit_s == pytest.approx(2.0)
    assert search.left_s(0.5) == pytest.approx(1.0)
    clock.now += 6.0
    assert search.within() is None
    assert search.solve(_knapsack()) is None
    assert search.relax(_knapsack()) is None
    assert (search.termination, search.message) == (Termination.TIME_LIMIT, "the time limit passed")


def test_a_solve_leaves_its_words_and_its_bound_is_the_callers() -> None:
    search: Search[str] = Search(SolveOptions(gap=0.0, time_limit_s=30.0))
    found = search.solve(_knapsack())
    assert found is not None and found.objective == pytest.approx(-7.0)
    assert search.solver == found.report.backend
    assert search.bound == -math.inf
    relaxed = search.relax(_knapsack())
    assert relaxed is not None and relaxed.objective <= -7.0


def test_ctrl_c_ends_the_search_with_what_is_known() -> None:
    search, _ = _search()
    search.offer("point", 2.0)
    with search.interruptible():
        raise KeyboardInterrupt
    assert search.interrupted and search.done
    assert search.within() is None
    assert search.status is Status.FEASIBLE


def test_whole_costs_stay_exact() -> None:
    search: Search[str] = Search(SolveOptions(gap=0.0))
    big = 2**60 + 1
    search.offer("point", big)
    search.raise_bound(big - 1, exact=True)
    assert search.cost - search.bound == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["offer", "bound", "exact", "note"]), st.floats(-1e6, 1e6)), max_size=30
    )
)
def test_recorded_costs_only_fall_and_bounds_only_rise(events: list[tuple[str, float]]) -> None:
    search, _ = _search()
    for kind, value in events:
        if kind == "offer":
            search.offer(str(value), value)
        elif kind == "note":
            search.note("stage")
        elif value <= search.cost:  # a true bound never passes a point's cost
            search.raise_bound(value, exact=kind == "exact")
    search.note("end")
    costs = [cost for *_, cost, _ in search.stages if not math.isnan(cost)]
    assert costs == sorted(costs, reverse=True)
    assert all(bound <= cost for *_, cost, bound in search.stages if not math.isnan(cost))
    assert search.status in (Status.OPTIMAL, Status.FEASIBLE, Status.NO_SOLUTION)
    assert (search.status is Status.OPTIMAL) == (search.best is not None and search.closed)
