"""The bill of a mix of workers: one plan line per offer, what a place costs once on its first line."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.frame import cash_of, offer_line
from planner.fleet.stored import Lines as StoreLines
from planner.market.pricing import total_usd

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix
    from planner.plan.model import CostLine, PlanLine


def bill_of(search: CandidateSearch, mix: Mix) -> tuple[Decimal, Decimal]:
    """What a mix costs, and what falls due of it, in USD."""
    dates, market = search.candidates.context.dates, search.candidates.context.market
    lines = lines_of(search.candidates, mix)
    cash = cash_of(dates, market, lines, dates.start + timedelta(hours=mix.period))
    due = sum((month.amount_usd for month in cash), Decimal(0))
    return total_usd([cost for line in lines for cost in line.costs]), due


def lines_of(candidates: Candidates, mix: Mix) -> list[PlanLine]:
    """One line per offer; its throughput is its work over the whole plan's hours, so that lines add up to the work.

    What workers of a place share is on its first line: transfers and the copy of the data set.
    """
    asked, market = candidates.context.asked, candidates.context.market
    workers, out, opened = mix.workers, [], set()
    money = mix.price(market)
    stored, region = StoreLines(candidates, mix), market.region_of_offer[workers.rows]
    after = mix.after_hours.tolist()
    for at in np.argsort(market.id_rank[workers.rows], kind="stable").tolist():
        row, count = int(workers.rows[at]), int(mix.count[at])
        nodes = int(workers.nodes[at]) * count
        hours = round(float(money.instance_hours[at]) * count, 9)
        run = float(workers.lead_hours[at] + mix.hours[at])
        costs: list[CostLine] = market.costs.lines(
            row, hours, 0.0, 0.0, nodes, with_place=False, run_hours=run, after_hours=after[at]
        )
        place = int(region[at])
        copy = 0.0 if place in opened else float(money.dataset_gib_months[region == place].max())
        of_place = market.costs.place_lines(row, copy, float(money.checkpoint_gib_months[at]) * count)
        costs += [line for line in of_place if line.kind != "data_transfer" or place not in opened]
        costs += stored.of(at)
        opened.add(place)
        units = float(mix.units[at]) / mix.period / 3600.0
        billed = float(money.billed_hours[at])
        out.append(offer_line(asked, market, row, nodes, billed, units, tuple(costs), None, run))
    return out
