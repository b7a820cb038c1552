"""Candidates of one synchronous job: every offer x node count, timed, priced and filtered in numpy.

The grid is (n_offers, n_node_counts). Hardware that cannot run the job is filtered per shape; for every cell that can,
hours, money and risk are computed once, so each filter is counted exactly (see `planner.candidates.filters`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.table import Table
from planner.candidates.constraints.registry import SHAPE_FILTERS
from planner.candidates.filters import mark
from planner.candidates.limits import mark_cells, mark_limits
from planner.candidates.running import run_candidates
from planner.candidates.timing import fixed_hours, staging_hours, time_shapes
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.candidates.context import Context
    from planner.market.offers import OfferSet
    from planner.spot.distribution import SpotPool

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


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
    """Purchases of the candidates from position `first` on, bought in several parts (`bought_in_parts`).

    Attributes:
        offer, nodes: of each part, shape `(n_mixes, most_parts)`; offer -1 where a mix has fewer parts.
        paid_hours, billed_hours, instance_hours: per part, of the same shape.
        gang: instances that may be taken back together (all, where none may), shape `(n_mixes,)`.
        gang_work: work hours as the gang sees them: stretched by machine failures of the other instances.
        pool, pools: which offers a mix was made of: index into the tuple of steady offer rows.
    """

    first: int
    offer: IntArray
    nodes: IntArray
    paid_hours: FloatArray
    billed_hours: FloatArray
    instance_hours: FloatArray
    gang: IntArray
    gang_work: FloatArray
    pool: IntArray
    pools: tuple[IntArray, ...]


@record(frozen=True, eq=False)
class Turns:
    """Purchases of the candidates from position `first` on, run on one offer after another (`ways`).

    Attributes:
        offer: spot offers, cheapest first, then on-demand; -1 none; shape `(n_turns, most_parts)`.
        paid_hours, billed_hours, instance_hours: expected, per part, of the same shape.
        has_fallback: whether the last offer is on-demand to fall back on, shape `(n_turns,)`.
        p_change: probability that on-demand is needed; slack_hours: waits and losses that can be afforded.
        p_spot_only: probability to meet the deadline without on-demand.
        work_share: of the work that on-demand does.
        moved_gb, moved_usd: checkpoints carried between regions, expected, and what that costs.
        pool: the spot capacity of each, all its zones seen as one.
    """

    first: int
    offer: IntArray
    paid_hours: FloatArray
    billed_hours: FloatArray
    instance_hours: FloatArray
    has_fallback: npt.NDArray[np.bool_]
    p_change: FloatArray
    slack_hours: FloatArray
    p_spot_only: FloatArray
    work_share: FloatArray
    moved_gb: FloatArray
    moved_usd: FloatArray
    pool: SpotPool


@record(frozen=True, eq=False)
class Candidates:
    """Timed and priced cells of the grid; every array has shape `(n_candidates,)` unless said.

    Attributes:
        offer: row of the offer set; shape: row of `shapes`; nodes: instances.
        bits: filters that remove the candidate, 0 = feasible.
        work_hours: steps and evaluation; sigma: standard deviation of its logarithm.
        waiting_hours: before the cluster is in use (staging, provisioning); fixed_hours: in use, but not work.
        hours: expected elapsed hours; paid_hours: expected hours in use per instance; billed_hours: as billed.
        cost_usd: expected cost; cash_usd: cash obligations.
        p_meet: probability to meet the deadline; NaN where there is none or the candidate is excluded anyway.
        interruptions, lost_hours: expected, whole job. interval_hours: checkpoint interval.
        instance_hours, dataset_gib_months, checkpoint_gib_months: rounded quantities behind the cost.
        shapes: output of the performance model; grid_bits: filters of the cells that no layout fits.
        mixes: parts of the last candidates, where some are bought in several; `offer`, `paid_hours`, `billed_hours`
            of those are the leading part's (spot, else the one that tops up).
        turns: offers of the last candidates of all, where some run on one offer after another; `offer` of those is
            the cheapest spot offer.
    """

    offer: IntArray
    shape: IntArray
    nodes: IntArray
    bits: IntArray
    work_hours: FloatArray
    sigma: FloatArray
    waiting_hours: FloatArray
    fixed_hours: FloatArray
    hours: FloatArray
    paid_hours: FloatArray
    billed_hours: FloatArray
    cost_usd: FloatArray
    cash_usd: FloatArray
    p_meet: FloatArray
    interruptions: FloatArray
    lost_hours: FloatArray
    interval_hours: FloatArray
    write_hours: FloatArray
    instance_hours: FloatArray
    dataset_gib_months: FloatArray
    checkpoint_gib_months: FloatArray
    shapes: Table
    grid_bits: IntArray
    mixes: Mixes | None = None
    turns: Turns | None = None

    def all_bits(self) -> IntArray:
        """Filter bits of every cell of the grid, those that fit and those that do not."""
        return np.concatenate([self.bits, self.grid_bits])

    @property
    def n_single(self) -> int:
        """Candidates bought with one offer; the others follow them."""
        return self.n_at_once if self.mixes is None else self.mixes.first

    @property
    def n_at_once(self) -> int:
        """Candidates all of whose instances run together; those that run on one offer after another follow them."""
        return len(self.offer) if self.turns is None else self.turns.first

    def parts(self, at: int) -> tuple[Part, ...]:
        """Return what candidate `at` buys: one part, or those of its mix, or those it runs on in turn."""
        if self.turns is not None and at >= self.n_at_once:
            own, turns = at - self.n_at_once, self.turns
            rows = turns.offer[own].tolist()
            hours = (
                column[own].tolist()
                for column in (turns.paid_hours, turns.billed_hours, turns.instance_hours)
            )
            whole = [int(self.nodes[at])] * len(rows)
            return tuple(_part(*row) for row in zip(rows, whole, *hours, strict=True) if row[0] >= 0)
        own = at - self.n_single
        if self.mixes is None or own < 0:
            values = (self.offer, self.nodes, self.paid_hours, self.billed_hours, self.instance_hours)
            return (_part(*(column[at] for column in values)),)
        mixes = self.mixes
        values = (mixes.offer, mixes.nodes, mixes.paid_hours, mixes.billed_hours, mixes.instance_hours)
        rows = zip(*(column[own].tolist() for column in values), strict=True)
        return tuple(_part(*row) for row in rows if row[0] >= 0)

    def gang(self, at: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Offer, instances and work hours of what may be taken back together (all of it for one offer)."""
        rows, nodes, work = self.offer[at], self.nodes[at], self.work_hours[at]
        mixed = (at >= self.n_single) & (at < self.n_at_once)
        if self.mixes is None or not mixed.any():
            return rows, nodes, work
        own = np.where(mixed, at - self.n_single, -1)  # -1: all instances, replaced below
        nodes = np.where(mixed, self.mixes.gang[own], nodes)
        return rows, nodes, np.where(mixed, self.mixes.gang_work[own], work)


