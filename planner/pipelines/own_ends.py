"""Pipelines on commitments that end: a task's cost depends on its start, which the plan decides.

What a task pays after the end of what the user owns (`planner.market.ends`) rises with its start, and a start too late
leaves the commitment out. So the plan is first made as if each task started as early as any can: no plan costs less
than its bound. Where a task on such a commitment then starts later, it is priced anew for that start, and all is
planned again, until every such task starts by the hour for which it is priced; at last, without these commitments.

If the bound is not met, starts are cut into cells: a way on such a commitment must start within its cell (`start_by` of
the model). Priced for the ends of the cells, the best choice is a plan; priced for their beginnings, a bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.inputs.bounds import MOST_HOURS
from planner.pipelines.priced import SLIP, priced
from planner.pipelines.question import TIE_HOURS, affordable
from planner.pipelines.solve import loose_hours
from planner.pipelines.way import Offered
from solvers.problem.solution import Status, relative_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.pipelines.gather import Gathered, Gatherer
    from planner.pipelines.question import Course, PipelineInput
    from planner.pipelines.solve import PipelineResult

    Planned = tuple[Gathered, PipelineResult]
    Solve = Callable[[PipelineInput], PipelineResult | None]  # None: no time is left
    Best = tuple[Gathered, PipelineResult, float]  # a plan, and the bound on all, USD

MOST_ROUNDS = 6  # of planning again with later starts
CELLS = 6  # of a task's starts, beside those of the plans known
MOST_GRIDS = 4  # of starts, each cut where the bound of the last needs it
_NONE_KNOWN = "no plan found on commitments that last, nor without them; none is proven impossible"


def until_starts_hold(
    gatherer: Gatherer,
    plan: Callable[[Gathered], Planned],
    gap: float,
    solve: Solve,
    left_s: Callable[[], float],
) -> Planned:
    """A plan whose tasks start by the hours for which what they run on is priced, with a bound for all plans.

    Args:
        gatherer: of the candidates.
        plan: chooses among candidates.
        gap: relative, within which a plan is called optimal.
        solve: the best choice that keeps `start_by`.
        left_s: seconds left; without any, starts are not cut into cells.
    """
    first, result = plan(gatherer.gather())
    gathered, bound, known = first, result.bound_usd, [_starts(result)]
    while len(known) <= MOST_ROUNDS and (late := _missed(result)) is not None:
        gathered, result = plan(gatherer.later(late))
        known.append(_starts(result))
    if len(known) == 1:
        return gathered, result
    if result.course is None or _missed(result) is not None:
        gathered, result = plan(gatherer.later([MOST_HOURS] * gathered.pipe.n_tasks))
    bound = min(bound, result.bound_usd)
    if not _is_near(result, bound, gap) and left_s() > 0:
        starts = [list(own) for own in zip(*filter(None, known), strict=True)]
        gathered, result, bound = _by_cells(gatherer, (gathered, result, bound), starts, solve, left_s, gap)
    if result.course is None:
        if bound == math.inf:
            return gathered, replace(result, bound_usd=bound, status=Status.INFEASIBLE)
        return first, replace(result, bound_usd=bound, status=Status.NO_SOLUTION, message=_NONE_KNOWN)
    other = replace(result, bound_usd=bound)
    status = Status.OPTIMAL if other.gap <= gap * (1 + 1e-6) + 1e-9 else Status.FEASIBLE
    return gathered, replace(other, status=status)


def _by_cells(
    gatherer: Gatherer, known: Best, starts: list[list[float]], solve: Solve, left_s: Callable[[], float], gap: float
) -> Best:  # fmt: skip
    """The cheaper of what is known and the best plan with starts in cells, and a bound on all plans, USD.

    Args:
        gatherer: of the candidates.
        known: the plan, if there is any, and its bound.
        starts: of each task in the plans known.
        solve: as of `until_starts_hold`.
        left_s: likewise.
        gap: relative, at which the search ends.
    """
    best = known
    for _ in range(MOST_GRIDS):
        plans, bounds = gatherer.by_starts(starts, CELLS)
        best, course = _improved(best, plans, bounds, solve)
        if course is None or _is_near(best[1], best[2], gap) or left_s() <= 0:
            break
        # the best by prices that are too low: its starts cut the cells where they matter
        starts = [[*own, hours] for own, hours in zip(starts, course.start_hours.tolist(), strict=True)]
    return best


def _improved(best: Best, plans: Gathered, bounds: Gathered, solve: Solve) -> tuple[Best, Course | None]:
    """The best plan and bound by one grid of starts, and the choice that the bound is of."""
    gathered, result, bound = best
    cost = math.inf if result.course is None else result.course.cost_usd
    question = _below(plans.pipe, cost)
    found = None if question is None else solve(question)
    if (
        found is not None
        and found.course is not None
        and _missed(found) is None
        and found.course.cost_usd < cost
    ):
        gathered, result, cost = plans, found, found.course.cost_usd
    question = _below(bounds.pipe, cost)
    least = None if question is None else solve(question)
    if question is None:
        bound = cost
    elif least is not None:
        bound = max(bound, min(least.bound_usd, cost))
    return (gathered, result, bound), None if least is None else least.course


def _is_near(result: PipelineResult, bound: float, gap: float) -> bool:
    """Whether there is a plan, and none costs less by more than a gap."""
    return result.course is not None and relative_gap(result.course.cost_usd, bound) <= gap


def keeping_starts(pipe: PipelineInput) -> PipelineInput:
    """The question whose choices start by the hours for which they are priced; the same where nothing ends."""
    by = [key.own_from_hours if isinstance(key, Offered) else None for key in pipe.keys]
    if all(hours is None for hours in by):
        return pipe
    start_by = np.asarray([np.inf if hours is None else hours for hours in by], dtype=np.float64)
    deadline = pipe.deadline_hours if pipe.timed else loose_hours(pipe)
    return replace(pipe, deadline_hours=deadline, start_by=start_by)


def _below(pipe: PipelineInput, usd: float) -> PipelineInput | None:
    """The question of choices that cost no more than an amount and keep their starts; None where there are none."""
    whole = keeping_starts(pipe)
    kept = affordable(whole, usd + SLIP * (usd + pipe.n_tasks))
    if len(np.unique(whole.task[kept])) < pipe.n_tasks:
        return None
    return priced(whole.take(np.flatnonzero(kept)))


def _starts(result: PipelineResult) -> list[float]:
    """Hours at which each task of a plan starts; nothing without a plan."""
    return [] if result.course is None else result.course.start_hours.tolist()


def _missed(result: PipelineResult) -> list[float | None] | None:
    """The start of each task that starts after the hour for which it is priced, None of others; None without any."""
    if result.course is None:
        return None
    starts = [
        float(start)
        if isinstance(way, Offered)
        and way.own_from_hours is not None
        and start > way.own_from_hours + TIE_HOURS
        else None
        for way, start in zip(result.chosen.values(), result.course.start_hours.tolist(), strict=True)
    ]
    return starts if any(start is not None for start in starts) else None
