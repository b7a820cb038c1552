"""The pipeline as a mixed-integer program: one candidate per task, data moved between groups of places.

    minimise  sum_k cost_k x_k + sum_e sum_hg move_ehg f_ehg - sum_e sum_r move_e,h(r),h(r) s_er
    choose    sum_{k of j} x_k = 1                                                   for every task j
    leave     sum_g f_ehg = sum_{k of source(e), group h} x_k                         for every edge e, group h
    arrive    sum_h f_ehg = sum_{k of target(e), group g} x_k                         for every edge e, group g
    stay      s_er <= sum_{k of source(e), place r} x_k,  s_er <= sum_{k of target(e), place r} x_k
              sum_{r in h} s_er <= f_ehh
    precede   S_v >= S_u + sum_k hours_k x_k + sum_hg time_ehg f_ehg - sum_r time_e,h(r),h(r) s_er
    finish    S_j + sum_k hours_k x_k <= latest end of j (the deadline for the last tasks)

f is the share of edge e that moves from group h to group g, s the share that stays at place r; both are whole where x
is. An edge has G^2 + (places) columns, not (candidates of u) x (candidates of v), and no big M is needed: times are
linear in the choices. With `objective="time"` the latest end T is minimised instead and replaces the deadline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from planner.pipelines.question import Bools, Ints, PipelineInput, windows
from planner.records import record
from solvers.problem.milp import Block, Milp, MilpBuilder


@record(frozen=True)
class Move:
    """Key of the share of an edge that moves between two groups."""

    edge: int
    source: int
    target: int

    def __str__(self) -> str:
        return f"{self.edge}.{self.source}.{self.target}"


@record(frozen=True)
class Stay:
    """Key of the share of an edge that stays at a place."""

    edge: int
    place: int

    def __str__(self) -> str:
        return f"{self.edge}.{self.place}"


@record(frozen=True)
class Start:
    """Key of the start of a task, hours."""

    task: int

    def __str__(self) -> str:
        return str(self.task)


@record(frozen=True)
class Finish:
    """Key of the end of the last task, hours."""

    def __str__(self) -> str:
        return "end"


def part_of_pipeline(problem: Milp, pipe: PipelineInput, allowed: Bools) -> tuple[Bools, Bools]:
    """Columns and rows of a model by `build_pipeline` that choices among the allowed candidates need, as masks.

    Args:
        problem: the model of `pipe`.
        pipe: the question.
        allowed: candidates, shape `(n,)`.
    """
    at_place = np.zeros((pipe.n_tasks, len(pipe.group)), dtype=np.bool_)
    at_place[pipe.task[allowed], pipe.place[allowed]] = True
    at_group = np.zeros((pipe.n_tasks, pipe.n_groups), dtype=np.bool_)
    at_group[pipe.task[allowed], pipe.group[pipe.place[allowed]]] = True
    columns = np.ones(problem.n_columns, dtype=np.bool_)
    columns[: len(allowed)] = allowed
    keys = list(enumerate(problem.column_keys[len(allowed) :], start=len(allowed)))
    moves = [(at, key.edge, key.source, key.target) for at, key in keys if isinstance(key, Move)]
    at, edge, source, target = np.asarray(moves, dtype=np.int64).reshape(-1, 4).T
    columns[at] = at_group[pipe.source[edge], source] & at_group[pipe.target[edge], target]
    stays = [(at, key.edge, key.place) for at, key in keys if isinstance(key, Stay)]
    at, edge, place = np.asarray(stays, dtype=np.int64).reshape(-1, 3).T
    columns[at] = at_place[pipe.source[edge], place] & at_place[pipe.target[edge], place]
    others = columns.copy()
    others[: len(allowed)] = False  # a row of candidates alone says nothing, but that each task has one
    rows = np.zeros(problem.n_rows, dtype=np.bool_)
    rows[problem.indices[np.repeat(others, np.diff(problem.indptr))]] = True
    rows[problem.row_blocks[0].indices] = True
    return columns, rows


@dataclass
class _Edge:
    """Candidates on both sides of an edge, and rows of its shares: (group, group, column), (place, column)."""

    number: int
    out: Ints
    into: Ints
    moves: Ints = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    stays: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


def build_pipeline(pipe: PipelineInput, *, objective: Literal["cost", "time"] = "cost") -> Milp:
    """Build the model; columns carry the candidates' keys, `Move`, `Stay`, `Start` and `Finish`."""
    by_cost = objective == "cost"
    builder = MilpBuilder("pipeline")
    builder.add_columns("x", pipe.keys, cost=pipe.cost_usd if by_cost else 0.0, upper=1.0, integer=True)
    choose = builder.add_rows("choose", pipe.n_tasks, lower=1.0, upper=1.0, tags=pipe.tasks)
    builder.add_entries(choose.start + pipe.task, np.arange(len(pipe.keys)), 1.0)
    of_task = [np.flatnonzero(pipe.task == task) for task in range(pipe.n_tasks)]
    edges = [
        _Edge(e, of_task[u], of_task[v])
        for e, (u, v) in enumerate(zip(pipe.source, pipe.target, strict=True))
    ]
    _add_shares(builder, pipe, edges, by_cost)
    for edge in edges:
        _add_moves(builder, pipe, edge)
        if len(edge.stays):
            _add_stays(builder, pipe, edge)
    if pipe.timed or not by_cost:
        _add_times(builder, pipe, edges, by_cost)
    return builder.build()


