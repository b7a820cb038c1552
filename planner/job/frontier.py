"""The exact cost/time frontier of one synchronous job: for every finishing time the cheapest way to keep it.

The time of a candidate is the earliest deadline it keeps with `deadline_confidence` (never less than its expected
hours), so that a point of the frontier is what `optimize` answers for that deadline. Spot with a fall-back or in
several zones is asked at chosen deadlines (`candidates.ways.front`). Deadline and budget of the workload are set
aside; every other limit holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.store.load import load_catalog
from planner.candidates.finish import sure_hours, uninterrupted_hours
from planner.candidates.grid import Candidates, build_candidates, concat_candidates
from planner.candidates.limits import mark_offers
from planner.candidates.search import MARGIN_RATIO, coarse_node_counts, estimate_all, estimate_for, with_mixes
from planner.errors import InputError
from planner.inputs.resolve import resolve_times
from planner.inputs.tasks import expand_task
from planner.job.answer import check_age, prepare, with_checkpoint
from planner.job.summary import summarize
from planner.plan.model import Summary
from planner.records import record
from solvers.pareto import dominated, pareto_front

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from catalogs.table import Table
    from planner.candidates.context import Context
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.job.answer import Options

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

# Spot candidates whose finishing time is worked out at once; the cheapest first, so that later ones fall out.
_BLOCK = 128


@record(frozen=True)
class Point:
    """One point: kept from `deadline_hours` on.

    Attributes:
        deadline_hours: earliest deadline, hours from the start, that is kept with the asked confidence.
        best: the candidate, with its expected hours and cost.
        within_deadline, within_budget: whether the workload's own limits allow it; None where it has none.
    """

    deadline_hours: float
    best: Summary
    within_deadline: bool | None
    within_budget: bool | None


@record(frozen=True)
class Frontier:
    """All points, by rising time and falling cost.

    Attributes:
        confidence: probability with which a point's deadline is kept.
        candidates: feasible candidates compared.
        note: which node counts were looked at.
    """

    workload: str
    confidence: float
    points: tuple[Point, ...]
    candidates: int
    note: str


def unlimited(workload: Workload) -> Workload:
    """The workload without deadline and budget.

    Raises:
        InputError: the workload is a fleet, whose frontier is a different question.
    """
    if workload.kind == "fleet":
        raise InputError(
            "the cost/time frontier is for one synchronous job: a fleet has no single finishing time"
        )
    limits = workload.constraints.model_copy(update={"deadline": None, "budget_usd": None})
    return workload.model_copy(update={"constraints": limits})


def frontier(loaded: LoadedWorkload, options: Options, *, catalog_dir: Path | None = None) -> Frontier:
    """Find the cost/time frontier of a workload.

    Args:
        loaded: the workload file.
        options: flags, as of `planner optimize`.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload is wrong in a way only the catalog can tell, or a fleet.
        CatalogError: the catalog cannot be used.
    """
    catalog = load_catalog(catalog_dir, as_of=options.as_of)
    check_age(catalog, options)
    own = next((v.workload for v in expand_task(loaded.workload) if v.chosen), loaded.workload)
    context = prepare(loaded, unlimited(own), catalog, options)
    counts = coarse_node_counts(own.constraints.max_nodes)
    shapes = estimate_all(context, counts)
    return find_frontier(with_checkpoint(context, shapes), own, shapes, counts)


def find_frontier(context: Context, own: Workload, shapes: Table, counts: Sequence[int]) -> Frontier:
    """The same from a prepared run.

    Args:
        context: the run of the workload without deadline and budget.
        own: the workload as it was given.
        shapes: output of `estimate_all` for `counts`.
        counts: node counts looked at for all hardware, ascending; the last is the limit.
    """
    offer_bits = mark_offers(context.offer_set, context.workload.constraints, context.job.model.family)
    made = build_candidates(context, offer_bits, shapes)
    front, times = _front(context, made)
    between = sorted(set(range(1, counts[-1] + 1)) - set(counts))
    note = f"node counts {counts[0]}..{counts[-1]}: {len(counts)} sizes for all hardware"
    offers = _hopeful_offers(context, made, front, times)
    if between and len(offers):
        more = build_candidates(context, offer_bits, estimate_for(context, offers, between), offers)
        made = concat_candidates([made, more])
        front, times = _front(context, made)
        note += f", all sizes for {len(offers)} offers that could do better between"
    mixed = with_mixes(context, made, offer_bits, counts[-1])
    if mixed is not made:
        made = mixed
        front, times = _front(context, made)
        note += f"; {len(made.offer) - made.n_single:,} clusters bought in parts"
    if (context.is_spot & (offer_bits == 0)).any():
        from planner.candidates.ways.front import add_turn_points

        made, asked = add_turn_points(context, made, offer_bits, front, times)
        front, times = _joined(made, front, times, asked)
        note += f"; spot with a fall-back or in several zones at {len(asked)} deadlines"
    points = [
        _point(context, own, made, int(at), float(hours)) for at, hours in zip(front, times, strict=True)
    ]
    confidence = context.workload.constraints.deadline_confidence
    return Frontier(own.name, confidence, tuple(points), int((made.bits == 0).sum()), note)


def _front(context: Context, made: Candidates) -> tuple[IntArray, FloatArray]:
    """Positions on the front and the hours each needs to be sure enough.

    Steady capacity is in closed form. Spot is worked out where it could still be on the front: not before its work
    without any interruption is done.
    """
    feasible = np.flatnonzero(made.bits == 0)
    hours = np.full(len(made.bits), np.inf)
    spot = context.is_spot[made.offer[feasible]]
    steady = feasible[~spot]
    level = context.workload.constraints.deadline_confidence
    hours[steady] = sure_hours(context, made, steady, level)
    waiting = feasible[spot]
    waiting = waiting[np.argsort(made.cost_usd[waiting], kind="stable")]
    least = uninterrupted_hours(made, waiting, level)
    while len(waiting):
        front = pareto_front(hours, made.cost_usd)
        open_ = ~dominated(hours[front], made.cost_usd[front], least, made.cost_usd[waiting])
        waiting, least = waiting[open_], least[open_]
        block, waiting, least = waiting[:_BLOCK], waiting[_BLOCK:], least[_BLOCK:]
        if len(block):
            hours[block] = sure_hours(context, made, block, level)
    front = pareto_front(hours, made.cost_usd)
    return front, hours[front]


def _joined(
    made: Candidates, front: IntArray, times: FloatArray, asked: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The front of the candidates on it so far and of those that run in turn, which are kept from `asked` on."""
    at = np.concatenate([front, np.arange(made.n_at_once, len(made.offer))])
    hours = np.concatenate([times, asked])
    best = pareto_front(hours, made.cost_usd[at])
    return at[best], hours[best]


