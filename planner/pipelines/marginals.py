"""What a candidate costs at least, above a relaxation's bound, with all that it asks of the tasks around it.

A reduced cost prices a candidate alone: at its place its neighbours may look as cheap as ever, though data would have
to move. With the relaxation's duals every choice costs the bound plus, none of them negative, what its candidates cost
and what each edge costs between the places of its two tasks. Along any tree of edges the least sum of both that has a
given candidate is found exactly, by passing minima up and down the tree; what other edges cost is left out. So the
largest least sum of a few trees is a bound for the candidate, often many times its reduced cost. Source: min-marginals
(Wainwright, Jaakkola and Willsky 2005, "MAP estimation via agreement on trees"), as reduced-cost fixing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.pipelines.model import Depart, Move
from planner.pipelines.question import PipelineInput
from solvers.backends.base import Relaxation
from solvers.problem.milp import Milp

TREES = 2
USED_AGAIN = 0.3  # times its weight: how much an edge of one tree is wanted in the next
MOST_PAIRS = 10_000_000  # of places on both sides of all edges: beyond, a candidate is priced alone
_OF_EDGES = ("leave", "arrive", "depart", "present")


@dataclass(frozen=True, eq=False)
class Shares:
    """Which edge, and which group or place of it, the rows and columns of a pipeline's model are about.

    Attributes:
        row_kind: position of a row's name in leave, arrive, depart, present; -1 of other rows, shape `(n_rows,)`.
        row_edge: its edge, likewise.
        row_at: its group or place, likewise.
        column_edge: edge of a column f or d, -1 of others, shape `(n_columns,)`.
        precede: row of each edge's time, shape `(n_edges,)`; empty without times.
    """

    row_kind: Ints
    row_edge: Ints
    row_at: Ints
    column_edge: Ints
    precede: Ints

    @classmethod
    def of(cls, problem: Milp) -> Shares:
        """Those of a model by `build_pipeline`."""
        kind, edge, at = (np.full(problem.n_rows, -1, dtype=np.int64) for _ in range(3))
        precede = np.zeros(0, dtype=np.int64)
        for block in problem.row_blocks:
            if block.name in _OF_EDGES and len(block):
                kind[block.indices] = _OF_EDGES.index(block.name)
                edge[block.indices], at[block.indices] = np.asarray(block.tags, dtype=np.int64).T
            elif block.name == "precede":
                precede = np.arange(block.start, block.stop)
        columns = [key.edge if isinstance(key, Move | Depart) else -1 for key in problem.column_keys]
        return cls(kind, edge, at, np.asarray(columns, dtype=np.int64), precede)

    def part(self, columns: Bools, rows: Bools) -> Shares:
        """Those of the columns and rows that two masks name; no row of an edge's time is left out."""
        number = np.cumsum(rows) - 1
        return Shares(
            self.row_kind[rows], self.row_edge[rows], self.row_at[rows], self.column_edge[columns],
            number[self.precede],
        )  # fmt: skip


def worth_keeping(
    pipe: PipelineInput, shares: Shares, relaxation: Relaxation, allowed: Bools, room: float
) -> Bools:
    """The allowed candidates that some choice may have which costs at most `room` above the relaxation's bound.

    Args:
        pipe: the question.
        shares: of its model.
        relaxation: of the model over the allowed candidates.
        allowed: candidates, shape `(n,)`.
        room: USD.
    """
    return np.asarray(_adds(pipe, shares, relaxation, allowed, room) <= room, dtype=np.bool_)


def nearest(
    pipe: PipelineInput, shares: Shares, relaxation: Relaxation, allowed: Bools, room: float, count: int
) -> Bools:
    """The allowed candidates that add least to the relaxation's bound, about `count` of them, as a mask.

    Args:
        pipe: the question.
        shares: of its model.
        relaxation: of the model over the allowed candidates.
        allowed: candidates, shape `(n,)`.
        room: USD above the bound; none beyond it is taken.
        count: how many; more where several add the same.
    """
    adds = _adds(pipe, shares, relaxation, allowed, room)
    most = min(room, float(np.sort(adds)[min(count, len(adds)) - 1]))
    return np.asarray(adds <= most, dtype=np.bool_)


