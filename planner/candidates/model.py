"""Candidates of one job in columns, each of one kind: one offer, bought in parts, or one offer after another.

What all kinds share is a column of `Candidates`; what only one kind has stands in that kind's table (`Mixes`, `Turns`),
at the row that `detail` names. So candidates can be taken, reordered and joined freely: nothing hangs on positions.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.rows import pick
from catalogs.tables.table import Table
from planner.market.ends import Spread
from planner.market.storage.lines import store_lines
from planner.market.storage.stores import Stored
from planner.records import record
from planner.spot.distribution import SpotPool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.context import Context
    from planner.plan.model import CostLine


# Kinds of candidate: one offer; several offers side by side; one offer after another.
SINGLE, MIXED, IN_TURN = 0, 1, 2
_ALL = slice(None)


@record(frozen=True)
class Part:
    """One purchase of a candidate: `nodes` instances of offer `row`, with the quantities behind its cost."""

    row: int
    nodes: int
    paid_hours: float
    billed_hours: float
    instance_hours: float


@record(frozen=True, eq=False)
class Mixes:
    """Purchases of candidates bought in several parts (`bought_in_parts`).

    Attributes:
        offer, nodes: of each part, shape `(n_mixes, most_parts)`; offer -1 where a mix has fewer parts.
        paid_hours, billed_hours, instance_hours: per part, of the same shape.
        gang: instances that may be interrupted together (all, if none may), shape `(n_mixes,)`.
        gang_work: hours of work including delays by machine failures of the other instances, shape `(n_mixes,)`.
        pool: index into `pools`, shape `(n_mixes,)`.
        pools: rows of the steady offers of each pool.
    """

    offer: Ints
    nodes: Ints
    paid_hours: Floats
    billed_hours: Floats
    instance_hours: Floats
    gang: Ints
    gang_work: Floats
    pool: Ints
    pools: tuple[Ints, ...]


@record(frozen=True, eq=False)
class Turns:
    """Purchases of candidates that run on one offer at a time (`ways`); arrays of shape `(n_turns,)` unless stated.

    Attributes:
        offer: spot offers, cheapest first, then on-demand; -1 none; shape `(n_turns, most_parts)`.
        paid_hours, billed_hours, instance_hours: expected, per part, of the same shape.
        has_fallback: whether the last offer is an on-demand fall-back.
        p_change: probability that on-demand is needed, in the model of the expected hours.
        slack_hours: waits and lost work that the deadline allows.
        work_share: expected share of the work done on on-demand.
        moved_gb, moved_usd: expected volume and cost of checkpoints moved between regions.
        pool: the spot capacity of each, its zones taken together.
    """

    offer: Ints
    paid_hours: Floats
    billed_hours: Floats
    instance_hours: Floats
    has_fallback: Bools
    p_change: Floats
    slack_hours: Floats
    work_share: Floats
    moved_gb: Floats
    moved_usd: Floats
    pool: SpotPool


@record(frozen=True, eq=False)
class Candidates:
    """Timed and priced candidates; arrays have shape `(n_candidates,)` unless stated.

    Attributes:
        offer: row of the offer set: of a mix its leading part (spot, else the one that tops up), of what runs in turn
            the cheapest spot offer. `paid_hours` and `billed_hours` are of that offer.
        shape: row of `shapes`; nodes: instances.
        bits: filters that remove the candidate, 0 = feasible.
        work_hours: steps, evaluation and what comes beside them; sigma: standard deviation of its logarithm.
        waiting_hours: before the cluster is in use (staging, provisioning); fixed_hours: in use, but not work.
        hours: expected elapsed hours; paid_hours: expected hours in use per instance; billed_hours: as billed.
        cost_usd: expected cost; cash_usd: cash obligations.
        p_meet: probability to meet the deadline; NaN where there is none, the candidate is excluded
            anyway, or it runs in turn (`planner.candidates.ways.chances` states it).
        interruptions, lost_hours: expected, whole job. interval_hours: checkpoint interval.
        instance_hours: rounded quantity behind the cost.
        store: where the nodes read the data from (`planner.market.storage.stores`); store_usd, store_usd_per_hour: what
            that costs once and per hour.
        kind: `SINGLE`, `MIXED` or `IN_TURN`; detail: row of the kind's table (`mixes`, `turns`), -1 for one offer.
        shapes: output of the performance model; grid_bits: filters of the cells that no layout fits.
        context: the run they are of.
    """

    context: Context
    offer: Ints
    shape: Ints
    nodes: Ints
    bits: Ints
    work_hours: Floats
    sigma: Floats
    waiting_hours: Floats
    fixed_hours: Floats
    hours: Floats
    paid_hours: Floats
    billed_hours: Floats
    cost_usd: Floats
    cash_usd: Floats
    p_meet: Floats
    interruptions: Floats
    lost_hours: Floats
    interval_hours: Floats
    write_hours: Floats
    instance_hours: Floats
    kind: Ints
    detail: Ints
    shapes: Table
    grid_bits: Ints
    store: Ints
    store_usd: Floats
    store_usd_per_hour: Floats
    mixes: Mixes | None = None
    turns: Turns | None = None

    @cached_property
    def priced(self) -> dict[int, list[list[CostLine]]]:
        """Cost lines by part of the candidates whose lines were asked for (`plan_parts.summary.lines_by_part`)."""
        return {}

    @cached_property
    def footprints(self) -> dict[int, tuple[float, float]]:
        """Energy and emissions of the candidates whose footprint was asked for (`footprint.footprints_of`)."""
        return {}

    @cached_property
    def drawn(self) -> dict[int, Floats]:
        """Mean draw during a step per row of `shapes` by level (`footprint`), NaN where no candidate has the shape."""
        return {}

    @cached_property
    def members(self) -> dict[Callable[[Candidates], Bools], Bools]:
        """Masks of the kinds of plan that were asked for, by what tells them (`decisions.members_of`)."""
        return {}

    def deadline_hours(self, at: Ints | slice = _ALL) -> float | Floats:
        """Hours from the start to the deadline of some candidates: of each, or of all alike."""
        own, hours = self.context.own, self.context.dates.deadline_hours
        assert hours is not None
        return hours if own is None else own.hours[self.shape[at]]

    def later_hours(self, at: Ints | slice = _ALL) -> float | Floats:
        """Hours more that work has which takes twice as long as predicted (`Context.later_hours`), as above."""
        own = self.context.own
        return self.context.later_hours if own is None else own.later_hours[self.shape[at]]

    def stored(self, at: Ints | slice = _ALL) -> Stored:
        """Where the nodes of some candidates read the data from; all of them by default."""
        return Stored(self.store[at], self.store_usd[at], self.store_usd_per_hour[at])

    def spread(self, at: Ints | slice = _ALL) -> Spread:
        """How long some candidates may be in use; all of them by default."""
        return Spread(self.context.dates.start, self.fixed_hours[at], self.sigma[at])

    def store_lines(self, at: int) -> list[CostLine]:
        """Cost lines of the storage that the nodes of candidate `at` read from, in the region of its leading offer."""
        return store_lines(
            self.context.market.stores, int(self.offer[at]), int(self.nodes[at]),
            float(self.shapes["step_time_s"][self.shape[at]]), float(self.hours[at]), int(self.store[at]),
        )  # fmt: skip

    def all_bits(self) -> Ints:
        """Filter bits of every cell of the grid, those that fit and those that do not."""
        return np.concatenate([self.bits, self.grid_bits])

    def count(self, kind: int) -> int:
        """Number of candidates of one kind."""
        return int((self.kind == kind).sum())

    def parts(self, at: int) -> tuple[Part, ...]:
        """Return what candidate `at` buys: one part, or those of its mix, or those it runs on in turn."""
        own, kind = int(self.detail[at]), int(self.kind[at])
        if kind == SINGLE:
            values = (self.offer, self.nodes, self.paid_hours, self.billed_hours, self.instance_hours)
            return (_part(*(column[at] for column in values)),)
        table = self.mixes if kind == MIXED else self.turns
        assert table is not None
        columns = [
            column[own].tolist()
            for column in (table.offer, table.paid_hours, table.billed_hours, table.instance_hours)
        ]
        nodes = (
            table.nodes[own].tolist() if isinstance(table, Mixes) else [int(self.nodes[at])] * len(columns[0])
        )
        rows = zip(columns[0], nodes, *columns[1:], strict=True)
        return tuple(_part(*row) for row in rows if row[0] >= 0)

    def gang(self, at: Ints) -> tuple[Ints, Ints, Floats]:
        """Offer, instances and work hours of what may be taken back together (all of it for one offer)."""
        rows, nodes, work = self.offer[at], self.nodes[at], self.work_hours[at]
        mixed = self.kind[at] == MIXED
        if self.mixes is None or not mixed.any():
            return rows, nodes, work
        own = np.where(mixed, self.detail[at], -1)  # -1: all instances, replaced below
        nodes = np.where(mixed, self.mixes.gang[own], nodes)
        return rows, nodes, np.where(mixed, self.mixes.gang_work[own], work)

    def take(self, at: Ints) -> Candidates:
        """Some of the candidates, in the order given; the cells that no layout fits are left out."""
        columns: dict[str, Any] = {name: pick(getattr(self, name), at) for name in COLUMNS}
        kind, detail = columns["kind"], columns["detail"]
        tables: dict[str, Any] = {"mixes": None, "turns": None}
        for number, name in ((MIXED, "mixes"), (IN_TURN, "turns")):
            mine = np.flatnonzero(kind == number)
            table = getattr(self, name)
            if table is not None and len(mine):
                tables[name] = take_rows(table, detail[mine])
                detail[mine] = np.arange(len(mine))
        return Candidates(
            context=self.context,
            **columns,
            shapes=self.shapes,
            grid_bits=np.zeros(0, dtype=np.int64),
            **tables,
        )


COLUMNS = tuple(
    field.name
    for field in fields(Candidates)
    if field.name not in ("context", "shapes", "grid_bits", "mixes", "turns")
)


def _part(row: int, nodes: int, paid: float, billed: float, instance: float) -> Part:
    return Part(int(row), int(nodes), float(paid), float(billed), float(instance))


_POOL = tuple(field.name for field in fields(SpotPool))


def take_rows(table: Any, at: Ints) -> Any:
    """Rows `at` of a `Mixes` or `Turns`."""
    columns: dict[str, Any] = {}
    for field in fields(table):
        value = getattr(table, field.name)
        if isinstance(value, SpotPool):
            value = value.take(at)
        elif isinstance(value, np.ndarray):
            value = pick(value, at)
        columns[field.name] = value
    return type(table)(**columns)


def concat_candidates(parts: Sequence[Candidates]) -> Candidates:
    """Join candidates; shapes are joined too where parts have different ones."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS
    }
    shapes = parts[0].shapes
    if any(part.shapes is not shapes for part in parts):
        offsets = np.cumsum([0, *(part.shapes.n_rows for part in parts[:-1])])
        joined["shape"] = np.concatenate(
            [part.shape + offset for part, offset in zip(parts, offsets, strict=True)]
        )
        shapes = Table.concat([part.shapes for part in parts])
    tables: dict[str, Any] = {}
    for number, name in ((MIXED, "mixes"), (IN_TURN, "turns")):
        own = [getattr(part, name) for part in parts]
        counts = [0 if table is None else len(table.offer) for table in own]
        starts = np.repeat(np.cumsum([0, *counts[:-1]]), [len(part.kind) for part in parts])
        mine = joined["kind"] == number
        joined["detail"][mine] += starts[mine]
        tables[name] = join_tables([table for table in own if table is not None])
    bits = np.concatenate([part.grid_bits for part in parts])
    return Candidates(context=parts[0].context, **joined, shapes=shapes, grid_bits=bits, **tables)


