"""The conformance suite: every backend inherits these tests; adding one means adding a class at the end."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace

import numpy as np
import pytest

from solvers.backends import registry
from solvers.backends.base import Backend
from solvers.execution.solve import solve
from solvers.problem.milp import MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import part_of
from solvers.problem.solution import Status, Termination
from tests.solvers import cases


class Conformance:
    """Inherited by one class per backend."""

    name = ""

    @pytest.fixture
    def backend(self) -> Backend:
        return registry.get_backend(self.name)

    def options(self, **changes: object) -> SolveOptions:
        return SolveOptions(backend=self.name, gap=0.0, **changes)  # type: ignore[arg-type]

    def test_knapsack(self, backend: Backend) -> None:
        solution = backend.solve(cases.knapsack(), self.options())
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(-13.0)
        assert solution.bound == pytest.approx(-13.0)
        assert dict(solution.x) == {"a": 2.0, "c": 1.0}

    def test_whole_values_are_exactly_whole(self, backend: Backend) -> None:
        solution = backend.solve(cases.cover(), self.options())
        assert all(value == int(value) for value in solution.x.values())

    def test_mixed(self, backend: Backend) -> None:
        solution = backend.solve(cases.mixed(), self.options())
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(2.5)
        assert solution.x["t"] == pytest.approx(2.5)

    def test_a_search_of_few_nodes_ends_with_a_bound_and_always_the_same(self, backend: Backend) -> None:
        problem = cases.many_nodes()
        best = backend.solve(problem, self.options())
        few, again = (backend.solve(problem, self.options(most_nodes=2)) for _ in range(2))
        assert best.status is Status.OPTIMAL
        assert best.report.nodes > 10
        assert few.termination is Termination.ITERATION_LIMIT
        assert few.status is Status.FEASIBLE
        assert few.bound < best.objective <= few.objective
        assert (dict(few.x), few.bound) == (dict(again.x), again.bound)

    def test_infeasible(self, backend: Backend) -> None:
        solution = backend.solve(cases.infeasible_only_whole(), self.options())
        assert solution.status is Status.INFEASIBLE
        assert not solution.x
        assert math.isnan(solution.objective)

    def test_unbounded(self, backend: Backend) -> None:
        solution = backend.solve(cases.unbounded(), self.options())
        assert solution.status is Status.UNBOUNDED
        assert not solution.has_point

    @pytest.mark.parametrize(
        ("cost_factor", "row_factor"),
        [(1e-9, 1.0), (1e-6, 1e12), (1e-3, 1e-6), (1e3, 1.0), (1e6, 1e12), (1e-9, 1e-6), (1e6, 1e-6)],
    )
    def test_units_do_not_move_the_optimum(
        self, backend: Backend, cost_factor: float, row_factor: float
    ) -> None:
        """Dollars, micro-dollars or mega-dollars; samples/s or FLOP/s: the same plan."""
        plain = cases.cover_optimum(self.name)
        other = backend.solve(cases.cover(cost_factor, row_factor), self.options())
        assert other.status is Status.OPTIMAL
        assert other.objective / cost_factor == pytest.approx(plain, rel=1e-9)

    def test_time_limit_gives_the_incumbent_and_its_gap(self, backend: Backend) -> None:
        solution = backend.solve(cases.hard(), self.options(time_limit_s=0.7))
        assert solution.status is Status.FEASIBLE
        assert solution.termination is Termination.TIME_LIMIT
        assert solution.bound <= solution.objective
        assert solution.gap > 0

    def test_optimal_means_the_gap_asked_for(self, backend: Backend) -> None:
        for gap in (0.2, 0.01):
            solution = backend.solve(cases.cover(), SolveOptions(backend=self.name, gap=gap))
            assert solution.status is Status.OPTIMAL
            assert solution.gap <= gap

    def test_problem_is_not_changed(self, backend: Backend) -> None:
        problem = cases.cover()
        before = [array.copy() for array in (problem.c, problem.data, problem.row_lo, problem.ub)]
        backend.solve(problem, self.options())
        after = (problem.c, problem.data, problem.row_lo, problem.ub)
        assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))

    def test_relaxation_bounds_the_optimum(self, backend: Backend) -> None:
        problem = cases.cover()
        relaxation = backend.relax(problem, 10.0)
        optimum = backend.solve(problem, self.options()).objective
        assert relaxation.termination is Termination.GAP_REACHED
        assert relaxation.objective <= optimum + 1e-9
        assert relaxation.x is not None and relaxation.reduced_costs is not None
        resting = relaxation.x <= 1e-9
        assert (relaxation.reduced_costs[resting] >= -1e-7).all()

    def test_a_relaxation_under_changing_limits_is_that_of_each_model(self, backend: Backend) -> None:
        problem = cases.cover()
        linear, draw = backend.linear(problem), np.random.default_rng(3)
        for _ in range(12):
            closed = draw.random(problem.n_columns) < 0.3
            limited = replace(
                problem, ub=np.where(closed, 0.0, problem.ub), row_lo=problem.row_lo * draw.uniform(0.5, 1.5)
            )
            again, afresh = linear.relax(limited, 10.0), backend.relax(limited, 10.0)
            assert again.termination is afresh.termination
            if again.x is not None:
                assert again.objective == pytest.approx(afresh.objective, rel=1e-9)
                assert not again.x[closed].any()

    def test_a_relaxation_stops_at_a_cutoff_or_finds_its_optimum(self, backend: Backend) -> None:
        problem = cases.cover()
        linear, optimum = backend.linear(problem), backend.relax(problem, 10.0).objective
        for share in (0.5, 0.99, 1.01):
            found = linear.relax(problem, 10.0, cutoff=share * optimum)
            if found.x is None:
                assert share < 1.0
                assert found.objective == pytest.approx(share * optimum, rel=1e-12)
            else:
                assert found.objective == pytest.approx(optimum, rel=1e-9)

    def test_a_part_of_a_relaxation_is_that_of_the_smaller_model(self, backend: Backend) -> None:
        """Columns at 0 left out with a row that says nothing without them."""
        builder = MilpBuilder("part")
        builder.add_columns("x", ["a", "b", "c"], cost=[3.0, 2.5, 1.5], upper=4.0)
        rows = builder.add_rows("r", 3, lower=[2.5, 1.25, 0.0])
        builder.add_entries(rows.start, [0, 1], 1.25)
        builder.add_entries(rows.start + 1, [0, 1], [0.5, 1.0])
        builder.add_entries(rows.start + 2, 2, 1.0)
        problem = builder.build()
        columns, kept = np.array([True, False, False]), np.array([True, True, False])
        part, smaller = backend.linear(problem).part(columns, kept), part_of(problem, columns, kept)
        assert smaller.column_keys == ("a",)
        found = part.relax(smaller, 10.0)
        closed = replace(problem, ub=np.where(columns, problem.ub, 0.0))
        assert found.objective == pytest.approx(backend.relax(closed, 10.0).objective) == pytest.approx(7.5)

    def test_relaxation_of_an_empty_model(self, backend: Backend) -> None:
        builder = MilpBuilder("empty")
        builder.add_columns("x", ["x"], cost=1.0, upper=1.0, integer=True)
        row = builder.add_rows("r", 1, lower=2.0)
        builder.add_entries(row.start, 0, 1.0)
        assert backend.relax(builder.build(), 10.0).termination is Termination.INFEASIBLE

    def test_keys_travel_back(self, backend: Backend) -> None:
        """Columns are found by key whatever their order."""
        builder = MilpBuilder("keys")
        builder.add_columns(
            "x", [("aws", "p4d"), 17, "gcp/a2"], cost=[3.0, 1.0, 2.0], upper=1.0, integer=True
        )
        row = builder.add_rows("one", 1, lower=1.0, upper=1.0)
        builder.add_entries(row.start, [0, 1, 2], 1.0)
        assert dict(backend.solve(builder.build(), self.options()).x) == {17: 1.0}

    def test_child_process_gives_the_same_answer(self) -> None:
        solution = solve(cases.cover(), self.options(isolate=True))
        assert solution.report.isolated
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(cases.cover_optimum(self.name))

    def test_the_start_is_the_answer_at_a_limit(self) -> None:
        """The caller's own point is the answer when the solver finds nothing better in time.

        How well limits are kept is printed by `benchmarks.solvers`.
        """
        problem = cases.hard(size=400, rows=60)
        half = -(-problem.row_lo[:60] // 1)
        start = {f"over{number}": float(half[number]) for number in range(60)}
        solution = solve(problem, self.options(time_limit_s=1.0, start=start, isolate=True))
        assert solution.termination is Termination.TIME_LIMIT
        assert solution.status is Status.FEASIBLE
        assert solution.objective <= float(half.sum())


class TestScipy(Conformance):
    name = "scipy"


@pytest.mark.skipif(importlib.util.find_spec("highspy") is None, reason="highspy is not installed")
class TestHighspy(Conformance):
    name = "highspy"


def test_every_backend_is_tested() -> None:
    tested = {item.name for item in Conformance.__subclasses__()}
    assert tested == set(registry.names())
