"""Divisible work: a mix of offers, chosen by the MILP, for `kind: fleet`.

A worker is `fleet.nodes_per_run` instances of one offer; workers share the work and are all used for one period. Its
length is chosen first (a short list of periods is compared with a fast heuristic), then the mix is proven for it, and
the period is cut to the moment the work ends, with the mix proven again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates import Candidates, build_candidates
from planner.errors import TimeLimitError
from planner.fleet_plan import Mix, fleet_plan, infeasible_fleet
from planner.formulation.fleet import FleetInput, FleetResult, greedy_fleet, solve_fleet
from planner.limits import throughput_floor
from planner.offers import mark_offers
from planner.quota import needed_quota
from planner.search import Found, estimate_all
from solvers.options import SolveOptions
from solvers.solution import Status

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.context import Context
    from planner.formulation.fleet_input import Excess
    from planner.optimize import Options
    from planner.plan import Plan

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

# Parts of the time available that are compared as working periods.
PERIODS = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125, 0.0625, 0.03125)
_ROUNDS = 3
# The period is cut, and the mix proven again, while that saves at least this part of it.
SHORTEN_RATIO = 0.01


@dataclass(frozen=True, eq=False)
class Pool:
    """Offers that may serve as workers, positions into the candidates; shape `(n_options,)`."""

    candidates: Candidates
    at: IntArray
    work: float
    limit_hours: float


def plan_fleet(context: Context, options: Options) -> Plan:
    """Find the cheapest mix of workers.

    Raises:
        TimeLimitError: no mix was found within the time limit, and none was proven impossible.
    """
    begin = time.perf_counter()
    context, found = _search(context)
    pool = _pool(context, found)
    if not len(pool.at):
        return infeasible_fleet(context, found, [], time.perf_counter() - begin)
    period = _best_period(context, pool)
    result, question = _solve(context, pool, period, options)
    for _ in range(_ROUNDS):
        ends = _ends(context, pool, result, period)
        if ends > period * (1 - SHORTEN_RATIO):
            break
        again, tighter = _solve(context, pool, ends, options)
        if not again.has_plan or again.objective_usd >= result.objective_usd:
            break
        result, question, period = again, tighter, ends
    seconds = time.perf_counter() - begin
    if not result.has_plan:
        if result.status is Status.NO_SOLUTION:
            raise TimeLimitError(f"no fleet found within {options.time_limit_s:g} s; raise --time-limit")
        return infeasible_fleet(context, found, _reasons(question), seconds)
    counts = {int(key): count for key, count in result.counts.items() if isinstance(key, int)}
    mix = Mix(counts, period, result, _cautious_ratio(context, found.candidates), seconds)
    return fleet_plan(context, found, mix)


def _search(context: Context) -> tuple[Context, Found]:
    from dataclasses import replace

    fleet, limits = context.workload.fleet, context.workload.constraints
    counts = (1 if fleet is None else fleet.nodes_per_run,)
    shapes = estimate_all(context, counts)
    if not context.job.checkpoint_gib:
        context = replace(
            context, job=replace(context.job, checkpoint_gib=float(shapes["checkpoint_gib"][0]))
        )
    bits = mark_offers(context.offer_set, limits, context.job.model.family)
    return context, Found(build_candidates(context, bits, shapes), bits, counts, 0)


def _pool(context: Context, found: Found) -> Pool:
    """Workers that can do one run in time, the total work, and the hours there are."""
    fleet = context.workload.fleet
    work = context.job.total_units * (1 if fleet is None else fleet.runs)
    deadline = context.deadline_hours
    if deadline is None:
        # without a deadline the throughput floor sets the length of the work
        deadline = work / throughput_floor(context) / 3600.0
    made = found.candidates
    busy = made.waiting_hours + made.fixed_hours
    return Pool(made, np.flatnonzero((made.bits == 0) & (busy < deadline)), work, deadline)


def _cautious_ratio(context: Context, made: Candidates) -> FloatArray:
    """Step time at the confidence asked for, over the middle of the prediction, per candidate."""
    z = NormalDist().inv_cdf(context.workload.constraints.deadline_confidence)
    return np.asarray(np.exp(np.maximum(z, 0.0) * made.sigma), dtype=np.float64)


def worker_units(
    context: Context, made: Candidates, at: IntArray, period: float, *, cautious: bool
) -> FloatArray:
    """Tokens or samples one worker does in `period` hours, waits, restarts and evaluation taken off."""
    available = np.maximum(period - made.waiting_hours[at] - made.fixed_hours[at], 0.0)
    course = made.hours[at] - made.waiting_hours[at] - made.fixed_hours[at]
    slow = _cautious_ratio(context, made)[at] if cautious else 1.0
    return np.asarray(context.job.total_units * available / (course * slow), dtype=np.float64)


def worker_hours(made: Candidates, at: IntArray, period: float) -> FloatArray:
    """Hours one worker is paid for in `period`: spot is not paid while it waits."""
    available = np.maximum(period - made.waiting_hours[at] - made.fixed_hours[at], 0.0)
    course = made.hours[at] - made.waiting_hours[at] - made.fixed_hours[at]
    paid = made.paid_hours[at] - made.fixed_hours[at]
    return np.asarray(made.fixed_hours[at] + available * paid / course, dtype=np.float64)


def _question(context: Context, pool: Pool, period: float) -> FleetInput:
    made, at = pool.candidates, pool.at
    rows, nodes = made.offer[at], made.nodes[at]
    units = worker_units(context, made, at, period, cautious=True)
    money = context.costs.evaluate(rows, nodes, worker_hours(made, at, period), np.full(len(at), period))
    keep = np.flatnonzero((units > 0) & np.isfinite(money.cost_usd))
    rows, nodes, at = rows[keep], nodes[keep], at[keep]
    region, names, first = _codes([str(p) for p in _places(context, rows)])
    place_usd = (money.cost_usd - money.worker_usd)[keep]
    limits, fleet = context.workload.constraints, context.workload.fleet
    wishes: dict[str, Any] = {} if fleet is None else {
        "max_spot_share": fleet.max_spot_share, "max_share_per_region": fleet.max_share_per_region,
        "max_share_per_offer": fleet.max_share_per_offer, "max_regions": fleet.max_regions,
    }  # fmt: skip
    types, kind = context.offer_set.types, context.offer_set.type_of_offer[rows]
    memory = types["accelerator_memory_gib"][kind] * types["accelerator_count"][kind] * nodes
    return FleetInput(
        keys=tuple(at.tolist()), cost_usd=money.worker_usd[keep], throughput=units[keep] / period,
        required_throughput=pool.work / period, max_units=np.floor(context.offer_set.capacity[rows] / nodes),
        region=region, provider=context.provider_of_offer[rows], is_spot=context.is_spot[rows],
        memory_gib=memory.astype(np.float64),
        region_cost_usd=place_usd[first], region_names=names,
        min_total_memory_gib=limits.min_total_memory_gib,
        max_total_units=limits.max_nodes // int(nodes.max(initial=1)),
        budget_usd=None if limits.budget_usd is None else float(limits.budget_usd),
        **wishes, **_quotas(context, rows, nodes), **_shared_capacity(context, rows, nodes),
    )  # fmt: skip


def _places(context: Context, rows: IntArray) -> list[str]:
    offers = context.offer_set.offers
    provider, region = offers["provider"], offers["region"]
    return [f"{provider[row]}/{region[row]}" for row in rows.tolist()]


def _codes(names: list[str]) -> tuple[IntArray, tuple[str, ...], IntArray]:
    """Codes of `names`, the distinct names, and the first position of each."""
    distinct, first, codes = np.unique(np.asarray(names), return_index=True, return_inverse=True)
    return codes.astype(np.int64), tuple(distinct.tolist()), first


def _shared_capacity(context: Context, rows: IntArray, nodes: IntArray) -> dict[str, Any]:
    """Rows that are the same offer twice share one capacity."""
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    group, keys = context.offer_set.offers.take(rows).distinct_keys(*names)
    if len(keys) == len(rows):
        return {}
    limit = np.full(len(keys), np.inf)
    np.minimum.at(limit, group, np.floor(context.offer_set.capacity[rows] / nodes))
    return {"capacity_group": group, "capacity_limit": limit}


def _quotas(context: Context, rows: IntArray, nodes: IntArray) -> dict[str, Any]:
    """Quota groups from the workload's declared limits; undeclared quotas are not enforced."""
    if not context.workload.constraints.quota:
        return {}
    groups: dict[tuple[str, str, str], int] = {}
    limits: list[float] = []
    group = np.full(len(rows), -1, dtype=np.int64)
    units = np.ones(len(rows))
    for position, row in enumerate(rows.tolist()):
        need = needed_quota(context, row, int(nodes[position]))
        if need.limit is None:
            continue
        offers = context.offer_set.offers
        key = (str(offers["provider"][row]), str(offers["region"][row]), need.name)
        if key not in groups:
            groups[key] = len(groups)
            limits.append(need.limit)
        group[position], units[position] = groups[key], need.needed
    names = tuple("/".join(key) for key in groups)
    return {
        "quota_group": group,
        "quota_units": units,
        "quota_limit": np.asarray(limits),
        "quota_names": names,
    }


