"""How the cheapest fleet is found: from the first plan in milliseconds to the proof.

1. Exact prefilters; a greedy fleet gives a cost cap Z.
2. The relaxation is tightened under that cap: the fleet's throughput T gets its true upper limit (so that
the switch
   coefficients U_r shrink), and the rows x_o <= u_o y_r that the relaxation breaks are added, round by round.
3. A model restricted to the offers of least reduced cost gives a plan within a few per cent.
4. Tightened again under the new Z, offers that cannot be part of a cheaper fleet are capped or fall out
   (reduced costs); what is left is solved to the gap. Bounds of all stages are combined.

Every stage leaves a plan and a bound behind; at the time limit or Ctrl-C the best of both is the answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from planner.fleet.greedy import Mix, complete_fleet, greedy_mix, knapsack_bound
from planner.fleet.model.prepared import Busy, Prepared, Switch, Total, prepare
from planner.fleet.question import FleetInput, Floats, Ints, violations
from planner.fleet.solve import FleetResult, build_fleet, raised, solution_to_busy, solution_to_counts
from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.certificate import exact_bound
from solvers.options import SolveOptions
from solvers.presolve import restrict
from solvers.problem import Milp
from solvers.solution import Solution, Status, Termination, relative_gap, status_of
from solvers.solve import relax, solve
from solvers.tighten import caps_from_reduced_costs, largest, safe_bound

LINK_ROUNDS = 6  # rounds of added switch rows; later rounds move the bound by less than 0.1 %
SECONDS_PER_OFFER = 8e-6  # about what building and relaxing the model takes
PATIENCE = 8.0  # tightening goes on while this many relaxations still fit into the time left
HAIR_BUSY = 1e-6  # of a full worker; less work than this is the solver's tolerance
CORE_TIME_SHARE = 0.4  # of the time left, at most, for the restricted model
LEAST_CORE = 200  # offers in the restricted model, at least; a tenth of the offers above that
CORE_GAP_SHARE = 0.5  # the restricted model is solved to this share of the gap asked for


@dataclass(eq=False)
class _Search:
    """The state of one search: what is known so far."""

    fleet: FleetInput
    options: SolveOptions
    began: float = field(default_factory=time.perf_counter)
    counts: dict[Hashable, int] = field(default_factory=dict)
    busy: dict[Hashable, float] = field(default_factory=dict)
    cost: float = math.inf
    bound: float = -math.inf
    exact: float = -math.inf
    termination: Termination = Termination.UNKNOWN
    message: str = ""
    columns: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    stages: list[tuple[str, float, float, float]] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Seconds until the time limit."""
        return self.options.time_limit_s - (time.perf_counter() - self.began)

    def done(self) -> bool:
        """Whether the gap is reached, the question is proven empty, or the time is up."""
        if self.counts and relative_gap(self.cost, self.bound) <= self.options.gap:
            self.termination = Termination.GAP_REACHED
            return True
        if self.left_s <= 0:
            self.termination = Termination.TIME_LIMIT
            self.message = self.message or "the time limit passed"
            return True
        return self.termination is Termination.INFEASIBLE

    def offer(self, mix: Mix | None) -> None:
        """Take a fleet when it is cheaper and keeps every limit (checked without the model)."""
        if mix is None or not mix[0]:
            return
        counts, busy = _without_idle(self.fleet, *mix)
        units = self.fleet.units(counts)
        done = self.fleet.units(busy) if self.fleet.part_time else None
        cost = self.fleet.cost_of(units, done)
        if cost < self.cost and not violations(self.fleet, units, done):
            self.counts, self.busy, self.cost = dict(counts), dict(busy), cost

    def raise_bound(self, bound: float) -> None:
        """Take a proven bound; it never passes the cost of a known fleet."""
        if not math.isnan(bound):
            self.bound = min(max(self.bound, bound), self.cost)

    def raise_exact(self, problem: Milp, relaxation: Relaxation) -> None:
        """Take the bound that the relaxation's duals prove in exact arithmetic."""
        if relaxation.duals is not None and self.left_s > 0:
            proven = exact_bound(problem, relaxation.duals, cutoff=self.cost).as_float()
            self.exact = min(max(self.exact, proven), self.cost)

    def log(self, stage: str) -> None:
        """Note where the search stands after `stage`."""
        objective = self.cost if self.counts else math.nan
        self.stages.append((stage, time.perf_counter() - self.began, objective, self.bound))


