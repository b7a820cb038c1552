"""A fleet that falls back, as a mix of one line: what is shared with other fleets is worked out from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.frame import cash_of, offer_line
from planner.fleet.bill import lines_of
from planner.fleet.mix import Bill, Mix
from planner.fleet.workers import Workers
from planner.market.pricing import total_usd

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.candidates.engine import CandidateSearch
    from planner.fleet.fallback import Fleets
    from planner.fleet.rounds import Round
    from planner.market.costs import Money
    from planner.market.model import Market
    from planner.plan.model import PlanLine


@dataclass(frozen=True, eq=False)
class FallbackMix(Mix):
    """Workers of one spot offer and what they fall back on; `hours` of work are means, on spot and on on-demand.

    Attributes:
        fleet: the fleet, one row.
    """

    fleet: Fleets | None = None

    @property
    def own(self) -> Fleets:
        """The fleet."""
        assert self.fleet is not None
        return self.fleet

    @property
    def ends_hours(self) -> Floats:
        """When the last worker ends."""
        return self.own.most.ends

    def price(self, market: Market) -> Bill:
        """What a worker is billed on spot, in the mean; the copy of the data set is kept until the last ends."""
        paid = self.own.mean("spot_hours")
        stay, last = (self._priced(market, paid, hours) for hours in (self.own.stay_hours, self.ends_hours))
        return Bill(
            stay.billed_hours, stay.instance_hours, stay.cost_usd, last.dataset_gib_months,
            stay.checkpoint_gib_months,
        )  # fmt: skip

    def _priced(self, market: Market, paid: Floats, hours: Floats) -> Money:
        rows, nodes = self.workers.rows, self.workers.nodes
        return market.costs.evaluate(rows, nodes, paid, hours, expected=True, run_hours=self.own.stay_hours)


def workers_of_fallback(asked: Round, fleets: Fleets) -> Workers:
    """Workers with the hours of their course, on spot and on on-demand, and no more; one row per fleet."""
    workers, hours = fleets.ways.workers, fleets.stay_hours - fleets.ways.workers.lead_hours
    paid = fleets.mean("spot_hours") + fleets.mean("on_demand_hours") - workers.fixed_hours
    return replace(
        workers,
        hours_limit=hours,
        best_hours=hours,
        units_per_hour=asked.work / (fleets.count * hours),
        paid_ratio=np.maximum(paid, 0.0) / hours,
        caution=np.ones(len(hours)),
    )


def mix_of_fallback(asked: Round, one: Fleets) -> FallbackMix:
    """A fleet, one row, as a mix."""
    usual, line = workers_of_fallback(asked, one), np.zeros(1, dtype=np.int64)
    return FallbackMix(line, usual, one.count, usual.hours_limit, asked.limit, asked.work, None, fleet=one)


def spot_alone_mix(asked: Round, one: Fleets) -> Mix:
    """The same workers on spot alone, at spot's mean rates."""
    from planner.fleet.whole_runs import run_units

    workers = one.ways.workers
    hours = asked.work / (one.count * workers.units_per_hour)
    return Mix(
        np.zeros(1, dtype=np.int64), workers, one.count, hours, asked.limit, asked.work, None,
        run_units=run_units(asked.found.context.asked),
    )  # fmt: skip


def workers_on_each(mix: FallbackMix) -> Mix:
    """The hours in use on spot and on on-demand as two lines; on-demand is at work in all of its hours."""
    one, workers = mix.own, mix.workers
    spot = replace(workers, paid_ratio=np.ones(1))
    later = replace(spot, rows=one.ways.on_demand, fixed_hours=np.zeros(1))
    return replace(
        mix, workers=Workers.joined([spot, later]), count=np.repeat(mix.count, 2),
        hours=np.concatenate([one.mean("spot_hours") - workers.fixed_hours, one.mean("on_demand_hours")]),
    )  # fmt: skip


def lines_of_fallback(search: CandidateSearch, mix: FallbackMix) -> list[PlanLine]:
    """The line of spot, with all that the place costs, and that of on-demand; each does its share of the work."""
    context, one = search.context, mix.own
    market = context.market
    spot = lines_of(search.candidates, mix)[0]
    stay, count = one.stay_hours, int(mix.count[0])
    row, nodes = int(one.ways.on_demand[0]), int(mix.workers.nodes[0]) * count
    money = market.costs.evaluate(
        one.ways.on_demand,
        mix.workers.nodes,
        one.mean("on_demand_hours"),
        stay,
        expected=True,
        run_hours=stay,
    )
    hours = round(float(money.instance_hours[0]) * count, 9)
    costs = market.costs.lines(row, hours, 0.0, 0.0, nodes, with_place=False, run_hours=float(stay[0]))
    share, billed = float(one.on_demand_share[0]), float(money.billed_hours[0])
    later = offer_line(
        context.asked,
        market,
        row,
        nodes,
        billed,
        spot.throughput_per_s * share,
        tuple(costs),
        None,
        float(stay[0]),
    )
    return [replace(spot, throughput_per_s=spot.throughput_per_s * (1.0 - share)), later]


def bill_of_fallback(search: CandidateSearch, mix: FallbackMix) -> tuple[Decimal, Decimal]:
    """What a fleet costs, and what falls due of it, in USD."""
    dates, lines = search.context.dates, lines_of_fallback(search, mix)
    cash = cash_of(dates, search.context.market, lines, dates.start + timedelta(hours=mix.period))
    due = sum((month.amount_usd for month in cash), Decimal(0))
    return total_usd([cost for line in lines for cost in line.costs]), due
