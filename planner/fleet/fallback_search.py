"""The cheapest fleet of workers of one spot offer that fall back on on-demand.

Offers are looked at in the order of what their work costs at least, in blocks, until no other can be cheaper than the
best fleet known. Of each, the numbers of workers compared are all up to `_EACH` and then about every tenth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.starts import fallback_had
from planner.candidates.ways.chances import in_time_by_either
from planner.fleet.chance import progress_of
from planner.fleet.fallback import Fleets, least_usd, may_fall_back, shares_of, ways_of
from planner.fleet.fallback_mix import (
    bill_of_fallback,
    mix_of_fallback,
    spot_alone_mix,
    workers_of_fallback,
)
from planner.market.obtainable import instances_at_once
from planner.market.quota import draws_on
from planner.records import record

if TYPE_CHECKING:
    from decimal import Decimal

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.fleet.fallback import Ways
    from planner.fleet.rounds import Round


_BLOCK = 32  # offers looked at together
_EACH, _STEP = 32, 1.1  # numbers of workers that are all compared; factor between those beyond
_MOST = 10_000  # workers
_CENT = 0.01
MOST_JUDGED = 200  # fleets that on-demand alone does not make sure enough, whose chance on spot is worked out
_SLIP = 1.0 + 1e-9  # relative, of amounts


@record(frozen=True)
class Chances:
    """Of a fleet with a fall-back: to be in time, on spot alone, and that its fall-back comes in time."""

    meet: float
    alone: float
    had: float


@record(frozen=True)
class Cheapest:
    """The cheapest fleet, one row, None without any; what those cost at least that were left out unjudged, USD."""

    fleet: Fleets | None
    unjudged_usd: float = np.inf


def cheapest_with_fallback(
    asked: Round, below_usd: float, *, within_budget: bool = True, outside: int | None = None
) -> Cheapest:
    """The cheapest fleet that meets every limit and the deadline with the confidence asked.

    Args:
        asked: the question, its workers without a reserve.
        below_usd: a cost that it must be below; infinite where no other fleet is known.
        within_budget: the budget is one of the limits.
        outside: a region, none of whose offers is used.
    """
    search = asked.found
    if not may_fall_back(search):
        return Cheapest(None)
    ways = ways_of(search, asked.limit)
    if outside is not None:
        place = search.context.market.region_of_offer[ways.workers.rows]
        ways = ways.take(np.flatnonzero(place != outside))
    runs = asked.work / search.context.asked.job.total_units
    if not len(ways.on_demand):
        return Cheapest(None)
    most, runs = most_workers(asked, ways), round(runs) if runs > 1 else runs
    budget = search.context.asked.workload.constraints.budget_usd if within_budget else None
    return _least_of(asked, ways, most, runs, below_usd, budget)


def _least_of(
    asked: Round, ways: Ways, most: Floats, runs: float, below_usd: float, budget: Decimal | None
) -> Cheapest:
    """The cheapest fleet of any of the ways; `most`: workers of each; `runs`: of all together; `budget`: USD."""
    from planner.fleet.rounds import confidence_of

    search, floor = asked.found, least_usd(asked.found, ways.workers, runs)
    order = np.argsort(floor, kind="stable")
    order = order[(most >= 1)[order]]
    confidence = confidence_of(search.context.asked, search.context.dates)
    # what falls due of spot and on-demand is what they cost
    best, least = None, below_usd if budget is None else min(below_usd, float(budget) + _CENT)
    left, unjudged = MOST_JUDGED, np.inf
    for first in range(0, len(order), _BLOCK):
        block = order[first : first + _BLOCK]
        block = block[floor[block] < least]
        if not len(block):
            break
        all_runs = np.full(len(block), runs)
        fleets = fleets_of(asked, ways.take(block), most[block], all_runs, whole=runs > 1)
        fleets = fleets.take(np.flatnonzero(are_allowed(asked, fleets)))
        cost = fleets.cost_usd(search)
        for at in np.lexsort((search.context.market.id_rank[fleets.ways.workers.rows], cost)).tolist():
            if not cost[at] < least:
                break
            one = fleets.take(np.asarray([at]))
            sure = bool(one.most.sure[0] >= confidence)
            if not sure and not left:
                unjudged = min(unjudged, float(cost[at]))
            elif not sure:
                left -= 1
                sure = chances_of_fleet(asked, one).meet >= confidence
            if sure and (budget is None or _is_within_budget(asked, one)):
                best, least = one, float(cost[at])
                break
    return Cheapest(best, unjudged)


def most_workers(asked: Round, ways: Ways) -> Floats:
    """Workers of each way that nodes, capacity and quotas of spot and of on-demand allow, shape `(n_ways,)`.

    All of them may be on spot at once, and all on on-demand; no worker is on both.
    """
    context, workers = asked.found.context, ways.workers
    limits = context.asked.workload.constraints
    held = instances_at_once(context.market.offer_set, limits.obtainable)
    most = np.minimum(limits.max_nodes / workers.nodes, _MOST)
    for rows in (workers.rows, ways.on_demand):
        most = np.fmin(most, held[rows] / workers.nodes)
        for limit, units in draws_on(limits.quota, context.market.offer_set, context.market.tariffs):
            each = units[rows] * workers.nodes
            most = np.where(each > 0, np.minimum(most, limit / np.where(each > 0, each, 1.0)), most)
    return np.floor(most + 1e-9)


def fleets_of(asked: Round, ways: Ways, most: Floats, runs: Floats, *, whole: bool) -> Fleets:
    """Fleets of each way in every number of workers compared; those that are not in time are left out.

    Args:
        asked: the question.
        ways: of workers, shape `(n_ways,)`; a way may stand there once for each number of runs.
        most: workers of each.
        runs: of all workers of each together.
        whole: nobody divides a run.
    """
    way, number = _in_numbers(np.minimum(most, runs) if whole else most)
    few = np.floor(runs[way] / number) if whole else runs[way] / number
    more = runs[way] - few * number if whole else np.zeros(len(number))
    larger = np.where(more > 0, few + 1, few)
    fits = np.flatnonzero(_has_time(asked.found, ways.take(way), larger))
    way, number, few, larger, more = way[fits], number[fits], few[fits], larger[fits], more[fits]
    both, each = np.tile(way, 2), np.concatenate([few, larger])
    size = distinct(each)[2]
    _, first, code = distinct(ways.workers.at[both] * len(each) + size)
    shares = shares_of(asked.found, ways.take(both[first]), each[first])
    mine, other = code[: len(way)], code[len(way) :]
    fits = np.flatnonzero(shares.possible[mine] & shares.possible[other])
    return Fleets(
        ways.take(way[fits]), number[fits], more[fits].astype(np.int64), shares.take(mine[fits]),
        shares.take(other[fits]),
    )  # fmt: skip


def _in_numbers(most: Floats) -> tuple[Ints, Ints]:
    """Each way, by its place, in every number of workers compared up to `most` of it, and that number."""
    numbers, count = list(range(1, _EACH + 1)), _EACH * _STEP
    while count < most.max(initial=0.0):
        numbers.append(int(count))
        count *= _STEP
    grid = np.concatenate([np.tile(numbers, (len(most), 1)), most[:, None]], axis=1).astype(np.int64)
    fits = (grid >= 1) & (grid <= most[:, None])
    fits[:, -1] &= ~np.isin(most, numbers)
    way, column = np.nonzero(fits)
    return way, grid[way, column]


def _has_time(search: CandidateSearch, ways: Ways, runs: Floats) -> Bools:
    """Whether workers of `ways` have time for the bare work of `runs` runs each, shape `(n,)`."""
    deadline, workers = search.context.dates.deadline_hours, ways.workers
    assert deadline is not None
    hours = search.candidates.work_hours[workers.at] * runs + workers.fixed_hours
    return np.asarray(hours <= deadline * _SLIP, dtype=np.bool_)


def chances_of_fleet(asked: Round, one: Fleets) -> Chances:
    """Chances of a fleet, one row: to be in time, all workers do their own share by on-demand, or all work on spot.

    Where the fall-back comes in time, all meet the deadline as surely as on-demand does the larger share, whatever the
    luck on spot: the error of the speed is common to all. Where it does not, they go on on spot and take each other's
    runs (`planner.fleet.chance`).
    """
    search, workers = asked.found, one.ways.workers
    had = float(fallback_had(search.candidates, one.ways.on_demand, workers.nodes)[0])
    deadline = search.context.dates.deadline_hours
    assert deadline is not None
    alone = progress_of(search, spot_alone_mix(asked, one)).chance(deadline, asked.work)
    surely = one.most.sure / max(had, 1e-300)
    link = search.context.asked.assumptions.spot_zone_correlation_ratio  # both are in one region
    meet = in_time_by_either(surely, alone, np.asarray([had]), link)
    return Chances(max(alone, float(meet[0])), alone, had)


def are_allowed(asked: Round, fleets: Fleets) -> Bools:
    """Whether fleets keep every limit but the budget, on spot and on on-demand, shape `(n_fleets,)`."""
    workers, count = workers_of_fallback(asked, fleets), fleets.count.astype(np.float64)
    fits = np.ones(len(count), dtype=np.bool_)
    for rows in (workers.rows, fleets.ways.on_demand):
        question = asked.ask(replace(workers, rows=rows))
        fits &= count <= question.max_units * _SLIP
        fits &= count * question.memory_gib >= (question.min_total_memory_gib or 0.0) / _SLIP
        for use in question.uses:
            fits &= use.in_full * count <= use.limit * _SLIP
    return fits


def _is_within_budget(asked: Round, one: Fleets) -> bool:
    from planner.fleet.rounds import over_budget

    due = bill_of_fallback(asked.found, mix_of_fallback(asked, one))[1]
    return over_budget(asked.found.context.asked, due) <= 0