def _without_idle(fleet: FleetInput, counts: dict[Hashable, int], busy: dict[Hashable, float]) -> Mix:
    """Give back workers that have nothing to do (a solver's hair of work goes to the others)."""
    if not fleet.part_time or fleet.min_total_memory_gib:
        return counts, busy
    needed = {key: math.ceil(value - HAIR_BUSY) for key, value in busy.items()}
    fewer = {key: min(counts[key], count) for key, count in needed.items() if count > 0}
    if fewer == counts:
        return counts, busy
    left = {key: min(busy[key], float(count)) for key, count in fewer.items()}
    return fewer, raised(fleet, fewer, left)


def search_fleet(fleet: FleetInput, options: SolveOptions) -> FleetResult:
    """Search; see the module's text. Called by `solve_fleet`."""
    search = _Search(fleet, options)
    get_backend(options.backend)  # an absent backend is an error before any work
    try:
        _run(search)
    except KeyboardInterrupt:
        search.termination, search.message = Termination.INTERRUPTED, "interrupted by the user"
    return _result(search)


def _run(search: _Search) -> None:
    offers = prepare(search.fleet)
    search.offer(greedy_mix(search.fleet, offers))
    if search.counts:
        offers = prepare(search.fleet, cost_cap_usd=search.cost)
        search.raise_bound(knapsack_bound(offers))
    search.log("greedy")
    search.dropped, search.columns = offers.dropped, len(offers.keep)
    if not len(offers.keep):
        search.termination, search.message = Termination.INFEASIBLE, "no offer is left after the prefilters"
        return
    if not search.counts:
        _prove(search, build_fleet(search.fleet, prepared=offers), math.inf)
        return
    first_answer_s = get_backend(search.options.backend).start_up_s() + SECONDS_PER_OFFER * len(offers.keep)
    if search.done():
        return
    if search.left_s < first_answer_s:
        search.termination, search.message = Termination.TIME_LIMIT, "no time to start the solver"
        return
    offers, problem, relaxation = _tighten(search, offers, np.zeros(0, dtype=np.int64))
    _round(search, offers, relaxation)
    search.log("relaxation")
    search.raise_exact(problem, relaxation)
    if search.done():
        return
    if problem.n_integers > search.options.core_columns > 0:
        _restricted(search, problem, relaxation)
        search.log("restricted")
        if search.done():
            return
        offers, problem, relaxation = _tighten(search, offers, _links(problem, offers))
        search.raise_exact(problem, relaxation)
    cutoff = search.cost * (1 - 0.9 * search.options.gap)
    caps = caps_from_reduced_costs(problem, relaxation, cutoff)
    problem = restrict(replace(problem, ub=caps), np.flatnonzero(caps > problem.lb))
    search.columns = problem.n_integers
    _prove(search, problem, cutoff)


def _tighten(search: _Search, offers: Prepared, links: Ints) -> tuple[Prepared, Milp, Relaxation]:
    """Tighten the relaxation under the cost of the best fleet known; takes its bound."""
    backend = get_backend(search.options.backend)
    offers = offers.capped(prepare(search.fleet, cost_cap_usd=search.cost))
    links = links[np.isin(links, np.arange(len(offers.keep)))]
    problem = build_fleet(search.fleet, prepared=offers, links=links)
    relaxation, pace_s = _relax(search, problem)
    if not search.fleet.part_time and any(isinstance(key, Switch) for key in problem.column_keys):
        total = problem.column_keys.index(Total())
        for _ in range(2):
            if search.left_s < PATIENCE * pace_s:
                return offers, problem, relaxation
            most = largest(problem, total, cutoff=search.cost, backend=backend, time_limit_s=search.left_s)
            offers = offers.with_most_work(max(most, 1.0))
            problem = build_fleet(search.fleet, prepared=offers, links=links)
        relaxation, _ = _relax(search, problem)
    for _ in range(LINK_ROUNDS):
        broken = np.setdiff1d(_broken_links(problem, offers, relaxation), links)
        if not len(broken) or search.left_s < PATIENCE * pace_s:
            break
        links = np.r_[links, broken]
        problem = build_fleet(search.fleet, prepared=offers, links=links)
        relaxation, _ = _relax(search, problem)
    return offers, problem, relaxation