def _part(row: int, nodes: int, paid: float, billed: float, instance: float) -> Part:
    return Part(int(row), int(nodes), float(paid), float(billed), float(instance))


def build_candidates(
    context: Context, offer_bits: IntArray, shapes: Table, offers: IntArray | None = None
) -> Candidates:
    """Time, price and filter every offer on every shape of its hardware.

    Args:
        context: the job, offers, tariffs and assumptions.
        offer_bits: filter bits per offer, shape `(n_offers,)`.
        shapes: output of `estimate_shapes`: one row per (hardware row, node count).
        offers: rows to consider; all by default.
    """
    rows, shape_rows = _grid(context.offer_set, shapes, offers)
    bits = offer_bits[rows]
    nodes = shapes["nodes"][shape_rows].astype(np.int64)
    mark_cells(bits, context.offer_set, context.workload.constraints, rows, nodes)
    fits = np.asarray(shapes["fits"], dtype=np.bool_)[shape_rows]
    dead = ~fits
    reasons = shapes.coded("reason")
    for code, reason in enumerate(reasons.values):
        if reason:
            mark(bits, SHAPE_FILTERS[reason], dead & (reasons.codes[shape_rows] == code))
    alive = np.flatnonzero(fits)
    return _evaluate(context, shapes, rows[alive], shape_rows[alive], bits[alive], bits[dead])