def _add_shares(builder: MilpBuilder, pipe: PipelineInput, edges: list[_Edge], by_cost: bool) -> None:
    """Columns f and s of all edges: only groups and places that occur on both sides."""
    places = [np.unique(pipe.place[pipe.task == task]) for task in range(pipe.n_tasks)]
    groups = [np.unique(pipe.group[own]) for own in places]
    moves: list[Move] = []
    stays: list[Stay] = []
    for edge, u, v in zip(edges, pipe.source.tolist(), pipe.target.tolist(), strict=True):
        moves += [Move(edge.number, h, g) for h in groups[u].tolist() for g in groups[v].tolist()]
        shared = np.intersect1d(places[u], places[v], assume_unique=True)
        stays += [Stay(edge.number, r) for r in shared.tolist()]
    moved = np.asarray([(key.edge, key.source, key.target) for key in moves], dtype=np.int64).reshape(-1, 3)
    stayed = np.asarray([(key.edge, key.place) for key in stays], dtype=np.int64).reshape(-1, 2)
    f = builder.add_columns("f", moves, cost=pipe.move_usd[tuple(moved.T)] * by_cost, upper=1.0)
    home = pipe.group[stayed[:, 1]]
    s = builder.add_columns("s", stays, cost=-pipe.move_usd[stayed[:, 0], home, home] * by_cost, upper=1.0)
    shares = zip(edges, _by_edge(moved, f, len(edges)), _by_edge(stayed, s, len(edges)), strict=True)
    for edge, moves_of_edge, stays_of_edge in shares:
        edge.moves, edge.stays = moves_of_edge, stays_of_edge


def _by_edge(keys: Ints, block: Block, count: int) -> list[Ints]:
    """Keys of shares, sorted by the edge in front, with their columns behind in its place: an array for each edge."""
    rows = np.column_stack([keys[:, 1:], np.arange(block.start, block.stop)])
    return np.split(rows, np.searchsorted(keys[:, 0], np.arange(count)))[1:]


def _add_moves(builder: MilpBuilder, pipe: PipelineInput, edge: _Edge) -> None:
    """The shares of an edge leave the group chosen for its source and arrive in that of its target."""
    columns = edge.moves[:, 2]
    for name, side, axis in (("leave", edge.out, 0), ("arrive", edge.into, 1)):
        groups = np.unique(edge.moves[:, axis])
        tags = [(edge.number, g) for g in groups.tolist()]
        rows = builder.add_rows(name, len(groups), lower=0.0, upper=0.0, tags=tags)
        ones = np.ones(len(columns))
        builder.add_entries(rows.start + np.searchsorted(groups, edge.moves[:, axis]), columns, ones)
        builder.add_entries(rows.start + np.searchsorted(groups, pipe.group[pipe.place[side]]), side, -1.0)


def _add_stays(builder: MilpBuilder, pipe: PipelineInput, edge: _Edge) -> None:
    """Data stays only at a place chosen on both sides."""
    places, columns = edge.stays.T
    known = np.zeros(len(pipe.group), dtype=np.bool_)
    known[places] = True
    for name, side in (("stay.source", edge.out), ("stay.target", edge.into)):
        tags = [(edge.number, r) for r in places.tolist()]
        rows = builder.add_rows(name, len(places), upper=0.0, tags=tags)
        builder.add_entries(np.arange(rows.start, rows.stop), columns, 1.0)
        inside = side[known[pipe.place[side]]]
        builder.add_entries(rows.start + np.searchsorted(places, pipe.place[inside]), inside, -1.0)
    homes = np.unique(pipe.group[places])
    tags = [(edge.number, h) for h in homes.tolist()]
    rows = builder.add_rows("stay.group", len(homes), upper=0.0, tags=tags)
    builder.add_entries(rows.start + np.searchsorted(homes, pipe.group[places]), columns, 1.0)
    inner = edge.moves[edge.moves[:, 0] == edge.moves[:, 1]]  # by group
    inner = inner[np.isin(inner[:, 0], homes), 2]
    builder.add_entries(np.arange(rows.start, rows.stop), inner, -1.0)


def _add_times(builder: MilpBuilder, pipe: PipelineInput, edges: list[_Edge], by_cost: bool) -> None:
    """Starts, their order along the edges, and the latest ends."""
    earliest, latest = windows(pipe)
    keys = [Start(task) for task in range(pipe.n_tasks)]
    starts = builder.add_columns("start", keys, lower=earliest, upper=np.maximum(latest, earliest))
    rows = builder.add_rows("precede", len(edges), lower=0.0)
    for row, edge in enumerate(edges, start=rows.start):
        u, v = int(pipe.source[edge.number]), int(pipe.target[edge.number])
        builder.add_entries(row, [starts.start + v, starts.start + u], [1.0, -1.0])
        builder.add_entries(row, edge.out, -pipe.hours[edge.out])
        time = pipe.move_hours[edge.number]
        source, target, columns = edge.moves.T
        builder.add_entries(row, columns, -time[source, target])
        home = pipe.group[edge.stays[:, 0]]
        builder.add_entries(row, edge.stays[:, 1], time[home, home])
    # every task has its own window: the inner ones follow from the last, but they cut the relaxation
    finish = builder.add_rows("finish", pipe.n_tasks, upper=latest if by_cost else 0.0)
    _add_ends(builder, pipe, finish, starts)
    if not by_cost:
        last = builder.add_columns("last", [Finish()], cost=1.0)
        builder.add_entries(np.arange(finish.start, finish.stop), last.start, -1.0)


def _add_ends(builder: MilpBuilder, pipe: PipelineInput, rows: Block, starts: Block) -> None:
    """The end of each task in its row."""
    builder.add_entries(np.arange(rows.start, rows.stop), np.arange(starts.start, starts.stop), 1.0)
    builder.add_entries(rows.start + pipe.task, np.arange(len(pipe.keys)), pipe.hours)
