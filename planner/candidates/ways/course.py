"""Timing and pricing of candidates that run on one offer after another: spot, and on-demand to fall back on."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.model import Turns, join_pools
from planner.candidates.running import model_arguments, steady_hours
from planner.candidates.starts import allotted_hours, fallback_hours
from planner.candidates.stored import store_lines
from planner.candidates.ways.fallback import mean_fallback
from planner.candidates.ways.transfers import between_regions_usd_per_gb, moved_curve
from planner.market.pricing import PriceTag, exact, price_line
from planner.market.storage.stores import Stored
from planner.plan.ids import CostId
from planner.plan.labels import cost_label
from planner.plan.model import CostLine
from planner.records import record
from planner.spot.distribution import normal_cdf
from planner.spot.moments import split_job
from planner.spot.renewal import spot_outcome

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.asked.model import Asked
    from planner.candidates.model import Candidates
    from planner.market.model import Market
    from planner.spot.distribution import SpotPool

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

GB_PER_GIB = 2.0**30 / 1e9
CONFIDENCE_SLIP = 1e-9  # of the probability to meet the deadline
_BLOCK = 2_000  # cells worked out at once: their arrays then stay in the processor's cache, and are reused


@record(frozen=True, eq=False)
class Cells:
    """Ways to run in turn, arrays of shape `(n,)` unless said.

    Attributes:
        base: candidate of a spot offer of the same size, whose shape and times hold here too.
        zones: spot offers, cheapest first, -1 none, shape `(n, k)`; shares: of spot up-time, of the same shape.
        on_demand: offer to fall back on, -1 none.
        pool: the spot capacity of all zones seen as one.
        moves: changes of region per interruption.
    """

    base: IntArray
    zones: IntArray
    shares: FloatArray
    on_demand: IntArray
    pool: SpotPool
    moves: FloatArray

    def take(self, at: IntArray | slice) -> Cells:
        """Some of them."""
        return Cells(
            self.base[at],
            self.zones[at],
            self.shares[at],
            self.on_demand[at],
            self.pool.take(at),
            self.moves[at],
        )


def join_cells(parts: list[Cells]) -> Cells:
    """Cells one after another."""
    columns = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts])
        for f in fields(Cells)
        if f.name != "pool"
    }
    return Cells(**columns, pool=join_pools([part.pool for part in parts]))


@record(frozen=True, eq=False)
class Course:
    """How cells are expected to run, arrays of shape `(n,)`, hours; `on_demand_hours` and `spot_hours` are paid.

    All are means over luck and over the error of the speed (`planner.candidates.ways.fallback`) by the model's own
    distribution, `p_change` too. Chances that are stated are those of `planner.candidates.ways.chances`; `slack` is
    that of the predicted speed.
    """

    waiting: FloatArray
    elapsed: FloatArray
    spot_hours: FloatArray
    on_demand_hours: FloatArray
    interruptions: FloatArray
    lost: FloatArray
    slack: FloatArray
    p_change: FloatArray
    work_share: FloatArray


@record(frozen=True, eq=False)
class Frame:
    """What is certain of cells before spot's luck, arrays of shape `(n,)`, hours.

    Attributes:
        waiting: before the first request; room: from it to the deadline, less what is in use but not work.
        steady: the work on on-demand; slack: waits and losses that can be afforded, infinity without a fall-back.
        surely: probability that on-demand alone, from the last moment on, is in time.
        least: hours of the bare work, without any interruption; deadline: hours from the start.
    """

    waiting: FloatArray
    room: FloatArray
    steady: FloatArray
    slack: FloatArray
    surely: FloatArray
    least: FloatArray
    deadline: FloatArray

    def take(self, at: IntArray | slice) -> Frame:
        """Some of them."""
        return Frame(**{f.name: getattr(self, f.name)[at] for f in fields(self)})

    def possible(self, confidence: float) -> npt.NDArray[np.bool_]:
        """Whether cells may keep the deadline with `confidence`."""
        has = np.isfinite(self.slack)
        sure = (self.slack >= 0) & (self.surely >= confidence - CONFIDENCE_SLIP)
        return np.asarray((self.least <= self.deadline + 1e-9) & (~has | sure), dtype=np.bool_)


def cells_of(candidates: Candidates, at: IntArray) -> Cells:
    """The ways behind candidates `at`, all of them in turn; each is its own base, so work and pool may be replaced."""
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
    changes = _change_of_region(candidates.context.market, cells) * turns.p_change[own]
    moved = turns.moved_gb[own] / gb - changes if gb else np.zeros(len(at))
    often = candidates.interruptions[at] > 0
    moves = np.where(often, np.maximum(moved, 0.0) / np.where(often, candidates.interruptions[at], 1.0), 0.0)
    return replace(cells, moves=moves)


def take_columns(columns: Any, at: IntArray) -> Any:
    """Rows `at` of a record of arrays."""
    return type(columns)(**{f.name: getattr(columns, f.name)[at] for f in fields(columns)})


def frame_of(candidates: Candidates, cells: Cells) -> Frame:
    """What is certain of cells by the deadline of the run."""
    places, has = np.column_stack([cells.zones, cells.on_demand]), cells.on_demand >= 0
    return frame_at(candidates, cells.base, places, change_hours(candidates, cells), has)


def frame_at(
    candidates: Candidates, base: IntArray, places: IntArray, change: FloatArray, has: npt.NDArray[np.bool_]
) -> Frame:
    """The same of cells that are not known whole.

    Args:
        candidates: candidates that the cells are based on.
        base: those, shape `(n,)`.
        places: offers whose regions the data must come to, -1 none, shape `(n, k)`.
        change: hours from asking for on-demand to progress on it, shape `(n,)`.
        has: whether there is a fall-back, shape `(n,)`.
    """
    context = candidates.context
    assert context.dates.deadline_hours is not None
    waiting = _waiting(context.asked, context.market, places)
    room = context.dates.deadline_hours - waiting - candidates.fixed_hours[base]
    steady = steady_hours(
        context.asked,
        candidates.nodes[base],
        candidates.work_hours[base],
        candidates.write_hours[base],
        candidates.interval_hours[base],
    )
    late = room - change
    return Frame(
        waiting=waiting, room=room, steady=steady, slack=np.where(has, late - steady, np.inf),
        surely=_steady_probability(np.maximum(late, 0.0), steady, candidates.sigma[base]),
        least=waiting + candidates.fixed_hours[base] + candidates.work_hours[base],
        deadline=np.full(len(base), context.dates.deadline_hours),
    )  # fmt: skip


def change_hours(candidates: Candidates, cells: Cells) -> FloatArray:
    """Hours from asking for on-demand to progress on it that the last moment leaves."""
    wait = allotted_hours(candidates, cells.on_demand, candidates.nodes[cells.base])
    return until_progress(candidates, cells.base, wait)


def until_progress(candidates: Candidates, base: IntArray, wait: FloatArray) -> FloatArray:
    """Hours from asking for on-demand to progress on it after a wait."""
    asked = candidates.context.asked
    restart = asked.restart_hours(candidates.write_hours[base])
    return np.asarray(restart + asked.assumptions.on_demand_acquire_s / 3600.0 + wait)


def run_in_turn(candidates: Candidates, cells: Cells, frame: Frame) -> Course:
    """Expect how each cell runs by its deadline.

    Args:
        candidates: candidates that the cells are based on.
        cells: what runs where.
        frame: what is certain of them.
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
    left = mean_fallback(job.take(at), cells.pool.take(at), slack[at], steady[at], candidates.sigma[base[at]])
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


