"""The backend protocol and what all backends share: scaling in, rounding and checking out."""

from __future__ import annotations

import enum
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from solvers.problem.errors import ModelError
from solvers.problem.milp import Bools, Floats, Ints, Milp
from solvers.problem.options import Sifting, SolveOptions
from solvers.problem.presolve import part_of
from solvers.problem.scaling import Scaled, scale
from solvers.problem.solution import Report, Solution, Status, Termination, relative_gap, status_of

ROW_TOLERANCE = 2e-6  # of a scaled row; HiGHS accepts 1e-6
ROUNDING_TOLERANCE = 1e-5  # how far from a whole number an integer column may come back
# The feasibility jump heuristic of HiGHS 1.12 and later runs before the root relaxation. In models with at most so many
# columns, which are solved at the root, it takes four fifths of the time: it is switched off there.
JUMP, JUMP_ABOVE = "mip_heuristic_run_feasibility_jump", 100


class Feature(enum.Enum):
    """What a backend can do beyond solving."""

    LP_DUALS = "lp_duals"
    START = "start"
    CANCEL = "cancel"


@dataclass(frozen=True, eq=False)
class Raw:
    """An answer in positions and in the problem's own units, before rounding and checking."""

    termination: Termination
    x: Floats | None = None
    bound: float = -math.inf
    nodes: int = 0
    message: str = ""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The linear relaxation: `x` and `reduced_costs` of shape `(n_columns,)`, None without an optimum.

    `duals` of shape `(n_rows,)`: what one more unit of the row's binding side adds to the objective.
    """

    termination: Termination
    objective: float = math.nan
    x: Floats | None = None
    reduced_costs: Floats | None = None
    message: str = ""
    duals: Floats | None = None


# Re-solves a relaxation after rows were appended or their sides changed.
Growing = Callable[[Milp], Relaxation]
# Re-solves a scaled relaxation under new bounds: (model, time limit in seconds, cutoff at which it may stop).
Resolve = Callable[[Milp, float, float], Relaxation]


class Linear:
    """A linear relaxation that is re-solved under changing bounds of its columns and rows.

    Backends that support a warm start continue from the last basis with a few dual simplex iterations.
    """

    def __init__(self, scaled: Scaled, resolver: Callable[[Milp], Resolve]) -> None:
        """Prepare a scaled model.

        Args:
            scaled: the model with its scaling factors.
            resolver: returns the function that re-solves a model under new bounds.
        """
        self._scaled, self._resolver = scaled, resolver
        self._solve = resolver(scaled.problem)

    def part(self, columns: Bools, rows: Bools) -> Linear:
        """The relaxation of the columns and rows that two masks select; it starts without a basis."""
        scaled = replace(
            self._scaled,
            problem=part_of(self._scaled.problem, columns, rows),
            row_factors=self._scaled.row_factors[rows],
        )
        return Linear(scaled, self._resolver)

    def relax(self, limited: Milp, time_limit_s: float, cutoff: float = math.inf) -> Relaxation:
        """Solve under the bounds of `limited`, which is otherwise the same model.

        Args:
            limited: the model with other `lb`, `ub`, `row_lo` or `row_hi`.
            time_limit_s: seconds, at most.
            cutoff: stop once the objective is known to reach it; the answer then has the cutoff as its objective and no
                point.
        """
        factors, price = self._scaled.row_factors, self._scaled.cost_factor
        scaled = replace(
            self._scaled.problem,
            lb=limited.lb,
            ub=limited.ub,
            row_lo=limited.row_lo * factors,
            row_hi=limited.row_hi * factors,
        )
        return unscaled(self._scaled, self._solve(scaled, time_limit_s, cutoff * price))


class Backend(Protocol):
    """A solver. Never mutates its arguments; an unknown status is ERROR, never OPTIMAL."""

    name: str
    features: frozenset[Feature]

    def is_available(self) -> bool:
        """Whether it is installed; never raises and imports nothing heavy."""

    def start_up_s(self) -> float:
        """About how many seconds the first use will spend on importing the solver; 0 when that is done."""

    def solve(self, problem: Milp, options: SolveOptions) -> Solution:
        """Solve in this process; the solver itself applies the time limit."""

    def solve_vector(self, problem: Milp, options: SolveOptions) -> Checked:
        """As `solve`, with the point as a vector."""

    def relax(self, problem: Milp, time_limit_s: float) -> Relaxation:
        """Solve the linear relaxation."""

    def sifted(self, problem: Milp, sifting: Sifting, time_limit_s: float) -> Relaxation:
        """Solve the linear relaxation by sifting: from a few columns, adding those with negative reduced cost."""

    def linear(self, problem: Milp) -> Linear:
        """The linear relaxation, to be re-solved under changing bounds."""

    def growing(self) -> Growing:
        """The linear relaxation of a model that grows by appended rows, such as cuts.

        Sides of rows may change; columns, costs and the entries of earlier rows stay.
        """

    def probe(self, problem: Milp, columns: Ints, time_limit_s: float) -> Iterator[Relaxation]:
        """Solve the linear relaxation with each of `columns` in turn held at its upper bound."""


@dataclass(frozen=True, eq=False)
class Checked:
    """A rounded and checked answer in positions.

    Attributes:
        termination: why the solver stopped.
        x: the point, shape `(n_columns,)`, None without one.
        objective: c.x, NaN without a point.
        bound: proven lower bound on the objective.
        nodes: branch-and-bound nodes.
        message: the solver's message.
    """

    termination: Termination
    x: Floats | None = None
    objective: float = math.nan
    bound: float = -math.inf
    nodes: int = 0
    message: str = ""


class ScalingBackend(ABC):
    """Base of the backends: subclasses solve the scaled model; this class scales, rounds and checks."""

    name: str = ""
    features: frozenset[Feature] = frozenset()
    module: str = ""  # what the first use imports
    import_s: float = 0.0  # and about how long that takes

    def start_up_s(self) -> float:
        """About how many seconds the first use will spend on importing the solver; 0 when that is done."""
        return 0.0 if self.module in sys.modules else self.import_s

    @abstractmethod
    def is_available(self) -> bool:
        """Whether it is installed; never raises."""

    @abstractmethod
    def _run(
        self,
        problem: Milp,
        gap: float,
        time_limit_s: float,
        start: Floats | None,
        most_nodes: int | None = None,
    ) -> Raw:
        """Solve the scaled `problem`; a search stopped at `most_nodes` ends with ITERATION_LIMIT."""

    @abstractmethod
    def _relax(self, problem: Milp, time_limit_s: float) -> Relaxation:
        """Solve the linear relaxation of the scaled `problem`."""

    def solve(self, problem: Milp, options: SolveOptions) -> Solution:
        """Solve in this process."""
        began = time.perf_counter()
        checked = self.solve_vector(problem, options)
        report = Report(self.name, time.perf_counter() - began, checked.nodes, checked.message)
        return to_solution(problem, checked, report, gap=options.gap)

    def solve_vector(self, problem: Milp, options: SolveOptions) -> Checked:
        """Solve in this process and return the point as a vector."""
        scaled = scale(problem)
        start = feasible_start(problem, options.start)
        raw = self._run(scaled.problem, options.gap, options.time_limit_s, start, options.most_nodes)
        raw = replace(raw, bound=raw.bound / scaled.cost_factor)
        return self._finish(problem, scaled, raw, options)

    def relax(self, problem: Milp, time_limit_s: float) -> Relaxation:
        """Solve the linear relaxation; objective, reduced costs and duals in the problem's own units."""
        scaled = scale(problem)
        return unscaled(scaled, self._relax(scaled.problem, time_limit_s))

    def sifted(self, problem: Milp, sifting: Sifting, time_limit_s: float) -> Relaxation:  # noqa: ARG002
        """Solve the linear relaxation; without sifting unless a backend overrides this."""
        return self.relax(problem, time_limit_s)

    def linear(self, problem: Milp) -> Linear:
        """The linear relaxation, to be re-solved under changing bounds."""
        return Linear(scale(problem), self._resolver)

    def _resolver(self, problem: Milp) -> Resolve:  # noqa: ARG002
        """Return what re-solves the scaled `problem` under new bounds; here from scratch each time."""
        return lambda limited, time_limit_s, _cutoff: self._relax(limited, time_limit_s)

    def growing(self) -> Growing:
        """The linear relaxation of a model that grows by appended rows; here solved from scratch each time."""
        return lambda problem: self.relax(problem, math.inf)

    def probe(self, problem: Milp, columns: Ints, time_limit_s: float) -> Iterator[Relaxation]:
        """Solve the linear relaxation with each of `columns` in turn held at its upper bound."""
        end, linear = time.perf_counter() + time_limit_s, self.linear(problem)
        for column in columns.tolist():
            lower = problem.lb.copy()
            lower[column] = problem.ub[column]
            yield linear.relax(replace(problem, lb=lower), max(end - time.perf_counter(), 0.0))

    def _finish(self, problem: Milp, scaled: Scaled, raw: Raw, options: SolveOptions) -> Checked:
        if raw.x is None:
            return Checked(raw.termination, bound=raw.bound, nodes=raw.nodes, message=raw.message)
        x = rounded(problem, raw.x)
        if violation(scaled.problem, x) > ROW_TOLERANCE and not problem.integrality.all():
            # Rounding the integers moved a continuous column's row: let the continuous ones follow.
            x = self._follow(scaled.problem, x, options)
        worst = violation(scaled.problem, x)
        if (
            worst > ROW_TOLERANCE
            or np.abs(x - raw.x)[problem.integrality].max(initial=0.0) > ROUNDING_TOLERANCE
        ):
            message = (
                f"{self.name} returned a point that breaks a row by {worst:.1e} after rounding; {raw.message}"
            )
            return Checked(Termination.SOLVER_ERROR, bound=raw.bound, nodes=raw.nodes, message=message)
        objective = float(problem.c @ x)
        return Checked(raw.termination, x, objective, min(raw.bound, objective), raw.nodes, raw.message)

    def _follow(self, problem: Milp, x: Floats, options: SolveOptions) -> Floats:
        fixed = replace(
            problem,
            lb=np.where(problem.integrality, x, problem.lb),
            ub=np.where(problem.integrality, x, problem.ub),
            integrality=np.zeros(problem.n_columns, dtype=np.bool_),
        )
        raw = self._run(fixed, options.gap, options.time_limit_s, None)
        return x if raw.x is None else rounded(problem, raw.x)


