"""Expected timing of candidates on spot in one or several zones, with or without an on-demand fall-back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.rows import greatest, pick, pick_or
from planner.candidates.model import join_pools
from planner.candidates.running import model_arguments, steady_hours
from planner.candidates.starts import allotted_hours, fallback_hours
from planner.candidates.ways.fallback import mean_fallback
from planner.normal.arrays import normal_cdf_by_table
from planner.records import record
from planner.spot.moments import split_job
from planner.spot.renewal import spot_outcome

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.asked.model import Asked
    from planner.candidates.model import Candidates
    from planner.market.model import Market
    from planner.spot.distribution import SpotPool


GB_PER_GIB = 2.0**30 / 1e9
CONFIDENCE_SLIP = 1e-9  # of the probability to meet the deadline
_BLOCK = 2_000  # cells per block, so that their arrays stay in the processor's cache


@record(frozen=True, eq=False)
class Cells:
    """Combinations of spot zones and a fall-back; arrays of shape `(n,)` unless stated.

    Attributes:
        base: candidate of a spot offer of the same size, whose shape and times apply.
        zones: spot offers, cheapest first, -1 none, shape `(n, k)`.
        shares: of the spot up-time, by zone, of the same shape.
        on_demand: offer of the fall-back, -1 none.
        pool: the spot capacity of all zones together.
        moves: expected changes of region per interruption.
    """

    base: Ints
    zones: Ints
    shares: Floats
    on_demand: Ints
    pool: SpotPool
    moves: Floats

    def take(self, at: Ints | slice) -> Cells:
        """Some of them."""
        return Cells(
            pick(self.base, at),
            pick(self.zones, at),
            pick(self.shares, at),
            pick(self.on_demand, at),
            self.pool.take(at),
            pick(self.moves, at),
        )


_NAMES = tuple(f.name for f in fields(Cells))


def join_cells(parts: list[Cells]) -> Cells:
    """Concatenate cells."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES if name != "pool"
    }
    return Cells(**columns, pool=join_pools([part.pool for part in parts]))


@record(frozen=True, eq=False)
class Course:
    """Expected course of cells: hours, of shape `(n,)`; `on_demand_hours` and `spot_hours` are those paid.

    Means over interruptions and over the error of the predicted speed (`planner.candidates.ways.fallback`), `p_change`
    (that the fall-back is needed) and `work_share` (done on on-demand) included; the probabilities that answers state
    are those of `planner.candidates.ways.chances`. `slack` is that at the predicted speed.
    """

    waiting: Floats
    elapsed: Floats
    spot_hours: Floats
    on_demand_hours: Floats
    interruptions: Floats
    lost: Floats
    slack: Floats
    p_change: Floats
    work_share: Floats


@record(frozen=True, eq=False)
class Frame:
    """Bounds on the course of cells that do not depend on interruptions: hours, of shape `(n,)`.

    Attributes:
        waiting: before the first request.
        room: from then to the deadline, without the hours in use that are not work.
        steady: of the work on on-demand.
        slack: waits and lost work that the deadline allows; infinity without a fall-back.
        slack_loss: decrease of the slack if the work takes x times as long, per (x - 1).
        surely: probability that on-demand alone, started at the last moment, is in time.
        least: of the work without any interruption.
        deadline: from the start.
    """

    waiting: Floats
    room: Floats
    steady: Floats
    slack: Floats
    slack_loss: Floats
    surely: Floats
    least: Floats
    deadline: Floats

    def take(self, at: Ints | slice) -> Frame:
        """Some of them."""
        taken: Frame = take_columns(self, at)
        return taken

    def possible(self, confidence: float) -> Bools:
        """Mask of cells that can meet the deadline with `confidence`."""
        has = np.isfinite(self.slack)
        sure = (self.slack >= 0) & (self.surely >= confidence - CONFIDENCE_SLIP)
        return np.asarray((self.least <= self.deadline + 1e-9) & (~has | sure), dtype=np.bool_)


