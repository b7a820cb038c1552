"""Certificates: bounds never above the truth, re-checked without a solver, and every tampering is found."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.plan.certificates import check_certificate, kinds, summary, write_certificate
from solvers.backends.registry import get_backend
from solvers.execution.solve import solve
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import whole_limits
from solvers.search.bounds import (
    build_dual_certificate,
    exact_bound,
    fingerprint,
    in_millionths,
    whole_numbers,
)
from tests.draws import draws
from tests.solvers import cases

Certificate = dict[str, Any]


def small_model(seed: int) -> Milp:
    """Up to five whole columns of at most four values each: every point can be tried."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 6)), int(random.integers(1, 5))
    builder = MilpBuilder(f"small {seed}")
    low = random.integers(-1, 2, n).astype(float)
    cost = np.round(random.normal(3, 5, n), 3)
    builder.add_columns(
        "x", range(n), cost=cost, lower=low, upper=low + random.integers(0, 4, n), integer=True
    )
    values = np.round(random.normal(1, 4, (m, n)), 2) * (random.random((m, n)) < 0.8)
    side = np.round(random.uniform(-5, 15, m), 1)
    kind = random.integers(0, 3, m)
    rows = builder.add_rows(
        "r", m, lower=np.where(kind == 0, -np.inf, side - 4), upper=np.where(kind == 1, np.inf, side)
    )
    at, column = np.nonzero(values)
    builder.add_entries(rows.start + at, column, values[at, column])
    return builder.build()


def points(problem: Milp) -> list[tuple[Fraction, np.ndarray[Any, np.dtype[np.float64]]]]:
    """Every feasible point with its exact cost."""
    ranges = [range(int(low), int(high) + 1) for low, high in zip(problem.lb, problem.ub, strict=True)]
    found = []
    for values in itertools.product(*ranges):
        x = np.array(values, dtype=float)
        activity = [Fraction(0)] * problem.n_rows
        for row, column, value in zip(
            problem.indices.tolist(), problem.column_of_entry().tolist(), problem.data.tolist(), strict=True
        ):
            activity[row] += Fraction(value) * int(x[column])
        inside = all(
            low <= own <= high
            for low, own, high in zip(problem.row_lo.tolist(), activity, problem.row_hi.tolist(), strict=True)
        )
        if inside:
            cost = sum(
                (Fraction(c) * int(v) for c, v in zip(problem.c.tolist(), x, strict=True)), Fraction(0)
            )
            found.append((cost, x))
    return found


def check_bound(seed: int, noise: float = 0.0) -> None:
    """No point of a small model is below the exact bound, whatever the duals; true duals give the relaxation's."""
    problem = small_model(seed)
    feasible = points(problem)
    relaxation = get_backend("scipy").relax(problem, 10.0)
    random = np.random.default_rng(seed)
    duals = relaxation.duals if relaxation.duals is not None else np.zeros(problem.n_rows)
    bound = exact_bound(problem, duals + noise * random.standard_normal(problem.n_rows))
    assert bound.value is not None
    assert all(bound.value <= cost for cost, _ in feasible)
    if relaxation.duals is not None and not noise:
        assert bound.as_float() == pytest.approx(relaxation.objective, rel=1e-9, abs=1e-8)
    if feasible:
        certificate = build_dual_certificate(problem, duals, min(feasible, key=lambda item: item[0])[1])
        assert check_certificate(json.loads(json.dumps(certificate))) == []


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.0, 1e-6, 0.1, 5.0]))
@draws(60)
def test_no_point_is_below_the_bound_whatever_the_duals(seed: int, noise: float) -> None:
    check_bound(seed, noise)


@given(seed=st.integers(0, 10**6))
@draws(50)
def test_whole_limits_cut_off_no_point(seed: int) -> None:
    problem = small_model(seed)
    limits, _ = whole_limits(problem)
    assert all((x <= limits).all() for _, x in points(problem))


