"""Branch and bound over switches: which of few binary columns are on, where each opens many whole columns.

For models whose relaxation is weak in the switches and tight once they are fixed. Nodes are column bounds, bounded by
the relaxation. At each node reduced-cost fixing caps columns and turns switches off, a switch that is off removes its
columns, and nodes are soon so small that a MILP solver closes them at its root. Best bound first, so the first node
that is solved as a MILP gives a point near the optimum.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.problem.milp import Floats, Ints, Milp
from solvers.problem.presolve import alive, part_of
from solvers.problem.solution import Solution, Status, Termination
from solvers.search.search import Search
from solvers.search.tighten import (
    BOUND_MARGIN,
    LP_TOLERANCE,
    caps_from_reduced_costs,
    safe_bound,
    with_cutoff,
)

FEW = 300  # integer columns: nodes with at most so many are solved as a MILP
BETWEEN = 1e-6  # a switch further than this from 0 and from 1 is neither on nor off
LEFT_GAP_SHARE = 0.5  # nodes are solved as a MILP to this share of the requested gap


@dataclass(frozen=True, eq=False)
class Switched:
    """A model with switches.

    Attributes:
        problem: the model; lower bounds are 0, or those of columns that need no switch.
        switches: the switches' columns, binary, shape `(n_switches,)`.
        needs: number in `switches` of the switch without which a column is 0, -1 for none, shape `(n_columns,)`.
    """

    problem: Milp
    switches: Ints
    needs: Ints

    def closed(self, upper: Floats) -> Floats:
        """Return upper bounds with the columns of switches that are off at 0, shape `(n_columns,)`."""
        off = np.append(upper[self.switches] < 1.0, False)
        return np.where(off[self.needs], 0.0, upper)

    def under(self, upper: Floats) -> Switched:
        """Return the model under lower upper bounds, without columns at 0 and rows that this empties."""
        limited = replace(self.problem, ub=upper)
        keep, rows = alive(limited)
        stays = keep[self.switches]
        number = np.append(np.where(stays, np.cumsum(stays) - 1, -1), -1)
        problem = part_of(limited, keep, rows)
        return Switched(problem, (np.cumsum(keep) - 1)[self.switches[stays]], number[self.needs[keep]])


@dataclass(order=True)
class _Node:
    """Limits of columns, and the relaxation under them."""

    bound: float
    number: int
    lower: Floats = field(compare=False)
    upper: Floats = field(compare=False)
    relaxation: Relaxation = field(compare=False)


class Branching:
    """One search over the switches of a model."""

    def __init__(
        self, search: Search[Any], model: Switched, take: Callable[[Solution], None], gap_share: float
    ) -> None:
        """Take the model.

        Args:
            search: its clock, options and best cost.
            model: what is searched.
            take: offers a solver's point to `search`.
            gap_share: points are looked for that are cheaper than the best one by this share of the gap asked for.
        """
        self._search, self._model, self._take, self._share = search, model, take, gap_share
        self._linear = get_backend(search.options.backend).linear(model.problem)
        self._count, self._leave_s = 0, 0.0
        self._rooms = _rooms(model)

    @property
    def cutoff(self) -> float:
        """Cost from which on points need not be found."""
        return self._search.cost * (1 - self._share * self._search.options.gap)

    def run(self, most_nodes: int, leave_s: float = 0.0) -> tuple[float, bool]:
        """Search; `most_nodes` is a limit of relaxations, `leave_s` seconds of the search's time are left to others.

        Returns:
            what every point of the model costs at least, unless it costs the cutoff or more; whether the search came to
            its end: nothing cheaper than the cutoff is left, to the gap asked for.
        """
        self._leave_s = leave_s
        root = self._node(self._model.problem.lb, self._model.problem.ub, -math.inf)
        nodes, least = ([root], math.inf) if root else ([], -math.inf)
        while nodes and nodes[0].bound < self.cutoff and self._count < most_nodes:
            if self._search.left_s() <= leave_s:
                break
            node = heapq.heappop(nodes)
            upper = self._capped(node)
            at = self._switch(node, upper)
            bound, further = (self._left(node, upper), []) if at < 0 else self._sides(node, upper, at)
            least = min(least, bound)
            for side in further:
                heapq.heappush(nodes, side)
            if bound < self.cutoff:
                break  # no time, or the solver did not end it
        least = min(least, nodes[0].bound if nodes else math.inf)
        return min(least, self.cutoff), least >= self.cutoff

    def _node(self, lower: Floats, upper: Floats, least: float) -> _Node | None:
        """Relax; None where no time is left for it."""
        limited = replace(self._model.problem, lb=lower, ub=upper)
        stop = self.cutoff * (1 + LP_TOLERANCE)  # what a relaxation's own tolerance may hide
        found = self._search.relax_again(self._linear, limited, stop)
        self._count += 1
        bound = -math.inf
        if found is not None and found.termination is Termination.INFEASIBLE:
            bound = math.inf
        elif found is not None and found.x is None and found.objective >= stop:  # it stopped there
            bound = self.cutoff
        elif found is not None and found.x is not None:
            bound = safe_bound(found)
        if found is None or bound == -math.inf:
            return None
        return _Node(max(bound, least), self._count, lower, upper, found)

    def _sides(self, node: _Node, upper: Floats, switch: int) -> tuple[float, list[_Node]]:
        """Branch on a switch: a bound on the children that no time was left for (inf: none), and the others."""
        on, off = node.lower.copy(), upper.copy()
        on[switch], off[switch] = 1.0, 0.0
        sides = (
            self._node(node.lower, self._model.closed(off), node.bound),
            self._node(on, self._model.closed(self._without_room(on, upper)), node.bound),
        )
        known = [side for side in sides if side is not None]
        return (math.inf if len(known) == 2 else node.bound), known

    def _without_room(self, lower: Floats, upper: Floats) -> Floats:
        """Upper bounds that fix further switches off where a row allows no more of them on."""
        upper = upper.copy()
        for columns, most in self._rooms:
            if lower[columns].sum() > most - 1.0:
                upper[columns] = lower[columns]
        return upper

    def _capped(self, node: _Node) -> Floats:
        """Upper bounds by reduced-cost fixing at the cutoff, shape `(n_columns,)`."""
        limited = replace(self._model.problem, lb=node.lower, ub=node.upper)
        return self._model.closed(caps_from_reduced_costs(limited, node.relaxation, self.cutoff))

    def _switch(self, node: _Node, upper: Floats) -> int:
        """The switch column to branch on, -1 where the node is to be solved as a MILP."""
        x, model = node.relaxation.x, self._model
        assert x is not None
        free = node.lower[model.switches] < upper[model.switches]
        whole = model.problem.integrality & (node.lower < upper)
        if np.count_nonzero(whole) <= FEW or not free.any():
            return -1
        on = x[model.switches]
        between = np.where(free, np.minimum(on, 1.0 - on), 0.0)
        used = free & (on > 0.5)
        if between.max() > BETWEEN:
            chosen = np.argmax(between)
        elif used.any():
            chosen = np.argmax(used)
        else:  # all that are used are on: whether others are, those with most columns first
            members = np.bincount(model.needs[whole & (model.needs >= 0)], minlength=len(free))
            chosen = np.argmax(np.where(free, members, -1))
        return int(model.switches[chosen])

    def _left(self, node: _Node, upper: Floats) -> float:
        """Solve a node as a MILP; returns a bound on it, inf where it has no point below the cutoff."""
        limited = replace(self._model.problem, lb=node.lower, ub=upper)
        cutoff = self.cutoff + BOUND_MARGIN * abs(self.cutoff)
        problem = with_cutoff(part_of(limited, *alive(limited)), cutoff)
        gap, limit_s = self._search.options.gap * LEFT_GAP_SHARE, self._search.left_s() - self._leave_s
        solution = self._search.solve(problem, limit_s, gap=gap, core_columns=0, start={})
        if solution is None:
            return node.bound
        if solution.has_point:
            self._take(solution)
        return math.inf if solution.status is Status.INFEASIBLE else max(solution.bound, node.bound)


def _rooms(model: Switched) -> list[tuple[Ints, float]]:
    """Cardinality rows over switches alone: their columns, and how many may be on."""
    problem, columns = model.problem, model.problem.column_of_entry()
    is_switch = np.isin(columns, model.switches) & (problem.data == 1.0)
    others = np.bincount(problem.indices[~is_switch], minlength=problem.n_rows)
    rows = np.flatnonzero((others == 0) & np.isfinite(problem.row_hi)).tolist()
    return [(columns[problem.indices == row], float(problem.row_hi[row])) for row in rows]
