"""The fleet: an integer mix of offers that together are fast enough, at least cost.

    minimise   sum_o cost_o x_o + sum_r region_cost_r y_r
    subject to the constraint families of `families.py`
               0 <= x_o <= u_o, whole;  y_r binary

Order of work: exact prefilters, a greedy fleet (first incumbent and cost cap), relaxation (bound), a model
restricted to the offers of least reduced cost (first plan), the full model (proof).
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from planner.formulation.families import FAMILIES
from planner.formulation.fleet_greedy import greedy_fleet
from planner.formulation.fleet_input import FleetInput, violations
from planner.formulation.fleet_model import FleetModel, Prepared, Switch, Total, prepare
from solvers.options import SolveOptions
from solvers.problem import Milp, MilpBuilder
from solvers.solution import Solution, Status, Termination, relative_gap
from solvers.solve import solve

__all__ = [
    "FleetInput",
    "FleetResult",
    "build_fleet",
    "greedy_fleet",
    "solution_to_counts",
    "solve_fleet",
    "violations",
]


@dataclass(frozen=True)
class FleetResult:
    """The fleet with its proof.

    Attributes:
        counts: workers per offer key (only offers used); empty without a plan.
        objective_usd: cost of the fleet, opened regions included; NaN without a plan.
        bound_usd: no fleet costs less.
        gap: (objective - bound) / objective.
        status: what the answer is worth.
        termination: why the solver stopped.
        solver: backend that gave it (`greedy` where it was proven without one).
        seconds: wall-clock seconds, everything.
        n_columns: offers in the model after the prefilters.
        dropped: offers removed by the prefilters, per reason.
        stages: (stage, seconds, objective, bound) as they came.
        message: last words of the solver.
    """

    counts: Mapping[Hashable, int]
    objective_usd: float
    bound_usd: float
    gap: float
    status: Status
    termination: Termination
    solver: str
    seconds: float
    n_columns: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    stages: tuple[tuple[str, float, float, float], ...] = ()
    message: str = ""

    @property
    def has_plan(self) -> bool:
        """Whether there is a fleet."""
        return bool(self.counts)


def build_fleet(fleet: FleetInput, *, prepared: Prepared | None = None) -> Milp:
    """Build the model of `fleet`.

    Args:
        fleet: the question.
        prepared: its prepared form where the caller has one (a known cost cap tightens the model).

    Returns:
        The model; columns carry the offers' keys (`Switch` for opened regions, `Total` for the throughput).
    """
    offers = prepared or prepare(fleet)
    builder = MilpBuilder("fleet")
    x = builder.add_columns("x", offers.keys, cost=offers.of("cost_usd"), upper=offers.upper, integer=True)
    model = FleetModel(builder, offers, x)
    for family in FAMILIES:
        family.add(model)
    return builder.build()


def solution_to_counts(solution: Solution) -> dict[Hashable, int]:
    """Return workers per offer key from a solution of `build_fleet`, offers used only."""
    return {
        key: round(value)
        for key, value in solution.x.items()
        if not isinstance(key, (Switch, Total)) and round(value) > 0
    }


def solve_fleet(fleet: FleetInput, options: SolveOptions | None = None) -> FleetResult:
    """Find the cheapest fleet.

    Args:
        fleet: the question.
        options: gap, time limit, backend.

    Returns:
        The best fleet known with the best bound, within the time limit + 10 %.
    """
    began = time.perf_counter()
    options = options or SolveOptions()
    first = prepare(fleet)
    start = greedy_fleet(fleet, first)
    cap = fleet.cost_of(fleet.units(start)) if start else math.inf
    offers = prepare(fleet, cost_cap_usd=cap) if start else first
    if not len(offers.keep):
        seconds = time.perf_counter() - began
        return _nothing_left(offers, time.perf_counter() - began)
    problem = build_fleet(fleet, prepared=offers)
    left = max(options.time_limit_s - (time.perf_counter() - began), 0.05)
    point = _point(fleet, problem, start) if start else {}
    solution = solve(problem, replace(options, time_limit_s=left, start=point))
    return _result(fleet, offers, solution, start, time.perf_counter() - began)


def _point(fleet: FleetInput, problem: Milp, counts: Mapping[Hashable, int]) -> dict[Hashable, float]:
    """The fleet `counts` as a point of the model: workers, opened regions, total."""
    units = fleet.units(counts)
    known = set(problem.column_keys)
    point: dict[Hashable, float] = {key: float(count) for key, count in counts.items() if key in known}
    for region in np.unique(fleet.region[units > 0]):
        if Switch(int(region)) in known:
            point[Switch(int(region))] = 1.0
    if Total() in known:
        point[Total()] = float(units @ (fleet.throughput / fleet.required_throughput))
    return point


def _result(
    fleet: FleetInput,
    offers: Prepared,
    solution: Solution,
    start: Mapping[Hashable, int] | None,
    seconds: float,
) -> FleetResult:
    counts = solution_to_counts(solution) if solution.has_point else {}
    status, message = solution.status, solution.report.message
    if counts and violations(fleet, fleet.units(counts)):
        broken = violations(fleet, fleet.units(counts))[0]
        status, message = (
            Status.ERROR,
            f"the solver's fleet breaks {broken.limit_name} {broken.member}; {message}",
        )
        counts = {}
    if not counts and start and status in (Status.NO_SOLUTION, Status.ERROR):
        counts, status = dict(start), Status.FEASIBLE  # the greedy fleet is checked and stands
    objective = fleet.cost_of(fleet.units(counts)) if counts else math.nan
    bound = min(solution.bound, objective) if counts else solution.bound
    gap = relative_gap(objective, bound)
    return FleetResult(
        counts=counts,
        objective_usd=objective,
        bound_usd=bound,
        gap=gap,
        status=status,
        termination=solution.termination,
        solver=solution.report.backend,
        seconds=seconds,
        n_columns=len(offers.keep),
        dropped=offers.dropped,
        stages=solution.report.stages,
        message=message,
    )


def _nothing_left(offers: Prepared, seconds: float) -> FleetResult:
    """The result where the prefilters leave no offer: infeasible, proven without a solver."""
    return FleetResult(
        counts={},
        objective_usd=math.nan,
        bound_usd=math.inf,
        gap=math.nan,
        status=Status.INFEASIBLE,
        termination=Termination.INFEASIBLE,
        solver="prefilter",
        seconds=seconds,
        n_columns=0,
        dropped=offers.dropped,
        message="no offer is left after the prefilters",
    )