def join_tables(tables: Sequence[Any]) -> Any:
    """Tables of one kind one below the other, None without any; columns grow to the widest."""
    if len(tables) < 2:
        return tables[0] if tables else None
    width = max(table.offer.shape[1] for table in tables)
    columns: dict[str, Any] = {}
    for field in fields(tables[0]):
        values = [getattr(table, field.name) for table in tables]
        if field.name == "pools":
            columns["pools"] = tuple(pool for value in values for pool in value)
        elif field.name == "pool" and isinstance(values[0], SpotPool):
            columns["pool"] = join_pools(values)
        else:
            if values[0].ndim == 2:
                values = [widen(value, width, -1 if field.name == "offer" else 0) for value in values]
            columns[field.name] = np.concatenate(values)
    if "pools" in columns:
        starts = np.cumsum([0, *(len(table.pools) for table in tables[:-1])])
        columns["pool"] = np.concatenate(
            [table.pool + start for table, start in zip(tables, starts, strict=True)]
        )
    return type(tables[0])(**columns)


def join_pools(pools: Sequence[SpotPool]) -> SpotPool:
    """Spot capacities one after another."""
    return SpotPool(**{name: np.concatenate([getattr(pool, name) for pool in pools]) for name in _POOL})


def widen(column: Any, width: int, empty: int) -> Any:
    """A two-dimensional column with `width` columns, the new ones `empty`."""
    if column.shape[1] == width:
        return column
    wide = np.full((len(column), width), empty, dtype=column.dtype)
    wide[:, : column.shape[1]] = column
    return wide


def append(
    candidates: Candidates, parts: Sequence[dict[str, Any]], kind: int, table: Mixes | Turns
) -> Candidates:
    """Put new candidates of one kind behind the others.

    Args:
        candidates: candidates without any of this kind.
        parts: columns of `Candidates` by name, but for `kind` and `detail`, of one part of the new ones each; they are
            used up, so that their memory serves the columns that come after them.
        kind: `MIXED` or `IN_TURN`.
        table: the kind's own table, one row per new candidate.
    """
    count = len(table.offer)
    own = {"kind": [np.full(count, kind)], "detail": [np.arange(count)]}
    both: dict[str, Any] = {
        name: np.concatenate(
            [getattr(candidates, name), *(own.get(name) or [part.pop(name) for part in parts])]
        )
        for name in COLUMNS
    }
    both["mixes" if kind == MIXED else "turns"] = table
    return replace(candidates, **both)
