"""Divisible work: a mix of offers, chosen by the MILP, for `kind: fleet`.

A worker is `fleet.nodes_per_run` instances of one offer. Workers share the work; each is paid for its fixed hours and
for the hours that it works, and a later deadline only lets it work longer: the least cost never rises with it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.constraints.registry import CONSTRAINTS
from planner.candidates.constraints.throughput import throughput_floor
from planner.candidates.engine import Engine, Found
from planner.candidates.limits import case_of
from planner.candidates.wanted import Wanted
from planner.errors import InputError, PlannerError, TimeLimitError
from planner.fleet.mix import Mix
from planner.fleet.plan import fleet_plan, infeasible_fleet
from planner.fleet.question import FleetInput
from planner.fleet.search import FleetResult
from planner.fleet.solve import solve_fleet
from planner.fleet.workers import Workers, build_workers, in_granules
from planner.inputs.faults import Fault
from planner.market.obtainable import instances_at_once
from solvers.problem.errors import BackendError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.asked.model import Asked, Dates
    from planner.asked.options import Options
    from planner.candidates.constraints.base import Use
    from planner.candidates.context import Context
    from planner.fleet.question import Excess
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.market.model import Market
    from planner.plan.model import Plan

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

# Asked again in whole granules of billing where rounding hours up adds more than this part of the bill.
ROUNDING_RATIO = 1e-3
_NEARBY = 200  # offers asked about again, beside those used
_ROUNDS = 4  # times a mix is held against its bill, which rounds hours up


def plan_fleet(
    loaded: LoadedWorkload,
    context: Context,
    options: Options,
    proven: list[tuple[FleetInput, FleetResult]] | None = None,
) -> Plan:
    """Find the cheapest mix of workers.

    Args:
        loaded: the file, for places in messages.
        context: the workload, offers and assumptions.
        options: gap, time limit, backend.
        proven: takes the question and answer that the plan's proof is about, where wanted.

    Raises:
        InputError: the workload asks what a fleet cannot answer, or the backend cannot be used.
        TimeLimitError: no mix was found within the time limit, and none was proven impossible.
    """
    _check_asked(loaded, context.asked.workload)
    try:
        return _plan(context, options, proven)
    except BackendError as error:
        raise InputError(f"--backend: {error}") from error


def _check_asked(loaded: LoadedWorkload, workload: Workload) -> None:
    """Refuse wishes that mean nothing for a fleet."""
    faults = []
    if workload.preferences.objective == "time":
        text = "a fleet is planned for cost: set an earlier constraints.deadline instead of objective time"
        faults.append(Fault(("preferences", "objective"), text))
    if workload.constraints.max_accelerators is not None:
        text = (
            "a fleet is limited by its nodes: set constraints.max_nodes, or allow fewer accelerators per node"
        )
        faults.append(Fault(("constraints", "max_accelerators"), text))
    if faults:
        raise loaded.error(faults)


def _plan(context: Context, options: Options, proven: list[tuple[FleetInput, FleetResult]] | None) -> Plan:
    begin = time.perf_counter()
    found = _candidates(context)
    context = found.context
    limit, work = _limit_hours(context.asked, context.dates), work_units(context.asked)
    workers = build_workers(found.candidates, limit)
    if not len(workers.at):
        return infeasible_fleet(found, [], time.perf_counter() - begin)
    question = _question(context, workers, work)
    result = _solve(question, options, options.time_limit_s)
    first, plans, charged, spared = result, [], False, 0.0
    if proven is not None and result.has_plan:
        proven.append((question, result))
    for _ in range(_ROUNDS):
        if not result.has_plan:
            break
        mix = _mix(workers, result, limit, work)
        mix = replace(mix, proof=first, gap=options.gap, seconds=time.perf_counter() - begin)
        plan = fleet_plan(found, mix)
        over = _over_budget(context.asked, plan)
        plans += [plan] if over <= 0 else []
        rounding = float(plan.total_usd) - result.objective_usd
        if over <= 0 and (charged or rounding <= ROUNDING_RATIO * float(plan.total_usd)):
            break
        if plans and result.termination is Termination.INTERRUPTED:
            break
        if charged:  # obligations may exceed what the job carries of them
            spared += over * (1 + 1e-6)
        else:
            workers = in_granules(*_nearby(workers, question, mix, everything=over > 0), work)
            charged = True
        left_s = options.time_limit_s - (time.perf_counter() - begin)
        if plans and left_s <= 0:
            break
        question = _question(context, workers, work, spared)
        result = _solve(question, options, max(left_s, 1.0))
    if plans:
        return min(plans, key=lambda plan: plan.total_usd)
    if result.status is Status.NO_SOLUTION:
        raise TimeLimitError(f"no fleet found within {options.time_limit_s:g} s; raise --time-limit")
    return infeasible_fleet(found, _reasons(question, result), time.perf_counter() - begin)


def _nearby(
    workers: Workers, question: FleetInput, mix: Mix, *, everything: bool
) -> tuple[Workers, IntArray, FloatArray]:
    """Workers to ask again about, which of them the mix uses, and the hours those work.

    To save billed hours, those cheapest per work are enough beside the used ones; to keep the budget, all are asked.
    """
    density = question.cost_usd / question.throughput
    rank = np.argsort(density, kind="stable")
    numbers = np.arange(len(rank)) if everything else np.union1d(rank[:_NEARBY], mix.numbers)
    return workers.take(numbers), np.searchsorted(numbers, mix.numbers), mix.hours


def work_units(asked: Asked) -> float:
    """Tokens or samples of all runs together."""
    fleet = asked.workload.fleet
    return asked.job.total_units * (1 if fleet is None else fleet.runs)


def _limit_hours(asked: Asked, dates: Dates) -> float:
    """Hours there are: until the deadline, and no more than a least throughput, sustained, would take."""
    hours = [] if dates.deadline_hours is None else [dates.deadline_hours]
    if asked.workload.constraints.min_throughput is None:
        hours = hours or [asked.assumptions.fleet_horizon_hours]
    else:
        hours.append(work_units(asked) / throughput_floor(asked.workload.constraints, asked.job) / 3600.0)
    return min(hours)


def _candidates(context: Context) -> Found:
    """Ways to do one run on one offer: what a worker can be."""
    fleet = context.asked.workload.fleet
    engine = Engine(context, sizes=(1 if fleet is None else fleet.nodes_per_run,))
    return engine.at(context.dates.deadline, Wanted(one_offer=True))


def _mix(workers: Workers, result: FleetResult, limit: float, work: float) -> Mix:
    """The workers used and the hours that each of them works."""
    used = np.asarray(sorted(int(str(key)) for key in result.counts), dtype=np.int64)
    count = np.asarray([result.counts[number] for number in used.tolist()], dtype=np.int64)
    busy = np.asarray([result.busy[number] for number in used.tolist()], dtype=np.float64)
    chosen = workers.take(used)
    hours = np.minimum(busy / count, 1.0) * chosen.hours_limit
    return Mix(used, chosen, count, hours, limit, work, result)


def _question(context: Context, workers: Workers, work: float, spared_usd: float = 0.0) -> FleetInput:
    rows, nodes = workers.rows, workers.nodes
    region, names, first = _codes(_places(context.market, rows))
    limits, fleet = context.asked.workload.constraints, context.asked.workload.fleet
    wishes: dict[str, Any] = {} if fleet is None else {
        "max_spot_share": fleet.max_spot_share, "max_share_per_region": fleet.max_share_per_region,
        "max_share_per_offer": fleet.max_share_per_offer, "max_regions": fleet.max_regions,
    }  # fmt: skip
    types, kind = context.market.offer_set.types, context.market.offer_set.type_of_offer[rows]
    memory = types["accelerator_memory_gib"][kind] * np.maximum(types["accelerator_count"][kind], 1.0) * nodes
    held = instances_at_once(context.market.offer_set, limits.obtainable)
    return FleetInput(
        keys=tuple(range(len(rows))), cost_usd=workers.fixed_usd + workers.usd_per_hour * workers.hours_limit,
        fixed_cost_usd=workers.fixed_usd, throughput=workers.units_per_hour * workers.hours_limit,
        required_throughput=work, max_units=np.floor(held[rows] / nodes),
        region=region, provider=context.market.provider_of_offer[rows], is_spot=context.market.is_spot[rows],
        memory_gib=memory.astype(np.float64),
        region_cost_usd=workers.place_usd[first], region_names=names,
        min_total_memory_gib=limits.min_total_memory_gib,
        max_total_units=limits.max_nodes // int(nodes.max(initial=1)),
        budget_usd=None if limits.budget_usd is None else float(limits.budget_usd) - spared_usd,
        uses=_uses(context, workers), **wishes, **_shared_capacity(context.market, rows, nodes, held),
    )  # fmt: skip


def _uses(context: Context, workers: Workers) -> tuple[Use, ...]:
    """Rows of the constraints that count what workers use."""
    case, given = case_of(context), (workers.rows, workers.nodes, workers.hours_limit)
    return tuple(use for item in CONSTRAINTS for use in item.fleet_uses(case, *given))


def _places(market: Market, rows: IntArray) -> list[str]:
    offers = market.offer_set.offers
    provider, region = offers["provider"], offers["region"]
    return [f"{provider[row]}/{region[row]}" for row in rows.tolist()]


def _codes(names: list[str]) -> tuple[IntArray, tuple[str, ...], IntArray]:
    """Codes of `names`, the distinct names, and the first position of each."""
    distinct, first, codes = np.unique(np.asarray(names), return_index=True, return_inverse=True)
    return codes.astype(np.int64), tuple(distinct.tolist()), first


def _shared_capacity(market: Market, rows: IntArray, nodes: IntArray, held: FloatArray) -> dict[str, Any]:
    """Rows that are the same offer twice share one capacity."""
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    group, keys = market.offer_set.offers.take(rows).distinct_keys(*names)
    if len(keys) == len(rows):
        return {}
    limit = np.full(len(keys), np.inf)
    np.minimum.at(limit, group, np.floor(held[rows] / nodes))
    return {"capacity_group": group, "capacity_limit": limit}


def _solve(question: FleetInput, options: Options, time_limit_s: float) -> FleetResult:
    wishes = SolveOptions(gap=options.gap, time_limit_s=time_limit_s, backend=options.backend)
    return solve_fleet(question, wishes)


def _over_budget(asked: Asked, plan: Plan) -> float:
    """USD by which the plan's obligations exceed the budget; 0 or less where they do not."""
    budget = asked.workload.constraints.budget_usd
    due = sum(month.amount_usd for month in plan.cash)
    return -np.inf if budget is None else float(due - budget)


def _reasons(question: FleetInput, result: FleetResult) -> list[Excess]:
    """The least set of limits that must give way, and by how much.

    Raises:
        PlannerError: none need give way, though the solver said that nothing fits.
    """
    from planner.fleet.relaxation import explain_infeasible_fleet

    if not question.n_options:
        return []
    told = explain_infeasible_fleet(question)
    if told.solver_fault and result.status is Status.INFEASIBLE:
        raise PlannerError(
            f"solver fault: {result.solver} says that no fleet fits, yet one keeps every limit; "
            "please report it, and try another --backend"
        )
    return list(told.relaxations)


__all__ = ["plan_fleet", "work_units"]
