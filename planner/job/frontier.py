"""The cost/time frontier of one synchronous job: at every deadline asked for the plan that `optimize` gives for it.

Asked for are the workload's own deadline, the deadlines given, the earliest one that each candidate on the front of
steady capacity and spot alone keeps with `deadline_confidence`, and deadlines in equal steps of the logarithm between
and before them, and later ones until the cost falls no more. A later deadline never costs more, so between two of
them the cheapest plan is no better than at the later and no worse than at the earlier. Deadline and budget of the
workload are set aside; every other limit holds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.store.load import load_catalog
from planner.candidates.best_alone import BestAlone
from planner.candidates.choose import best_where
from planner.candidates.constraints.deadline import without_record
from planner.candidates.decisions import HAIR_RATIO
from planner.candidates.engine import Engine
from planner.candidates.finish import sure_hours, uninterrupted_hours
from planner.candidates.model import SINGLE
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.prepare import check_ages, prepare, unlimited
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance
from planner.inputs.bounds import MOST_HOURS
from planner.inputs.resolve import resolve_times
from planner.inputs.tasks import expand_task
from planner.plan.brief import Summary
from planner.plan.model import CatalogSource, sources_of
from planner.records import record
from planner.render.presentable import Presentable
from planner.render.words import assumed_sizes
from solvers.search.pareto import dominated, pareto_front

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from catalogs.tables.table import Bools, Floats
    from planner.asked.options import Options
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload


_BLOCK = 128  # candidates whose finishing time is worked out at once
_BOUND = 0.999  # of a lower bound of hours: quantiles are interpolated
_BETWEEN = 16  # deadlines in equal steps of the logarithm
_BEST = Wanted(Scope.BEST)
_SLIP = 1.001  # of costs that hardly change from one deadline to the next
_LATER, _MOST_LATER = 2.0, 6  # ratio of deadlines after the last one asked for, and how many at most
_SPAN = 1.5  # least ratio of the last to the first of the deadlines listed in steps


@record(frozen=True)
class Point:
    """The plan of one deadline.

    Attributes:
        deadline_hours: the deadline, hours from the start; the plan keeps it with the confidence asked.
        best: the candidate, with its expected hours and cost.
        within_deadline, within_budget: whether the workload's own limits allow it; None where it has none.
        p_meet_deadline: probability that the plan keeps it.
        wished: whether the user asked for this deadline; such a point is listed even where an earlier one is as cheap.
    """

    deadline_hours: float
    best: Summary
    within_deadline: bool | None
    within_budget: bool | None
    wished: bool = False
    p_meet_deadline: float | None = None


@record(frozen=True)
class Frontier(Presentable):
    """All points, by rising deadline and falling cost.

    Attributes:
        confidence: probability with which a point's deadline is kept.
        candidates: candidates that keep the latest deadline asked for.
        deadlines: deadlines asked for.
        workload_sha256, created_at, start: of the workload file, of the run, when the job starts.
        sources: price snapshots used.
        note: which node counts were looked at.
        beside_steps_ratio: what hours have beside the steps by default, over these; 0 where the workload says it.
        assumed: sizes of samples that nobody stated.
    """

    REPORT = "planner.job.frontier_report:frontier_report"
    __repr__ = Presentable.__repr__

    workload: str
    confidence: float
    points: tuple[Point, ...]
    candidates: int
    note: str
    deadlines: int = 0
    workload_sha256: str = ""
    created_at: str = ""
    start: str = ""
    sources: tuple[CatalogSource, ...] = ()
    beside_steps_ratio: float = 0.0
    assumed: tuple[str, ...] = ()


def frontier(
    loaded: LoadedWorkload,
    options: Options,
    *,
    deadlines_hours: Sequence[float] = (),
    catalog_dir: Path | None = None,
) -> Frontier:
    """Find the cost/time frontier of a workload.

    Args:
        loaded: the workload file.
        options: flags, as of `planner optimize`.
        deadlines_hours: deadlines to ask for beside the workload's own, hours from the start.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload is wrong in a way only the catalog can tell, or a fleet.
        CatalogError: the catalog cannot be used.
    """
    catalog = load_catalog(catalog_dir, as_of=options.as_of)
    own = next((v.workload for v in expand_task(loaded.workload) if v.chosen), loaded.workload)
    engine = Engine(prepare(loaded, unlimited(own), catalog, options), admitted_only=True)
    answer = find_frontier(engine, own, deadlines_hours)
    check_ages(((point.best.instance_type, point.best.price_as_of) for point in answer.points), options)
    return answer


def find_frontier(
    engine: Engine, workload: Workload, deadlines_hours: Sequence[float] = (), *, steps: int = 0
) -> Frontier:
    """The same from a prepared run.

    Args:
        engine: of the workload without deadline and budget.
        workload: the workload as it was given.
        deadlines_hours: deadlines to ask for beside the workload's own.
        steps: ask for so many deadlines instead of those found, in equal steps of the logarithm from the first to the
            last one of the front, and list each of them.
    """
    context = engine.context
    end = resolve_times(workload, context.dates.now).deadline
    limit = None if end is None else (end - context.dates.start).total_seconds() / 3600.0
    wished = sorted({*deadlines_hours, *([] if limit is None else [limit])})
    free = engine.at(None, _BEST)
    asked, listed = _deadlines(free, wished, steps)
    walk = _Walk(engine, workload, limit, wished, free)
    for hours in asked:
        walk.ask(hours, hours in listed)
    later = [] if steps else walk.go_on(asked)
    points, found = walk.points, walk.latest() if asked else free
    confidence = context.asked.workload.constraints.deadline_confidence
    count = int((found.candidates.bits == 0).sum()) if points else 0
    return Frontier(
        workload.name, confidence, tuple(points), count, searched(found), len(asked) + len(later), context.asked.sha256,
        moment_text(context.dates.now), moment_text(context.dates.start), sources_of(context.market.catalog),
        context.asked.assumptions.beside_by_default, tuple(assumed_sizes(context.asked.job.assumptions)),
    )  # fmt: skip


class _Walk:
    """Asks for one deadline after another, rising, and keeps the points of the frontier."""

    def __init__(
        self,
        engine: Engine,
        workload: Workload,
        limit: float | None,
        wished: Sequence[float],
        free: CandidateSearch,
    ) -> None:
        """Take the engine and the workload; `limit`: its own deadline in hours; `free`: found without a deadline."""
        self.engine, self.own, self.limit, self.wished = engine, workload, limit, wished
        self.points: list[Point] = []
        self.best, self.least, self.free = BestAlone(engine), np.inf, free.candidates
        self.last = (0.0, np.inf)

    def ask(self, hours: float, listed: bool = False) -> None:
        """Add the plan of one deadline where it is listed or costs less than those before."""
        # what an earlier deadline allows costs no more at a later one
        self.last = (hours, self.least * _SLIP)
        candidates = self.best.at_hours(*self.last)
        at = best_where(candidates, candidates.bits == 0, "cost")
        if at is None or (not listed and not candidates.cost_usd[at] < self.least):
            return
        self.least = min(self.least, float(candidates.cost_usd[at]))
        self.points.append(_point(candidates, self.own, at, hours, self.limit, hours in self.wished))

    def latest(self) -> CandidateSearch:
        """All candidates at the latest deadline asked for."""
        hours, below = self.last
        return self.engine.at_hours(hours, replace(_BEST, below=below))

    def go_on(self, asked: Sequence[float]) -> list[float]:
        """Ask for later deadlines until one costs hardly more than the cheapest candidate does by none.

        Spot that no deadline admits alone is on no front of single offers: with on-demand to fall back on it costs the
        less the later the deadline.
        """
        feasible = self.free.cost_usd[self.free.bits == 0]
        floor, later = float(feasible.min(initial=np.inf)) * (1 + HAIR_RATIO), list[float]()
        while asked and self.least > floor and len(later) < _MOST_LATER:
            hours = (later or asked)[-1] * _LATER
            if hours > MOST_HOURS:
                break
            later.append(hours)
            self.ask(hours)
        return later


def searched(search: CandidateSearch) -> str:
    """Which sizes were looked at."""
    counts = search.node_counts
    note = f"node counts {counts[0]}..{counts[-1]}: {len(counts)} sizes for all hardware"
    if search.refined_hardware:
        note += f", all sizes for the {search.refined_hardware} that could do better between"
    return note


def _deadlines(free: CandidateSearch, wished: Sequence[float], steps: int) -> tuple[list[float], set[float]]:
    """Deadlines asked for, rising, and those listed even where the cost does not fall.

    Without `steps` those wished for, those of each point of the front without turns, and some between.
    """
    times = _front(free.candidates)
    candidates = free.candidates
    kept = np.flatnonzero((candidates.bits == 0) & (candidates.kind == SINGLE))
    work = candidates.waiting_hours[kept] + candidates.fixed_hours[kept] + candidates.work_hours[kept]
    ends = [*times.tolist(), *wished]
    if steps and len(times):
        first, last = float(times.min()), max(ends)
        listed = {*wished, *np.geomspace(first, max(last, first * _SPAN), steps).tolist()}
        return sorted(listed), listed
    between: list[float] = []
    if len(kept) and ends:
        first, last = min(float(work.min()), *ends), max(ends)
        between = np.geomspace(first, max(last, first * 1.001), _BETWEEN).tolist()  # its ends are exact
    return sorted({*ends, *between}), set(wished)


def _front(candidates: Candidates) -> Floats:
    """Hours that each candidate on the front needs to be sure enough, by rising hours.

    Worked out where a candidate could still be on the front: not before its work without any interruption is done.
    Spot that no deadline admits is none of it.
    """
    context = candidates.context
    barred = without_record(context.asked.workload, candidates)
    feasible = np.flatnonzero((candidates.bits == 0) if barred is None else (candidates.bits == 0) & ~barred)
    level = context.asked.workload.constraints.deadline_confidence
    cost = candidates.cost_usd[feasible]
    hours, least = np.full(len(feasible), np.inf), uninterrupted_hours(candidates, feasible, level) * _BOUND
    waiting = np.arange(len(feasible))
    while len(waiting):
        front = pareto_front(hours, cost)
        waiting = waiting[~dominated(hours[front], cost[front], least[waiting], cost[waiting])]
        first = _outermost(least[waiting], cost[waiting])
        block, waiting = waiting[first], waiting[~first]
        hours[block] = sure_hours(candidates, feasible[block], level)
    return hours[pareto_front(hours, cost)]


def _outermost(hours: Floats, cost: Floats) -> Bools:
    """The front, the front of what is left without it and so on, until there are `_BLOCK`."""
    out, left = np.zeros(len(cost), dtype=np.bool_), np.arange(len(cost))
    while len(left) and out.sum() < _BLOCK:
        front = pareto_front(hours[left], cost[left])
        out[left[front]] = True
        left = np.delete(left, front)
    return out


def _point(
    candidates: Candidates, workload: Workload, at: int, hours: float, limit: float | None, wished: bool
) -> Point:
    budget = workload.constraints.budget_usd
    return Point(
        deadline_hours=hours,
        best=summarize(candidates, at, None),
        within_deadline=None if limit is None else hours <= limit,
        within_budget=None if budget is None else bool(candidates.cash_usd[at] <= float(budget)),
        wished=wished,
        p_meet_deadline=stated_chance(candidates, at),
    )


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """At most `limit` points that tell the most: both ends and those wished for, then always the one farthest away.

    Args:
        points: all points, by time; distances are on log-log scales of time and cost.
        limit: how many to keep, at least 2; more are kept only where more were wished for.
    """
    places = [(point.deadline_hours, float(point.best.cost_usd)) for point in points]
    wished = [at for at, point in enumerate(points) if point.wished]
    return [points[at] for at in spread_out(places, limit, wished)]


def spread_out(places: Sequence[tuple[float, float]], limit: int, wished: Sequence[int] = ()) -> list[int]:
    """Which points of a front tell the most, on scales of logarithms: both ends and those wished for first."""
    if len(places) <= limit:
        return list(range(len(places)))
    place = np.log(np.maximum(places, 1e-9))
    place /= np.maximum(np.ptp(place, axis=0), 1e-12)
    kept = list(dict.fromkeys([0, len(places) - 1, *wished]))
    while len(kept) < limit:
        away = np.min([np.hypot(*(place - place[k]).T) for k in kept], axis=0)
        kept.append(int(np.argmax(away)))
    return sorted(kept)
