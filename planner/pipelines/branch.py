"""Branch and bound over the relaxation of a pipeline: what is fractional in it are a few knots of tasks.

Where the relaxation halves a task, it halves with it the tasks that would move to the same place, all by the same
share: a knot. Deciding one of its tasks unties it. So a node is the candidates that are still allowed, its bound the
relaxation over them, and the knot whose tasks' hours are mixed most is decided by one of its tasks: at the group of
places it leans to or at any other; within one group, fast or slow. What could stand in for a candidate is thus on its
side, so that both bounds rise: beside a single place of many, another as good would be left. The search goes down to
the better side at once, which leaves the next relaxation little to change, and comes back best bound first. Candidates
that no choice below the cutoff can have are dropped on the way (`planner.pipelines.marginals`). Relaxations are
rounded, repaired and improved, one in four of them where a plan is known and that has found nothing for a while.
"""

from __future__ import annotations

import copy
import heapq
import time
from dataclasses import dataclass, field, replace

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct, distinct_values
from planner.pipelines.local_search import LocalSearch, repaired
from planner.pipelines.marginals import Shares, nearest, worth_keeping
from planner.pipelines.model import build_pipeline, part_of_pipeline
from planner.pipelines.question import PipelineInput, follow, priced_for_solver, windows
from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp
from solvers.problem.presolve import part_of
from solvers.problem.solution import Termination
from solvers.search.search import Search
from solvers.search.tighten import LP_TOLERANCE, safe_bound

SUPPORT = 1e-6  # a candidate that the relaxation uses at all
SAFE = 1e-6  # of the cutoff: a candidate is dropped only this far beyond it
TIME_TOLERANCE = 1e-6  # of the deadline: what a solver's tolerance may miss it by
SHARE_DIGITS = 5  # tasks split by the same share, to so many digits, form a knot
SOON, SELDOM = 8, 4  # after so many relaxations rounded in vain, one of so many is rounded
SMALLER = 0.5  # of a model's candidates: where no more are left, a model of those alone is solved faster,
WORTH_BUILDING = 1_000  # unless it is small already


@dataclass(order=True)
class Node:
    """Candidates still allowed, and the relaxation over them.

    Attributes:
        bound: no choice among them costs less, USD.
        number: of the node, to break ties.
        allowed: shape `(n,)`.
        x: how much the relaxation takes of each candidate, shape `(n,)`.
        relaxation: what the bound follows from, None where nothing was relaxed.
    """

    bound: float
    number: int
    allowed: Bools = field(compare=False)
    x: Floats = field(compare=False)
    relaxation: Relaxation | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Split:
    """Two sides of a node: a task's candidates inside and outside a mask of shape `(n,)`."""

    task: int
    inside: Bools


