"""Builder, scaling, statuses, the LP writer and the softened model."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from solvers.backends.base import Checked
from solvers.backends.registry import get_backend
from solvers.backends.scipy_milp import _termination
from solvers.execution import solve as solve_module
from solvers.execution import worker
from solvers.execution.solve import solve
from solvers.problem.errors import BackendError, ModelError
from solvers.problem.milp import MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import dominated, restrict
from solvers.problem.scaling import COST_HIGH, ROW_HIGH, ROW_LOW, scale
from solvers.problem.solution import STATUS_OF, Status, Termination, relative_gap, status_of
from solvers.search.elastic import Slack, least_violation, soften
from solvers.search.tighten import caps_from_reduced_costs, largest, with_cutoff
from tests.lp_text import lp_text
from tests.solvers import cases


def test_status_table_is_complete_and_unknown_is_error() -> None:
    assert set(STATUS_OF) == set(Termination)
    for termination in Termination:
        if termination is not Termination.GAP_REACHED:
            assert status_of(termination, has_point=True) is not Status.OPTIMAL
    assert status_of(Termination.UNKNOWN, has_point=True) is Status.ERROR
    assert status_of(Termination.TIME_LIMIT, has_point=True) is Status.FEASIBLE
    assert status_of(Termination.TIME_LIMIT, has_point=False) is Status.NO_SOLUTION
    assert status_of(Termination.INFEASIBLE, has_point=True) is Status.ERROR


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (0, "Optimal", Termination.GAP_REACHED),
        (1, "Time limit reached. (HiGHS Status 13: Time limit reached)", Termination.TIME_LIMIT),
        (1, "Iteration limit reached", Termination.ITERATION_LIMIT),
        (2, "The problem is infeasible.", Termination.INFEASIBLE),
        (3, "The problem is unbounded.", Termination.UNBOUNDED),
        (
            4,
            "HiGHS Status 10: model_status is Primal infeasible or unbounded",
            Termination.INFEASIBLE_OR_UNBOUNDED,
        ),
        (4, "HiGHS Status 2: Model error", Termination.SOLVER_ERROR),
        (4, "HiGHS Status 0: Not Set", Termination.UNKNOWN),
        (99, "a status of a later version", Termination.SOLVER_ERROR),
    ],
)
def test_scipy_words(code: int, text: str, expected: Termination) -> None:
    assert _termination(code, text) is expected


def test_gap() -> None:
    assert relative_gap(100.0, 99.0) == pytest.approx(0.01)
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(5.0, -np.inf) == np.inf


def test_builder_refuses_what_no_solver_may_see() -> None:
    builder = MilpBuilder("bad")
    builder.add_columns("x", ["a", "a"], cost=1.0, upper=1.0)
    with pytest.raises(ModelError, match="same key"):
        builder.build()
    builder = MilpBuilder("bad")
    builder.add_columns("x", ["a"], cost=np.nan)
    with pytest.raises(ModelError, match="finite"):
        builder.build()
    builder = MilpBuilder("bad")
    builder.add_columns("x", ["a/b c"], lower=2.0, upper=1.0)
    with pytest.raises(ModelError, match=r"x\.a_b_c"):
        builder.build()


def test_entries_at_one_place_are_summed_and_names_are_safe() -> None:
    builder = MilpBuilder("sum")
    builder.add_columns("x", ["aws/us-east-1", "aws_us-east-1"], cost=1.0, upper=5.0)
    row = builder.add_rows("r", 1, lower=1.0)
    builder.add_entries([row.start] * 3, [0, 0, 1], [1.0, 2.0, 0.0])
    problem = builder.build()
    assert problem.data.tolist() == [3.0]
    names = problem.column_names()
    assert names == ["x.aws_us_east_1", "x.aws_us_east_1..1"]


def test_spread_is_refused_with_a_message() -> None:
    builder = MilpBuilder("spread")
    builder.add_columns("x", ["a", "b"], cost=1.0, upper=1.0, integer=True)
    row = builder.add_rows("throughput", 1, lower=1.0)
    builder.add_entries([row.start] * 2, [0, 1], [1e-4, 1e6])
    with pytest.raises(ModelError, match=r"throughput\.0 mixes coefficients"):
        solve(builder.build())
    builder = MilpBuilder("spread")
    builder.add_columns("x", ["a", "b"], cost=[1e-5, 1e5], upper=1.0, integer=True)
    with pytest.raises(ModelError, match="costs spread"):
        solve(builder.build())


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_scaling_lands_in_the_safe_range(factor: float) -> None:
    scaled = scale(cases.cover(factor, factor)).problem
    assert np.abs(scaled.c).max() <= COST_HIGH
    assert np.abs(scaled.c).min() >= 1.0
    assert np.abs(scaled.data).min() >= ROW_LOW and np.abs(scaled.data).max() <= ROW_HIGH


def test_absent_and_unknown_backends() -> None:
    with pytest.raises(BackendError, match="unknown solver 'gurobi'"):
        get_backend("gurobi")
    assert get_backend("auto").is_available()


def test_no_columns() -> None:
    assert solve(MilpBuilder("nothing").build()).status is Status.OPTIMAL
    builder = MilpBuilder("nothing")
    builder.add_rows("r", 1, lower=1.0)
    assert solve(builder.build()).status is Status.INFEASIBLE


def test_infeasible_start_is_ignored_and_a_feasible_one_never_hurts() -> None:
    problem = cases.knapsack()
    for start in ({"a": 9.0}, {"a": 1.0}, {"nobody": 1.0}):
        assert solve(problem, SolveOptions(gap=0.0, start=start)).objective == pytest.approx(-13.0)


def test_a_solver_that_overruns_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models run in a thread: at the limit the best point so far is the answer."""
    release = threading.Event()

    def stuck(problem: Any, options: Any, *, emit: Callable[[str, Checked], None]) -> None:
        emit("early", Checked(Termination.ITERATION_LIMIT, np.array([1.0, 0.0, 0.0]), -5.0, -20.0))
        release.wait(600.0)

    monkeypatch.setattr(solve_module, "run_stages", stuck)
    solution = solve(cases.knapsack(), SolveOptions(time_limit_s=0.5))
    release.set()
    assert solution.status is Status.FEASIBLE
    assert solution.termination is Termination.TIME_LIMIT
    assert (solution.objective, solution.bound) == (-5.0, -20.0)


