"""The result of a solver in common terms.

Two questions are kept apart: *why did it stop* (`Termination`) and *what may be done with the answer*
(`Status`). `STATUS_OF` maps one to the other and is complete; a word we do not know is an ERROR, never
OPTIMAL.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field


class Status(enum.Enum):
    """What the answer is worth.

    OPTIMAL: a feasible point within the gap that was asked for. FEASIBLE: a feasible point, gap stated.
    INFEASIBLE, UNBOUNDED: proven by the solver. NO_SOLUTION: stopped without a point, nothing proven.
    ERROR: the solver failed or broke its own contract.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NO_SOLUTION = "no_solution"
    ERROR = "error"


class Termination(enum.Enum):
    """Why the solver stopped."""

    GAP_REACHED = "gap_reached"
    TIME_LIMIT = "time_limit"
    ITERATION_LIMIT = "iteration_limit"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible_or_unbounded"
    MEMORY_LIMIT = "memory_limit"
    SOLVER_ERROR = "solver_error"
    UNKNOWN = "unknown"


STATUS_OF: Mapping[Termination, tuple[Status, Status]] = {
    # termination: (status with a feasible point, status without one)
    Termination.GAP_REACHED: (Status.OPTIMAL, Status.ERROR),
    Termination.TIME_LIMIT: (Status.FEASIBLE, Status.NO_SOLUTION),
    Termination.ITERATION_LIMIT: (Status.FEASIBLE, Status.NO_SOLUTION),
    Termination.INTERRUPTED: (Status.FEASIBLE, Status.NO_SOLUTION),
    Termination.MEMORY_LIMIT: (Status.FEASIBLE, Status.NO_SOLUTION),
    Termination.INFEASIBLE: (Status.ERROR, Status.INFEASIBLE),
    Termination.UNBOUNDED: (Status.ERROR, Status.UNBOUNDED),
    # Not decided which: nothing is proven about feasibility.
    Termination.INFEASIBLE_OR_UNBOUNDED: (Status.ERROR, Status.NO_SOLUTION),
    Termination.SOLVER_ERROR: (Status.ERROR, Status.ERROR),
    Termination.UNKNOWN: (Status.ERROR, Status.ERROR),
}


def status_of(termination: Termination, *, has_point: bool) -> Status:
    """Return the status for `termination`; a point with a claim of infeasibility is an ERROR."""
    with_point, without = STATUS_OF.get(termination, (Status.ERROR, Status.ERROR))
    return with_point if has_point else without


@dataclass(frozen=True)
class Report:
    """How the answer came about.

    Attributes:
        backend: the backend's name.
        wall_s: wall-clock seconds, all stages.
        nodes: branch-and-bound nodes of the last stage.
        message: the solver's last message.
        stages: (stage name, seconds since the start, objective, bound) in order.
        isolated: the solve ran in a child process.
    """

    backend: str = ""
    wall_s: float = 0.0
    nodes: int = 0
    message: str = ""
    stages: tuple[tuple[str, float, float, float], ...] = ()
    isolated: bool = False


@dataclass(frozen=True)
class Solution:
    """An answer to a `Milp`.

    Attributes:
        status: what the answer is worth.
        termination: why the solver stopped.
        x: value per column key; only columns different from 0; empty without a point.
        objective: c.x at the rounded point, NaN without one.
        bound: no feasible point costs less than this, -inf when nothing is proven.
        report: how the answer came about.
    """

    status: Status
    termination: Termination
    x: Mapping[Hashable, float] = field(default_factory=dict)
    objective: float = math.nan
    bound: float = -math.inf
    report: Report = field(default_factory=Report)

    @property
    def has_point(self) -> bool:
        """Whether there is a feasible point."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)

    @property
    def gap(self) -> float:
        """(objective - bound) / |objective|, 0..inf; NaN without a point."""
        return relative_gap(self.objective, self.bound) if self.has_point else math.nan


def relative_gap(objective: float, bound: float) -> float:
    """Return (objective - bound) / |objective|, clipped at 0; inf when there is no bound."""
    if math.isnan(objective):
        return math.nan
    difference = max(objective - bound, 0.0)
    if difference == 0.0:
        return 0.0
    return difference / abs(objective) if objective else math.inf