def endless() -> tuple[Milp, dict[str, float]]:
    """A model whose columns have no upper bound: rows and the known cost must bound them."""
    builder = MilpBuilder("endless")
    builder.add_columns("x", ["a", "b"], cost=[3.1, 4.7])
    builder.add_columns("free", ["t"], cost=0.0, lower=-np.inf)
    builder.add_columns("s", ["s"], cost=0.0)
    rows = builder.add_rows("r", 3, lower=[7.0, 0.0, -1.5], upper=[np.inf, 0.0, np.inf])
    # a + b >= 7; t = a - b; t - s >= -1.5 (s has no cost: only rows bound it)
    builder.add_entries(rows.start + np.array([0, 0, 1, 1, 1, 2, 2]), [0, 1, 0, 1, 2, 2, 3],
                        [1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0])  # fmt: skip
    return builder.build(), {"a": 7.0, "t": 7.0}


def test_columns_without_bounds_get_them_from_rows_and_the_known_cost() -> None:
    problem, point = endless()
    relaxation = get_backend("scipy").relax(problem, 10.0)
    assert relaxation.duals is not None
    certificate = build_dual_certificate(
        problem, relaxation.duals + np.array([1e-7, 1e-3, -1e-3]), problem.vector(point)
    )
    assert certificate["implied"]
    assert certificate["bound"] == pytest.approx(21.7, rel=0.01)
    assert check_certificate(certificate) == []
    for position in range(len(certificate["implied"])):
        changed = copy.deepcopy(certificate)
        column, upper, row, value = changed["implied"][position]
        changed["implied"][position] = [column, upper, row, value - 1.0 if upper else value + 1.0]
        assert check_certificate(changed), "a derived bound tighter than its row allows"


def oversize() -> Milp:
    """The cheap offer draws 96 of a quota of 64: the relaxation uses two thirds of it, no plan can."""
    builder = MilpBuilder("oversize")
    x = builder.add_columns("x", ["cheap", "dear"], cost=[1.0, 10.0], upper=5.0, integer=True)
    work = builder.add_rows("work", 1, lower=1.0)
    builder.add_entries(work.start, [x.start, x.start + 1], 1.0)
    quota = builder.add_rows("quota", 1, upper=64.0)
    builder.add_entries(quota.start, x.start, 96.0)
    return builder.build()


def test_what_no_quota_allows_does_not_weaken_the_bound() -> None:
    problem = oversize()
    limits, rows = whole_limits(problem)
    assert (limits.tolist(), rows.tolist()) == ([0.0, 5.0], [1, -1])
    relaxation = get_backend("scipy").relax(replace(problem, ub=limits), 10.0)
    assert relaxation.duals is not None
    certificate = build_dual_certificate(problem, relaxation.duals, np.array([0.0, 1.0]))
    assert (certificate["bound"], certificate["gap_ratio"]) == (10, 0.0)
    assert check_certificate(certificate) == []
    certificate["implied"][0][3] = -1
    assert check_certificate(certificate), "a limit below what the quota allows"


def test_without_any_bound_nothing_is_claimed() -> None:
    problem = cases.unbounded()
    certificate = build_dual_certificate(problem, np.zeros(problem.n_rows), None)
    assert certificate["bound"] is None and certificate["gap_ratio"] is None
    assert check_certificate(certificate) == []
    certificate["bound"] = 0.0
    assert check_certificate(certificate)


@pytest.fixture(scope="module")
def covered() -> Certificate:
    problem = in_millionths(cases.cover())
    relaxation = get_backend("scipy").relax(cases.cover(), 10.0)
    best = solve(cases.cover(), SolveOptions(gap=0.0))
    assert relaxation.duals is not None
    return build_dual_certificate(problem, relaxation.duals * 1e6, problem.vector(best.x), unit="micro_usd")


def test_money_is_in_whole_micro_dollars(covered: Certificate) -> None:
    assert type(covered["objective"]) is int and type(covered["bound"]) is int
    assert all(type(cost) is int for cost in covered["model"]["cost"])
    assert check_certificate(covered) == []
    assert "USD" in summary(covered)
    assert 0 <= covered["gap_ratio"] < 0.01