def test_a_crash_of_the_solver_is_an_error_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(problem: Any, options: Any, *, emit: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(solve_module, "run_stages", crash)
    solution = solve(cases.knapsack())
    assert solution.status is Status.ERROR
    assert "broken" in solution.report.message


@pytest.mark.parametrize("start", [{}, {0: 1.0}])
def test_a_solver_without_memory_gives_what_is_known_or_says_so(
    start: dict[Any, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(problem: Any, options: Any, *, emit: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(solve_module, "run_stages", full)
    problem = cases.knapsack()
    if not start:
        with pytest.raises(MemoryError):
            solve(problem)
        return
    point = {problem.column_keys[at]: value for at, value in start.items()}
    solution = solve(problem, SolveOptions(start=point))
    assert (solution.status, solution.termination) == (Status.FEASIBLE, Termination.MEMORY_LIMIT)
    assert solution.x == point


@pytest.mark.parametrize("step", ["decode_problem", "run_stages"])
def test_a_child_process_reports_that_it_is_out_of_memory(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    boot = worker._BOOT.removesuffix("from solvers.execution.staged import main;main()")
    boot += "\nimport numpy as np, solvers.execution.staged as s\ndef full(*_, **__): np.empty(1 << 50)\n"
    monkeypatch.setattr(worker, "_BOOT", boot + f"s.{step} = full; s.main()")
    with pytest.raises(MemoryError, match="Unable to allocate"):
        solve(cases.knapsack(), SolveOptions(isolate=True))


def test_a_bound_from_the_box_holds_where_costs_cancel() -> None:
    builder = MilpBuilder()
    # in floating point, 1e16 + 1.5 - 1e16 is 2
    builder.add_columns(
        "x", ["a", "b", "c"], cost=[1e16, 1.5, -1e16], lower=[1.0, 1.0, 0.0], upper=[2.0, 2.0, 1.0]
    )
    assert solve_module.box_bound(builder.build()) <= 1.5
    open_ended = MilpBuilder()
    open_ended.add_columns("x", ["a"], cost=-1.0)
    assert solve_module.box_bound(open_ended.build()) == -math.inf


def test_scipy_is_asked_at_most_twice_whether_a_model_is_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    calls = []

    def undecided(*values: Any, **others: Any) -> Any:
        calls.append(values)
        text = "The problem is unbounded or infeasible."
        return scipy.optimize.OptimizeResult(status=4, message=text, x=None, fun=None)

    monkeypatch.setattr(scipy.optimize, "milp", undecided)
    solution = get_backend("scipy").solve(cases.knapsack(), SolveOptions())
    assert solution.termination is Termination.INFEASIBLE and len(calls) == 2


def test_large_models_come_in_stages() -> None:
    problem = cases.cover(size=400)
    solution = solve(problem, SolveOptions(gap=1e-4, core_columns=50))
    assert [stage for stage, *_ in solution.report.stages][:2] == ["relaxation", "restricted"]
    assert solution.status is Status.OPTIMAL
    whole = solve(problem, SolveOptions(gap=1e-4, core_columns=0))
    assert solution.objective == pytest.approx(whole.objective, rel=2e-4)


def test_restriction_keeps_resting_columns_in_the_rows() -> None:
    builder = MilpBuilder("rest")
    builder.add_columns("x", ["a", "b"], cost=1.0, lower=[2.0, 0.0], upper=5.0, integer=True)
    row = builder.add_rows("r", 1, lower=5.0)
    builder.add_entries(row.start, [0, 1], 1.0)
    core = restrict(builder.build(), np.array([1]))
    assert core.row_lo.tolist() == [3.0]
    assert dict(solve(core).x) == {"b": 3.0}


def test_dominance_keeps_one_of_equals() -> None:
    groups = np.array([0, 0, 0, 1])
    cost = np.array([[2.0], [1.0], [1.0], [9.0]])
    gain = np.array([[5.0], [5.0], [5.0], [5.0]])
    ready = np.ones(4, dtype=np.bool_)
    assert dominated(groups, cost, gain, can_replace=ready).tolist() == [True, False, True, False]
    assert not dominated(groups, cost, gain, can_replace=~ready).any()


def test_tightening_never_cuts_the_optimum() -> None:
    backend = get_backend("scipy")
    for seed in range(5):
        problem = cases.cover(seed=seed, size=25)
        best = solve(problem, SolveOptions(gap=0.0))
        relaxation = backend.relax(problem, 10.0)
        capped = replace(problem, ub=caps_from_reduced_costs(problem, relaxation, best.objective * 1.0001))
        assert solve(capped, SolveOptions(gap=0.0)).objective == pytest.approx(best.objective)
        most = largest(problem, 0, cutoff=best.objective, backend=backend, time_limit_s=10.0)
        assert best.x.get(0, 0.0) <= most + 1e-9
        limited = solve(with_cutoff(problem, best.objective + 1e-6), SolveOptions(gap=0.0))
        assert limited.objective == pytest.approx(best.objective)


@pytest.mark.parametrize("backend", ["scipy", "highspy"])
@pytest.mark.parametrize(("lower", "upper", "best"), [(-9.0, -2.0, -4.0), (-3.0, 9.0, 0.0), (1.0, 9.0, 4.0)])
def test_the_largest_value_of_a_column_is_never_cut(
    backend: str, lower: float, upper: float, best: float
) -> None:
    """Of either sign: the margin must lie outward."""
    builder = MilpBuilder()
    x = builder.add_columns("x", ["a", "b"], cost=1.0, lower=[lower, 0.0], upper=[upper, 9.0], integer=True)
    row = builder.add_rows("at least", 1, lower=1.0)
    builder.add_entries(row.start, x.start + 1, 1.0)
    problem = builder.build()  # a + b <= best + 1 and b >= 1
    most = largest(problem, x.start, cutoff=best + 1.0, backend=get_backend(backend), time_limit_s=10.0)
    assert best <= most <= best + 1e-3
    unlimited = largest(problem, x.start, cutoff=math.inf, backend=get_backend(backend), time_limit_s=10.0)
    assert unlimited == upper


def test_softened_model_names_row_and_amount() -> None:
    found = least_violation(cases.infeasible_only_whole(), {"parity": 2.0})
    assert found.solution.status is Status.OPTIMAL
    assert found.weighted == pytest.approx(2.0)
    assert sum(found.amounts.values()) == pytest.approx(1.0)
    feasible = least_violation(cases.cover(), {"work": 1.0})
    assert feasible.amounts == {}
    with pytest.raises(ModelError, match="weight above 0"):
        soften(cases.cover(), {"work": 0.0})


def test_softened_column_bound() -> None:
    builder = MilpBuilder("bound")
    builder.add_columns("x", ["x"], lower=3.0, upper=9.0, integer=True)
    row = builder.add_rows("r", 1, upper=1.0)
    builder.add_entries(row.start, 0, 1.0)
    found = least_violation(builder.build(), {}, {"x": 5.0})
    assert found.amounts == {Slack("column", 0): pytest.approx(2.0)}


def test_lp_text_reads_back() -> None:
    highspy = pytest.importorskip("highspy")
    text = lp_text(cases.mixed())
    assert text.startswith("\\ mixed: 1 rows, 2 columns\nMinimize\n obj: + 3 y.y + 1 t.t\n")
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.lp"
        path.write_text(text)
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(str(path))
        solver.run()
        assert solver.getInfo().objective_function_value == pytest.approx(2.5)


def test_importing_the_layer_imports_no_solver_and_no_pandas() -> None:
    code = (
        "import sys, planner.fleet.solve, planner.job.model, solvers.execution.solve;"
        "print([m for m in ('scipy', 'pandas', 'highspy', 'multiprocessing') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_solving_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for seed in range(5):
        solve(cases.cover(seed=seed), SolveOptions(gap=0.0))
    assert capfd.readouterr().out == ""
