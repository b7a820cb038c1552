"""Why a fleet falls back, and in this place: what on-demand alone, spot alone and other regions would come to."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.summary import describe
from planner.fleet.alone import cheapest_sure, summary_of
from planner.fleet.fallback_mix import bill_of_fallback, mix_of_fallback
from planner.fleet.fallback_search import cheapest_with_fallback
from planner.fleet.rounds import confidence_of
from planner.render.numbers import usd

if TYPE_CHECKING:
    from planner.fleet.alone import Alone
    from planner.fleet.fallback import Fleets
    from planner.fleet.rounds import Round
    from planner.plan.brief import Choice, Summary
    from planner.plan.launch import Launch


def reasons(
    asked: Round, one: Fleets, launch: Launch, alone: Alone, baseline: Choice | None
) -> tuple[str, ...]:
    """The best of each other way, as for a single job.

    Args:
        asked: the question.
        one: the fleet, one row.
        launch: what it is expected to come to.
        alone: fleets of each offer alone, without a fall-back.
        baseline: the cheapest of these on on-demand.
    """
    context, out = asked.found.context, []
    if baseline is not None and baseline.best is not None:
        aside = ", which exceeds a limit" if "limits_aside" in baseline.kinds else ""
        out.append(f"on-demand alone would cost {_brief(baseline.best)}{aside}")
    out += _on_spot(asked, launch, alone)
    workers = one.ways.workers
    if not context.gang_risk(workers.rows, workers.nodes).recorded.all():
        out.append("no recorded spot availability there: with a deadline, on-demand is the fall-back")
    return (*out, _elsewhere(asked, one))


def _on_spot(asked: Round, launch: Launch, alone: Alone) -> list[str]:
    """The chance of the same workers on spot alone, and the cheapest fleet of one spot offer that is sure enough."""
    search, out = asked.found, []
    wanted = search.context.asked.workload.constraints.deadline_confidence
    chance = launch.p_meet_spot_only_ratio
    if chance is not None and chance < wanted:
        out.append(f"spot alone would meet the deadline with {chance:.0%}, {wanted:.0%} is required")
    spot = alone.take(np.flatnonzero(search.context.market.is_spot[alone.workers.rows]))
    confidence = confidence_of(search.context.asked, search.context.dates)
    sure = cheapest_sure(search, spot, asked.ask, confidence)
    if sure is not None:
        cost, total = Decimal(repr(round(float(sure.cost_usd(search)[0]), 6))), launch.expected_cost_usd
        best = summary_of(search, sure, cost, total, launch.expected_hours)
        out.append(
            f"workers on spot alone that meet the deadline with the required probability would cost {_brief(best)}"
        )
    return out


def _elsewhere(asked: Round, one: Fleets) -> str:
    """The cheapest fleet that falls back in another region."""
    search, market = asked.found, asked.found.context.market
    region = int(market.region_of_offer[one.ways.workers.rows[0]])
    other = cheapest_with_fallback(asked, np.inf, outside=region).fleet
    if other is None:
        return "no fleet with a fall-back was found in another region"
    row, offers = int(other.ways.workers.rows[0]), market.offer_set.offers
    nodes = int(other.count[0] * other.ways.workers.nodes[0])
    named = f"{nodes} x {offers['instance_type'][row]} in {offers['provider'][row]}/{offers['region'][row]}"
    cost = usd(bill_of_fallback(search, mix_of_fallback(asked, other))[0])
    return f"in another region it would cost {cost} and take {float(other.most.ends[0]):,.1f} h: {named}"


def _brief(best: Summary) -> str:
    return f"{usd(best.cost_usd)} and take {best.hours:,.1f} h: {describe(best)}"
