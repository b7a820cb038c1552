"""The fleet: an integer mix of offers that together are fast enough, at least cost.

    minimise   sum_o cost_o x_o + sum_r region_cost_r y_r
    subject to the constraint families of `families.py`
               0 <= x_o <= u_o, whole;  y_r binary

Order of work: exact prefilters, a greedy fleet (first incumbent and cost cap), relaxation (bound), a model
restricted to the offers of least reduced cost (first plan), the full model (proof).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.formulation.families import FAMILIES
from planner.formulation.fleet_greedy import greedy_fleet
from planner.formulation.fleet_input import FleetInput, Ints, violations
from planner.formulation.fleet_model import FleetModel, Prepared, Switch, Total, prepare
from solvers.options import SolveOptions
from solvers.problem import Milp, MilpBuilder
from solvers.solution import Solution, Status, Termination

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


def build_fleet(fleet: FleetInput, *, prepared: Prepared | None = None, links: Ints | None = None) -> Milp:
    """Build the model of `fleet`.

    Args:
        fleet: the question.
        prepared: its prepared form where the caller has one (a known cost cap tightens the model).
        links: numbers of the kept offers whose own switch row is wanted (see `regions`).

    Returns:
        The model; columns carry the offers' keys (`Switch` for opened regions, `Total` for the throughput).
    """
    offers = prepared or prepare(fleet)
    builder = MilpBuilder("fleet")
    x = builder.add_columns("x", offers.keys, cost=offers.of("cost_usd"), upper=offers.upper, integer=True)
    model = FleetModel(builder, offers, x, np.zeros(0, dtype=np.int64) if links is None else links)
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
    from planner.formulation.fleet_search import search_fleet

    return search_fleet(fleet, options or SolveOptions())
