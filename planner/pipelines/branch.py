"""Branch and bound over the relaxation of a pipeline: what is fractional in it are a few knots of tasks.

Where the relaxation halves a task, it halves with it the tasks that would move to the same place; deciding that one
task unties the knot. So a node is the candidates that are still allowed, its bound the relaxation over them, and the
task branched on is the one whose hours the relaxation mixes most: at the place it leans to or at any other; at one
place, fast or slow. Nodes are taken best bound first. Candidates whose reduced cost passes the cutoff are dropped on
the way (Savelsbergh 1994), so the relaxations become small. Every relaxation is rounded, repaired and improved.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field, replace

import numpy as np

from planner.pipelines.local_search import LocalSearch, repaired
from planner.pipelines.model import Move, Stay
from planner.pipelines.question import Bools, Floats, Ints, PipelineInput, follow, windows
from solvers.problem.milp import Milp
from solvers.problem.presolve import restrict
from solvers.problem.solution import Termination
from solvers.search.search import Search
from solvers.search.tighten import safe_bound

SUPPORT = 1e-6  # a candidate that the relaxation uses at all
SAFE = 1e-6  # of the cutoff: a candidate is dropped only this far beyond it
TIME_TOLERANCE = 1e-6  # of the deadline: what a solver's tolerance may miss it by


@dataclass(order=True)
class Node:
    """Candidates still allowed, and the relaxation over them.

    Attributes:
        bound: no choice among them costs less, USD.
        number: of the node, to break ties.
        allowed: shape `(n,)`.
        x: how much the relaxation takes of each candidate, shape `(n,)`.
        reduced_cost: of each candidate, USD, shape `(n,)`.
    """

    bound: float
    number: int
    allowed: Bools = field(compare=False)
    x: Floats = field(compare=False)
    reduced_cost: Floats = field(compare=False)

    def dropped(self, cutoff: float) -> Bools:
        """The allowed candidates without those that only choices above the cutoff can have."""
        dear = self.bound + np.maximum(self.reduced_cost, 0.0) > cutoff + SAFE * abs(cutoff)
        return np.asarray(self.allowed & ~(dear & (self.x <= SUPPORT)), dtype=np.bool_)


class Branching:
    """A model with its question; makes nodes and explores them on the search's clock."""

    def __init__(self, search: Search[Ints], pipe: PipelineInput, problem: Milp) -> None:
        """Take the question and its model, whose first columns are the candidates."""
        self._search, self._pipe, self._problem = search, pipe, problem
        self._number = 0
        self._moves = np.array(
            [(k.edge, k.source, k.target) for k in problem.column_keys if isinstance(k, Move)]
        )
        self._stays = np.array([(k.edge, k.place) for k in problem.column_keys if isinstance(k, Stay)])

    def node(self, allowed: Bools) -> Node | None:
        """Relax over `allowed`; None where no time is left, a bound of inf where nothing there keeps the deadline."""
        pipe, problem = self._pipe, self._problem
        self._number += 1
        count = len(pipe.keys)
        if len(np.unique(pipe.task[allowed])) < pipe.n_tasks:
            return Node(np.inf, self._number, allowed, np.zeros(count), np.zeros(count))
        columns = self._columns(allowed)
        limited = self._within_windows(problem, allowed) if pipe.timed else problem
        relaxation = self._search.relax(
            limited if len(columns) == problem.n_columns else restrict(limited, columns)
        )
        if relaxation is None:
            return None
        if relaxation.termination is Termination.INFEASIBLE:
            return Node(np.inf, self._number, allowed, np.zeros(count), np.zeros(count))
        if relaxation.x is None or relaxation.reduced_costs is None:
            return None
        x, reduced, own = np.zeros(count), np.zeros(count), np.flatnonzero(allowed)
        x[own], reduced[own] = relaxation.x[: len(own)], relaxation.reduced_costs[: len(own)]
        return Node(safe_bound(relaxation), self._number, allowed, x, reduced)

    def _columns(self, allowed: Bools) -> Ints:
        """Columns that can be above 0 where only the allowed candidates can, candidates first, ascending."""
        pipe, kept = self._pipe, np.ones(self._problem.n_columns, dtype=np.bool_)
        kept[: len(allowed)] = allowed
        at_place = np.zeros((pipe.n_tasks, len(pipe.group)), dtype=np.bool_)
        at_place[pipe.task[allowed], pipe.place[allowed]] = True
        at_group = np.zeros((pipe.n_tasks, pipe.n_groups), dtype=np.bool_)
        at_group[pipe.task[allowed], pipe.group[pipe.place[allowed]]] = True
        for block in self._problem.column_blocks:
            if block.name == "f" and len(self._moves):
                edge, source, target = self._moves.T
                kept[block.indices] = (
                    at_group[pipe.source[edge], source] & at_group[pipe.target[edge], target]
                )
            elif block.name == "s" and len(self._stays):
                edge, place = self._stays.T
                kept[block.indices] = at_place[pipe.source[edge], place] & at_place[pipe.target[edge], place]
        return np.flatnonzero(kept)

    def _within_windows(self, problem: Milp, allowed: Bools) -> Milp:
        """The model with the starts and ends that the allowed candidates leave."""
        earliest, latest = windows(self._pipe, allowed)
        lower, upper, ends = problem.lb.copy(), problem.ub.copy(), problem.row_hi.copy()
        for block in problem.column_blocks:
            if block.name == "start":
                lower[block.indices] = earliest
                upper[block.indices] = np.maximum(latest, earliest)
        finish = problem.row_block("finish")
        assert finish is not None
        ends[finish.indices] = latest
        return replace(problem, lb=lower, ub=upper, row_hi=ends)

    def offer(self, choice: Ints) -> None:
        """Improve a choice and keep it if it is the cheapest; one that misses the deadline is repaired first."""
        until_s = time.perf_counter() + max(self._search.left_s(), 0.0)
        kept = repaired(self._pipe, choice, until_s)
        if kept is not None:
            local = LocalSearch(self._pipe, kept, until_s)
            local.improve(thrifty=False)
            self._search.offer(local.chosen, follow(self._pipe, local.chosen).cost_usd)

    def round(self, node: Node) -> None:
        """Offer the choice that a node's relaxation leans to."""
        order = np.lexsort((-node.x, self._pipe.task))
        self.offer(order[np.searchsorted(self._pipe.task[order], np.arange(self._pipe.n_tasks))])

    def explore(self, root: Node, *, gap: float, most_nodes: int) -> float:
        """Branch until every choice within the root is found, or proven to cost nearly as much as the best.

        Args:
            root: where to begin; it has a relaxation.
            gap: nodes are cut off where they cannot save this part of the best cost.
            most_nodes: nodes to branch, at most.

        Returns:
            The bound on every choice within the root.
        """
        open_nodes, proven = [root], np.inf
        for _ in range(most_nodes):
            cutoff = self._search.cost * (1 - gap)
            if not open_nodes or open_nodes[0].bound >= cutoff:
                break
            node = heapq.heappop(open_nodes)
            allowed = node.dropped(cutoff)
            sides = self._sides(node)
            if sides is None:  # whole: the best choice within the node, but for what the model rounds off
                self._offer_whole(node)
                proven = min(proven, node.bound)
                continue
            proven = min(proven, cutoff)  # what was dropped
            for part in sides:
                child = self.node(allowed & part)
                if child is None:
                    return min(proven, node.bound, *(other.bound for other in open_nodes))
                child.bound = max(child.bound, node.bound)
                if np.isfinite(child.bound):
                    self.round(child)
                    heapq.heappush(open_nodes, child)
        return min(proven, open_nodes[0].bound) if open_nodes else proven

    def _offer_whole(self, node: Node) -> None:
        """Offer a whole relaxation as it is, too: it may miss the deadline by the solver's tolerance."""
        self.round(node)
        chosen = np.flatnonzero(node.x > 0.5)
        course = follow(self._pipe, chosen)
        if course.end_hours.max(initial=0.0) <= self._pipe.deadline_hours * (1 + TIME_TOLERANCE):
            self._search.offer(chosen, course.cost_usd)

    def _sides(self, node: Node) -> tuple[Bools, Bools] | None:
        """Both sides of the split of a node, each `(n,)` and with all of the other tasks; None where all is whole."""
        pipe = self._pipe
        used = np.flatnonzero(node.x > SUPPORT)
        spread = pipe.hours[used] if pipe.timed else pipe.cost_usd[used]
        weight = np.bincount(pipe.task[used], weights=node.x[used], minlength=pipe.n_tasks)
        mean = np.bincount(pipe.task[used], weights=node.x[used] * spread, minlength=pipe.n_tasks) / weight
        mixed = np.bincount(pipe.task[used], minlength=pipe.n_tasks) > 1
        if not mixed.any():
            return None
        apart = np.bincount(
            pipe.task[used],
            weights=node.x[used] * np.abs(spread - mean[pipe.task[used]]),
            minlength=pipe.n_tasks,
        )
        task = int(np.argmax(np.where(mixed, apart, -1.0)))
        own = used[pipe.task[used] == task]
        if len(np.unique(pipe.place[own])) > 1:
            at_place = np.bincount(pipe.place[own], weights=node.x[own])
            inside = pipe.place == int(np.argmax(at_place))
        else:
            inside = pipe.hours <= pipe.hours[own].min() / 2 + pipe.hours[own].max() / 2
        others = pipe.task != task
        return np.asarray(inside | others, dtype=np.bool_), np.asarray(~inside | others, dtype=np.bool_)
