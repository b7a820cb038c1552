"""The cheapest candidate of a job, without pricing what cannot be it: for questions that show nothing else.

A run pays no less than its bare work, start and end at the least price that its offer can be expected to have. So a
cell whose floor is above the cost of a candidate that keeps all limits is not the cheapest, nor is any way to run that
begins with it. What to compare with is the best of a sample: the types and sizes with the least floors, with all ways
to run on them. Then what is below that is worked out: mostly nothing is left. Of each type and size all zones are
looked at or none, so ways to run in several of them are the same as in `planner.candidates.engine`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.constraints.registry import BIT
from planner.candidates.engine import CandidateSearch, Engine, bits_of, is_scarce
from planner.candidates.grid import cells_of, evaluate
from planner.candidates.model import concat_candidates
from planner.candidates.sizes import (
    coarse_node_counts,
    estimate_hardware,
    hardware_of_offer,
    hopeful_hardware,
)
from planner.candidates.timing import fixed_hours, time_shapes
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.build import add_turns
from planner.candidates.ways.partners import Partners
from planner.performance.device import has_peak
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from catalogs.tables.table import Bools, Floats, Ints, Table
    from planner.asked.model import Asked
    from planner.candidates.context import Context
    from planner.candidates.grid import Cells
    from planner.candidates.model import Candidates
    from planner.market.model import Market


SAMPLE = 24  # types, each at one size
_ROUNDING = 0.999  # quantities are rounded, prices are sums of floats
# What removes a cell, but perhaps no way to run that begins with it.
_NOT_OF_TURNS = BIT["deadline"] | BIT["unrecorded"] | BIT["confidence"] | BIT["budget"] | BIT["carbon"]


def build_cheapest(context: Context) -> CandidateSearch:
    """As `engine.build`, for the cheapest candidate and, without a baseline, the cheapest on demand.

    Other objectives, clusters bought in parts and jobs that nothing in the sample holds have all their candidates.
    """
    asked, market, deadline = context.asked, context.market, context.dates.deadline
    counts, bits = coarse_node_counts(asked.workload.constraints.max_nodes), bits_of(asked, market)
    hardware = _able_hardware(asked, market, bits)
    objective = asked.workload.preferences.objective
    if objective == "cost" and len(hardware) and not is_scarce(market, bits, counts[-1]):
        shapes = estimate_hardware(asked, market, hardware, counts)
        search = _Search(Engine(context, shapes=shapes, offer_bits=bits), deadline).found()
        if search is not None:
            return search
    return Engine(context, offer_bits=bits).at(deadline, Wanted(Scope.BEST, counted=False))


def _able_hardware(asked: Asked, market: Market, offer_bits: Ints) -> Ints:
    """Hardware that something may be bought of and that computes in the job's precision."""
    rows = distinct_values(hardware_of_offer(market)[_usable(market, offer_bits)])
    tuning = asked.job.training.tuning
    if tuning.requests is not None or tuning.rollouts is not None or asked.job.training.phases:
        return rows  # what generates has a precision of its own
    return rows[has_peak(market.offer_set.hardware.take(rows), asked.job.training)]


def _usable(market: Market, offer_bits: Ints) -> Bools:
    """Offers that no limit removes, or of spot only those that a way to run may keep."""
    usable = (offer_bits & np.where(market.is_spot, ~_NOT_OF_TURNS, -1)) == 0
    return np.asarray(usable, dtype=np.bool_)


@record(frozen=True, eq=False)
class _Cells:
    """Cells of the grid that a layout fits, shape `(n,)`.

    Attributes:
        shapes, grid: what they are cells of.
        rows, at: offers and shapes.
        group: code of the instance type and the shape; types that perform the same share a shape.
        is_open: whether no limit removes it, or of spot only those that a way to run may keep.
        floor_usd: what it costs at least.
    """

    shapes: Table
    grid: Cells
    rows: Ints
    at: Ints
    group: Ints
    is_open: Bools
    floor_usd: Floats

    def groups(self, mask: Bools) -> Bools:
        """Whether a cell of `mask` is of each group."""
        out = np.zeros(int(self.group.max(initial=0)) + 1, dtype=np.bool_)
        out[self.group[mask]] = True
        return out


