"""Pipelines whose tasks draw on the same quotas at the same time: branching on what exceeds them, exact.

A choice is looked for without the quotas. Where tasks that run at the same time exceed one together, a smallest such
set of them is taken apart in every way there is: one of them waits for another to end, or one of them draws less than
it does. Any plan that keeps the quotas does one of these, since tasks that all overlap in pairs have a moment in
common. So the bounds of the parts that are left bound every plan, and a choice that exceeds nothing is one.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations
from typing import Literal

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.pipelines.question import Course, PipelineInput
from planner.pipelines.solve import PipelineResult, solve_pipeline
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, relative_gap

MOST_PARTS = 400  # choices looked for, at most
HAIR = 1e-9  # hours, and relative units
Order = tuple[int, int]
SolvePart = Callable[[PipelineInput, SolveOptions], PipelineResult]


@dataclass(frozen=True, eq=False)
class SharedQuota:
    """A quota that tasks draw on together.

    Attributes:
        name: place and quota.
        limit: units that may be in use at once.
        units: what each candidate draws while its task runs, shape `(n,)`.
    """

    name: str
    limit: float
    units: Floats


@dataclass(frozen=True)
class Conflict:
    """Tasks that run at the same time and exceed a quota together; without any one of them they do not."""

    quota: SharedQuota = field(repr=False)
    tasks: tuple[int, ...]
    units: tuple[float, ...]
    moment_hours: float

    def text(self, pipe: PipelineInput) -> str:
        """The conflict in words."""
        names, limit = ", ".join(pipe.tasks[task] for task in self.tasks), self.quota.limit
        return f"{names} would use {sum(self.units):,.12g} at once of the quota {self.quota.name}, limit {limit:,.12g}"


@dataclass(order=True)
class _Part:
    """Candidates and orders of a part of the question, with the choice that is best there but for the quotas."""

    bound: float
    number: int
    allowed: Bools = field(compare=False)
    orders: tuple[Order, ...] = field(compare=False)
    result: PipelineResult = field(compare=False)
    conflict: Conflict | None = field(compare=False)


def in_order(pipe: PipelineInput, orders: Sequence[Order]) -> PipelineInput:
    """The same where the second task of each order waits for the first to end, after the edges of data."""
    if not orders:
        return pipe
    before, after = (np.asarray(side, dtype=np.int64) for side in zip(*orders, strict=True))
    nothing = np.zeros((len(orders), pipe.n_groups, pipe.n_groups))
    return replace(
        pipe, source=np.append(pipe.source, before), target=np.append(pipe.target, after),
        move_usd=np.concatenate([pipe.move_usd, nothing]), move_hours=np.concatenate([pipe.move_hours, nothing]),
    )  # fmt: skip


def conflict_of(chosen: Ints, course: Course, quotas: Sequence[SharedQuota]) -> Conflict | None:
    """The first set of tasks, fewest first, that exceed a quota together; None where every one is kept."""
    found = []
    for quota in quotas:
        units = quota.units[chosen]
        for moment in distinct_values(course.start_hours[units > 0]).tolist():
            active = (course.start_hours <= moment + HAIR) & (course.end_hours > moment + HAIR) & (units > 0)
            tasks = sorted(np.flatnonzero(active).tolist(), key=lambda task: -units[task])
            sums = np.cumsum(units[tasks])
            over = np.flatnonzero(sums > quota.limit * (1 + HAIR))
            if len(tasks) > 1 and len(over):
                least = tasks[: max(int(over[0]) + 1, 2)]
                found.append(Conflict(quota, tuple(least), tuple(units[least].tolist()), moment))
    return min(found, key=lambda one: (len(one.tasks), one.moment_hours), default=None)


class SharedSearch:
    """Best bound first over the parts of a pipeline with shared quotas; down to the better part at once."""

    def __init__(
        self, pipe: PipelineInput, quotas: Sequence[SharedQuota], options: SolveOptions, solve_part: SolvePart
    ) -> None:
        """Take the question, its quotas, gap and time limit for everything, and how each part is solved."""
        self._pipe, self._quotas, self._options, self._solve = pipe, quotas, options, solve_part
        self._began, self._number = time.perf_counter(), 0
        self._row = {key: at for at, key in enumerate(pipe.keys)}
        self.first: Conflict | None = None

    def _part(self, allowed: Bools, orders: tuple[Order, ...], least: float) -> _Part | None:
        """Solve a part; None where no time is left."""
        self._number += 1
        left = self._options.time_limit_s - (time.perf_counter() - self._began)
        if self._number > 1 and (left <= 0 or self._number > MOST_PARTS):
            return None
        pipe = in_order(self._pipe.take(np.flatnonzero(allowed)), orders)
        result = self._solve(pipe, replace(self._options, time_limit_s=max(left, 1e-3)))
        conflict = None
        if result.course is not None:
            chosen = np.array([self._row[result.chosen[name]] for name in pipe.tasks], dtype=np.int64)
            conflict = conflict_of(chosen, result.course, self._quotas)
        bound = max(result.bound_usd, least)
        return _Part(bound, self._number, allowed, orders, result, conflict)

    def _apart(self, part: _Part) -> Iterator[tuple[Bools, tuple[Order, ...]]]:
        """Every way to take the conflict of a part apart."""
        assert part.conflict is not None
        for before, after in permutations(part.conflict.tasks, 2):
            if not _waits(self._pipe, part.orders, after, before):
                yield part.allowed, (*part.orders, (before, after))
        for task, units in zip(part.conflict.tasks, part.conflict.units, strict=True):
            as_much = (self._pipe.task == task) & (part.conflict.quota.units >= units * (1 - HAIR))
            allowed = part.allowed & ~as_much
            if (allowed & (self._pipe.task == task)).any():
                yield allowed, part.orders

    def run(self) -> PipelineResult:
        """The cheapest plan that keeps the quotas, with a bound on all that do."""
        part = self._part(np.ones(len(self._pipe.keys), dtype=np.bool_), (), -math.inf)
        assert part is not None
        self.first = part.conflict
        if part.conflict is None:
            return part.result
        root, best, open_parts, done = part, None, [part], math.inf
        part = None
        while True:
            cutoff = math.inf if best is None else _cost(best) * (1 - self._options.gap)
            if part is None:
                if not open_parts or open_parts[0].bound >= cutoff:
                    break
                part = heapq.heappop(open_parts)
            if part.result.course is None or part.conflict is None or part.bound >= cutoff:
                done = min(done, part.bound)
                part = None
                continue
            parts = [self._part(*piece, part.bound) for piece in self._apart(part)]
            if any(piece is None for piece in parts):
                done = min(done, part.bound)  # not looked through: its bound holds, its plans are not known
                kept = [piece for piece in parts if piece is not None]
                best = _better([best, *kept])
                break
            children = sorted(piece for piece in parts if piece is not None and not _empty(piece))
            best = _better([best, *children])
            part = children[0] if children else None
            for child in children[1:]:
                heapq.heappush(open_parts, child)
        bound = min([done, *(one.bound for one in open_parts)])
        return self._result(root, best, bound)

    def _result(self, root: _Part, best: _Part | None, bound: float) -> PipelineResult:
        """The answer: the best part's choice under the bound on all parts."""
        seconds = time.perf_counter() - self._began
        method = f"{root.result.method}, {self._number} parts for shared quotas"
        if best is None:
            assert root.conflict is not None
            said, proven = root.conflict.text(self._pipe), math.isinf(bound)
            message = "no plan that meets the shared quotas was found, but one may exist"
            return replace(
                root.result, chosen={}, course=None, bound_usd=bound, method=method, seconds=seconds, conflict=said,
                status=Status.INFEASIBLE if proven else Status.NO_SOLUTION, message=message,
            )  # fmt: skip
        bound = min(bound, _cost(best))
        closed = relative_gap(_cost(best), bound) <= self._options.gap * (1 + 1e-6) + 1e-9
        return replace(
            best.result, bound_usd=bound, status=Status.OPTIMAL if closed else Status.FEASIBLE, method=method,
            seconds=seconds, orders=best.orders,
        )  # fmt: skip