def _best_period(context: Context, pool: Pool) -> float:
    """The period whose heuristic mix is cheapest; the whole time available where no heuristic finds one."""
    best, cheapest = pool.limit_hours, np.inf
    for part in PERIODS:
        period = pool.limit_hours * part
        question = _question(context, pool, period)
        counts = greedy_fleet(question) if question.n_options else None
        if counts:
            cost = question.cost_of(question.units(counts))
            if cost < cheapest * (1 - 1e-9):
                best, cheapest = period, cost
    return best


def _solve(context: Context, pool: Pool, period: float, options: Options) -> tuple[FleetResult, FleetInput]:
    question = _question(context, pool, period)
    wishes = SolveOptions(gap=options.gap, time_limit_s=options.time_limit_s, backend=options.backend)
    return solve_fleet(question, wishes), question


def _ends(context: Context, pool: Pool, result: FleetResult, period: float) -> float:
    """When the mix has done the work; a little later, so that rounding cannot make it impossible."""
    if not result.has_plan:
        return period
    at = np.asarray([int(str(key)) for key in result.counts], dtype=np.int64)
    count = np.asarray(list(result.counts.values()), dtype=np.float64)
    done = worker_units(context, pool.candidates, at, period, cautious=True)
    # every worker is in use at `period`, so one more hour shows what an hour is worth
    hourly = worker_units(context, pool.candidates, at, period + 1.0, cautious=True) - done
    spare = float(done @ count) - pool.work
    return min(period, (period - spare / float(hourly @ count)) * (1 + 1e-9))


def _reasons(question: FleetInput) -> list[Excess]:
    """The least set of limits that must give way, and by how much."""
    from planner.formulation.fleet_explain import explain_infeasible_fleet

    return list(explain_infeasible_fleet(question).relaxations) if question.n_options else []


__all__ = ["plan_fleet", "worker_hours", "worker_units"]
