"""What a search for a fleet knows: the best fleet that meets every limit, and what is proven of all fleets."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from planner.fleet.alike import first_of_alike
from planner.fleet.greedy import Mix
from planner.fleet.model.build import raised, solution_to_busy, solution_to_counts
from planner.fleet.model.prepared import Prepared, prepare
from planner.fleet.question import FleetInput, violations
from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp
from solvers.problem.solution import Solution, Status, Termination
from solvers.search.bounds import exact_bound
from solvers.search.search import Search

HAIR_BUSY = 1e-6  # of a full worker; less work than this is the solver's tolerance


@dataclass(frozen=True)
class FleetResult:
    """The fleet with its proof.

    Attributes:
        counts: workers per offer key (only offers used); empty without a plan.
        busy: their work per offer key, in workers used in full; equals `counts` where all are.
        exact_bound_usd: the same bound as far as it is proven in exact arithmetic; -inf where nothing is.
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
        core: keys of the offers in the restricted model; empty where none was solved.
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
    busy: Mapping[Hashable, float] = field(default_factory=dict)
    exact_bound_usd: float = -math.inf
    core: tuple[Hashable, ...] = ()

    @property
    def has_plan(self) -> bool:
        """Whether there is a fleet."""
        return bool(self.counts)


@dataclass(eq=False)
class FleetSearch:
    """The state of one search.

    Attributes:
        fleet: the question.
        record: the best fleet (workers and their work by key), the bounds, the clock.
        exact: whether to prove the bound in exact arithmetic too, a tenth of a search.
        columns: offers in the model after the prefilters.
        dropped: offers removed by the prefilters, per reason.
        core: keys of the offers in the restricted model.
    """

    fleet: FleetInput
    record: Search[Mix]
    exact: bool = True
    columns: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    core: tuple[Hashable, ...] = ()
    _under: tuple[float, Prepared] | None = None

    def offers(self) -> Prepared:
        """What may be part of a fleet that costs no more than the best one known."""
        cost = self.record.cost
        if self._under is None or self._under[0] != cost:
            self._under = cost, prepare(self.fleet, cost_cap_usd=cost)
        return self._under[1]

    @property
    def best(self) -> Mix:
        """Workers and their work of the best fleet, by key; empty without one."""
        return self.record.best or ({}, {})

    def offer(self, mix: Mix | None) -> None:
        """Take a fleet when it is cheaper and meets every limit (checked without the model)."""
        if mix is None or not mix[0]:
            return
        counts, busy = _without_idle(self.fleet, *mix)
        units = self.fleet.units(counts)
        done = self.fleet.units(busy) if self.fleet.part_time else None
        cost = self.fleet.cost_of(units, done)
        if cost < self.record.cost and not violations(self.fleet, units, done):
            self.record.offer((dict(counts), dict(busy)), cost)

    def offer_solution(self, solution: Solution | None) -> None:
        """Take the fleet of a solver's point, where there is one."""
        if solution is not None and solution.has_point:
            self.offer((solution_to_counts(solution), solution_to_busy(self.fleet, solution)))

    def raise_exact(self, problem: Milp, relaxation: Relaxation) -> None:
        """Take the bound that the relaxation's duals prove in exact arithmetic."""
        if self.exact and relaxation.duals is not None and self.record.left_s() > 0:
            proven = exact_bound(problem, relaxation.duals, cutoff=self.record.cost).as_float()
            self.record.raise_bound(proven, exact=True)

    def result(self) -> FleetResult:
        """What is known, as a result."""
        record, (counts, busy) = self.record, first_of_alike(self.fleet, *self.best)
        return FleetResult(
            counts=counts,
            busy=busy,
            objective_usd=record.cost if counts else math.nan,
            bound_usd=record.bound,
            exact_bound_usd=min(record.exact_bound, record.cost),
            gap=record.gap if counts else math.nan,
            status=record.status,
            termination=record.termination,
            solver=get_backend(record.options.backend).name,
            seconds=record.elapsed_s,
            n_columns=self.columns,
            dropped=self.dropped,
            stages=tuple(record.stages),
            message=record.message,
            core=self.core,
        )


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
