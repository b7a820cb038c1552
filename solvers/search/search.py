"""State of a search: incumbent, proven bound, clock, and why it ended.

A question that is answered in stages (a first plan, a relaxation, a restricted model, the whole model) keeps one
`Search`. Each stage offers points and raises the bound; all solves draw on one clock, so that the answer comes within
the time limit whichever stage is at work. `status` follows from what is recorded and from nothing else: optimal is a
gap that was reached, infeasible is a proof, and a search that ended early without a point has no solution.

An answer that needs several searches one after the other has a `Clock` for all of them.

Costs may be floats or whole numbers (micro-dollars); whole numbers stay exact.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from solvers.backends.base import Linear, Relaxation
from solvers.execution.solve import relax, relax_again, solve
from solvers.problem.milp import Milp
from solvers.problem.options import Sifting, SolveOptions
from solvers.problem.solution import Solution, Status, Termination, relative_gap

Point = TypeVar("Point")
LEAST_SOLVE_S = 0.01  # no solver is started for less
LEAST_SHARE = 0.05  # of the limit: what a search may take that an answer needs, however late it begins


class Clock:
    """A time limit for several searches; it runs from when it is first asked what is left."""

    def __init__(self, limit_s: float) -> None:
        """Take the limit, seconds; it may be infinite."""
        self._limit_s = limit_s
        self._began: float | None = None

    @property
    def spent_s(self) -> float:
        """Seconds since it began to run."""
        if self._began is None:
            self._began = time.perf_counter()
        return time.perf_counter() - self._began

    def left_s(self, share: float = 1.0) -> float:
        """Seconds until this share of the limit has passed; negative afterwards."""
        return self._limit_s * share - self.spent_s

    def for_next_s(self, share: float = 1.0, least: float = LEAST_SHARE) -> float:
        """Seconds that the next search may take: until this share has passed, but at least `least` of the limit."""
        return max(self.left_s(share), self._limit_s * least)


@dataclass(eq=False)
class Search(Generic[Point]):
    """The record of one search.

    Attributes:
        options: the gap asked for, the time limit for everything, the backend.
        clock: seconds, monotonic.
        best: the best point known, None without one; in the caller's terms.
        cost: its cost, inf without one.
        exact_bound: no point costs less, proven without trusting a solver's arithmetic.
        termination: why the search ended, UNKNOWN while it runs.
        message: message of what ended it.
        solver: name of the backend that last answered, empty where none was needed.
        stages: (name, seconds since the start, cost or NaN, bound) as they ended.
    """

    options: SolveOptions = field(default_factory=SolveOptions)
    clock: Callable[[], float] = field(default_factory=lambda: time.perf_counter)
    best: Point | None = None
    cost: float = math.inf
    exact_bound: float = -math.inf
    termination: Termination = Termination.UNKNOWN
    message: str = ""
    solver: str = ""
    stages: list[tuple[str, float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._claimed = -math.inf

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return self.clock() - self._began

    def left_s(self, share: float = 1.0) -> float:
        """Seconds until this share of the time limit has passed; negative afterwards."""
        return self.options.time_limit_s * share - self.elapsed_s

    @property
    def bound(self) -> float:
        """No point costs less: the best of all bounds taken, at most the cost of the best point."""
        return min(max(self._claimed, self.exact_bound), self.cost)

    @property
    def claimed_bound(self) -> float:
        """The best bound that rests on a solver's arithmetic alone, -inf without one."""
        return self._claimed

    @property
    def gap(self) -> float:
        """(cost - bound) / |cost|; inf without a point or a bound."""
        return math.inf if self.best is None else relative_gap(self.cost, self.bound)

    @property
    def closed(self) -> bool:
        """Whether the requested gap is reached."""
        return self.gap <= self.options.gap * (1 + 1e-6) + 1e-9

    @property
    def empty(self) -> bool:
        """Whether it is proven that no point exists."""
        return self.termination is Termination.INFEASIBLE

    @property
    def interrupted(self) -> bool:
        """Whether the user asked to stop."""
        return self.termination is Termination.INTERRUPTED

    @property
    def done(self) -> bool:
        """Whether to stop: the gap is reached, emptiness is proven, the user interrupted, or the time is up."""
        return self.closed or self.empty or self.interrupted or self.left_s() <= 0

    @property
    def status(self) -> Status:
        """The status; a point that contradicts a proof of infeasibility is an ERROR."""
        if self.best is not None:
            if self.empty:
                return Status.ERROR
            return Status.OPTIMAL if self.closed else Status.FEASIBLE
        if self.empty:
            return Status.INFEASIBLE
        failed = self.termination in (Termination.SOLVER_ERROR, Termination.UNBOUNDED)
        return Status.ERROR if failed else Status.NO_SOLUTION

    def offer(self, point: Point | None, cost: float) -> bool:
        """Keep a feasible point if it is the cheapest so far (the caller has checked it); say whether it was kept."""
        if point is None or not cost < self.cost:
            return False
        self.best, self.cost = point, cost
        return True

    def raise_bound(self, bound: float, *, exact: bool = False) -> None:
        """Take a bound on every point of the question; NaN and lower ones change nothing."""
        if math.isnan(bound):
            return
        if exact:
            self.exact_bound = max(self.exact_bound, bound)
        else:
            self._claimed = max(self._claimed, bound)

    def end(self, termination: Termination, message: str = "") -> None:
        """Record why the search ends; a proof of emptiness also bounds every point."""
        self.termination, self.message = termination, message or self.message
        if self.empty:
            self.raise_bound(math.inf)

    def note(self, stage: str) -> None:
        """Record where the search is after `stage`."""
        cost = math.nan if self.best is None else self.cost
        self.stages.append((stage, self.elapsed_s, cost, self.bound))

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C inside the block end the search with its incumbent."""
        try:
            yield
        except KeyboardInterrupt:
            self.end(Termination.INTERRUPTED, "interrupted by the user")

    def within(self, limit_s: float = math.inf, **changes: object) -> SolveOptions | None:
        """Options for one solve within the time left (and `limit_s`); None if none is left."""
        left = min(self.left_s(), limit_s)
        if left < LEAST_SOLVE_S or self.interrupted:
            return None
        return replace(self.options, time_limit_s=left, **changes)  # type: ignore[arg-type]

    def solve(self, problem: Milp, limit_s: float = math.inf, **changes: object) -> Solution | None:
        """Solve a model on the search's clock; None if no time is left. The caller decides what its bound proves.

        Args:
            problem: the model.
            limit_s: seconds that this solve may take, at most.
            changes: other fields of `SolveOptions` for this solve.
        """
        options = self.within(limit_s, **changes)
        if options is None:
            self._timed_out()
            return None
        solution = solve(problem, options)
        self.solver, self.message = solution.report.backend, solution.report.message
        if solution.termination is Termination.INTERRUPTED:
            self.end(Termination.INTERRUPTED, self.message)
        return solution

    def relax(
        self, problem: Milp, limit_s: float = math.inf, sifting: Sifting | None = None
    ) -> Relaxation | None:
        """Solve a linear relaxation on the search's clock; None where no time is left.

        What it proves (`solvers.search.tighten.safe_bound`) is the caller's to take: the model may be a restricted one.

        Args:
            problem: the model.
            limit_s: seconds that this may take, at most.
            sifting: the columns to begin with, where few of many matter.
        """
        options = self.within(limit_s)
        if options is None:
            self._timed_out()
            return None
        return relax(problem, options.time_limit_s, options.backend, sifting)

    def relax_again(self, linear: Linear, limited: Milp, cutoff: float = math.inf) -> Relaxation | None:
        """Solve a relaxation under other limits on the search's clock; None where no time is left."""
        options = self.within()
        if options is None:
            self._timed_out()
            return None
        return relax_again(linear, limited, options.time_limit_s, cutoff)

    def settle(self) -> None:
        """End a search whose stages are over: by the gap, or else by the clock, unless another reason is recorded."""
        if self.termination is not Termination.UNKNOWN:
            return
        self.end(Termination.GAP_REACHED if self.closed else Termination.TIME_LIMIT)

    def _timed_out(self) -> None:
        if self.termination is Termination.UNKNOWN and self.left_s() < LEAST_SOLVE_S:
            self.end(Termination.TIME_LIMIT, "the time limit passed")