class Branching:
    """The relaxation over some candidates of a pipeline; makes nodes and explores them on the search's clock."""

    def __init__(self, search: Search[Ints], pipe: PipelineInput, rows: Ints) -> None:
        """Build the relaxation.

        Args:
            search: where plans are offered, as positions in `pipe`.
            pipe: the question.
            rows: candidates to branch over, positions in `pipe`; masks of nodes are over these.
        """
        self._search, self._whole, self._rows = search, pipe, rows
        self._pipe = pipe if len(rows) == len(pipe.keys) else pipe.take(rows)
        self._problem = build_pipeline(priced_for_solver(self._pipe, search.cost))
        self._linear = get_backend(search.options.backend).linear(self._problem)
        self._shares = Shares.of(self._problem)
        self._number = self._vain = 0
        self._offered: set[bytes] = set()

    def part(self, allowed: Bools) -> Branching:
        """The same over the allowed candidates alone."""
        columns, rows = part_of_pipeline(self._problem, self._pipe, allowed)
        part = copy.copy(self)
        part._rows, part._pipe = self._rows[allowed], self._pipe.take(np.flatnonzero(allowed))
        part._problem, part._linear = part_of(self._problem, columns, rows), self._linear.part(columns, rows)
        part._shares, part._offered = self._shares.part(columns, rows), set()
        return part

    def root(self, cutoff: float = np.inf) -> Node | None:
        """The node with all candidates."""
        return self.node(np.ones(len(self._rows), dtype=np.bool_), cutoff)

    def node(self, allowed: Bools, cutoff: float = np.inf) -> Node | None:
        """Relax over `allowed`; None where no time is left, a bound of inf where nothing there meets the deadline.

        A node whose choices all cost the cutoff or more has that for its bound and no relaxation.
        """
        count = len(allowed)
        self._number += 1
        empty = Node(np.inf, self._number, allowed, np.zeros(count))
        if not self.complete(allowed):
            return empty
        stop = cutoff * (1 + LP_TOLERANCE)  # what a relaxation's own tolerance may hide
        relaxation = self._search.relax_again(self._linear, self._limited(allowed), stop)
        if relaxation is None:
            return None
        if relaxation.termination is Termination.INFEASIBLE:
            return empty
        if relaxation.x is None and not np.isnan(relaxation.objective):
            return replace(empty, bound=cutoff)
        if relaxation.x is None:
            return None
        return Node(safe_bound(relaxation), self._number, allowed, relaxation.x[:count], relaxation)

    def complete(self, allowed: Bools) -> bool:
        """Whether every task has one of the allowed candidates."""
        return len(distinct_values(self._pipe.task[allowed])) == self._pipe.n_tasks

    def left(self, node: Node, cutoff: float) -> Bools:
        """The candidates allowed in a node without those that only choices above the cutoff can have."""
        if node.relaxation is None or np.isinf(cutoff):
            return node.allowed
        # a node's bound may be its parent's; what is above a relaxation is above the relaxation's own
        room = cutoff + SAFE * abs(cutoff) - safe_bound(node.relaxation)
        return worth_keeping(self._pipe, self._shares, node.relaxation, node.allowed, room)

    def nearest(self, node: Node, count: int) -> Bools:
        """About `count` of the candidates allowed in a node: those that choices near its bound may have.

        None where no plan says what is near.
        """
        if node.relaxation is None or np.isinf(self._search.cost):
            return np.zeros(len(node.allowed), dtype=np.bool_)
        room = self._search.cost - safe_bound(node.relaxation)
        return nearest(self._pipe, self._shares, node.relaxation, node.allowed, room, count)

    def _limited(self, allowed: Bools) -> Milp:
        """The model where only the allowed candidates can be taken, with the starts and ends that they leave."""
        problem, pipe = self._problem, self._pipe
        lower, upper, ends = problem.lb.copy(), problem.ub.copy(), problem.row_hi.copy()
        upper[: len(allowed)] = allowed
        if not pipe.timed:
            return replace(problem, ub=upper)
        earliest, latest = windows(pipe, allowed)
        starts = next(block for block in problem.column_blocks if block.name == "start")
        finish = problem.row_block("finish")
        assert finish is not None
        lower[starts.indices], upper[starts.indices] = earliest, np.maximum(latest, earliest)
        ends[finish.indices] = latest
        return replace(problem, lb=lower, ub=upper, row_hi=ends)

    def offer(self, choice: Ints) -> None:
        """Improve a choice and keep it if it is the cheapest; one that misses the deadline is repaired first."""
        if choice.tobytes() in self._offered:
            return
        self._offered.add(choice.tobytes())
        until_s = time.perf_counter() + max(self._search.left_s(), 0.0)
        kept = repaired(self._pipe, choice, until_s)
        if kept is None:
            return
        near = LocalSearch(self._pipe, kept, until_s)
        near.improve(thrifty=False)
        chosen = self._rows[near.chosen]
        if self._search.offer(chosen, follow(self._whole, chosen).cost_usd):
            wide = LocalSearch(self._whole, chosen, until_s)
            wide.improve(thrifty=False)
            wide.trade()
            self._search.offer(wide.chosen, follow(self._whole, wide.chosen).cost_usd)

    def round(self, node: Node) -> bool:
        """Offer the choice that a node's relaxation leans to; say whether it leads to a cheaper one."""
        known = self._search.cost
        order = np.lexsort((-node.x, self._pipe.task))
        self.offer(order[np.searchsorted(self._pipe.task[order], np.arange(self._pipe.n_tasks))])
        return self._search.cost < known

    def explore(self, root: Node, *, gap: float, most: int) -> float:
        """Branch until every choice within the root is known, or proven to cost nearly as much as the best.

        Args:
            root: where to begin; it has a relaxation.
            gap: nodes are cut off where they cannot save this part of the best cost.
            most: relaxations, about.

        Returns:
            The bound on every choice within the root.
        """
        waiting, proven, node = [root], np.inf, None
        while self._number < most:
            cutoff = self._search.cost * (1 - gap)
            if node is None or node.bound >= cutoff:
                if node is not None:
                    heapq.heappush(waiting, node)
                if not waiting or waiting[0].bound >= cutoff:
                    node = None
                    break
                node = heapq.heappop(waiting)
            split = self._split(node)
            if split is None:  # whole: the best choice within the node, but for what the model rounds off
                self._offer_whole(node)
                proven, node = min(proven, node.bound), None
                continue
            allowed = self.left(node, cutoff)
            proven = min(proven, cutoff)  # what was dropped
            if not self.complete(allowed):
                node = None
                continue
            if len(allowed) >= WORTH_BUILDING and allowed.sum() <= SMALLER * len(allowed):
                proven = min(proven, self._explore_apart(node, allowed, gap=gap, most=most))
                node = None
                continue
            sides = self._sides(node, allowed, split, cutoff)
            if sides is None:
                break
            sides.sort()
            for side in sides[1:]:
                heapq.heappush(waiting, side)
            node = sides[0] if sides else None
            if node is not None and node.bound < cutoff and (self._vain < SOON or not node.number % SELDOM):
                self._vain = self._vain + 1 if not self.round(node) and self._search.best is not None else 0
        left = [*waiting, *([] if node is None else [node])]
        return min(proven, *(one.bound for one in left)) if left else proven

    def _explore_apart(self, node: Node, allowed: Bools, *, gap: float, most: int) -> float:
        """Explore what is left of a node by a model of that alone; return the bound on every choice there."""
        apart = self.part(allowed)
        root = apart.root(self._search.cost * (1 - gap))
        if root is None:
            return node.bound
        bound = apart.explore(root, gap=gap, most=most)
        self._number = apart._number
        return max(node.bound, bound)

    def _sides(self, node: Node, allowed: Bools, split: Split, cutoff: float) -> list[Node] | None:
        """The sides of a split where anything meets the deadline; None: no time."""
        sides = []
        for inside in (split.inside, ~split.inside):
            side = self.node(allowed & (inside | (self._pipe.task != split.task)), cutoff)
            if side is None:
                return None
            side.bound = max(side.bound, node.bound)
            sides.append(side)
        return [side for side in sides if np.isfinite(side.bound)]

    def _offer_whole(self, node: Node) -> None:
        """Offer a whole relaxation as it is, too: it may miss the deadline by the solver's tolerance."""
        self.round(node)
        chosen = self._rows[np.flatnonzero(node.x > 0.5)]
        course = follow(self._whole, chosen)
        if course.end_hours.max(initial=0.0) <= self._whole.deadline_hours * (1 + TIME_TOLERANCE):
            self._search.offer(chosen, course.cost_usd)

    def _split(self, node: Node) -> Split | None:
        """The split of the task that is mixed most in the knot that is mixed most; None where all is whole."""
        pipe = self._pipe
        used = np.flatnonzero(node.x > SUPPORT)
        task, x = pipe.task[used], node.x[used]
        if len(task) == pipe.n_tasks:
            return None
        spread = pipe.hours[used] if pipe.timed else pipe.cost_usd[used]

        def per_task(weights: Floats) -> Floats:
            return np.bincount(task, weights=weights, minlength=pipe.n_tasks).astype(np.float64)

        apart = per_task(x * np.abs(spread - (per_task(x * spread) / per_task(x))[task]))
        inside = self._inside(used, x)
        mixed = np.flatnonzero(per_task(np.ones(len(x))) > 1)
        share = per_task(x * inside[used])[mixed]
        knots, of = distinct(np.round(np.minimum(share, 1 - share), SHARE_DIGITS))[::2]
        knot = np.argmax(np.bincount(of, weights=apart[mixed], minlength=len(knots)))
        return Split(int(mixed[of == knot][np.argmax(apart[mixed[of == knot]])]), inside)

    def _inside(self, used: Ints, x: Floats) -> Bools:
        """Whether each candidate is on one side or the other of its task, shape `(n,)`.

        Of a task that the relaxation mixes, some of those used are on each. What could stand in for a candidate is on
        its side: places of one group; within one group, or where only hours tell, what is about as fast.

        Args:
            used: candidates that a relaxation uses.
            x: how much of each, likewise.
        """
        pipe = self._pipe
        group = pipe.group[pipe.place]

        def most(at: Ints, count: int) -> tuple[Bools, Bools]:
            """Whether each candidate is where most of its task is, and whether its task is at several."""
            shares = np.zeros((pipe.n_tasks, count))
            np.add.at(shares, (pipe.task[used], at[used]), x)
            return at == shares.argmax(axis=1)[pipe.task], ((shares > 0).sum(axis=1) > 1)[pipe.task]

        at_group, groups = most(group, pipe.n_groups)
        at_place, places = most(pipe.place, len(pipe.group))
        low, high = np.full(pipe.n_tasks, np.inf), np.full(pipe.n_tasks, -np.inf)
        np.minimum.at(low, pipe.task[used], pipe.hours[used])
        np.maximum.at(high, pipe.task[used], pipe.hours[used])
        fast = pipe.hours - low[pipe.task] <= ((high - low) / 2)[pipe.task]
        paced = (high > low)[pipe.task] & (pipe.timed | ~places)
        return np.where(groups, at_group, np.where(paced, fast, at_place))