def _adds(pipe: PipelineInput, shares: Shares, relaxation: Relaxation, allowed: Bools, room: float) -> Floats:
    """What a choice with each candidate costs at least above the bound, shape `(n,)`; inf where not allowed."""
    assert relaxation.reduced_costs is not None
    alone = np.where(allowed, relaxation.reduced_costs[: len(allowed)], np.inf)
    lowest = np.zeros(pipe.n_tasks)  # a candidate that is taken whole may have less than nothing
    np.minimum.at(lowest, pipe.task, alone)
    alone = np.maximum(alone - lowest[pipe.task], 0.0)
    return _Between(pipe, shares, relaxation).least(np.where(alone <= room, alone, np.inf), room)


class _Between:
    """What edges cost between places, above what the duals charge the candidates on both sides."""

    def __init__(self, pipe: PipelineInput, shares: Shares, relaxation: Relaxation) -> None:
        assert relaxation.reduced_costs is not None and relaxation.duals is not None
        self._pipe = pipe
        n_edges, n_places, group = len(pipe.source), len(pipe.group), pipe.group
        dual = {name: np.zeros((n_edges, n_places)) for name in _OF_EDGES}
        shared = np.zeros((n_edges, n_places), dtype=np.bool_)
        for number, name in enumerate(_OF_EDGES):
            rows = np.flatnonzero(shares.row_kind == number)
            dual[name][shares.row_edge[rows], shares.row_at[rows]] = relaxation.duals[rows]
            if name == "depart":
                shared[shares.row_edge[rows], shares.row_at[rows]] = True
        leave, arrive = dual["leave"][:, group], dual["arrive"][:, group]
        self._out = np.where(shared, arrive - dual["depart"] - dual["present"], -leave)
        self._into = dual["depart"] - arrive
        self._time = relaxation.duals[shares.precede] if len(shares.precede) else np.zeros(n_edges)
        of_edge = shares.column_edge >= 0
        below = np.minimum(relaxation.reduced_costs, 0.0)[of_edge]  # of shares at their upper bound
        self._least = np.bincount(shares.column_edge[of_edge], weights=below, minlength=n_edges)

    def least(self, alone: Floats, room: float) -> Floats:
        """The least that a choice with each candidate costs above the bound, shape `(n,)`.

        Args:
            alone: what each candidate costs, inf where it is dropped.
            room: above it amounts need not be told apart.
        """
        pipe = self._pipe
        at_place = np.full((pipe.n_tasks, len(pipe.group)), np.inf)
        np.minimum.at(at_place, (pipe.task, pipe.place), alone)
        count = np.isfinite(at_place).sum(axis=1)
        if not count.all():
            return np.full(len(alone), np.inf)
        if len(pipe.source) * int(count.max(initial=0)) ** 2 > MOST_PAIRS:
            return alone
        # each task's places with a candidate first, as many for all tasks
        places = np.argsort(~np.isfinite(at_place), axis=1, kind="stable")[:, : int(count.max(initial=0))]
        own = np.take_along_axis(at_place, places, axis=1)
        cost = self._cost(places)
        used = np.isfinite(own)[pipe.source][:, :, None] & np.isfinite(own)[pipe.target][:, None, :]
        weight = np.where(used, np.minimum(cost, room), 0.0).sum(axis=(1, 2)) / used.sum(axis=(1, 2))
        most = _Trees(pipe, weight).least(own, cost)
        spread = np.zeros_like(at_place)
        np.put_along_axis(spread, places, most, axis=1)
        with np.errstate(invalid="ignore"):  # dropped: inf - inf
            beside = alone - at_place[pipe.task, pipe.place]
        return np.where(np.isfinite(alone), beside + spread[pipe.task, pipe.place], np.inf)

    def _cost(self, places: Ints) -> Floats:
        """What edges cost between the places of both tasks, shape (edges, of the source, of the target)."""
        pipe, edge = self._pipe, np.arange(len(self._pipe.source))[:, None, None]
        out, into = places[pipe.source][:, :, None], places[pipe.target][:, None, :]
        pair = (edge, pipe.group[out], pipe.group[into])
        move = pipe.move_usd[pair] + self._time[:, None, None] * pipe.move_hours[pair]
        move[out == into] = 0.0
        priced = move + self._out[edge, out] + self._into[edge, into] - self._least[:, None, None]
        return np.asarray(np.maximum(priced, 0.0), dtype=np.float64)


