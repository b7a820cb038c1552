"""How the cheapest fleet is found: from the first plan in milliseconds to the proof.

1. Exact prefilters; a greedy fleet gives a cost cap Z.
2. The relaxation is tightened under that cap: the fleet's throughput T gets its true upper limit (so that the switch
   coefficients U_r shrink), and the rows of `planner.fleet.tighten` that it breaks are added, round by round.
3. A model restricted to the regions that the relaxation opens, and to the offers of least reduced cost, gives a plan
   that is often the optimum.
4. Tightened again under the new Z, offers that cannot be part of a cheaper fleet are capped or fall out; what is left
   is solved to the gap, region after region where it has switches (`planner.fleet.places`), as in 3. Where it is much,
   or takes many nodes, each region is opened in turn for tighter caps, and it is solved again. Bounds of all stages
   are combined.

Every stage leaves a plan and a bound behind; at the time limit or Ctrl-C the best of both is the answer. What a stage
may do is counted in offers and nodes, so that equal questions have equal answers on a busy machine too; the clock only
keeps the time limit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from catalogs.tables.table import Floats, Ints, distinct_values
from planner.fleet.greedy import Target, complete_fleet, greedy_mix, knapsack_bound, reachable_work
from planner.fleet.model.build import build_fleet
from planner.fleet.model.prepared import Busy, Prepared, Switch, Total, prepare
from planner.fleet.places import branch, switched, under
from planner.fleet.question import FleetInput
from planner.fleet.search import FleetResult, FleetSearch
from planner.fleet.tighten import caps_under, openings, tighten
from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import restrict
from solvers.problem.solution import Status, Termination
from solvers.search.search import Search
from solvers.search.switches import FEW
from solvers.search.tighten import caps_from_reduced_costs

SECONDS_PER_OFFER = 8e-6  # about what building and relaxing the model takes
CORE_TIME_SHARE = 0.6  # of the time left, at most, for the restricted model
CORE_NODES = 1_000  # of branch and bound, for the restricted model; nearly all need one
LEAST_CORE = 200  # offers in the restricted model, at least; a tenth of the offers above that
LIKELY = 4  # regions in the restricted model beside those that the relaxation opens
CORE_GAP_SHARE = 0.5  # the restricted model is solved to this share of the gap asked for
CUTOFF_SHARE = 0.9  # of the gap: a fleet that is cheaper by less need not be found
SOON_COLUMNS = 1_500  # whole numbers in a proof that is tried without opening each region in turn, at most
SOON_NODES = 200  # of branch and bound there
SHORT = 1e-6  # of the work: by so much all workers together do less
BEYOND = 1e-6  # of the budget: by so much a bound lies above it that is no tolerance of a solver
LEAST_S = 0.05  # for a solve that must be tried


def solve_fleet(
    fleet: FleetInput, options: SolveOptions | None = None, *, exact: bool = True, prove: bool = True
) -> FleetResult:
    """Find the cheapest fleet.

    Args:
        fleet: the question.
        options: gap, time limit, backend.
        exact: whether to prove the bound in exact arithmetic too.
        prove: whether to look further than the restricted model, for the proof of the gap; without it the plan is
            mostly the same and the bound that of the relaxation.

    Returns:
        The best fleet known with the best bound, within the time limit + 10 %.
    """
    options = options or SolveOptions()
    search = FleetSearch(fleet, Search(options), exact)
    get_backend(options.backend)  # an absent backend is an error before any work
    with search.record.interruptible():
        _run(search, prove)
    search.record.settle()
    return search.result()


def _run(search: FleetSearch, prove: bool) -> None:
    record, options = search.record, search.record.options
    offers = prepare(search.fleet)
    search.offer(greedy_mix(search.fleet, offers))
    if not record.best and reachable_work(offers, search.fleet.max_total_units) < 1.0 - SHORT:
        record.end(Termination.INFEASIBLE, "the workers that are allowed do less than the work")
        return
    if not record.best and len(offers.keep) and _budget_is_too_small(search):
        return
    if record.best:
        offers = search.offers()
        record.raise_bound(knapsack_bound(offers))
    record.note("greedy")
    search.dropped, search.columns = offers.dropped, len(offers.keep)
    if not len(offers.keep):
        record.end(Termination.INFEASIBLE, "no offer is left after the prefilters")
        return
    if not record.best:
        _prove(search, build_fleet(search.fleet, prepared=offers), math.inf)
        return
    if record.done:
        return
    if record.left_s() < get_backend(options.backend).start_up_s() + SECONDS_PER_OFFER * len(offers.keep):
        record.end(Termination.TIME_LIMIT, "no time to start the solver")
        return
    offers, problem, relaxation = tighten(search, offers)
    _round(search, offers, relaxation)
    record.note("relaxation")
    search.raise_exact(problem, relaxation)
    if record.done:
        return
    if problem.n_integers > options.core_columns > 0:
        _restricted(search, problem, offers, relaxation)
        record.note("restricted")
        if record.done or not prove:
            return
        offers, problem, relaxation = tighten(search, offers, problem)
        search.raise_exact(problem, relaxation)
    cutoff = record.cost * (1 - CUTOFF_SHARE * options.gap)
    caps = caps_from_reduced_costs(problem, relaxation, cutoff)
    model = under(switched(problem, offers), offers, caps)
    left = model.problem
    search.columns = left.n_integers
    if len(model.switches) and left.n_integers > FEW:
        bound, ended = branch(search, model, CUTOFF_SHARE)
        record.raise_bound(min(bound, cutoff))
        record.note("places")
        if ended:
            record.end(Termination.GAP_REACHED, "the regions are decided")
        if ended or record.done:
            return
        cutoff = record.cost * (1 - CUTOFF_SHARE * options.gap)
    elif left.n_integers <= SOON_COLUMNS and _prove(search, left, cutoff, SOON_NODES):
        return
    caps = caps_under(search, problem, offers, relaxation, cutoff)
    problem = restrict(replace(problem, ub=caps), np.flatnonzero(caps > problem.lb))
    search.columns = problem.n_integers
    record.note("probing")
    _prove(search, problem, cutoff)


def _budget_is_too_small(search: FleetSearch) -> bool:
    """Look at the question without its budget: whether that ends the search. A fleet within the budget is a start.

    The cost of a fleet is a far better guide than a budget that none keeps: with it the stages cut the model.
    """
    record, budget = search.record, search.fleet.budget_usd
    if budget is None or math.isnan(budget):
        return False
    fleet = replace(search.fleet, budget_usd=None)
    beyond = budget * (1 + BEYOND)
    record.raise_bound(knapsack_bound(prepare(fleet)))
    options = record.within()
    if record.bound <= beyond and options is not None:
        free = solve_fleet(fleet, options, exact=False)
        search.offer((dict(free.counts), dict(free.busy)))
        record.raise_bound(free.bound_usd)
        if free.termination is Termination.INTERRUPTED:
            record.end(free.termination, free.message)
    record.note("without the budget")
    if not record.best and not record.interrupted and record.bound > beyond:
        record.end(Termination.INFEASIBLE, "the cheapest fleet costs more than the budget")
    return record.done


def _round(search: FleetSearch, offers: Prepared, relaxation: Relaxation) -> None:
    """Complete the whole part of the relaxation to a fleet, in the regions that it opens most."""
    if relaxation.x is None:
        return
    x = relaxation.x[: len(offers.keep)]
    if search.fleet.part_time:
        x = relaxation.x[len(offers.keep) : 2 * len(offers.keep)]
    opening = np.bincount(offers.of("region"), weights=offers.work * x, minlength=offers.source.n_regions)
    ranked = np.argsort(-opening, kind="stable")
    used = int(np.count_nonzero(opening > 1e-9))
    most = used if search.fleet.max_regions is None else min(used, search.fleet.max_regions)
    seen: set[bytes] = set()
    target = Target(offers, 1.0)
    for size in sorted({most, max(most - 1, 1)}):
        allowed = np.isin(offers.of("region"), ranked[:size])
        for share in (1.0, 0.8, 0.5):
            part = share * x if search.fleet.part_time else np.floor(share * x + 1e-6)
            part = np.where(allowed, part, 0.0)
            begun = allowed.tobytes() + part.tobytes()
            if begun not in seen:
                seen.add(begun)
                search.offer(complete_fleet(target, allowed, part))


def _restricted(search: FleetSearch, problem: Milp, offers: Prepared, relaxation: Relaxation) -> None:
    """Solve over the regions that the relaxation opens (or nearly does), and the offers of least reduced cost."""
    if relaxation.x is None or relaxation.reduced_costs is None:
        return
    record, count = search.record, len(offers.keep)
    shared = np.array([isinstance(key, (Switch, Total)) for key in problem.column_keys])
    rank: Floats = np.where(relaxation.x > 1e-9, -1.0, np.maximum(relaxation.reduced_costs, 0.0))
    by_offer = rank[:count]
    if search.fleet.part_time:  # workers and their work go together
        by_offer = by_offer + rank[count : 2 * count]
    wanted = min(record.options.core_columns, max(LEAST_CORE, count // 10))
    order = np.argsort(by_offer, kind="stable")
    likely = order[np.isin(offers.of("region")[order], _likely_regions(problem, offers, relaxation))]
    chosen = np.union1d(order[:wanted], likely[: 2 * wanted])
    keys = offers.keys
    search.core = tuple(keys[number] for number in chosen.tolist())
    columns = [np.flatnonzero(shared), chosen, *([chosen + count] if search.fleet.part_time else [])]
    model = switched(problem, offers)
    if len(model.switches):
        upper = np.zeros(problem.n_columns)
        upper[np.concatenate(columns)] = problem.ub[np.concatenate(columns)]
        leave_s = record.left_s() * (1 - CORE_TIME_SHARE)
        branch(search, under(model, offers, upper), CORE_GAP_SHARE, leave_s)
        return
    core = restrict(problem, np.concatenate(columns))
    gap, limit_s = record.options.gap * CORE_GAP_SHARE, max(record.left_s() * CORE_TIME_SHARE, LEAST_S)
    found = record.solve(core, limit_s, gap=gap, core_columns=0, start={}, most_nodes=CORE_NODES)
    search.offer_solution(found)


def _likely_regions(problem: Milp, offers: Prepared, relaxation: Relaxation) -> Ints:
    """Regions that the relaxation opens, and those whose switch has the least reduced cost."""
    opening = openings(problem, offers, relaxation)
    if relaxation.reduced_costs is None:
        return np.flatnonzero(opening > 1e-6)
    closed = np.full(len(opening), math.inf)
    for column, key in enumerate(problem.column_keys):
        if isinstance(key, Switch) and opening[key.region] <= 1e-6:
            closed[key.region] = relaxation.reduced_costs[column]
    nearest = np.argsort(closed, kind="stable")[: min(LIKELY, int(np.isfinite(closed).sum()))]
    return np.union1d(np.flatnonzero(opening > 1e-6), nearest)


def _prove(search: FleetSearch, problem: Milp, cutoff: float, most_nodes: int | None = None) -> bool:
    """Solve what is left, and tell whether that ends the search; all that was left out costs at least `cutoff`."""
    record = search.record
    start = _point(search, problem) if math.isfinite(cutoff) else {}
    core = 0 if math.isfinite(cutoff) else record.options.core_columns
    solution = record.solve(problem, start=start, core_columns=core, most_nodes=most_nodes)
    if solution is None:
        return True
    search.offer_solution(solution)
    if solution.has_point and not record.best:
        record.end(Termination.SOLVER_ERROR, "the solver's fleet breaks a limit")
        return True
    if solution.termination is Termination.ITERATION_LIMIT and most_nodes is not None:
        record.raise_bound(min(solution.bound, cutoff))
        return record.done
    emptied = solution.status is Status.INFEASIBLE
    if emptied and not record.best:
        record.end(Termination.INFEASIBLE, solution.report.message)
        return True
    # Nothing cheaper than the cutoff among what was left: the cutoff itself is proven.
    record.raise_bound(cutoff if emptied else min(solution.bound, cutoff))
    record.end(Termination.GAP_REACHED if emptied else solution.termination, solution.report.message)
    record.note("proof")
    return True


def proof_of(fleet: FleetInput, result: FleetResult) -> tuple[Milp, Floats, Floats | None]:
    """Return what an exact proof of `result` needs: the tightened model, its relaxation's duals, the fleet's point.

    Every fleet that costs no more than `result` is a point of the model. Without duals (no time, no optimum) they are
    0, which proves little but is never wrong.
    """
    search = FleetSearch(fleet, Search(SolveOptions()))
    search.offer((dict(result.counts), dict(result.busy)))
    _, problem, relaxation = tighten(search, search.offers())
    duals = np.zeros(problem.n_rows) if relaxation.duals is None else relaxation.duals
    point = _point(search, problem) if search.record.best else {}
    return problem, duals, problem.vector(point) if point else None


def _point(search: FleetSearch, problem: Milp) -> dict[Hashable, float]:
    """The best fleet known as a point of the model, {} when the model has no longer room for it."""
    fleet, (counts, work), known = search.fleet, search.best, set(problem.column_keys)
    if not all(key in known for key in counts):
        return {}
    units, busy = fleet.units(counts), fleet.units(work)
    point: dict[Hashable, float] = {key: float(count) for key, count in counts.items()}
    if fleet.part_time:
        if not all(Busy(key) in known for key in counts):
            return {}
        point |= {Busy(key): value for key, value in work.items()}
    for region in distinct_values(fleet.region[units > 0]):
        if Switch(int(region)) in known:
            point[Switch(int(region))] = 1.0
    if Total() in known:  # fixed at the requirement, it is not a column
        done = float(busy @ (fleet.throughput / fleet.required_throughput))
        point[Total()] = min(done, float(problem.ub[problem.column_keys.index(Total())]))
    return point
