"""Commitments under uncertain demand: the decomposition at full size, and against the extensive linear program."""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.instances.commit import YEAR_HOURS, make_commit
from benchmarks.solver_families.base import Clock, Figure, in_child, known

NAME = "commit"
GOALS = (
    "8 pools x 8,760 h x 50 scenarios with CVaR to 1e-3 within 10 CPU s and 1.2 GB",
    "at 500 h x 20 scenarios at least 50 times faster than the extensive linear program, same optimum to 1e-4",
    "the bound holds in whole numbers, checked without a solver",
)
FULL = (YEAR_HOURS, 50)
SMALL = (500, 20)
GAP_FULL, GAP_SMALL = 1e-3, 1e-4
GOAL_CPU_S, GOAL_SPEED, GOAL_SAME = 10.0, 50.0, 1e-4
LIMIT_S = 60.0
EXTENSIVE_LIMIT_S = 600.0


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure; `quick` takes small sizes and leaves the extensive program to the smallest."""
    hours, scenarios = (200, 10) if quick else FULL
    figures = [
        in_child(measure_benders, seed, hours, scenarios, 0.3, GAP_FULL),
        in_child(measure_benders, seed, hours // 4, scenarios, 0.3, GAP_FULL, two_rates=True),
    ]
    hours, scenarios = (60, 8) if quick else SMALL
    for risk in (0.0, 0.3):
        fast = in_child(measure_benders, seed, hours, scenarios, risk, GAP_SMALL, whole=False)
        slow = in_child(measure_extensive, seed, hours, scenarios, risk, timeout_s=2 * EXTENSIVE_LIMIT_S)
        figures += [_compared(fast, slow, full=not quick), slow]
    figures.append(in_child(measure_certificate, seed, hours, scenarios, 0.3))
    return figures


def _compared(fast: Figure, slow: Figure, *, full: bool) -> Figure:
    """Say how many times faster, and how far the two optima are apart."""
    times = slow.cpu_s / max(fast.cpu_s, 1e-3)
    if slow.objective is None or fast.objective is None:
        return replace(fast, note=f"extensive program: nothing in {slow.cpu_s:,.0f} CPU s, {times:,.0f}x")
    apart = abs(fast.objective - slow.objective) / slow.objective
    goals = [f"missed: {times:.0f}x, {GOAL_SPEED:g}x wanted"] if full and times < GOAL_SPEED else []
    goals += [f"missed: optima apart by {apart:.1e}"] if apart > GOAL_SAME else []
    return replace(fast, note="; ".join([*goals, f"{times:,.0f}x faster, optima apart by {apart:.1e}"]))


def _size(hours: int, scenarios: int, risk: float, more: str = "") -> str:
    return f"8 pools x {hours:,} h x {scenarios} scenarios{', CVaR' if risk else ''}{more}"


def measure_benders(
    seed: int,
    hours: int,
    scenarios: int,
    risk: float,
    gap: float,
    whole: bool = True,
    two_rates: bool = False,
) -> Figure:
    """Solve one question by decomposition; building the instance and importing solvers is not counted (nor below)."""
    from planner.commitments.solve import solve_commit

    model = make_commit(
        seed, hours=hours, scenarios=scenarios, risk_weight=risk, whole=whole, two_rates=two_rates
    )
    # the first master imports the solver
    solve_commit(make_commit(seed, pools=1, scenarios=1, hours=24, risk_weight=risk))
    with Clock() as clock:
        found = solve_commit(model, gap=gap, time_limit_s=LIMIT_S)
    missed = [f"missed: {GOAL_CPU_S:g} CPU s"] if clock.cpu_s > GOAL_CPU_S and not two_rates else []
    return Figure(
        NAME,
        _size(hours, scenarios, risk, ", two plan rates" if two_rates else ""),
        seed,
        found.status,
        clock.cpu_s,
        clock.wall_s,
        found.objective_usd,
        found.bound_usd,
        found.gap_ratio,
        limit_s=LIMIT_S,
        note="; ".join([*missed, f"{len(found.rounds)} rounds"]),
    )


def measure_extensive(seed: int, hours: int, scenarios: int, risk: float) -> Figure:
    """Solve the same question written out, by the interior-point method (simplex is slower at this size)."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csc_array, vstack

    from benchmarks.instances.commit_extensive import build_extensive

    model = make_commit(seed, hours=hours, scenarios=scenarios, risk_weight=risk, whole=False)
    problem = build_extensive(model)
    matrix = csc_array(
        (problem.data, problem.indices, problem.indptr), shape=(problem.n_rows, problem.n_columns)
    ).tocsr()
    above, below = np.isfinite(problem.row_hi), np.isfinite(problem.row_lo)
    unit = 1e6  # dollars; the solver's tolerances are absolute
    with Clock() as clock:
        found = linprog(
            problem.c / unit,
            A_ub=vstack([matrix[above], -matrix[below]]),
            b_ub=np.concatenate([problem.row_hi[above], -problem.row_lo[below]]),
            bounds=np.column_stack([problem.lb, problem.ub]),
            method="highs-ipm",
            options={"time_limit": EXTENSIVE_LIMIT_S},
        )
    objective = known(float(found.fun) * unit) if found.status == 0 else None
    return Figure(
        NAME,
        _size(
            hours, scenarios, risk, f", extensive: {problem.n_rows:,} rows x {problem.n_columns:,} columns"
        ),
        seed,
        "optimal" if found.status == 0 else "no_solution",
        clock.cpu_s,
        clock.wall_s,
        objective,
        objective,
        None if objective is None else 0.0,
        note="HiGHS interior point with crossover, the oracle",
    )


def measure_certificate(seed: int, hours: int, scenarios: int, risk: float) -> Figure:
    """Make the exact certificate and check it; the seconds are those of the check."""
    from planner.commitments.certificate import build_certificate
    from planner.commitments.solve import solve_commit
    from planner.plan.certificates import check_certificate

    model = make_commit(seed, hours=hours, scenarios=scenarios, risk_weight=risk)
    found = solve_commit(model, gap=GAP_SMALL)
    began = time.process_time()
    certificate = build_certificate(model, found)
    making = time.process_time() - began
    with Clock() as clock:
        faults = check_certificate(certificate)
    return Figure(
        NAME,
        _size(hours, scenarios, risk, ", certificate"),
        seed,
        "error" if faults else found.status,
        clock.cpu_s,
        clock.wall_s,
        certificate["objective"],
        certificate["bound"],
        found.gap_ratio,
        certificate["gap_ratio"],
        note="; ".join(faults) or f"{len(certificate['cuts'])} cuts, made in {making:.1f} CPU s",
    )
