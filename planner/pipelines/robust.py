"""A pipeline by expected cost and its worst outcomes: the pipeline's model with the tail of common scenarios.

The plan by expected cost comes first. A candidate whose cost beside the cheapest of all other tasks passes that plan's
objective with risk is in no better plan, since CVaR is at least the mean: such candidates need no scenarios. Transfers
and tasks that were sized elsewhere are certain. Quotas that tasks share are kept as in the plan by expected cost
(`planner.pipelines.shared`), each part being solved by the model with the tail.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.candidates.plan_parts.scenarios import Draws, ScenarioCosts
from planner.pipelines.branch import TIME_TOLERANCE
from planner.pipelines.local_search import LocalSearch, local_choice
from planner.pipelines.model import build_pipeline
from planner.pipelines.question import Course, PipelineInput, cheapest_usd, follow
from planner.pipelines.shared import in_order, solve_shared
from planner.pipelines.solve import PipelineResult, picked, point_of
from planner.pipelines.way import Offered
from planner.plan.robust import FRESH, FRESH_SEED, MOST_PRICED, Outcome, Robust, Terms
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination
from solvers.problem.tail import tail_point, with_tail
from solvers.search.search import Search
from solvers.search.tail_reduce import not_replaced, within_reach
from solvers.search.tighten import safe_bound

if TYPE_CHECKING:
    from planner.pipelines.shared import SharedQuota
    from solvers.problem.milp import Milp

LOCAL_TIME_SHARE, LEAST_GAIN = 0.1, 1e-9  # of the time limit, at most, for a first choice; a gain that counts


def choose_robust(
    pipe: PipelineInput,
    quotas: Sequence[SharedQuota],
    result: PipelineResult,
    terms: Terms,
    options: SolveOptions,
) -> tuple[PipelineResult, Robust]:
    """The choice of least expected cost and worst outcomes.

    Args:
        pipe: the question; its candidates are `Offered`, at their exact costs.
        quotas: what candidates draw on together.
        result: the plan by expected cost.
        terms: what is minimised.
        options: gap, backend, and the time left.

    Returns:
        The result with the robust choice in place of the plain one, under the bound on expected cost, and what
        robustness costs and gives.
    """
    began = time.perf_counter()
    run = _Run(pipe, terms)
    plain = found = result
    first = run.outcome(result, run.costs)
    bound, considered, left, solver = result.bound_usd, len(pipe.keys), 0, ""
    if terms.averse:
        near, left = run.worth_considering(result, first.objective_usd)
        considered = int(near.sum())
        rows = np.flatnonzero(near)
        small = [replace(quota, units=quota.units[rows]) for quota in quotas]
        other = solve_shared(pipe.take(rows), small, options, solve_part=run.solve_part)
        bound, solver = max(bound, other.bound_usd), other.method
        if other.course is not None and other.course.cost_usd < first.objective_usd * (1.0 - 1e-12):
            found = run.as_planned(other, result)
    if _usd(found) < _usd(plain):
        plain = found  # cheaper by expected cost too, within the gap of the plan that came first
    chosen, other_cost = run.outcome(found, run.costs), run.outcome(plain, run.costs)
    robust = Robust(
        terms, chosen, other_cost, run.outcome(found, run.fresh), run.outcome(plain, run.fresh),
        _usd(found) + run.tail(found, run.costs), _usd(plain) + run.tail(plain, run.costs),
        min(bound, chosen.objective_usd), considered, len(pipe.keys),
        sum(found.chosen[name] != plain.chosen[name] for name in pipe.tasks), solver, time.perf_counter() - began,
        partial=left > 0,
    )  # fmt: skip
    return found, robust


class _Run:
    """One choice: candidates and what they cost in the scenarios."""

    def __init__(self, pipe: PipelineInput, terms: Terms) -> None:
        self._pipe, self._terms = pipe, terms
        self.costs = ScenarioCosts(Draws(terms.scenarios, terms.seed))
        self.fresh = ScenarioCosts(Draws(FRESH, terms.seed + FRESH_SEED))

    def tail(self, result: PipelineResult, costs: ScenarioCosts) -> Floats:
        """Deviation of a result's cost in each scenario, USD."""
        return np.asarray(_deviations(tuple(result.chosen.values()), costs).sum(axis=0), dtype=np.float64)

    def outcome(self, result: PipelineResult, costs: ScenarioCosts) -> Outcome:
        return Outcome.of(_usd(result), self.tail(result, costs), self._terms)

    def worth_considering(self, result: PipelineResult, most_usd: float) -> tuple[Bools, int]:
        """Candidates that a plan of a lower objective may have, and how many of the dearest are too many."""
        pipe = self._pipe
        least = cheapest_usd(pipe)
        above = pipe.cost_usd - least[pipe.task]
        keep = above <= most_usd - math.fsum(least)
        kept, chosen, varying = np.zeros(len(pipe.keys), dtype=np.bool_), set(result.chosen.values()), 0
        order = sorted(np.flatnonzero(keep).tolist(), key=lambda at: (pipe.keys[at] not in chosen, above[at]))
        for at in order:
            one = pipe.keys[at]
            varies = isinstance(one, Offered) and one.source is not None
            if not varies or varying < MOST_PRICED:
                varying += varies
                kept[at] = True
        return kept, int((keep & ~kept).sum())

    def solve_part(self, pipe: PipelineInput, options: SolveOptions) -> PipelineResult:
        """The best choice of a part of the question; its cost and bound are of what is minimised."""
        search: Search[Ints] = Search(options)
        deviation = _deviations(pipe.keys, self.costs)
        wanted = not_replaced(pipe.cost_usd[:, None] + deviation, pipe.hours[:, None], pipe.kinds)
        choice = None
        if pipe.start_by is None:  # which single changes may break
            choice = local_choice(pipe, time.perf_counter() + search.left_s(LOCAL_TIME_SHARE))
        if choice is not None:
            choice = self._improved(pipe, choice, deviation)
            search.offer(choice, self._objective(pipe, choice, follow(pipe, choice)))
            wanted[choice] = True
        with search.interruptible():
            self._solve_model(search, pipe, deviation, wanted)
        search.settle()
        method = f"MILP with scenarios ({search.solver})" if search.solver else "MILP with scenarios"
        if search.best is None:
            return PipelineResult(
                {}, None, search.bound, search.status, method, search.elapsed_s, {}, search.message
            )
        names = {name: pipe.keys[k] for name, k in zip(pipe.tasks, search.best.tolist(), strict=True)}
        course = replace(follow(pipe, search.best), cost_usd=search.cost)
        return PipelineResult(names, course, search.bound, search.status, method, search.elapsed_s)

    def _solve_model(
        self, search: Search[Ints], pipe: PipelineInput, deviation: Floats, wanted: Bools
    ) -> None:
        """The model with the tail over the candidates `wanted`, less those that the relaxation rules out."""
        most, (part, model) = search.cost, self._with_tail(pipe, deviation, wanted)
        relaxation = None if search.best is None else search.relax(model)
        if relaxation is not None:
            bound = safe_bound(relaxation)
            search.raise_bound(bound)
            wanted[wanted] = within_reach(relaxation, len(part.keys), bound, most)
            wanted[search.best] = True
            part, model = self._with_tail(pipe, deviation, wanted)
        rows = np.flatnonzero(wanted)
        start: dict[Hashable, float] = {}
        if search.best is not None:
            start = point_of(part, np.searchsorted(rows, search.best))
            start |= tail_point(deviation[search.best].sum(axis=0), self._terms.level)
        found = search.solve(model, start=start)
        if found is None:
            return
        search.raise_bound(min(found.bound, most))
        if found.status is Status.INFEASIBLE and search.best is None:
            search.end(Termination.INFEASIBLE, found.report.message)
        if found.has_point:
            chosen = rows[picked(part, found)]
            course = follow(pipe, chosen)
            in_time = course.end_hours.max(initial=0.0) <= pipe.deadline_hours * (1 + TIME_TOLERANCE)
            if in_time and pipe.keeps_starts(chosen, course.start_hours):
                search.offer(chosen, self._objective(pipe, chosen, course))

    def _with_tail(self, pipe: PipelineInput, deviation: Floats, wanted: Bools) -> tuple[PipelineInput, Milp]:
        """The question of the candidates `wanted`, and its model with what they deviate by in the scenarios."""
        part = pipe.take(np.flatnonzero(wanted))
        columns, terms = np.arange(len(part.keys)), self._terms
        return part, with_tail(build_pipeline(part), columns, deviation[wanted], terms.weight, terms.level)

    def _improved(self, pipe: PipelineInput, choice: Ints, deviation: Floats) -> Ints:
        """A choice made better task by task until no task alone makes it better."""
        search, terms = LocalSearch(pipe, choice), self._terms
        moved = True
        while moved:
            moved = False
            for task in range(pipe.n_tasks):
                own, now = search.candidates(task), int(search.chosen[task])
                usd, slack = search.options(task)
                others = deviation[search.chosen].sum(axis=0) - deviation[now]
                tails = [terms.worst(others + one) for one in deviation[own]]
                value = usd + terms.weight * np.asarray(tails)
                value[(slack < 0) & (own != now)] = np.inf
                best = int(np.argmin(value))
                if value[best] < value[np.searchsorted(own, now)] - LEAST_GAIN * max(abs(value[best]), 1.0):
                    search.change(task, int(own[best]))
                    moved = True
        return search.chosen

    def _objective(self, pipe: PipelineInput, chosen: Ints, course: Course) -> float:
        tail = _deviations([pipe.keys[k] for k in chosen.tolist()], self.costs).sum(axis=0)
        return Outcome.of(course.cost_usd, tail, self._terms).objective_usd

    def as_planned(self, other: PipelineResult, result: PipelineResult) -> PipelineResult:
        """A robust choice with its expected cost, under the bound of the plan by expected cost."""
        row = {key: at for at, key in enumerate(self._pipe.keys)}
        chosen = np.asarray([row[other.chosen[name]] for name in self._pipe.tasks], dtype=np.int64)
        pipe = in_order(self._pipe, other.orders)
        course = follow(pipe, chosen)
        edges = len(self._pipe.source)
        course = replace(course, move_usd=course.move_usd[:edges], move_hours=course.move_hours[:edges])
        return replace(
            result, chosen=other.chosen, course=course, bound_usd=min(result.bound_usd, course.cost_usd),
            orders=other.orders, status=Status.FEASIBLE, seconds=result.seconds + other.seconds,
        )  # fmt: skip


def _deviations(keys: Sequence[object], costs: ScenarioCosts) -> Floats:
    """Of each way, shape `(n, S)`."""
    return costs.deviations(
        [(one.source, one.row) if isinstance(one, Offered) else (None, 0) for one in keys]
    )


def _usd(result: PipelineResult) -> float:
    assert result.course is not None
    return result.course.cost_usd