def cells_of(candidates: Candidates, at: Ints) -> Cells:
    """The cells of candidates `at`, all of kind `IN_TURN`; each is its own base, so work and pool may be replaced."""
    assert candidates.turns is not None
    own = candidates.detail[at]
    turns, row = candidates.turns, np.arange(len(at))
    offer, has = turns.offer[own], turns.has_fallback[own]
    last = offer.shape[1] - 1 - np.argmax(offer[:, ::-1] >= 0, axis=1)  # zones may be padded before it
    on_demand = np.where(has, offer[row, last], -1)
    zones, paid = offer.copy(), turns.paid_hours[own].copy()
    zones[row[has], last[has]], paid[row[has], last[has]] = -1, 0.0
    whole = paid.sum(axis=1, keepdims=True)
    shares = np.where(whole > 0, paid / np.where(whole > 0, whole, 1.0), np.arange(offer.shape[1]) == 0)
    cells = Cells(at, zones, shares, on_demand, turns.pool.take(own), np.zeros(len(at)))
    gb = candidates.context.asked.job.checkpoint_gib * GB_PER_GIB
    changes = change_of_region(candidates.context.market, cells) * turns.p_change[own]
    moved = turns.moved_gb[own] / gb - changes if gb else np.zeros(len(at))
    often = candidates.interruptions[at] > 0
    moves = np.where(often, np.maximum(moved, 0.0) / np.where(often, candidates.interruptions[at], 1.0), 0.0)
    return replace(cells, moves=moves)


def take_columns(columns: Any, at: Ints | slice) -> Any:
    """Rows `at` of a record of arrays."""
    return type(columns)(**{name: pick(getattr(columns, name), at) for name in columns.__dataclass_fields__})


def frame_of(candidates: Candidates, cells: Cells) -> Frame:
    """The bounds of cells by the deadline of the run."""
    places, has = np.column_stack([cells.zones, cells.on_demand]), cells.on_demand >= 0
    return frame_at(candidates, cells.base, places, change_hours(candidates, cells), has)


def frame_at(candidates: Candidates, base: Ints, places: Ints, change: Floats, has: Bools) -> Frame:
    """The bounds of cells of which only some parts are known.

    Args:
        candidates: candidates that the cells are based on.
        base: those, shape `(n,)`.
        places: offers whose regions need the data, -1 none, shape `(n, k)`.
        change: hours from the request for on-demand to progress on it, shape `(n,)`.
        has: whether there is a fall-back, shape `(n,)`.
    """
    context, deadline = candidates.context, candidates.deadline_hours(base)
    waiting = _waiting(context.asked, context.market, places)
    room = deadline - waiting - candidates.fixed_hours[base]
    steady = steady_hours(
        context.asked,
        candidates.nodes[base],
        candidates.work_hours[base],
        candidates.write_hours[base],
        candidates.interval_hours[base],
    )
    later = candidates.later_hours(base)
    late, slack_loss = room - change, steady - later
    return Frame(
        waiting=waiting, room=room, steady=steady, slack=np.where(has, late - steady, np.inf), slack_loss=slack_loss,
        surely=_steady_probability(np.maximum(late - later, 0.0), slack_loss, candidates.sigma[base]),
        least=waiting + candidates.fixed_hours[base] + candidates.work_hours[base],
        deadline=np.broadcast_to(np.asarray(deadline, dtype=np.float64), len(base)),
    )  # fmt: skip


def change_hours(candidates: Candidates, cells: Cells) -> Floats:
    """Hours from the request for on-demand to progress on it that the last moment allows for."""
    wait = allotted_hours(candidates, cells.on_demand, candidates.nodes[cells.base])
    return until_progress(candidates, cells.base, wait)


def until_progress(candidates: Candidates, base: Ints, wait: Floats) -> Floats:
    """Hours from the request for on-demand to progress on it, given the wait for it."""
    asked = candidates.context.asked
    restart = asked.restart_hours(candidates.write_hours[base])
    return np.asarray(restart + asked.assumptions.on_demand_acquire_s / 3600.0 + wait)


