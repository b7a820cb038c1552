"""What runs pay after the end of what the user owns: which commitment a purchase is of, and the mean over runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from math import erfc, exp, floor, inf, log, sqrt
from typing import TYPE_CHECKING

from planner.inputs.checks import end_moment
from planner.judge.goods import KEY
from planner.judge.money import Charge, rounded

if TYPE_CHECKING:
    from planner.inputs.schema import Workload
    from planner.judge.goods import Goods, Offer
    from planner.judge.purchases import Bought, Buy

_KEY = ("provider", "region", "instance_type", "purchase_option")
_FAR = 8.0  # standard deviations beyond which a chance counts as 0


def untils(buys: Sequence[Buy], workload: Workload, start: datetime) -> list[float]:
    """Hours from the start to the end of what each purchase is made of, infinity where nothing ends.

    Of commitments of equal terms each purchase takes the one that lasts longest of those that hold it and are free; the
    largest is served first, whatever the order of the lines. One that none of them holds ends with the first of them.
    """
    taken: set[int] = set()
    out = [inf] * len(buys)
    for number in sorted(range(len(buys)), key=lambda number: -buys[number].nodes):
        buy = buys[number]
        alike = [one for one in alike_of(buy.offer, workload, start) if buy.commitment in (None, one[0])]
        free = [(-ends, at) for at, held, ends in alike if at not in taken and buy.nodes <= held]
        first = min((ends for _, _, ends in alike), default=inf)
        ends, at = min(free, default=(-first, -1))
        taken.add(at)
        out[number] = -ends
    return out


def alike_of(offer: Offer, workload: Workload, start: datetime) -> list[tuple[int, int, float]]:
    """Commitments that an owned offer may be of: which, the instances each holds, hours from the start to its end."""
    return [] if not offer.owned else [
        (at, floor(one.nodes * (1.0 if one.share is None else float(one.share))), _hours(one.expires, start))
        for at, one in enumerate(workload.commitments)
        if all(str(getattr(one, name)) == offer.text(name) for name in _KEY)
    ]  # fmt: skip


def pairs_on(first: Buy, second: Buy, workload: Workload, start: datetime) -> list[tuple[int, int]]:
    """The commitments of equal terms that two pools may be on at once; none where they buy different offers."""
    if first.offer.offer_id != second.offer.offer_id:
        return []
    alike = alike_of(first.offer, workload, start)
    return [
        (a, b) for (a, held, _), (b, other, _) in product(alike, repeat=2)
        if first.nodes + (second.nodes if a == b else 0) <= held and second.nodes <= other
    ]  # fmt: skip


def _hours(expires: object, start: datetime) -> float:
    return inf if expires is None else (end_moment(expires) - start) / timedelta(hours=1)  # type: ignore[arg-type]


def hours_after(left: float, fixed: float, work: float, sigma: float) -> Fraction:
    """Mean hours that a run is still on after the end, which comes `left` hours after its first in use.

    The speed z beyond which it is still on bounds two integrals of the normal density: that of the work, and that of 1.
    """
    planned = fixed + work
    if sigma <= 0.0 or work <= 0.0:
        return rounded(min(max(planned - left, 0.0), planned))
    if left <= fixed:
        return rounded(min(work * exp(sigma**2 / 2.0) + fixed - left, planned))
    beyond = log((left - fixed) / work) / sigma
    if beyond - sigma >= _FAR:
        return Fraction(0)
    still_on = 0.5 * erfc(beyond / sqrt(2.0))
    of_work = work * exp(sigma**2 / 2.0) * 0.5 * erfc((beyond - sigma) / sqrt(2.0))
    return rounded(min(max(of_work - (left - fixed) * still_on, 0.0), planned))


def with_after(
    charges: list[Charge], goods: Goods, offer: Offer, hours: Fraction, run_hours: float
) -> list[Charge]:
    """The charges of a purchase with those of so many instance-hours after its end, on demand."""
    after = _goes_on(goods, offer)
    if not hours or after is None:
        return charges
    after = after.during(run_hours)
    label = f"{offer.text('instance_type')} after the commitment ends"
    basis, source, as_of = (after.text(name) for name in ("basis", "source", "as_of"))
    more = Charge(
        "after_end", label, hours, "instance-hour", after.price, after.rate.currency, Fraction(after.rate.rate),
        basis, source, as_of, tuple(after.flags), moves=bool(after.quote.path),
    )  # fmt: skip
    first, *others = charges
    disk = [replace(one, quantity=one.quantity + hours) if one.id == "system_disk" else one for one in others]
    return [first, more, *disk]


def known_after(part: Bought, ratio: float) -> Bought:
    """A purchase whose hours after the end of what the user owns are known as closely as the hours of the run.

    They are few, and change by an hour at most for each hour of the run.
    """
    slack = ratio * float(part.hours) * part.nodes
    charges = [replace(one, slack=slack) if one.id == "after_end" else one for one in part.charges]
    return replace(part, charges=tuple(charges))


def _goes_on(goods: Goods, offer: Offer) -> Offer | None:
    """Where a run goes on after what the user owns: on demand, the cheapest of the region; else at its own price."""
    hit = goods.offers.equals("purchase_option", "on_demand")
    for name in ("provider", "region", "instance_type"):
        hit &= goods.offers.equals(name, offer.text(name))
    keys = goods.offers.take(hit.nonzero()[0]).keys_of(*KEY)
    ids = {"/".join(part or "-" for part in key) for key in keys}
    sold = [
        one for one in map(goods.find, sorted(ids)) if one is not None and one.price > 0 and not one.owned
    ]
    if sold:
        return min(sold, key=lambda one: one.price * Fraction(one.rate.rate))
    return offer if offer.price > 0 else None