def unscaled(scaled: Scaled, relaxation: Relaxation) -> Relaxation:
    """Return the relaxation with objective, reduced costs and duals in the problem's own units."""
    reduced, duals = relaxation.reduced_costs, relaxation.duals
    return replace(
        relaxation,
        objective=relaxation.objective / scaled.cost_factor,
        reduced_costs=None if reduced is None else reduced / scaled.cost_factor,
        duals=None if duals is None else duals * scaled.row_factors / scaled.cost_factor,
    )


def rounded(problem: Milp, x: Floats) -> Floats:
    """Return `x` with integer columns rounded and every column inside its bounds."""
    return np.clip(np.where(problem.integrality, np.rint(x), x), problem.lb, problem.ub)


def violation(problem: Milp, x: Floats) -> float:
    """Return the largest amount by which `x` breaks a row (absolute beyond 1e-9 of the row's own size)."""
    activity = problem.activity(x)
    sides = np.maximum(problem.row_lo - activity, activity - problem.row_hi)
    finite = np.where(np.isfinite(problem.row_lo), np.abs(problem.row_lo), 0.0)
    finite = np.maximum(finite, np.where(np.isfinite(problem.row_hi), np.abs(problem.row_hi), 0.0))
    return float(np.max(sides - 1e-9 * np.maximum(finite, np.abs(activity)), initial=0.0))