def _relax(search: _Search, problem: Milp) -> tuple[Relaxation, float]:
    """Solve the relaxation, take its bound, and tell how long it took (seconds)."""
    began = time.perf_counter()
    relaxation = relax(problem, max(search.left_s, 0.01), search.options.backend)
    search.raise_bound(safe_bound(relaxation))
    return relaxation, time.perf_counter() - began


def _broken_links(problem: Milp, offers: Prepared, relaxation: Relaxation) -> Ints:
    """Numbers of the kept offers whose x_o <= u_o y_r the relaxation breaks."""
    if relaxation.x is None:
        return np.zeros(0, dtype=np.int64)
    opening = np.ones(offers.source.n_regions)
    for column, key in enumerate(problem.column_keys):
        if isinstance(key, Switch):
            opening[key.region] = relaxation.x[column]
    x = relaxation.x[: len(offers.keep)]
    return np.flatnonzero(
        x > offers.upper * opening[offers.of("region")] + 1e-3 * np.maximum(offers.upper, 1.0)
    )


def _links(problem: Milp, offers: Prepared) -> Ints:
    """Numbers of the kept offers that have a switch row in `problem`."""
    block = problem.row_block("region_link")
    if block is None or not len(block):
        return np.zeros(0, dtype=np.int64)
    number = {key: at for at, key in enumerate(offers.keys)}
    return np.array([number[key] for key in block.tags], dtype=np.int64)


def _round(search: _Search, offers: Prepared, relaxation: Relaxation) -> None:
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
    for size in sorted({most, max(most - 1, 1)}):
        allowed = np.isin(offers.of("region"), ranked[:size])
        for share in (1.0, 0.8, 0.5):
            part = share * x if search.fleet.part_time else np.floor(share * x + 1e-6)
            search.offer(complete_fleet(offers, allowed, np.where(allowed, part, 0.0)))