def _waiting(asked: Asked, market: Market, rows: IntArray) -> FloatArray:
    """Hours before the first request; the data go to the regions of all offers at once."""
    from planner.candidates.timing import staging_hours

    assume = asked.assumptions
    staging = staging_hours(market.offer_set, asked.job, assume)
    each = np.where(rows >= 0, staging[rows], 0.0).max(axis=1)
    return np.asarray(assume.provision_s / 3600.0 + each, dtype=np.float64)


def _steady_probability(room: FloatArray, need: FloatArray, sigma: FloatArray) -> FloatArray:
    """P(need e^(sigma z) <= room): with a fall-back only the speed is uncertain."""
    ratio = np.log(np.maximum(room, 1e-300) / need)
    z = np.where(sigma > 0, ratio / np.where(sigma > 0, sigma, 1.0), np.where(ratio >= -1e-12, 9.0, -9.0))
    return np.where(room > 0, normal_cdf(z), 0.0)


def price_in_turn(candidates: Candidates, cells: Cells, course: Course) -> tuple[dict[str, Any], Turns]:
    """Price cells: columns of `Candidates` and the `Turns` behind them."""
    context = candidates.context

    base, n = cells.base, len(cells.base)
    offer = np.column_stack([cells.zones, cells.on_demand])
    paid = np.column_stack([cells.shares * course.spot_hours[:, None], course.on_demand_hours])
    hours = course.waiting + candidates.fixed_hours[base] + course.elapsed
    nodes = candidates.nodes[base]
    bought = offer >= 0
    row, _ = np.nonzero(bought)
    each = context.market.costs.evaluate(
        offer[bought], nodes[row], paid[bought], hours[row], expected=True, run_hours=hours[row]
    )
    cost, cash = np.zeros(n), np.zeros(n)
    np.add.at(cost, row, each.worker_usd)
    np.add.at(cash, row, each.cash_usd - each.kept_usd)
    priced = {name: np.zeros(offer.shape) for name in ("billed_hours", "instance_hours")}
    for name, column in priced.items():
        column[bought] = getattr(each, name)
    first = np.flatnonzero(np.append(True, row[1:] != row[:-1])) if len(row) else row
    stored = _stored(candidates, cells, offer, hours)
    kept = each.kept_usd[first] + _more_places(context.market, offer, hours) + stored.cost(hours)
    moved = course.interruptions * cells.moves + _change_of_region(context.market, cells) * course.p_change
    moved_gb = np.round(moved * context.asked.job.checkpoint_gib * GB_PER_GIB, 9)
    moved_usd = moved_gb * between_regions_usd_per_gb(context.market, offer)
    columns = {name: getattr(candidates, name)[base] for name in _TIMES} | {
        "offer": cells.zones[:, 0], "bits": np.zeros(n, dtype=np.int64), "waiting_hours": course.waiting,
        "hours": hours, "paid_hours": paid[:, 0], "billed_hours": priced["billed_hours"][:, 0],
        "cost_usd": cost + kept + moved_usd, "cash_usd": cash + kept + moved_usd, "p_meet": np.full(n, np.nan),
        "interruptions": course.interruptions, "lost_hours": course.lost,
        "instance_hours": priced["instance_hours"].sum(axis=1), "dataset_gib_months": each.dataset_gib_months[first],
        "checkpoint_gib_months": each.checkpoint_gib_months[first], "store": stored.code, "store_usd": stored.usd,
        "store_usd_per_hour": stored.usd_per_hour,
    }  # fmt: skip
    turns = Turns(
        offer=offer, paid_hours=paid, **priced, has_fallback=cells.on_demand >= 0, p_change=course.p_change,
        slack_hours=course.slack, work_share=course.work_share, moved_gb=moved_gb,
        moved_usd=moved_usd, pool=cells.pool,
    )  # fmt: skip
    return columns, turns


