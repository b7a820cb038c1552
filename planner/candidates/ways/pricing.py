"""Pricing of candidates that run on one offer after another: columns of candidates, and the cost lines of one."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.rows import pick_or
from catalogs.tables.table import changes
from planner.candidates.model import Turns
from planner.candidates.ways.course import GB_PER_GIB, change_of_region, take_columns
from planner.candidates.ways.transfers import between_regions_usd_per_gb, moved_curve
from planner.market.pricing import PriceTag, exact, price_line
from planner.market.storage.stores import Stored
from planner.plan.ids import CostId
from planner.plan.labels import cost_label
from planner.plan.model import CostLine

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.candidates.ways.course import Cells, Course
    from planner.market.model import Market


_BLOCK = 8_000  # cells priced at once: what is worked out on the way then stays in the cache, and takes little memory
_TIMES = ("shape", "nodes", "work_hours", "sigma", "fixed_hours", "write_hours", "interval_hours")


def price_in_turn(candidates: Candidates, cells: Cells, course: Course) -> tuple[dict[str, Any], Turns]:
    """Price cells: columns of `Candidates` and the `Turns` behind them."""
    base, n = cells.base, len(cells.base)
    offer = np.column_stack([cells.zones, cells.on_demand])
    priced = _price_block(candidates, cells, course, offer) if n <= _BLOCK else {}
    for first in range(0, n if n > _BLOCK else 0, _BLOCK):
        own = slice(first, first + _BLOCK)
        part = _price_block(candidates, cells.take(own), take_columns(course, own), offer[own])
        for name, values in part.items():
            if name not in priced:
                priced[name] = np.empty((n, *values.shape[1:]), dtype=values.dtype)
            priced[name][own] = values
    paid, billed, instance = (priced.pop(name) for name in ("paid", "billed", "instance"))
    moved_gb, moved_usd = priced.pop("moved_gb"), priced.pop("moved_usd")
    columns = {name: getattr(candidates, name)[base] for name in _TIMES} | priced | {
        "offer": cells.zones[:, 0], "bits": np.zeros(n, dtype=np.int64), "waiting_hours": course.waiting,
        "paid_hours": paid[:, 0], "billed_hours": billed[:, 0], "instance_hours": instance.sum(axis=1),
        "p_meet": np.full(n, np.nan), "interruptions": course.interruptions, "lost_hours": course.lost,
    }  # fmt: skip
    turns = Turns(
        offer=offer, paid_hours=paid, billed_hours=billed, instance_hours=instance,
        has_fallback=cells.on_demand >= 0, p_change=course.p_change, slack_hours=course.slack,
        work_share=course.work_share, moved_gb=moved_gb, moved_usd=moved_usd, pool=cells.pool,
    )  # fmt: skip
    return columns, turns


def _price_block(candidates: Candidates, cells: Cells, course: Course, offer: Ints) -> dict[str, Any]:
    """What is worked out of a few thousand cells: columns by their names in `Candidates`, and those of `Turns`.

    `offer`, `paid`, `billed` and `instance` have a column for each purchase.
    """
    context, n = candidates.context, len(offer)
    paid = np.column_stack([cells.shares * course.spot_hours[:, None], course.on_demand_hours])
    hours = course.waiting + candidates.fixed_hours[cells.base] + course.elapsed
    bought = np.flatnonzero(offer >= 0)
    row = bought // offer.shape[1]
    ends = hours.take(row)
    each = context.market.costs.evaluate(
        offer.take(bought), candidates.nodes[cells.base].take(row), paid.take(bought), ends, expected=True,
        run_hours=ends,
    )  # fmt: skip
    cost = np.bincount(row, each.worker_usd, minlength=n)
    cash = np.bincount(row, each.cash_usd - each.kept_usd, minlength=n)
    billed, instance = np.zeros(offer.shape), np.zeros(offer.shape)
    billed.ravel()[bought], instance.ravel()[bought] = each.billed_hours, each.instance_hours
    first = changes(row)
    new = _new_places(context.market, offer)
    stored = _stored(candidates, cells, 1 + np.count_nonzero(new, axis=0), hours)
    kept = each.kept_usd[first] + _more_places(context.market, offer, new, hours) + stored.cost(hours)
    moved = course.interruptions * cells.moves + change_of_region(context.market, cells) * course.p_change
    moved_gb = np.round(moved * context.asked.job.checkpoint_gib * GB_PER_GIB, 9)
    moved_usd = moved_gb * between_regions_usd_per_gb(context.market, offer)
    return {
        "hours": hours, "cost_usd": cost + kept + moved_usd, "cash_usd": cash + kept + moved_usd,
        "store": stored.code, "store_usd": stored.usd,
        "store_usd_per_hour": stored.usd_per_hour, "paid": paid, "billed": billed, "instance": instance,
        "moved_gb": moved_gb, "moved_usd": moved_usd,
    }  # fmt: skip


def _stored(candidates: Candidates, cells: Cells, regions: Ints, hours: Floats) -> Stored:
    """Where the nodes read the data from: as is best in the cheapest zone, once in each region of the run."""
    market, base = candidates.context.market, cells.base
    step_s = candidates.shapes["step_time_s"][candidates.shape[base]]
    one = market.stores.choose(cells.zones[:, 0], candidates.nodes[base], step_s, hours)
    return Stored(one.code, one.usd * regions, one.usd_per_hour * regions)


def _new_places(market: Market, offer: Ints) -> list[Bools]:
    """Whether each purchase but the first one is in a region that none before it is in, by column."""
    place = pick_or(market.region_of_offer, offer, -1)
    out = []
    for column in range(1, offer.shape[1]):
        new = offer[:, column] >= 0
        for earlier in range(column):
            new &= place[:, column] != place[:, earlier]
        out.append(new)
    return out


def _more_places(market: Market, offer: Ints, new: list[Bools], hours: Floats) -> Floats:
    """What the data set costs in every region beyond the first one, USD."""
    extra = np.zeros(len(offer))
    for column, other in enumerate(new, start=1):
        at = np.flatnonzero(other)
        if len(at):
            extra[at] += market.costs.copy_usd(offer[at, column], hours[at])
    return extra


def turn_lines(candidates: Candidates, at: int) -> list[list[CostLine]]:
    """Cost lines of each part of candidate `at`: the first carries its place and what is carried between regions."""
    context = candidates.context
    turns = candidates.turns
    assert turns is not None
    own, parts = int(candidates.detail[at]), candidates.parts(at)
    stored = context.market.costs.gib_months(parts[0].row, float(candidates.hours[at]))
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
            lines += candidates.store_lines(at)
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