def _restricted(search: _Search, problem: Milp, relaxation: Relaxation) -> None:
    """Solve over the offers of least reduced cost, their regions' switches included."""
    if relaxation.x is None or relaxation.reduced_costs is None:
        return
    shared = np.array([isinstance(key, (Switch, Total)) for key in problem.column_keys])
    count = _n_offers(problem)
    rank: Floats = np.where(relaxation.x > 1e-9, -1.0, np.maximum(relaxation.reduced_costs, 0.0))
    by_offer = rank[:count]
    if search.fleet.part_time:  # workers and their work go together
        by_offer = by_offer + rank[count : 2 * count]
    wanted = min(search.options.core_columns, max(LEAST_CORE, count // 10))
    chosen = np.argsort(by_offer, kind="stable")[:wanted]
    columns = [np.flatnonzero(shared), chosen, *([chosen + count] if search.fleet.part_time else [])]
    core = restrict(problem, np.concatenate(columns))
    options = replace(
        search.options,
        gap=search.options.gap * CORE_GAP_SHARE,
        time_limit_s=max(search.left_s * CORE_TIME_SHARE, 0.05),
        core_columns=0,
        start={},
    )
    solution = solve(core, options)
    if solution.has_point:
        search.offer((solution_to_counts(solution), solution_to_busy(search.fleet, solution)))


def _n_offers(problem: Milp) -> int:
    """Offers in a full model: its first columns, of block `x`."""
    return len(problem.column_blocks[0])


def _prove(search: _Search, problem: Milp, cutoff: float) -> None:
    """Solve what is left; all that was left out costs at least `cutoff`."""
    options = replace(search.options, time_limit_s=max(search.left_s, 0.05), start={})
    if math.isfinite(cutoff):
        options = replace(options, core_columns=0, start=_point(search, problem))
    solution: Solution = solve(problem, options)
    if solution.has_point:
        search.offer((solution_to_counts(solution), solution_to_busy(search.fleet, solution)))
        if not search.counts:
            search.message = "the solver's fleet breaks a limit"
            search.termination = Termination.SOLVER_ERROR
            return
    emptied = solution.status is Status.INFEASIBLE
    if emptied and not search.counts:
        search.termination, search.message = Termination.INFEASIBLE, solution.report.message
        search.bound = math.inf
        return
    # Nothing cheaper than the cutoff among what was left: the cutoff itself is proven.
    search.raise_bound(cutoff if emptied else min(solution.bound, cutoff))
    search.termination, search.message = solution.termination, solution.report.message
    if emptied:
        search.termination = Termination.GAP_REACHED
    search.log("proof")


def proof_of(fleet: FleetInput, result: FleetResult) -> tuple[Milp, Floats, Floats | None]:
    """Return what an exact proof of `result` needs: the tightened model, its relaxation's duals, the fleet's point.

    Every fleet that costs no more than `result` is a point of the model. Without duals (no time, no optimum) they are
    0, which proves little but is never wrong.
    """
    search = _Search(fleet, SolveOptions())
    search.offer((dict(result.counts), dict(result.busy)))
    offers = prepare(fleet, cost_cap_usd=search.cost)
    _, problem, relaxation = _tighten(search, offers, np.zeros(0, dtype=np.int64))
    duals = np.zeros(problem.n_rows) if relaxation.duals is None else relaxation.duals
    point = _point(search, problem) if search.counts else {}
    return problem, duals, problem.vector(point) if point else None


def _point(search: _Search, problem: Milp) -> dict[Hashable, float]:
    """The best fleet known as a point of the model, {} when the model has no longer room for it."""
    fleet, counts, known = search.fleet, search.counts, set(problem.column_keys)
    if not all(key in known for key in counts):
        return {}
    units, busy = fleet.units(counts), fleet.units(search.busy)
    point: dict[Hashable, float] = {key: float(count) for key, count in counts.items()}
    if fleet.part_time:
        if not all(Busy(key) in known for key in counts):
            return {}
        point |= {Busy(key): value for key, value in search.busy.items()}
    for region in np.unique(fleet.region[units > 0]):
        if Switch(int(region)) in known:
            point[Switch(int(region))] = 1.0
    if Total() in known:  # fixed at the requirement, it is no column
        done = float(busy @ (fleet.throughput / fleet.required_throughput))
        point[Total()] = min(done, float(problem.ub[problem.column_keys.index(Total())]))
    return point


def _result(search: _Search) -> FleetResult:
    status = status_of(search.termination, has_point=bool(search.counts))
    gap = relative_gap(search.cost, search.bound) if search.counts else math.nan
    if search.counts and status in (Status.OPTIMAL, Status.ERROR):
        # A checked fleet stands whatever the solver said last; "optimal" only at the gap asked for.
        reached = gap <= search.options.gap * (1 + 1e-6) + 1e-9
        status = Status.OPTIMAL if reached else Status.FEASIBLE
    return FleetResult(
        counts=search.counts,
        busy=search.busy,
        objective_usd=search.cost if search.counts else math.nan,
        bound_usd=search.bound,
        exact_bound_usd=min(search.exact, search.cost),
        gap=gap,
        status=status,
        termination=search.termination,
        solver=get_backend(search.options.backend).name,
        seconds=time.perf_counter() - search.began,
        n_columns=search.columns,
        dropped=search.dropped,
        stages=tuple(search.stages),
        message=search.message,
    )
