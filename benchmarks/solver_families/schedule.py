"""Time-expanded schedules: a week and a month by the hour, with and without one region at a time."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.instances.schedule import schedule_instance
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.schedules.question import ScheduleInput, most_work
from planner.schedules.relaxation import apply_remedy, explain_schedule
from planner.schedules.solve import ScheduleResult, solve_schedule
from solvers.problem.options import SolveOptions

NAME = "schedule"
GOALS = (
    "a week x 12 pools to 1e-3 within 3 CPU s, with and without one region at a time",
    "a month x 12 pools to 1e-3 within 5 CPU s, the same",
    "what does not fit is explained, and its relaxation is feasible",
)
OPTIONS = SolveOptions(gap=1e-3, time_limit_s=60.0, backend="auto")
GOAL_S = {168: 3.0, 720: 5.0}


def measure(n_hours: int, n_pools: int, seed: int, one_region: bool) -> Figure:
    """Solve one instance."""
    question = schedule_instance(n_hours, n_pools, seed, one_region=one_region)
    with Clock() as clock:
        result = solve_schedule(question, OPTIONS)
    size = f"{n_hours} h x {n_pools} pools" + (", one region" if one_region else "")
    missed = n_pools == 12 and (clock.cpu_s > GOAL_S.get(n_hours, 60.0) or not result.gap <= OPTIONS.gap)
    return _figure(size, seed, result, clock, "MISSED: slower than the goal" if missed else "")


def explain(n_hours: int, n_pools: int, seed: int) -> Figure:
    """Explain an instance with too much work, and solve it with the first remedy."""
    question = _too_much(schedule_instance(n_hours, n_pools, seed, one_region=True))
    with Clock() as clock:
        found = explain_schedule(question, OPTIONS)
    remedy = found.remedies[0] if found.remedies else None
    result = solve_schedule(apply_remedy(question, remedy) if remedy else question, OPTIONS)
    note = "MISSED: the relaxation is not feasible" if not result.nodes else f"relaxed: {remedy}"
    return _figure(f"{n_hours} h x {n_pools} pools, why not", seed, result, clock, note)


def _too_much(question: ScheduleInput) -> ScheduleInput:
    """The same with a quarter more work than can be done."""
    return replace(question, work=most_work(question) * 1.25)


def _figure(size: str, seed: int, result: ScheduleResult, clock: Clock, note: str) -> Figure:
    return Figure(
        NAME, size, seed, result.status.value, clock.cpu_s, clock.wall_s, known(result.usd), known(result.bound_usd),
        known(result.gap), limit_s=OPTIONS.time_limit_s, note=note,
    )  # fmt: skip


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure the family."""
    figures = [in_child(measure, 168, 12, seed, one) for one in (False, True)]
    if quick:
        return figures
    figures += [in_child(measure, 720, 12, seed, one) for one in (False, True)]
    return [*figures, in_child(measure, 168, 40, seed, False), in_child(explain, 168, 12, seed)]
