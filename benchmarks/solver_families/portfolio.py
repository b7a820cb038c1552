"""Portfolios: many jobs under shared quotas; proven, fast, as a frontier, within a time limit, and not feasible."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from benchmarks.instances.portfolio import generate
from benchmarks.solver_families.base import Clock, Figure, in_child, known, peak_mib
from planner.plan.certificates import check_certificate
from planner.portfolios.certificate import build_certificate
from planner.portfolios.elastic import ElasticWeights
from planner.portfolios.frontier import delay_of, find_frontier
from planner.portfolios.model.families import build_portfolio
from planner.portfolios.reduce import reduce_portfolio
from planner.portfolios.relax import relax_portfolio
from planner.portfolios.shared_limits import MICRO
from planner.portfolios.solve import PortfolioOptions, solve_portfolio
from solvers.problem.solution import Status

NAME = "portfolio"
GOALS = (
    "100 jobs x 200 candidates: 1e-4 proven in <= 0.6 CPU s",
    "1,000 x 200: 1e-3 proven in <= 20 CPU s and <= 0.8 GB",
    "1,000 x 200, fast mode: an exactly certified gap <= 0.6 % in <= 3 CPU s; certificate checked in <= 1",
    "frontier of 12 points, 100 x 200, each with its bound, in <= 15 CPU s",
    "1,000 jobs that do not fit: explained in <= 5 CPU s, and a plan within the moved limits always",
    "model of 1,000 x 200 built in <= 0.25 CPU s",
    "1,000 x 200 within a limit of 4 s + 10 %",
)
LIMIT_S = 120.0
SHORT_LIMIT_S = 4.0
LIMIT_GIB = 0.8


def _note(goals: list[tuple[bool, str]], *told: str) -> str:
    return "; ".join([*(f"MISSED: {text}" for kept, text in goals if not kept), *told])


def measure(
    n_jobs: int,
    seed: int,
    mode: str,
    gap: float,
    limit_s: float,
    goal_cpu_s: float,
    goal_gap: float,
    backend: str,
) -> Figure:
    """Solve one portfolio of 200 candidates per job and check its certificate."""
    question = generate(seed, n_jobs).question
    options = PortfolioOptions(gap=gap, time_limit_s=limit_s, mode=mode, backend=backend)
    with Clock() as clock:
        result = solve_portfolio(question, options)
    peak = peak_mib() / 1024
    certificate = build_certificate(result)
    began = time.process_time()
    faults = check_certificate(certificate)
    checked = time.process_time() - began
    reached = result.exact_gap if mode == "fast" else result.gap
    goals = [
        (clock.cpu_s <= goal_cpu_s, f"{goal_cpu_s:g} CPU s"),
        (math.isinf(goal_cpu_s) or reached <= goal_gap, f"gap {goal_gap:g}"),
        (peak <= LIMIT_GIB, f"{LIMIT_GIB:g} GB"),
        (not faults and checked <= 1.0, f"certificate: {faults[:1]} in {checked:.2f} s"),
    ]
    told = (
        f"{mode}, {result.solver or backend}",
        f"asked {gap:g}",
        f"certificate checked in {checked:.2f} CPU s",
    )
    return Figure(
        NAME, f"{n_jobs:,} x 200", seed, result.status.value, clock.cpu_s, clock.wall_s,
        None if result.objective is None else result.objective / MICRO,
        None if result.exact_bound is None else result.exact_bound / MICRO,
        known(result.solver_gap), known(result.exact_gap), limit_s=limit_s, note=_note(goals, *told),
    )  # fmt: skip


def measure_build(seed: int) -> Figure:
    """Reduce and build the model of 1,000 x 200."""
    question = generate(seed, 1_000).question
    with Clock() as clock:
        model = build_portfolio(reduce_portfolio(question))
    with Clock() as whole:
        build_portfolio(reduce_portfolio(question, drop_dominated=False))
    told = f"{model.n_columns:,} columns, {len(model.data):,} entries; all columns in {whole.cpu_s:.2f} CPU s"
    goals = [(max(clock.cpu_s, whole.cpu_s) <= 0.25, "0.25 CPU s")]
    return Figure(
        NAME, "1,000 x 200 build", seed, "built", clock.cpu_s, clock.wall_s, note=_note(goals, told)
    )


def measure_frontier(seed: int) -> Figure:
    """Twelve points of cost against weighted delay."""
    instance = generate(seed, 100)
    weight = instance.usd_per_hour_late[instance.question.job]
    delay = delay_of(instance.hours, weight)
    with Clock() as clock:
        points = find_frontier(instance.question, delay, 12, PortfolioOptions(time_limit_s=LIMIT_S))
    gaps = [point.gap for point in points]
    goals = [
        (clock.cpu_s <= 15, "15 CPU s"),
        (
            len(points) == 12 and all(point.delay_bound is not None for point in points),
            "12 points with bounds",
        ),
    ]
    told = f"gaps {np.median(gaps):.3%} in the middle, {max(gaps):.2%} at most"
    return Figure(
        NAME, "100 x 200 frontier", seed, "feasible", clock.cpu_s, clock.wall_s, limit_s=LIMIT_S,
        note=_note(goals, told),
    )  # fmt: skip


def measure_infeasible(n_jobs: int, seed: int, cut: float) -> Figure:
    """Cut all quotas to a part, name what must give way, and plan with that."""
    question = generate(seed, n_jobs, feasible=False).question
    question = replace(question, limit=np.floor(question.limit * cut).astype(np.int64))
    options = PortfolioOptions(time_limit_s=LIMIT_S)
    with Clock() as clock:
        told = solve_portfolio(question, options)
        late = np.zeros(question.n_candidates)
        found = (
            relax_portfolio(question, late, ElasticWeights(), 100.0, options)
            if told.status is Status.INFEASIBLE
            else None
        )
    if found is None:
        return Figure(
            NAME, f"{n_jobs:,} x 200 cut", seed, told.status.value, clock.cpu_s, clock.wall_s, note="it fits"
        )
    fits = found.plan.picks is not None and not found.question.faults(found.plan.picks)
    goals = [(clock.cpu_s <= 5, "5 CPU s"), (fits, "a plan within the moved limits")]
    text = f"{np.count_nonzero(found.raised)} limits, {found.weighted_usd:,.0f} USD of weight"
    text += f", at least {found.bound_usd:,.0f}"
    return Figure(
        NAME, f"{n_jobs:,} x 200 cut", seed, "infeasible", clock.cpu_s, clock.wall_s, limit_s=LIMIT_S,
        note=_note(goals, text),
    )  # fmt: skip


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure the family; `quick` leaves out 1,000 jobs."""
    figures = [
        in_child(measure, 100, seed, "auto", 1e-4, LIMIT_S, 0.6, 1e-4, backend)
        for backend in ("auto", "scipy")
    ]
    figures += [in_child(measure, 100, seed, "fast", 1e-4, LIMIT_S, 3.0, 1.0, "auto")]
    figures += [in_child(measure_infeasible, 100, seed, 0.45)]
    if quick:
        return figures
    return [
        *figures,
        in_child(measure_build, seed),
        in_child(measure_frontier, seed),
        in_child(measure, 1_000, seed, "fast", 1e-3, LIMIT_S, 3.0, 6e-3, "auto"),
        in_child(measure, 1_000, seed, "fast", 1e-3, LIMIT_S, 3.0, 6e-3, "scipy"),
        in_child(measure, 1_000, seed, "auto", 1e-3, LIMIT_S, 20.0, 1e-3, "auto"),
        in_child(measure, 1_000, seed, "auto", 1e-3, LIMIT_S, 20.0, 1e-3, "scipy"),
        in_child(measure, 1_000, seed, "auto", 1e-5, SHORT_LIMIT_S, math.inf, 1e-3, "auto"),
        in_child(measure_infeasible, 1_000, seed, 0.45),
        in_child(measure_infeasible, 1_000, seed, 1.0),
    ]
