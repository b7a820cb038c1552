"""What an hour of a named cluster costs where it is cheapest, and about what its whole run does.

Prices are quotes with their dates; `planner optimize` counts what is to be expected of them, storage, transfer and
interruptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.registry import constraint
from planner.estimation.values import Interval, Priced, Prices
from planner.market.offers import unit_of_offer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Bools
    from planner.asked.model import Asked
    from planner.estimation.values import Estimate
    from planner.market.machines import Machine
    from planner.market.offers import OfferSet

_LIMITS = (
    "price_refused", "firm_price", "derived_price", "provider", "region", "residency", "partition",
    "purchase_option",
)  # fmt: skip
_STEADY = ("on_demand", "owned")


def prices_of(asked: Asked, offer_set: OfferSet, machine: Machine, nodes: int) -> Prices:
    """The cheapest offers of a cluster, on demand (or its own) and on spot, within the workload's places and options.

    Args:
        asked: the workload and its job.
        offer_set: what can be bought.
        machine: instance type, a row of its types.
        nodes: instances.
    """
    allowed = (offer_set.type_of_offer == machine.row) & np.isnan(offer_set.owned_share)
    allowed &= offer_set.capacity >= nodes
    for name in _LIMITS:
        removed = constraint(name).offers(offer_set, asked.workload.constraints, asked.job)
        if removed is not None:
            allowed &= ~removed
    return Prices(
        steady=_cheapest(offer_set, nodes, allowed, _STEADY),
        spot=_cheapest(offer_set, nodes, allowed, ("spot",)),
    )


def _cheapest(offer_set: OfferSet, nodes: int, allowed: Bools, options: Sequence[str]) -> Priced | None:
    rows = np.flatnonzero(allowed & offer_set.offers.is_in("purchase_option", options))
    if not len(rows):
        return None
    unit = unit_of_offer(offer_set)
    quoted = {row: float(offer_set.quote(row)) * _usd_per_unit(offer_set, row) for row in rows.tolist()}
    paid = {row: -(-nodes // int(unit[row])) * int(unit[row]) for row in quoted}
    row = min(quoted, key=lambda at: (quoted[at] * paid[at], offer_set.offer_id(at)))
    offers = offer_set.offers
    return Priced(
        option=str(offers["purchase_option"][row]), provider=str(offers["provider"][row]),
        region=str(offers["region"][row]), zone=str(offers["zone"][row]), usd_per_hour=quoted[row], nodes=paid[row],
        basis=str(offers["basis"][row]), as_of=str(offers["as_of"][row]), source=str(offers["source"][row]),
    )  # fmt: skip


def _usd_per_unit(offer_set: OfferSet, row: int) -> float:
    """US dollars of one unit of an offer's currency."""
    return float(offer_set.rates[int(offer_set.rate_of_offer[row])].rate)


def run_usd(item: Estimate) -> Interval | None:
    """About what the machines of the whole run cost at the steady price: its hours and their interval; else None."""
    steady = None if item.prices is None else item.prices.steady
    hours = work_hours(item)
    if steady is None or hours is None:
        return None
    each = steady.cluster_usd_per_hour
    return Interval(hours.value * each, hours.low * each, hours.high * each)


def work_hours(item: Estimate) -> Interval | None:
    """Hours of the whole run, of batch inference of all its work; None where it does not run."""
    if item.answered is not None:
        return item.answered.hours
    return None if item.run is None else item.run.wall_hours
