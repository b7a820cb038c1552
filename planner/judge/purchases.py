"""Purchases, and whether they are one cluster: what a plan may buy together, and what in turn."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from planner.records import record

if TYPE_CHECKING:
    from fractions import Fraction

    from planner.judge.goods import Offer
    from planner.judge.money import Charge


@record(frozen=True)
class Buy:
    """Instances of one offer."""

    offer: Offer
    nodes: int
    commitment: int | None = None  # which of the workload's it is of; None: not known


@record(frozen=True)
class Bought:
    """One purchase with its hours per instance, as used and as billed, and its charges."""

    offer: Offer
    nodes: int
    paid_hours: float
    hours: Fraction
    charges: tuple[Charge, ...]
    until: float = inf  # hours from the start until what the user owns ends


def fault_of(buys: Sequence[tuple[Offer, int]], *, in_turn: bool) -> str:
    """Why purchases are no one cluster (of several types or, at once, several regions or spot offers); else empty."""
    if not buys:
        return "a plan without lines"
    offers = [offer for offer, _ in buys]
    names = ", ".join(offer.offer_id for offer in offers)
    if any(
        sum(other_offer.offer_id == offer.offer_id for other_offer in offers) > offer.copies
        for offer in offers
    ):
        return f"one offer is bought twice: {names}"
    for offer, nodes in buys:
        if nodes % offer.unit:
            return f"{nodes} of {offer.offer_id}: sold in units of {offer.unit}"
    if len({(offer.text("provider"), offer.text("instance_type")) for offer in offers}) > 1:
        return f"one job on several instance types: {names}"
    if in_turn:
        return _fault_in_turn(buys, names)
    if sum(offer.is_spot for offer in offers) > 1 or len({offer.place for offer in offers}) > 1:
        return f"at once: one place, and one spot offer at most, not {names}"
    return ""


def _fault_in_turn(buys: Sequence[tuple[Offer, int]], names: str) -> str:
    spot, last = [offer.is_spot for offer, _ in buys], buys[-1][0]
    others = spot if spot[-1] else spot[:-1]
    ends_well = spot[-1] or last.text("purchase_option") == "on_demand"
    if len(buys) < 2 or not others or not all(others) or not ends_well:
        return f"in turn: spot first, then on-demand, not {names}"
    if len({nodes for _, nodes in buys}) > 1:
        return f"in turn with different numbers of instances: {names}"
    return ""
