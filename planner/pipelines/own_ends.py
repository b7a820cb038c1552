"""Pipelines on commitments that end: a task's cost depends on its start, which the plan decides.

What a task pays after the end of what the user owns (`planner.market.ends`) rises with its start, and a start too late
leaves the commitment out. So the plan is first made as if each task started as early as any can: no plan costs less
than its bound. Where a task on such a commitment then starts later, it is priced anew for that start, and all is
planned again, until every such task starts by the hour for which it is priced; at last, without these commitments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.inputs.bounds import MOST_HOURS
from solvers.problem.solution import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.pipelines.gather import Gathered, Gatherer
    from planner.pipelines.solve import PipelineResult
    from planner.plan.robust import Robust

    Planned = tuple[Gathered, PipelineResult, Robust | None]

MOST_ROUNDS = 6  # of planning again with later starts
TIE_HOURS = 1e-6
_NONE_KNOWN = "no plan found on commitments that last, nor without them; none is proven impossible"


def until_starts_hold(gatherer: Gatherer, plan: Callable[[Gathered], Planned], gap: float) -> Planned:
    """A plan whose tasks start by the hours for which what they run on is priced, with a bound for all plans.

    Args:
        gatherer: of the candidates.
        plan: chooses among candidates.
        gap: relative, within which a plan is called optimal.
    """
    gathered, result, robust = plan(gatherer.gather())
    bound, again = result.bound_usd, 0
    while again < MOST_ROUNDS and (starts := _missed(gatherer, result)) is not None:
        gathered, result, robust = plan(gatherer.later(starts))
        again += 1
    if again and (result.course is None or _missed(gatherer, result) is not None):
        gathered, result, robust = plan(gatherer.later([MOST_HOURS] * gathered.pipe.n_tasks))
    if bound >= result.bound_usd:
        return gathered, result, robust
    if result.course is None:
        return (
            gathered,
            replace(result, bound_usd=bound, status=Status.NO_SOLUTION, message=_NONE_KNOWN),
            robust,
        )
    other = replace(result, bound_usd=bound)
    is_open = result.status is Status.OPTIMAL and other.gap > gap
    return gathered, replace(other, status=Status.FEASIBLE) if is_open else other, robust


def _missed(gatherer: Gatherer, result: PipelineResult) -> list[float | None] | None:
    """The start of each task that starts after the hour for which it is priced, None of others; None without any."""
    if result.course is None:
        return None
    starts = [
        float(start) if hours is not None and start > hours + TIE_HOURS else None
        for hours, start in zip(gatherer.own_from(result), result.course.start_hours.tolist(), strict=True)
    ]
    return starts if any(start is not None for start in starts) else None
