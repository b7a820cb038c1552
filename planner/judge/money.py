"""Cost lines recomputed in exact fractions: billing rules, commitments, storage, tiers of transfers, system disks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, erfc, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any

from planner.judge.findings import Exactly, Near

if TYPE_CHECKING:
    from catalogs.tariffs import OptionRule, TierCurve
    from planner.judge.goods import Goods, Offer
    from planner.judge.work import Work

HOURS_PER_MONTH = 730
QUANTITY_DIGITS, AMOUNT_DIGITS = 9, 12
KINDS = {
    "compute": "compute", "after_end": "after_end", "upfront": "upfront", "system_disk": "system_disk",
    "dataset_storage": "data_storage",
    "dataset_reads": "data_storage", "dataset_volumes": "data_storage", "dataset_file_system": "data_storage",
    "dataset_packing": "data_storage",
    "checkpoint_storage": "checkpoint_storage", "dataset_transfer": "data_transfer", "dataset_stream": "data_transfer",
    "checkpoint_transfer": "data_transfer", "model_export": "data_transfer",
}  # fmt: skip
# what is brought, saved and taken out: of training, and of batch inference
THINGS = {
    False: ("data set", "checkpoints", "final model"),
    True: ("requests", "records of progress", "results"),
}
GB_PER_GIB = Fraction(2**30, 10**9)
MOVING_RATIO = 1e-5
# of a rounded quantity: the last digit kept, and the noise of a float in it
_LAST_DIGIT = 2e-9


def rounded(value: Fraction | float, digits: int = QUANTITY_DIGITS) -> Fraction:
    """Round half to even at `digits` decimals."""
    top, bottom = value.as_integer_ratio()
    whole, remainder = divmod(top * 10**digits, bottom)
    if 2 * remainder > bottom or (2 * remainder == bottom and whole % 2):
        whole += 1
    return Fraction(whole, 10**digits)


def billed(rule: OptionRule, used_hours: float, term_hours: float) -> Fraction | None:
    """Hours billed per instance; None where no block is long enough or a term is unknown.

    Whole terms and blocks are owed in full; other use is rounded up to the granularity, at least the minimum.
    """
    if rule.whole_term:
        if not isfinite(term_hours):
            return None
        return ceil(max(Fraction(used_hours), Fraction(1, 10**9)) / Fraction(term_hours)) * Fraction(
            term_hours
        )
    if rule.block_hours:
        long_enough = [Fraction(block) for block in rule.block_hours if block >= used_hours]
        return min(long_enough) if long_enough else None
    each, (top, bottom) = rule.billing_granularity_s or 1, used_hours.as_integer_ratio()
    # used / each, rounded up; less 1e-9, which keeps an exact number of units from one more by the noise of a float
    units = -((bottom * each - top * 3600 * 10**9) // (bottom * each * 10**9))
    return rounded(Fraction(max(units * each, rule.minimum_charge_s or 0), 3600))


def outlives(rule: OptionRule, used_hours: float) -> bool:
    """Whether the longest block sold ends before the use does; it is prolonged by the hours that are missing."""
    return bool(rule.block_hours) and used_hours > max(rule.block_hours)


def overrun(rule: OptionRule, fixed: float, work: float, sigma: float) -> Fraction:
    """Hours by which a block is prolonged in the mean: a run that is not done when it ends buys the next length."""
    ends, hours = sorted(rule.block_hours), 0.0
    for at, end in enumerate(ends):
        if end < fixed + work or sigma <= 0.0:
            continue
        step = ends[at + 1] - end if at + 1 < len(ends) else end - ends[at - 1] if at else end
        z = log(max(end - fixed, 1e-12) / work) / sigma
        hours += step * (0.5 * erfc(z / sqrt(2.0)) if z < 8.0 else 0.0)
    return rounded(hours)


@dataclass(frozen=True, slots=True)  # thousands an answer, too many for a `record`
class Charge:
    """One cost: a quantity at a unit price in a currency, with what the line says of it."""

    id: str
    label: str
    quantity: Fraction
    unit: str
    unit_price: Fraction
    currency: str
    rate: Fraction
    basis: str
    source: str
    as_of: str
    flags: tuple[str, ...] = ()
    moves: bool = False  # the price follows from the hours of the run
    slack: float = 0.0  # of the quantity, in its unit: what the chances behind it leave open

    @property
    def kind(self) -> str:
        """The group of its id."""
        return KINDS[self.id]

    @property
    def usd(self) -> Fraction:
        """The amount, to 1e-12 USD."""
        return rounded(self.quantity * self.unit_price * self.rate, AMOUNT_DIGITS)

    @property
    def slack_usd(self) -> float:
        """How far the amount may be off by what the chances behind the quantity leave open."""
        return max(1e-8, self.slack * float(self.unit_price * self.rate))

    def wanted(self, ratio: float) -> dict[str, Any]:
        """What the line of the answer must say, its quantity within `ratio`."""
        return {
            "id": self.id, "kind": self.kind, "label": self.label,
            "quantity": Near(self.quantity, ratio, max(_LAST_DIGIT, self.slack)),
            "unit": self.unit, "unit_price": stated_price(self.unit_price, moves=self.moves), "currency": self.currency,
            "usd_per_currency": Exactly(self.rate), "amount_usd": Near(self.usd, ratio, self.slack_usd),
            "basis": self.basis, "source": self.source, "as_of": self.as_of, "flags": list(self.flags),
        }  # fmt: skip


def stated_price(price: Fraction, *, moves: bool) -> Exactly | Near:
    """What a price must say: a price in the middle of a run is as close as the hours of the run."""
    return Near(price, MOVING_RATIO, 0.0) if moves else Exactly(price)


class Prices:
    """What the purchases of one job cost."""

    def __init__(self, goods: Goods, work: Work, commitment_share: float | None) -> None:
        """Take what can be bought and the job; `commitment_share`: part of a new commitment that the job carries."""
        self.goods, self.work = goods, work
        self.new_share = Fraction(1) if commitment_share is None else Fraction(str(commitment_share))

    def share(self, offer: Offer) -> Fraction:
        """Part of a purchase that the job carries: nothing of what is owned, its share of a new whole term."""
        if offer.owned:
            return Fraction(0)
        return self.new_share if offer.rule.whole_term else Fraction(1)

    def billed_hours(self, offer: Offer, paid_hours: float, *, expected: bool) -> Fraction | None:
        """Hours billed per instance; expected hours of runs that differ are billed as they are."""
        if expected:
            return rounded(paid_hours)
        return billed(offer.rule, paid_hours, offer.term_hours)

    def worker(self, offer: Offer, nodes: int, hours: Fraction) -> list[Charge]:
        """Compute, upfront part and system disk of `nodes` instances billed for `hours` each."""
        share = self.share(offer)
        quantity = rounded(nodes * hours * share)
        fx = Fraction(offer.rate.rate)
        option = offer.text("purchase_option")
        text = tuple(offer.text(name) for name in ("basis", "source", "as_of"))
        source: tuple[Any, ...] = (offer.rate.currency, fx, *text)
        label, flags = f"{offer.text('instance_type')} {option}", (tuple(offer.flags),)
        compute = Charge("compute", label, quantity, "instance-hour", offer.price, *(*source, *flags))
        out = [replace(compute, moves=bool(offer.quote.path))]
        if offer.upfront:
            out.append(
                Charge(
                    "upfront", f"{option} upfront", rounded(nodes * share), "instance", offer.upfront, *source
                )
            )
        fee = self.goods.tariffs.system_disk_fee(*offer.place)
        if "system_disk_separate" in offer.flags and fee is not None:
            rate = Fraction(self.goods.tariffs.usd_per(fee.currency, self.goods.on).rate)
            out.append(
                Charge(
                    "system_disk", "default system disk", quantity, "instance-hour", Fraction(fee.price_per_hour),
                    fee.currency, rate, fee.basis, fee.source, fee.as_of,
                )
            )  # fmt: skip
        return out

    def rent(self, offer: Offer, nodes: int) -> Callable[[Fraction], Fraction]:
        """The total of `worker` by hours billed; words and prices are the same in all outcomes of a run."""
        charges, each = self.worker(offer, nodes, Fraction(0)), nodes * self.share(offer)
        hourly = [charge.unit_price * charge.rate for charge in charges if charge.unit == "instance-hour"]
        once = total([charge for charge in charges if charge.unit != "instance-hour"])

        def usd(hours: Fraction) -> Fraction:
            quantity = rounded(each * hours)
            return sum((rounded(quantity * price, AMOUNT_DIGITS) for price in hourly), once)

        return usd

    def keeping(self, offer: Offer) -> Callable[[float], Fraction]:
        """The total of `kept` by hours."""
        held = [(gib, Fraction(price[0])) for _, _, gib, price in self._held(offer, both=True) if gib]

        def usd(hours: float) -> Fraction:
            months = hours / HOURS_PER_MONTH
            amounts = (rounded(rounded(gib * months) * price, AMOUNT_DIGITS) for gib, price in held)
            return sum(amounts, Fraction(0))

        return usd

    def place(self, offer: Offer, hours: float) -> list[Charge]:
        """What the place costs once for `hours`: the data set and checkpoints kept, the data in, the model out."""
        return [*self.kept(offer, hours), *self.moved(offer)]

    def kept(self, offer: Offer, hours: float) -> list[Charge]:
        """The data set and checkpoints kept for `hours`."""
        return self._stored(offer, hours, both=True)

    def moved(self, offer: Offer) -> list[Charge]:
        """The data brought in and the model taken out, however long the run is."""
        return [*self._brought(offer), *self._exported(offer)]

    def copy(self, offer: Offer, hours: float) -> list[Charge]:
        """What a further region costs: the data set brought there and kept."""
        return [*self._stored(offer, hours, both=False), *self._brought(offer)]

    @property
    def _things(self) -> tuple[str, str, str]:
        return THINGS[self.work.training.tuning.requests is not None]

    def _staged(self, offer: Offer) -> bool:
        return bool(self.work.data_gb) and self.work.location != "/".join(offer.place)

    def _stored(self, offer: Offer, hours: float, *, both: bool) -> list[Charge]:
        months = hours / HOURS_PER_MONTH
        rows = ((*row, rounded(row[2] * months)) for row in self._held(offer, both=both))
        return [
            Charge(name, label, quantity, "GiB-month", price[0], "USD", Fraction(1), *price[1:])
            for name, label, _, price, quantity in rows
            if quantity
        ]

    def _held(self, offer: Offer, *, both: bool) -> list[tuple[str, str, float, tuple[Any, ...]]]:
        """What is kept as long as the run lasts: id, label, GiB, and the price of a GiB-month with its source."""
        work = self.work
        price = self.goods.tariffs.storage_price(*offer.place, "object")
        brought, saves, _ = self._things
        fields: tuple[Any, ...] = (Fraction(0), "declared", "nothing is moved or kept", "")
        if price is not None:
            fields = (Fraction(price.usd_per_gib_month), price.basis, price.source, price.as_of)
        copied = work.data_gib if self._staged(offer) and not work.stream else 0.0
        saved = work.checkpoint_gib * work.kept if both else 0.0
        return [
            ("dataset_storage", f"{brought} in object storage", copied, fields),
            ("checkpoint_storage", f"{work.kept} {saves} in object storage", saved, fields),
        ]

    def _brought(self, offer: Offer) -> list[Charge]:
        work = self.work
        if not self._staged(offer):
            return []
        amount = work.read_gb if work.stream else work.data_gb
        things = self._things[0]
        names = ("dataset_transfer", f"{things} into the region")
        if work.stream:
            names = ("dataset_stream", f"{things} streamed into the region")
        return self._moved(names, work.location, "/".join(offer.place), amount or 0.0, work.egress_used_gb)

    def _exported(self, offer: Offer) -> list[Charge]:
        if not self.work.export_gb:
            return []
        names = ("model_export", f"{self._things[2]} out of the region")
        return self._moved(names, "/".join(offer.place), self.work.location, self.work.export_gb, 0.0)

    def _moved(
        self, names: tuple[str, str], source: str | None, target: str | None, gb: float, used: float
    ) -> list[Charge]:
        curve, is_known = self.curve(source, target)
        basis, flags = ("list", ()) if is_known else ("derived", ("unknown_transfer_price",))
        return [
            Charge(
                *names, quantity, curve.unit, price, "USD", Fraction(1), basis, curve.source,
                curve.as_of, flags,
            )
            for quantity, price in tiers(curve, gb, used)
            if price
        ]  # fmt: skip

    def curve(self, source: str | None, target: str | None) -> tuple[TierCurve, bool]:
        """The tariff of a transfer, the dearest one where none is known."""
        ends = ((place or "").partition("/") for place in (source, target))
        (a, _, b), (c, _, d) = ends
        tier_curve = self.goods.tariffs.transfer_curve(a, b, c, d)
        return (
            (self.goods.tariffs.dearest_internet_curve(), False) if tier_curve is None else (tier_curve, True)
        )

    def carried(self, offers: Sequence[Offer], gb: Fraction, slack_gb: float) -> list[Charge]:
        """Checkpoints carried between the regions of a run, at the dearest tier between any two of them."""
        places = list(dict.fromkeys("/".join(offer.place) for offer in offers))
        curves = [self.curve(a, b) for a in places for b in places if a != b]
        if not curves or gb <= 0:
            return []
        curve, _ = max(curves, key=lambda pair: _dearest_tier(pair[0]))
        flags = () if all(is_known for _, is_known in curves) else ("unknown_transfer_price",)
        label = f"{self._things[1]} carried between regions"
        return [
            Charge(
                "checkpoint_transfer", label, rounded(in_unit(curve, gb)), curve.unit,
                max(Fraction(price) for price in curve.usd_per_gb), "USD", Fraction(1), "derived", curve.source,
                curve.as_of, flags, slack=float(in_unit(curve, Fraction(slack_gb))),
            )
        ]  # fmt: skip


def _dearest_tier(curve: TierCurve) -> Fraction:
    return max(Fraction(price) for price in curve.usd_per_gb) * in_unit(curve, Fraction(1))


def in_unit(curve: TierCurve, gb: Fraction) -> Fraction:
    """Gigabytes in the unit that a tariff counts."""
    return gb / GB_PER_GIB if curve.unit == "GiB" else gb


def tiers(curve: TierCurve, gb: float, used_gb: float) -> list[tuple[Fraction, Fraction]]:
    """Split a transfer over the tiers of a tariff that counts from `used_gb`: quantity in its unit, USD per unit."""
    first = in_unit(curve, rounded(used_gb))
    left, at, out = in_unit(curve, rounded(gb)), first, []
    edges = [*(Fraction(edge) for edge in curve.edges_gb[1:]), None]
    for edge, price in zip(edges, curve.usd_per_gb, strict=True):
        room = left if edge is None else max(edge - at, Fraction(0))
        part = min(left, room)
        if part > 0:
            out.append((rounded(part), Fraction(price)))
            left, at = left - part, at + part
    return out


def total(charges: Sequence[Charge]) -> Fraction:
    """Sum of charges in USD."""
    return sum((charge.usd for charge in charges), Fraction(0))


def by_month(
    owed: Sequence[tuple[Fraction, datetime, datetime]],
) -> dict[str, Fraction]:
    """Spread amounts evenly from one moment to another over calendar months."""
    months: dict[str, Fraction] = {}
    for amount, begin, end in owed:
        if end <= begin:
            months[f"{begin:%Y-%m}"] = months.get(f"{begin:%Y-%m}", Fraction(0)) + amount
            continue
        whole, at = (end - begin) / timedelta(microseconds=1), begin
        while at < end:
            following = (
                at.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)
            ).replace(day=1)
            stop = min(following, end)
            part = Fraction((stop - at) / timedelta(microseconds=1)) / Fraction(whole)
            months[f"{at:%Y-%m}"] = months.get(f"{at:%Y-%m}", Fraction(0)) + amount * part
            at = stop
    return months
