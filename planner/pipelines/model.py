"""The pipeline as a mixed-integer program: one candidate per task, data moved between groups of places.

    minimise  sum_k cost_k x_k + sum_e sum_hg move_ehg f_ehg
    choose    sum_{k of j} x_k = 1                                                   for every task j
    depart    d_er >= sum_{k of source(e), r} x_k - sum_{k of target(e), r} x_k      for every edge e, place r of both
    leave     sum_g f_ehg = sum_{r in h} d_er                                        for every edge e, group h
    arrive    sum_h f_ehg = sum_{r in g} (d_er - at source(e), r + at target(e), r)  for every edge e, group g
    precede   S_v >= S_u + sum_k hours_k x_k + sum_hg time_ehg f_ehg
    finish    S_j + sum_k hours_k x_k <= latest end of j (the deadline for the last tasks)

d is the share of an edge's data that departs from place r, f the share that moves from group h to another place, of
group g; both are whole where x is. What is at r on both sides stays there. At a place of the source alone all departs,
at one of the target alone nothing does; neither needs a column. An edge has G^2 + (places) columns and one row per
place, not (candidates of u) x (candidates of v) columns, and no big M is needed: times are linear in the choices.

Data that departs from a place where the source is not would be a detour over that place. It never pays where no way
over a third group costs or takes less than the direct one; the other edges say so in rows of their own:

    present   d_er <= sum_{k of source(e), r} x_k

With `objective="time"` the latest end T is minimised instead and replaces the deadline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.pipelines.question import PipelineInput, windows
from planner.records import record
from solvers.problem.milp import Block, Milp, MilpBuilder


@record(frozen=True)
class Move:
    """Key of the share of an edge that moves from a place of one group to another place, of the second group."""

    edge: int
    source: int
    target: int

    def __str__(self) -> str:
        return f"{self.edge}.{self.source}.{self.target}"


@record(frozen=True)
class Depart:
    """Key of the share of an edge that departs from a place."""

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
    departures = [(at, key.edge, key.place) for at, key in keys if isinstance(key, Depart)]
    at, edge, place = np.asarray(departures, dtype=np.int64).reshape(-1, 3).T
    columns[at] = at_place[pipe.source[edge], place]
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
    departures: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


def build_pipeline(pipe: PipelineInput, *, objective: Literal["cost", "time"] = "cost") -> Milp:
    """Build the model; columns carry the candidates' keys, `Move`, `Depart`, `Start` and `Finish`."""
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
        _add_departures(builder, pipe, edge)
    if pipe.timed or not by_cost:
        _add_times(builder, pipe, edges, by_cost)
    return builder.build()


def _add_shares(builder: MilpBuilder, pipe: PipelineInput, edges: list[_Edge], by_cost: bool) -> None:
    """Columns f and d of all edges: groups that occur on either side, places that occur on both."""
    places = [distinct_values(pipe.place[pipe.task == task]) for task in range(pipe.n_tasks)]
    groups = [distinct_values(pipe.group[own]) for own in places]
    moves: list[Move] = []
    departures: list[Depart] = []
    for edge, u, v in zip(edges, pipe.source.tolist(), pipe.target.tolist(), strict=True):
        moves += [Move(edge.number, h, g) for h in groups[u].tolist() for g in groups[v].tolist()]
        shared = np.intersect1d(places[u], places[v], assume_unique=True)
        departures += [Depart(edge.number, r) for r in shared.tolist()]
    moved = np.asarray([(key.edge, key.source, key.target) for key in moves], dtype=np.int64).reshape(-1, 3)
    departed = np.asarray([(key.edge, key.place) for key in departures], dtype=np.int64).reshape(-1, 2)
    f = builder.add_columns("f", moves, cost=pipe.move_usd[tuple(moved.T)] * by_cost, upper=1.0)
    d = builder.add_columns("d", departures, upper=1.0)
    shares = zip(edges, _by_edge(moved, f, len(edges)), _by_edge(departed, d, len(edges)), strict=True)
    for edge, moves_of_edge, departures_of_edge in shares:
        edge.moves, edge.departures = moves_of_edge, departures_of_edge


def _by_edge(keys: Ints, block: Block, count: int) -> list[Ints]:
    """Keys of shares, sorted by the edge in front, with their columns behind in its place: an array for each edge."""
    rows = np.column_stack([keys[:, 1:], np.arange(block.start, block.stop)])
    return np.split(rows, np.searchsorted(keys[:, 0], np.arange(count)))[1:]


