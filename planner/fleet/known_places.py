"""What a fleet costs in known places, beside one that rests on list prices which name none.

Nobody knows whether so many machines of such a list are to be had, nor where. The same question is asked once more of
the offers whose place is known, and the answer is a note of the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.flags import placeless
from catalogs.tables.model import places_of
from planner.candidates.engine import bits_of
from planner.fleet.second_question import with_note_of
from planner.plan.words import machines_of
from planner.render.numbers import whole_percent
from planner.render.precision import dollars_known
from planner.render.words import cluster, option, place

if TYPE_CHECKING:
    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.market.model import Market
    from planner.plan.model import Plan

_KNOWN = 0.5  # half-width, relative, of what a fleet costs: two or three digits are printed
_GAP = 0.03  # relative, at which the search may stop


def with_known_places(
    plan: Plan, market: Market, options: Options, ask: Callable[[Asked, Options], Plan]
) -> Plan:
    """The plan, with a note of the cheapest fleet in known places where some of its machines have none.

    Args:
        plan: the fleet.
        market: what it was planned from.
        options: with which it was planned.
        ask: plans a fleet.
    """
    asked, offers = market.asked, market.offer_set.offers
    nowhere, of_offer = placeless(offers), places_of(offers)
    places = np.asarray([*of_offer.values, ""])[of_offer.codes]
    unknown = set(places[nowhere])
    somewhere = [line.instance_type for line in plan.lines if f"{line.provider}/{line.region}" in unknown]
    if not somewhere:
        return plan
    known = tuple(sorted(set(places[~nowhere & (bits_of(asked, market) == 0)]) - unknown))
    limits = asked.workload.constraints.model_copy(update={"regions": known})
    workload = asked.workload.model_copy(update={"constraints": limits})
    name = f"place and stock of {', '.join(dict.fromkeys(somewhere))} are not known"
    question = replace(asked, workload=workload), f"{name}; the cheapest fleet in known places"
    return with_note_of(plan, question, options, _GAP, ask, lambda other: f"{name}: {_instead(plan, other)}")


def _instead(plan: Plan, other: Plan) -> str:
    """The cheapest fleet in known places and what it costs."""
    if not other.lines:
        return "in known places, no fleet was found that meets every limit"
    lines = [
        f"{cluster(line.nodes, line.instance_type)}, {option(line.purchase_option, line.option_variant)}, "
        f"{place(line.provider, line.region, '')}"
        for line in machines_of(other)
    ]
    usd = dollars_known(other.total_usd, float(other.total_usd) * _KNOWN)
    ratio = float(other.total_usd / plan.total_usd) - 1.0
    more = f"{whole_percent(ratio)} more" if ratio > 0.0 else "no more"  # the plan itself has a gap
    return f"in known places, {' + '.join(lines)} costs {usd}, {more}"