def _grid(offer_set: OfferSet, shapes: Table, offers: IntArray | None) -> tuple[IntArray, IntArray]:
    """Pair every offer with every shape row of its hardware."""
    rows = np.arange(offer_set.offers.n_rows) if offers is None else offers
    hardware = shapes["hardware_row"].astype(np.int64)
    order = np.argsort(hardware, kind="stable")
    start = np.searchsorted(hardware[order], np.arange(offer_set.hardware.n_rows))
    stop = np.searchsorted(hardware[order], np.arange(offer_set.hardware.n_rows), side="right")
    own = offer_set.hardware_of_type[offer_set.type_of_offer[rows]]
    counts = (stop - start)[own]
    first = np.repeat(np.cumsum(counts) - counts, counts)
    within = np.arange(int(counts.sum())) - first
    return np.repeat(rows, counts), order[np.repeat(start[own], counts) + within]


def _evaluate(
    context: Context, shapes: Table, rows: IntArray, at: IntArray, bits: IntArray, grid_bits: IntArray
) -> Candidates:
    job, assume = context.job, context.assumptions
    times = time_shapes(
        job, shapes["nodes"].astype(np.float64), shapes["step_time_s"], shapes["step_time_low_s"],
        shapes["step_time_high_s"], assume,
    )  # fmt: skip
    nodes = shapes["nodes"][at].astype(np.int64)
    acquire = np.where(context.is_spot[rows], 0.0, assume.on_demand_acquire_s)
    waiting = (assume.provision_s + acquire) / 3600.0 + staging_hours(context.offer_set, job, assume)[rows]
    fixed = fixed_hours(assume, times)[at]
    work, write = times.work[at], times.checkpoint_write[at]
    run = run_candidates(context, rows, nodes, work, write)
    hours, paid = waiting + fixed + run.elapsed_hours, fixed + run.paid_hours
    money = context.costs.evaluate(rows, nodes, paid, hours)
    made = Candidates(
        offer=rows, shape=at, nodes=nodes, bits=bits, work_hours=work, sigma=times.sigma[at], waiting_hours=waiting,
        fixed_hours=fixed, hours=hours, paid_hours=paid, billed_hours=money.billed_hours, cost_usd=money.cost_usd,
        cash_usd=money.cash_usd, p_meet=np.full(len(at), np.nan), interruptions=run.interruptions,
        lost_hours=run.lost_hours, interval_hours=run.interval_hours, write_hours=write,
        instance_hours=money.instance_hours, dataset_gib_months=money.dataset_gib_months,
        checkpoint_gib_months=money.checkpoint_gib_months, shapes=shapes, grid_bits=grid_bits,
    )  # fmt: skip
    mark_limits(context, made)
    return made


def concat_candidates(parts: Sequence[Candidates]) -> Candidates:
    """Join candidates of several node-count lists into one set."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(part.shapes.n_rows for part in parts[:-1])])
    joined: dict[str, Any] = {"shapes": Table.concat([part.shapes for part in parts])}
    for field in fields(Candidates):
        if field.name in ("shapes", "mixes", "turns"):  # mixes and turns are made last
            continue
        columns = [getattr(part, field.name) for part in parts]
        if field.name == "shape":
            columns = [column + offset for column, offset in zip(columns, offsets, strict=True)]
        joined[field.name] = np.concatenate(columns)
    return Candidates(**joined)