class _Search:
    """The sample, and what may be of use beside it."""

    def __init__(self, engine: Engine, deadline: datetime | None) -> None:
        self._engine = engine
        self._context = engine.context.with_deadline(deadline)
        market = self._context.market
        self._offers = np.flatnonzero(_usable(market, engine.offer_bits))
        self._partners = Partners(market, engine.offer_bits)
        self._on_demand = market.offer_set.offers.equals("purchase_option", "on_demand")
        self._sampled: Bools = np.zeros(0, dtype=np.bool_)

    def found(self) -> CandidateSearch | None:
        """The candidates that may be of use; None where the sample has none that keeps all limits."""
        engine, context = self._engine, self._context
        coarse = self._cells(engine.shapes, self._offers)
        sample = self._priced(coarse, self._sample)
        ways = self._with_ways(sample, np.inf)
        best = _least(ways, ways.bits == 0)
        if not np.isfinite(best):
            return None
        # which sizes between are looked at follows from the best of one offer
        limit = _least(sample, sample.bits == 0) if engine.has_sizes_between else best
        shown = context.asked.workload.baseline is None
        most = _least(sample, (sample.bits == 0) & self._on_demand[sample.offer]) if shown else limit
        limits = np.where(self._on_demand, max(limit, most), limit)
        useful = partial(self._useful, limits, best)
        beside = useful(coarse) & ~self._sampled[coarse.group]
        rest = [evaluate(context, coarse.shapes, coarse.grid, beside)] if beside.any() else []
        rest += [self._priced(self._cells(*one), useful) for one in engine.units()]
        leaders: Ints = np.zeros(0, dtype=np.int64)
        if engine.has_sizes_between:
            leaders = hopeful_hardware(concat_candidates([sample, *rest]), engine.offer_bits)
            if len(leaders):
                rest.append(self._priced(self._cells(*engine.between(leaders)), useful))
        candidates = concat_candidates(
            [ways, *(self._with_ways(one, best) for one in rest if len(one.offer))]
        )
        return CandidateSearch(
            context, candidates, engine.offer_bits, engine.counts, len(leaders), Wanted(Scope.BEST)
        )

    def _priced(self, cells: _Cells, wanted: Callable[[_Cells], Bools]) -> Candidates:
        return evaluate(self._context, cells.shapes, cells.grid, wanted(cells))

    def _with_ways(self, candidates: Candidates, below: float) -> Candidates:
        """The candidates with the ways to run that begin with them, as `Engine.at` adds them."""
        if not self._context.market.is_spot[self._offers].any():
            return candidates
        candidates = replace(candidates, bits=candidates.bits.copy())
        wanted = Wanted(Scope.BEST, below=below, counted=False)
        return add_turns(candidates, self._engine.offer_bits, wanted, self._partners)

    def _cells(self, shapes: Table, offers: Ints) -> _Cells:
        asked, market, offer_set = self._context.asked, self._context.market, self._context.market.offer_set
        limits = asked.workload.constraints
        grid = cells_of(offer_set, limits, self._engine.offer_bits, shapes, offers)
        rows, at = grid.rows, grid.at
        step, nodes = shapes["step_time_s"], shapes["nodes"].astype(np.float64)
        times = time_shapes(asked.job, nodes, step, step, step, asked.assumptions)
        hours = nodes * (times.work + fixed_hours(asked.assumptions, times)) * _ROUNDING
        usd = market.costs.least_usd_per_hour
        within = np.arange(shapes.n_rows) - np.searchsorted(shapes["hardware_row"], shapes["hardware_row"])
        group = offer_set.type_of_offer[rows] * (int(within.max(initial=0)) + 1) + within[at]
        is_open = (grid.bits & np.where(market.is_spot, ~_NOT_OF_TURNS, -1)[rows]) == 0
        return _Cells(shapes, grid, rows, at, group, is_open, usd[rows] * hours[at])

    def _sample(self, cells: _Cells) -> Bools:
        """Cells of the types and sizes with the least floors whose work, uninterrupted, is done in time."""
        context, deadline = self._context, self._context.dates.deadline_hours
        per_step_s = context.asked.job.total_steps * context.asked.assumptions.work_ratio / 3600.0
        hours = self._engine.shapes["step_time_s"] * per_step_s
        usable = cells.is_open & (hours <= (np.inf if deadline is None else deadline))[cells.at]
        least = np.full(len(cells.groups(usable)), np.inf)
        np.minimum.at(least, cells.group[usable], cells.floor_usd[usable])
        last = min(SAMPLE, len(least)) - 1
        self._sampled = np.isfinite(least) & (least <= np.partition(least, last)[last])
        return np.asarray(usable & self._sampled[cells.group], dtype=np.bool_)

    def _useful(self, limits: Floats, best: float, cells: _Cells) -> Bools:
        """Cells that cost at most `limits` of their offers, and those that ways to run for up to `best` are made of.

        Spot is kept for a whole type and size, as a zone that is dear by itself may be one of a set; and so is what it
        falls back on, which decides whether it is a discount.
        """
        spot = self._context.market.is_spot[cells.rows] & cells.is_open
        zones = spot & cells.groups(spot & (cells.floor_usd <= best))[cells.group]
        partner = np.zeros(len(limits) + 1, dtype=np.bool_)
        partner[self._partners.own[cells.rows[zones]]] = True
        partner[-1] = False  # without one
        backing = partner[cells.rows] & cells.groups(zones)[cells.group]
        return cells.is_open & ((cells.floor_usd <= limits[cells.rows]) | zones | backing)


def _least(candidates: Candidates, mask: Bools) -> float:
    return float(candidates.cost_usd[mask].min(initial=np.inf))