def solve_shared(
    pipe: PipelineInput, quotas: Sequence[SharedQuota], options: SolveOptions, *,
    method: Literal["auto", "milp"] = "auto", solve_part: SolvePart | None = None,
) -> PipelineResult:  # fmt: skip
    """Find the cheapest choice that meets the deadline and, at every moment, the quotas.

    Args:
        pipe: the question.
        quotas: what candidates draw on together.
        options: gap, time limit for everything, backend.
        method: as in `solve_pipeline`.
        solve_part: finds the best choice without the quotas, by default `solve_pipeline`; what it calls cost and bound
            is what is minimised.
    """
    solve = partial(solve_pipeline, method=method) if solve_part is None else solve_part
    return SharedSearch(pipe, quotas, options, solve).run() if quotas else solve(pipe, options)


def _cost(part: _Part) -> float:
    return math.inf if part.result.course is None else part.result.course.cost_usd


def _empty(part: _Part) -> bool:
    return part.result.status is Status.INFEASIBLE


def _better(parts: Sequence[_Part | None]) -> _Part | None:
    """The cheapest part whose choice keeps the quotas."""
    plans = [
        part
        for part in parts
        if part is not None and part.result.course is not None and part.conflict is None
    ]
    return min(plans, key=_cost, default=None)


def _waits(pipe: PipelineInput, orders: Sequence[Order], task: int, other: int) -> bool:
    """Whether `other` waits for `task`, at once or through others."""
    edges = [*zip(pipe.source.tolist(), pipe.target.tolist(), strict=True), *orders]
    known, left = {task}, [task]
    while left:
        now = left.pop()
        for before, after in edges:
            if before == now and after not in known:
                known.add(after)
                left.append(after)
    return other in known