def feasible_start(problem: Milp, start: Mapping[Hashable, float]) -> Floats | None:
    """Return `start` as a vector when it is a feasible, integral point of `problem`, else None."""
    if not start:
        return None
    try:
        x = problem.vector(start)
    except KeyError:
        return None
    inside = bool(((x >= problem.lb) & (x <= problem.ub)).all())
    whole = bool((x[problem.integrality] % 1.0 == 0).all())
    return x if inside and whole and violation(scale(problem).problem, x) <= ROW_TOLERANCE else None


def to_solution(problem: Milp, checked: Checked, report: Report, *, gap: float) -> Solution:
    """Map a checked answer back to keys; "optimal" only if the requested gap is met."""
    status = status_of(checked.termination, has_point=checked.x is not None)
    if checked.x is None:
        return Solution(status, checked.termination, bound=checked.bound, report=report)
    reached = relative_gap(checked.objective, checked.bound) <= gap * (1 + 1e-6) + 1e-9
    if status is Status.OPTIMAL and not reached:
        status = Status.FEASIBLE
    nonzero = np.flatnonzero(checked.x)
    x = {problem.column_keys[number]: float(checked.x[number]) for number in nonzero}
    return Solution(status, checked.termination, x, checked.objective, checked.bound, report)


def require_plain(problem: Milp) -> None:
    """Refuse a model without columns; solvers disagree on what that means.

    Raises:
        ModelError: there is nothing to decide.
    """
    if not problem.n_columns:
        raise ModelError(f"{problem.name}: the model has no column; nothing to decide")
