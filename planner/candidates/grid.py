"""Candidates of one synchronous job: every offer x node count, timed, priced and filtered in numpy.

The grid is (n_offers, n_node_counts). Hardware that cannot run the job is filtered per shape; for every cell that can,
hours, money and risk are computed once, so each filter is counted exactly (see `planner.candidates.filters`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Table
from planner.candidates.constraints.registry import SHAPE_FILTERS
from planner.candidates.filters import mark
from planner.candidates.limits import mark_cells, mark_limits
from planner.candidates.model import SINGLE, Candidates
from planner.candidates.running import run_candidates
from planner.candidates.timing import fixed_hours, staging_hours, time_shapes
from planner.market.ends import Spread
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints, Table
    from planner.candidates.context import Context
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


@record(frozen=True, eq=False)
class Cells:
    """Pairs of an offer and a shape of its hardware before anything is timed.

    Attributes:
        rows, at: offers and shapes of those that a layout fits, shape `(n,)`.
        bits: filters that remove them.
        dead: filters of those that no layout fits, shape `(m,)`.
    """

    rows: Ints
    at: Ints
    bits: Ints
    dead: Ints


def build_candidates(
    context: Context, offer_bits: Ints, shapes: Table, offers: Ints | None = None
) -> Candidates:
    """Time, price and filter every offer on every shape of its hardware.

    Args:
        context: the job, offers, tariffs and assumptions.
        offer_bits: filter bits per offer, shape `(n_offers,)`.
        shapes: output of `estimate_shapes`: one row per (hardware row, node count).
        offers: rows to consider; all by default.
    """
    limits = context.asked.workload.constraints
    return evaluate(context, shapes, cells_of(context.market.offer_set, limits, offer_bits, shapes, offers))


def cells_of(
    offer_set: OfferSet, limits: Constraints, offer_bits: Ints, shapes: Table, offers: Ints | None = None
) -> Cells:  # fmt: skip
    """Pair offers with shapes and filter by what needs no time and no price; arguments as of `build_candidates`."""
    rows, shape_rows = _grid(offer_set, shapes, offers)
    bits = offer_bits[rows]
    nodes = shapes["nodes"][shape_rows].astype(np.int64)
    mark_cells(bits, offer_set, limits, rows, nodes)
    fits = np.asarray(shapes["fits"], dtype=np.bool_)[shape_rows]
    dead = ~fits
    reasons = shapes.coded("reason")
    for code, reason in enumerate(reasons.values):
        if reason:
            mark(bits, SHAPE_FILTERS[reason], dead & (reasons.codes[shape_rows] == code))
    alive = np.flatnonzero(fits)
    return Cells(rows[alive], shape_rows[alive], bits[alive], bits[dead])


def _grid(offer_set: OfferSet, shapes: Table, offers: Ints | None) -> tuple[Ints, Ints]:
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


def evaluate(context: Context, shapes: Table, cells: Cells, selected: Bools | None = None) -> Candidates:
    """Time, price and filter cells; those that are not `selected` are left out uncounted."""
    wanted = slice(None) if selected is None else np.flatnonzero(selected)
    rows, at, bits = cells.rows[wanted], cells.at[wanted], cells.bits[wanted].copy()
    job, assume = context.asked.job, context.asked.assumptions
    times = time_shapes(
        job, shapes["nodes"].astype(np.float64), shapes["step_time_s"], shapes["step_time_low_s"],
        shapes["step_time_high_s"], assume,
    )  # fmt: skip
    nodes = shapes["nodes"][at].astype(np.int64)
    acquire = np.where(context.market.is_spot[rows], 0.0, assume.on_demand_acquire_s)
    staging = staging_hours(context.market.offer_set, job, assume)[rows]
    # the data come while capacity is waited for
    waiting = (assume.provision_s + acquire) / 3600.0 + np.maximum(staging, context.starts.hours(rows, nodes))
    fixed = fixed_hours(assume, times)[at]
    work, write = times.work[at], times.checkpoint_write[at]
    run = run_candidates(context, rows, nodes, work, write)
    hours, paid = waiting + fixed + run.elapsed_hours, fixed + run.paid_hours
    sigma = times.sigma[at]
    stored = context.market.stores.choose(rows, nodes, shapes["step_time_s"][at], hours)
    money = context.market.costs.evaluate(
        rows, nodes, paid, hours, spread=Spread(context.dates.start, fixed, sigma), stored=stored, run_hours=hours
    )  # fmt: skip
    candidates = Candidates(
        context=context, offer=rows, shape=at, nodes=nodes,
        bits=bits, work_hours=work, sigma=sigma, waiting_hours=waiting,
        fixed_hours=fixed, hours=hours, paid_hours=paid, billed_hours=money.billed_hours, cost_usd=money.cost_usd,
        cash_usd=money.cash_usd, p_meet=np.full(len(at), np.nan), interruptions=run.interruptions,
        lost_hours=run.lost_hours, interval_hours=run.interval_hours, write_hours=write,
        instance_hours=money.instance_hours, kind=np.full(len(at), SINGLE), detail=np.full(len(at), -1),
        store=stored.code, store_usd=stored.usd, store_usd_per_hour=stored.usd_per_hour,
        shapes=shapes, grid_bits=cells.dead,
    )  # fmt: skip
    mark_limits(candidates)
    return candidates