def _set(path: str, change: Callable[[Any], Any]) -> Callable[[Certificate], None]:
    def apply(certificate: Certificate) -> None:
        *parents, last = path.split(".")
        place: Any = certificate
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place[name]
        key = int(last) if isinstance(place, list) else last
        place[key] = change(place[key])

    return apply


TAMPERS = {
    "a higher bound": _set("bound", lambda value: value + 1),
    "a smaller gap": _set("gap_ratio", lambda value: value / 2),
    "a cheaper plan": _set("objective", lambda value: value - 10),
    "a plan with less": _set("point.0.1", lambda value: value - 1),
    "half a worker": _set("point.0.1", lambda value: value - 0.5),
    "a worker too many": _set("point.0.1", lambda value: value + 5),
    "a column that is not there": _set("point.0.0", lambda value: 10**6),
    "a column twice": _set("point", lambda value: [*value, value[0]]),
    "a lower price": _set("model.cost.3", lambda value: value // 2),
    "a smaller requirement": _set("model.row_lower", lambda value: value - 1),
    "a higher limit": _set("model.upper", lambda value: value + 1),
    "another matrix": _set("model.values.0", lambda value: value * 2),
    "a fraction for a dual": _set("duals.0.1", lambda value: value + 0.5),
    "a dual of no row": _set("duals.0.0", lambda value: 99),
    "a loose tolerance": _set("row_tolerance_ratio", lambda value: 0.5),
    "no number": _set("objective", lambda value: "a lot"),
    "not a number": _set("bound", lambda value: float("nan")),
    "an infinite bound": _set("bound", lambda value: float("inf")),
    "another kind": _set("kind", lambda value: "../../milp"),
    "an unknown version": _set("certificate_version", lambda value: 99),
    "a broken matrix": _set("model.starts.1", lambda value: -4),
    "no model": _set("model", lambda value: None),
}


@pytest.mark.parametrize("what", TAMPERS)
def test_tampering_is_found(covered: Certificate, what: str) -> None:
    changed = copy.deepcopy(covered)
    TAMPERS[what](changed)
    assert check_certificate(changed), what


@pytest.mark.parametrize("what", ["a lower price", "another matrix"])
def test_a_model_changed_with_its_fingerprint_is_not_proven(covered: Certificate, what: str) -> None:
    """A new fingerprint makes a consistent file, but the old duals and point do not fit the new model."""
    changed = copy.deepcopy(covered)
    TAMPERS[what](changed)
    changed["model_sha256"] = fingerprint(changed["model"])
    faults = check_certificate(changed)
    assert faults and not any("sha256" in fault for fault in faults)


def test_a_worse_dual_is_still_valid_for_its_own_lower_bound(covered: Certificate) -> None:
    """Duals need not be optimal: what they prove is checked, not where they come from."""
    changed = copy.deepcopy(covered)
    changed["duals"][0][1] //= 2
    changed["bound"], changed["gap_ratio"] = 0, 1.0
    assert check_certificate(changed) == []


def test_checking_imports_no_solver_and_no_numpy(tmp_path: Path, covered: Certificate) -> None:
    path = tmp_path / "certificate.json"
    write_certificate(path, covered)
    code = (
        "import sys\nfrom planner.cli import main\n"
        f"code = main(['verify', {str(path)!r}])\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy','scipy','highspy','solvers','pandas')])\n"
        "raise SystemExit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # where the line is broken depends on the length of the path in it
    assert "holds; milp certificate" in " ".join(done.stdout.split())
    assert done.stdout.rstrip().endswith("[]")


def test_every_kind_has_a_checker() -> None:
    assert {"milp", "enumeration"} <= set(kinds())


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=8))
def test_whole_numbers_are_exact(values: list[float]) -> None:
    whole, shift = whole_numbers(np.array(values))
    assert [Fraction(number, 2**shift) for number in whole.tolist()] == [Fraction(value) for value in values]