def _add_moves(builder: MilpBuilder, pipe: PipelineInput, edge: _Edge) -> None:
    """What departs from a group's places is what moves from it, and what moves to a group arrives at its places."""
    places, departures = edge.departures.T
    shared = np.zeros(len(pipe.group), dtype=np.bool_)
    shared[places] = True
    out_shared = shared[pipe.place[edge.out]]
    sides = (
        ("leave", 0, [(edge.out[~out_shared], -1.0)]),
        ("arrive", 1, [(edge.out[out_shared], 1.0), (edge.into, -1.0)]),
    )
    for name, axis, chosen in sides:
        groups = distinct_values(edge.moves[:, axis])
        tags = [(edge.number, g) for g in groups.tolist()]
        rows = builder.add_rows(name, len(groups), lower=0.0, upper=0.0, tags=tags)

        def of(group: Ints, groups: Ints = groups, first: int = rows.start) -> Ints:
            return first + np.searchsorted(groups, group)

        builder.add_entries(of(edge.moves[:, axis]), edge.moves[:, 2], 1.0)
        builder.add_entries(of(pipe.group[places]), departures, -1.0)
        for candidates, sign in chosen:
            builder.add_entries(of(pipe.group[pipe.place[candidates]]), candidates, sign)


def _add_departures(builder: MilpBuilder, pipe: PipelineInput, edge: _Edge) -> None:
    """Data departs from a place of the source unless the target is there too."""
    places, columns = edge.departures.T
    known = np.zeros(len(pipe.group), dtype=np.bool_)
    known[places] = True
    out, into = (side[known[pipe.place[side]]] for side in (edge.out, edge.into))
    tags = [(edge.number, r) for r in places.tolist()]
    depart = builder.add_rows("depart", len(places), lower=0.0, tags=tags)
    present = (
        builder.add_rows("present", len(places), upper=0.0, tags=tags)
        if _detours(pipe, edge.number)
        else None
    )
    for rows in (depart, present):
        if rows is not None:
            builder.add_entries(np.arange(rows.start, rows.stop), columns, 1.0)
            builder.add_entries(rows.start + np.searchsorted(places, pipe.place[out]), out, -1.0)
    builder.add_entries(depart.start + np.searchsorted(places, pipe.place[into]), into, 1.0)


def _detours(pipe: PipelineInput, edge: int) -> bool:
    """Whether some move of an edge costs or takes less over a third group than at once."""
    tables = (pipe.move_usd[edge], pipe.move_hours[edge])
    return any(bool(((table[:, :, None] + table).min(axis=1) < table).any()) for table in tables)


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
    # every task has its own window: the inner ones follow from the last, but they cut the relaxation
    finish = builder.add_rows("finish", pipe.n_tasks, upper=latest if by_cost else 0.0)
    _add_ends(builder, pipe, finish, starts)
    if pipe.start_by is not None:
        _add_start_by(builder, pipe, starts, np.maximum(latest, earliest))
    if not by_cost:
        last = builder.add_columns("last", [Finish()], cost=1.0)
        builder.add_entries(np.arange(finish.start, finish.stop), last.start, -1.0)


def _add_ends(builder: MilpBuilder, pipe: PipelineInput, rows: Block, starts: Block) -> None:
    """The end of each task in its row."""
    builder.add_entries(np.arange(rows.start, rows.stop), np.arange(starts.start, starts.stop), 1.0)
    builder.add_entries(rows.start + pipe.task, np.arange(len(pipe.keys)), pipe.hours)


def _add_start_by(builder: MilpBuilder, pipe: PipelineInput, starts: Block, latest: Floats) -> None:
    """S_j + sum_k (latest_j - start_by_k)+ x_k <= latest_j: each task starts by the hour of its candidate."""
    assert pipe.start_by is not None
    rows = builder.add_rows("start_by", pipe.n_tasks, upper=latest)
    builder.add_entries(np.arange(rows.start, rows.stop), np.arange(starts.start, starts.stop), 1.0)
    sooner = np.maximum(latest[pipe.task] - pipe.start_by, 0.0)
    at = np.flatnonzero(sooner > 0)
    builder.add_entries(rows.start + pipe.task[at], at, sooner[at])