_TIMES = ("shape", "nodes", "work_hours", "sigma", "fixed_hours", "write_hours", "interval_hours")


def _change_of_region(market: Market, cells: Cells) -> FloatArray:
    """Share of spot time in another region than the on-demand offer's."""
    place = market.region_of_offer
    other = place[cells.zones] != place[cells.on_demand][:, None]
    away = (cells.shares * (other & (cells.zones >= 0))).sum(axis=1)
    return np.where(cells.on_demand >= 0, away, 0.0)


def _stored(candidates: Candidates, cells: Cells, offer: IntArray, hours: FloatArray) -> Stored:
    """Where the nodes read the data from: as is best in the cheapest zone, once in each region of the run."""
    market, base = candidates.context.market, cells.base
    step_s = candidates.shapes["step_time_s"][candidates.shape[base]]
    one = market.stores.choose(offer[:, 0], candidates.nodes[base], step_s, hours)
    place = np.where(offer >= 0, market.region_of_offer[offer], -1)
    ordered = np.sort(place, axis=1)
    regions = (ordered[:, :1] >= 0).sum(axis=1) + (
        (np.diff(ordered, axis=1) > 0) & (ordered[:, 1:] >= 0)
    ).sum(axis=1)
    return Stored(one.code, one.usd * regions, one.usd_per_hour * regions)


def _more_places(market: Market, offer: IntArray, hours: FloatArray) -> FloatArray:
    """What the data set costs in every region beyond the first one, USD."""
    place = np.where(offer >= 0, market.region_of_offer[offer], -1)
    extra = np.zeros(len(offer))
    for column in range(1, offer.shape[1]):
        new = (offer[:, column] >= 0) & (place[:, column] != place[:, 0])
        for earlier in range(1, column):
            new &= place[:, column] != place[:, earlier]
        at = np.flatnonzero(new)
        if len(at):
            extra[at] += market.costs.copy_usd(offer[at, column], hours[at])
    return extra


def turn_lines(candidates: Candidates, at: int) -> list[list[CostLine]]:
    """Cost lines of each part of candidate `at`: the first carries its place and what is carried between regions."""
    context = candidates.context
    turns = candidates.turns
    assert turns is not None
    own, parts = int(candidates.detail[at]), candidates.parts(at)
    stored = float(candidates.dataset_gib_months[at]), float(candidates.checkpoint_gib_months[at])
    seen: set[int] = set()
    out: list[list[CostLine]] = []
    for number, part in enumerate(parts):
        place = int(context.market.region_of_offer[part.row])
        lines = context.market.costs.lines(
            part.row, part.instance_hours, *stored, part.nodes, with_place=number == 0,
            run_hours=float(candidates.hours[at]),
        )  # fmt: skip
        if number and place not in seen:
            lines += context.market.costs.copy_lines(part.row, float(candidates.hours[at]))
        if place not in seen:
            lines += store_lines(candidates, at)
        seen.add(place)
        out.append(lines)
    if turns.moved_gb[own] > 0:
        curve, known = moved_curve(context.market, [part.row for part in parts])
        basis, flags = ("derived", ()) if known else ("derived", ("unknown_transfer_price",))
        tag = PriceTag(max(curve.usd_per_gb), "USD", Decimal(1), basis, curve.source, curve.as_of, flags)
        out[0].append(
            price_line(
                CostId.CHECKPOINT_TRANSFER,
                cost_label(CostId.CHECKPOINT_TRANSFER, inference=context.asked.job.is_inference),
                float(curve.quantity(exact(float(turns.moved_gb[own])))),
                curve.unit,
                tag,
            )
        )
    return out