def run_in_turn(candidates: Candidates, cells: Cells, frame: Frame) -> Course:
    """Expected course of each cell up to its deadline.

    Args:
        candidates: candidates that the cells are based on.
        cells: zones and fall-backs.
        frame: their bounds.
    """
    count = len(cells.base)
    if count <= _BLOCK:
        return _run_block(candidates, cells, frame)
    blocks = [slice(first, first + _BLOCK) for first in range(0, count, _BLOCK)]
    courses = [_run_block(candidates, cells.take(block), frame.take(block)) for block in blocks]
    return Course(
        **{f.name: np.concatenate([getattr(one, f.name) for one in courses]) for f in fields(Course)}
    )


def _run_block(candidates: Candidates, cells: Cells, frame: Frame) -> Course:
    """The same of a few thousand cells."""
    context = candidates.context
    base, rows = cells.base, cells.zones[:, 0]
    work, write = candidates.work_hours[base], candidates.write_hours[base]
    interval, fixed = candidates.interval_hours[base], candidates.fixed_hours[base]
    arguments = model_arguments(context.asked, context.spot, rows, write, interval, cells.pool)
    free = spot_outcome(work, **arguments)
    has = cells.on_demand >= 0
    restart, steady, slack = context.asked.restart_hours(write), frame.steady, frame.slack
    job = split_job(work, interval, write, restart, arguments["notice_hours"])
    at = np.flatnonzero(has)
    left = mean_fallback(
        job.take(at), cells.pool.take(at), slack[at], frame.slack_loss[at], candidates.sigma[base[at]]
    )
    share, change, wasted = np.zeros((3, len(base)))
    share[at], change[at], wasted[at] = left.work_share, left.p_change, left.wasted_hours
    on_spot = job.floor_hours * (1.0 - share)
    wait = fallback_hours(context.starts, cells.on_demand, candidates.nodes[base])
    in_turn = on_spot + wasted + share * steady + change * until_progress(candidates, base, wait)
    lost = free.expected_lost_hours * (1.0 - share)
    lost = np.where(has, np.minimum(lost, wasted), lost)
    export = write + context.asked.assumptions.export_s / 3600.0
    return Course(
        waiting=frame.waiting, elapsed=np.where(has, in_turn, free.expected_elapsed_hours),
        spot_hours=on_spot + lost + fixed - change * export,
        on_demand_hours=share * steady + change * (restart + export),
        interruptions=free.expected_interruptions * (1.0 - share),
        lost=lost + change * restart, slack=slack, p_change=change,
        work_share=share,
    )  # fmt: skip


def _waiting(asked: Asked, market: Market, rows: Ints) -> Floats:
    """Hours before the first request; the data go to the regions of all offers at once."""
    from planner.candidates.timing import staging_hours

    assume = asked.assumptions
    staging = staging_hours(market.offer_set, asked.job, assume)
    each = greatest(pick_or(staging, rows, 0.0))
    return np.asarray(assume.provision_s / 3600.0 + each, dtype=np.float64)


def _steady_probability(room: Floats, need: Floats, sigma: Floats) -> Floats:
    """P(need e^(sigma z) <= room): with a fall-back only the speed is uncertain."""
    ratio = np.log(np.maximum(room, 1e-300) / need)
    z = np.where(sigma > 0, ratio / np.where(sigma > 0, sigma, 1.0), np.where(ratio >= -1e-12, 9.0, -9.0))
    return np.where(room > 0, normal_cdf_by_table(z), 0.0)


def change_of_region(market: Market, cells: Cells) -> Floats:
    """Share of spot time in another region than the on-demand offer's."""
    place = market.region_of_offer
    other = place[cells.zones] != place[cells.on_demand][:, None]
    away = (cells.shares * (other & (cells.zones >= 0))).sum(axis=1)
    return np.where(cells.on_demand >= 0, away, 0.0)
