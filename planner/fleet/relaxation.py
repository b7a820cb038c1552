"""Why no fleet fits: the limits that must give way, and by how much, weighed in dollars.

The weights say what one unit of each limit costs the user in effort; the default is derived from the
question's own prices (see `FleetWeights`). The answer names a fleet; relaxing the limits to what that fleet
uses makes the question feasible; tests prove that by solving it again.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.fleet.greedy import reachable_work
from planner.fleet.model.build import build_fleet, solution_to_busy, solution_to_counts
from planner.fleet.model.prepared import Prepared, Total, prepare
from planner.fleet.question import SHARES, Excess, FleetInput, violations
from planner.fleet.solve import SHORT, solve_fleet
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.elastic import least_violation
from solvers.search.search import Clock

LITTLE = 0.01  # of the budget
HARD = ("max_units", "capacity_limit")  # what the market has cannot be asked for


@dataclass(frozen=True)
class FleetWeights:
    """What giving way costs, in USD; None takes the default named.

    With P the cost of the whole requirement at the median price per work, and c the median worker's cost:

    Attributes:
        throughput: for delivering none of the requirement (default 3 P; missing 1 % weighs 3 % of P).
        budget: per dollar over budget (default 1).
        quota: per quota unit more (default a quarter of the median cost per quota unit).
        total_units: per worker more than `max_total_units` (default c / 4).
        memory: per GiB short (default half the median cost per GiB).
        share: for exceeding any share by the whole requirement (default P / 2).
        region: per region more than `max_regions` (default P / 10).
    """

    throughput: float | None = None
    budget: float | None = None
    quota: float | None = None
    total_units: float | None = None
    memory: float | None = None
    share: float | None = None
    region: float | None = None


@dataclass(frozen=True)
class FleetExplanation:
    """Limits to relax.

    Attributes:
        relaxations: limits with what the nearest fleet uses (shares as 0..1); empty when nothing helps.
        counts: that fleet, workers per key.
        weight_usd: weighted effort of the relaxations.
        status: OPTIMAL or FEASIBLE when found; INFEASIBLE when capacity alone rules every fleet out.
        solver_fault: a fleet exists that meets every limit: an earlier "infeasible" was wrong.
    """

    relaxations: tuple[Excess, ...]
    counts: Mapping[Hashable, int]
    weight_usd: float
    status: Status
    solver_fault: bool = False


def explain_infeasible_fleet(
    fleet: FleetInput,
    weights: FleetWeights | None = None,
    options: SolveOptions | None = None,
    *,
    worth: float = 0.0,
    enough_usd: float | None = None,
) -> FleetExplanation:
    """Name a light set of limits of `fleet`, and amounts, that must give way for a fleet to fit.

    Where the budget alone is short by little, that is the set: nobody looks for less. With `worth` it is not proven to
    be the least.

    Args:
        fleet: the question.
        weights: of its limits.
        options: how to solve; the time limit is for all of it.
        worth: part of its weight by which another set must be lighter than more budget alone to be worth a search.
        enough_usd: a budget with which a plan is known; by default what the cheapest fleet costs.
    """
    offers = _unlimited(fleet)
    if not len(offers.keep):
        return FleetExplanation((), {}, math.inf, Status.INFEASIBLE)
    if enough_usd is not None and fleet.budget_usd is not None and enough_usd <= fleet.budget_usd:
        return FleetExplanation((), {}, 0.0, Status.FEASIBLE, solver_fault=True)
    rows = _row_weights(offers, weights or FleetWeights())
    throughput = rows.pop("throughput")
    wishes = options or SolveOptions()
    clock = Clock(wishes.time_limit_s)

    def left() -> SolveOptions:
        return replace(wishes, time_limit_s=clock.for_next_s())

    more = _more_workers(offers, rows, throughput, left())
    if more is not None:
        return more
    over = _over_budget(fleet, rows["budget"], left(), enough_usd)
    if (
        over is not None
        and fleet.budget_usd
        and over.weight_usd <= LITTLE * rows["budget"] * fleet.budget_usd
    ):
        return over
    problem = build_fleet(fleet, prepared=offers)
    most = math.inf if over is None else over.weight_usd
    found = least_violation(problem, rows, {Total(): throughput}, options=left(), below=most, worth=worth)
    if not found.solution.has_point or not found.weighted < most:
        return over or FleetExplanation((), {}, math.inf, found.solution.status)
    known = set(fleet.keys)
    counts = {key: count for key, count in solution_to_counts(found.solution).items() if key in known}
    busy = solution_to_busy(fleet, found.solution)
    return _explained(fleet, counts, busy, found.weighted, found.solution.status)


def _over_budget(
    fleet: FleetInput, usd_each: float, options: SolveOptions, enough_usd: float | None
) -> FleetExplanation | None:
    """The cheapest fleet where only the budget gives way; None where there is none, or no budget, or one within it.

    What it costs is not proven to be the least: the search for lighter sets that follows looks for cheaper fleets too.
    """
    budget = fleet.budget_usd
    if budget is None or math.isnan(budget):
        return None
    if enough_usd is not None:
        more = Excess("budget_usd", "", enough_usd, budget)
        return FleetExplanation((more,), {}, (enough_usd - budget) * usd_each, Status.FEASIBLE)
    free = solve_fleet(replace(fleet, budget_usd=None), options, exact=False, prove=False)
    if not free.has_plan or free.objective_usd <= budget:
        return None
    weight = (free.objective_usd - budget) * usd_each
    return _explained(fleet, dict(free.counts), free.busy, weight, free.status)


def _more_workers(
    offers: Prepared, rows: Mapping[str, float], throughput: float, options: SolveOptions
) -> FleetExplanation | None:
    """The fewest workers beyond their limit with which a fleet keeps all else, where nothing lighter can do; else None.

    What so many workers can do at most leaves some of the work (`reachable_work`). It has to be given up, or go beyond
    shares: taking from each share what is beyond it leaves a fleet that keeps them. So less work and wider shares weigh
    at least the lightest of them for all that is left, with each number of workers in between.
    """
    fleet, allowed = offers.source, offers.source.max_total_units
    if allowed is None:
        return None
    lightest = min(throughput, *(weight for name, weight in rows.items() if name.endswith("_share")))
    more, other = 0, math.inf
    while (missing := 1.0 - reachable_work(offers, allowed + more)) > SHORT:
        other = min(other, more * rows["total_units"] + missing * lightest)
        more += 1
        if more * rows["total_units"] > other:
            return None
    if not more:
        return None
    any_fleet = replace(options, gap=1.0)  # of so many workers: what it costs is no matter
    found = solve_fleet(replace(fleet, max_total_units=allowed + more), any_fleet, exact=False)
    weight = more * rows["total_units"]
    return (
        _explained(fleet, dict(found.counts), found.busy, weight, Status.OPTIMAL) if found.has_plan else None
    )


def _explained(
    fleet: FleetInput,
    counts: dict[Hashable, int],
    work: Mapping[Hashable, float],
    weight_usd: float,
    status: Status,
) -> FleetExplanation:
    """What a fleet breaks."""
    counts = _without_idle(fleet, counts, work)
    units = fleet.units(counts)
    busy = fleet.units({key: amount for key, amount in work.items() if key in counts})
    total = float(busy @ fleet.throughput)
    excesses = violations(fleet, units, busy if fleet.part_time else None)
    broken = [excess for excess in excesses if excess.limit_name not in HARD]
    relaxations = tuple(_as_share(excess, fleet, total) for excess in broken)
    return FleetExplanation(relaxations, counts, weight_usd, status, solver_fault=not relaxations)


def _without_idle(
    fleet: FleetInput, counts: dict[Hashable, int], work: Mapping[Hashable, float]
) -> dict[Hashable, int]:
    """Leave out workers without work: they cost nothing in the softened model, yet count as nodes and regions."""
    if not fleet.part_time or fleet.min_total_memory_gib:
        return counts
    needed = {key: min(count, math.ceil(work.get(key, 0.0) - 1e-6)) for key, count in counts.items()}
    return {key: count for key, count in needed.items() if count > 0}


def _unlimited(fleet: FleetInput) -> Prepared:
    """The offers with bounds from capacity alone, so that no limit that may give way hides in a bound."""
    loose = replace(
        fleet,
        quota_limit=np.full(len(fleet.quota_limit), np.nan),
        uses=(),
        max_spot_share=None if fleet.max_spot_share is None else 1.0,
        max_share_per_region=None,
        max_share_per_provider=None,
        max_share_per_offer=None,
        max_regions=None,
        max_total_units=None,
        budget_usd=None,
    )
    return replace(prepare(loose, drop_dominated=False), source=fleet)


def _row_weights(offers: Prepared, weights: FleetWeights) -> dict[str, float]:
    """Weight per row block of the fleet model (and `throughput`), defaults filled from the prices."""
    cost = np.asarray(offers.of("cost_usd"), dtype=np.float64)
    worker = float(np.median(cost)) or 1.0
    whole = _median_ratio(cost, offers.work) or worker
    quota = _median_ratio(cost, np.asarray(offers.of("quota_units"), dtype=np.float64)) or worker
    uses = [_median_ratio(cost, use.in_full[offers.keep]) for use in offers.source.uses]
    used = float(np.median(uses)) if uses else worker
    memory = _median_ratio(cost, np.asarray(offers.of("memory_gib"), dtype=np.float64)) or worker

    def chosen(value: float | None, default: float) -> float:
        return default if value is None else value

    share = chosen(weights.share, whole / 2)
    return {
        "throughput": chosen(weights.throughput, 3 * whole),
        "budget": chosen(weights.budget, 1.0),
        "quota": chosen(weights.quota, quota / 4),
        "uses": chosen(weights.quota, used / 4),
        "total_units": chosen(weights.total_units, worker / 4),
        "memory": chosen(weights.memory, memory / 2),
        "spot_share": share,
        "region_share": share,
        "provider_share": share,
        "offer_share": share,
        "max_regions": chosen(weights.region, whole / 10),
    }


def _median_ratio(top: np.ndarray[tuple[int], np.dtype[np.float64]], bottom: object) -> float:
    below = np.asarray(bottom, dtype=np.float64)
    known = below > 0
    return float(np.median(top[known] / below[known])) if known.any() else 0.0


def _as_share(excess: Excess, fleet: FleetInput, total: float) -> Excess:
    if excess.limit_name not in SHARES or total <= 0:
        return excess
    return replace(excess, used=excess.used / total, limit=float(getattr(fleet, excess.limit_name)))