def _hopeful_offers(context: Context, made: Candidates, front: IntArray, times: FloatArray) -> IntArray:
    """Offers that, a little better between two sizes than at them, would be on the front.

    Improving time and cost of an offer's coarse candidates by `MARGIN_RATIO` must not leave all of them dominated.
    """
    feasible = np.flatnonzero(made.bits == 0)
    level = context.workload.constraints.deadline_confidence
    least = uninterrupted_hours(made, feasible, level) * (1.0 - MARGIN_RATIO)
    cost = made.cost_usd[feasible] * (1.0 - MARGIN_RATIO)
    open_ = ~dominated(times, made.cost_usd[front], least, cost)
    return np.unique(made.offer[feasible[open_]])


def _point(context: Context, own: Workload, made: Candidates, at: int, hours: float) -> Point:
    deadline, budget = own.constraints.deadline, own.constraints.budget_usd
    kept = paid = None
    if deadline is not None:
        end = resolve_times(own, context.now).deadline
        assert end is not None
        kept = hours <= (end - context.start).total_seconds() / 3600.0
    if budget is not None:
        paid = bool(made.cash_usd[at] <= float(budget))
    return Point(hours, summarize(context, made, at, None), kept, paid)


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """At most `limit` points that tell the most: both ends, then always the one farthest from those taken.

    Args:
        points: all points, by time; distances are on log-log scales of time and cost.
        limit: how many to keep, at least 2.
    """
    if len(points) <= limit:
        return list(points)
    place = np.log([[point.deadline_hours, max(float(point.best.cost_usd), 1e-9)] for point in points])
    place /= np.maximum(np.ptp(place, axis=0), 1e-12)
    kept = [0, len(points) - 1]
    while len(kept) < limit:
        away = np.min([np.hypot(*(place - place[k]).T) for k in kept], axis=0)
        kept.append(int(np.argmax(away)))
    return [points[k] for k in sorted(kept)]