class _Trees:
    """Spanning trees of the tasks, or forests: of edges of the largest weights; one's are less wanted in the next."""

    def __init__(self, pipe: PipelineInput, weight: Floats) -> None:
        self._turn, weight = len(pipe.source), weight.copy()
        links = list(zip(pipe.source.tolist(), pipe.target.tolist(), strict=True))
        steps: list[tuple[int, int, int, int]] = []
        for first in range(0, TREES * pipe.n_tasks, pipe.n_tasks):
            edges = _spanning(pipe.n_tasks, links, np.argsort(-weight, kind="stable").tolist())
            weight[edges] *= USED_AGAIN
            rooted = _from_the_middle(pipe, links, edges)
            steps += [(depth, first + task, first + parent, edge) for depth, task, parent, edge in rooted]
        table = np.asarray(sorted(steps), dtype=np.int64).reshape(-1, 4)
        # of each depth: tasks, their parents, and their edges, behind all edges where the task reads
        self._levels = [level[:, 1:].T for level in np.split(table, np.flatnonzero(np.diff(table[:, 0])) + 1)]

    def least(self, own: Floats, cost: Floats) -> Floats:
        """The least sum over the trees, of the one where it is largest, with each task at each of its places.

        Args:
            own: what each task costs at its places, shape `(n_tasks, places)`; inf behind its last.
            cost: what each edge costs between those of its source and of its target.
        """
        both = np.concatenate(
            [cost, cost.transpose(0, 2, 1)]
        )  # the places of the task in front, whichever it is
        below, told = np.tile(own, (TREES, 1)), np.zeros((TREES * len(own), own.shape[1]))
        for task, parent, edge in reversed(self._levels):
            told[task] = (both[edge] + below[task][:, :, None]).min(axis=1)
            np.add.at(below, parent, told[task])
        for task, parent, edge in self._levels:  # what is below a parent holds what is above it by now
            above = below[parent] - told[task]
            below[task] += (both[edge - self._turn] + above[:, :, None]).min(axis=1)
        return np.asarray(below.reshape(TREES, *own.shape).max(axis=0), dtype=np.float64)


def _spanning(count: int, links: list[tuple[int, int]], order: list[int]) -> list[int]:
    """The links, taken in an order, that join tasks not joined before."""
    head, taken = list(range(count)), list[int]()

    def top(task: int) -> int:
        while head[task] != task:
            head[task] = head[head[task]]
            task = head[task]
        return task

    for edge in order:
        one, other = (top(task) for task in links[edge])
        if one != other:
            head[one] = other
            taken.append(edge)
    return taken


def _from_the_middle(
    pipe: PipelineInput, links: list[tuple[int, int]], edges: list[int]
) -> list[tuple[int, int, int, int]]:
    """Tasks of a forest but its roots: (depth, task, its parent, their edge, behind all edges where the task reads)."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(pipe.n_tasks)]
    for edge in edges:
        source, target = links[edge]
        near[source].append((target, edge + len(links)))
        near[target].append((source, edge))
    middle = pipe.n_tasks // 2  # the tree is less deep from there, so that more of it is done at once
    rooted, seen = list[tuple[int, int, int, int]](), [False] * pipe.n_tasks
    for root in [*pipe.sequence[middle:], *pipe.sequence[:middle]]:
        waiting = [] if seen[root] else [(0, root)]
        seen[root] = True
        for depth, task in waiting:
            for other, edge in near[task]:
                if not seen[other]:
                    seen[other] = True
                    rooted.append((depth + 1, other, task, edge))
                    waiting.append((depth + 1, other))
    return rooted
