"""How long an offer's capacity takes to come and how often it never does: waiting.csv and the workload, read anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from math import inf
from typing import TYPE_CHECKING

from catalogs.offers.naming import fits_name
from catalogs.patterns import matches
from planner.bundled import bundled_rows
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.inputs.schema import Constraints
    from planner.judge.goods import Offer


_NONE: Mapping[str, int] = {}


@record(frozen=True)
class Wait:
    """The wait for a purchase: at least `lead` hours, its mean, the shape of the Lomax distribution; P(it comes)."""

    lead: float
    mean: float
    shape: float
    had: float

    @property
    def is_certain(self) -> bool:
        """Whether it is its mean."""
        return self.mean - self.lead <= 0

    def within(self, hours: float) -> float:
        """P(it is there within `hours`), given that it comes."""
        if self.is_certain:
            return float(hours >= self.mean - 1e-9)
        scale = (self.mean - self.lead) * (self.shape - 1.0)
        return 1.0 - float((1.0 + max(hours - self.lead, 0.0) / scale) ** -self.shape)

    def at(self, level: float) -> float:
        """Hours not exceeded with probability `level`, given that it comes."""
        if self.is_certain:
            return self.mean
        scale = (self.mean - self.lead) * (self.shape - 1.0)
        return self.lead + scale * (float((1.0 - level) ** (-1.0 / self.shape)) - 1.0)


@record(frozen=True)
class Waits:
    """The waits of a cluster: the last purchase decides, all are as lucky as each other; `data`: hours of staging."""

    each: tuple[Wait, ...]
    data: float

    @property
    def mean(self) -> float:
        """Hours expected."""
        return max(self.data, *(wait.mean for wait in self.each)) if self.each else self.data

    @property
    def had(self) -> float:
        """P(all come)."""
        return min((wait.had for wait in self.each), default=1.0)

    @property
    def are_certain(self) -> bool:
        """Whether nothing can come sooner or later."""
        return all(wait.is_certain for wait in self.each)

    def within(self, hours: float) -> float:
        """P(all is there within `hours`), given that it comes."""
        return (
            min((wait.within(hours) for wait in self.each), default=1.0) if hours >= self.data - 1e-9 else 0.0
        )

    def at(self, level: float) -> float:
        """Hours not exceeded with probability `level`."""
        return max(self.data, *(wait.at(level) for wait in self.each)) if self.each else self.data


def allotted(wait: Wait, limits: Constraints) -> tuple[float, float]:
    """Hours left to a fall-back from asking for it to having it, and P(it comes within them)."""
    level = (1.0 + limits.deadline_confidence) / 2.0
    return wait.at(level), wait.had * (1.0 if wait.is_certain else level)


def waits(
    offers: Sequence[Offer], nodes: int, limits: Constraints, start: datetime, planned: datetime | None = None
) -> tuple[float, float]:
    """Mean hours until the last purchase is there, each asked at the size of the whole cluster, and P(all come).

    Spot has no wait of this kind: it waits as its records say.
    """
    each = waits_of(offers, nodes, limits, start, planned)
    return max((wait.mean for wait in each), default=0.0), min((wait.had for wait in each), default=1.0)


def waits_of(
    offers: Sequence[Offer],
    nodes: int,
    limits: Constraints,
    start: datetime,
    planned: datetime | None = None,
    beside: Mapping[str, int] = _NONE,
) -> tuple[Wait, ...]:
    """The wait of every purchase that is not spot."""
    return tuple(
        start_of(offer, nodes, limits, start, planned, beside) for offer in offers if not offer.is_spot
    )


def start_of(
    offer: Offer,
    nodes: int,
    limits: Constraints,
    start: datetime,
    planned: datetime | None = None,
    beside: Mapping[str, int] = _NONE,
) -> Wait:
    """The wait from asking for `nodes` instances to having them; what is booked ahead is asked for when it is planned.

    `beside`: more that others ask for, by offer id.
    """
    nodes += beside.get(offer.offer_id, 0)
    provider, option = offer.text("provider"), offer.text("purchase_option")
    region, accelerator = offer.text("region"), str(offer.kind["accelerator"])
    waits = [
        stated
        for stated in limits.waiting
        if matches(stated.provider or "*", provider)
        if matches(stated.purchase_option, option)
        if matches(stated.region, region) and fits_name(stated.accelerator, accelerator)
    ]
    if waits:
        return Wait(waits[-1].hours, waits[-1].hours, inf, 1.0 - min(waits[-1].never_ratio, 0.5))
    if offer.text("option_variant") == "already_owned":
        return Wait(0.0, 0.0, inf, 1.0)
    for row in _table("waiting"):
        is_place = matches(row["provider"], provider) and matches(row["purchase_option"], option)
        if is_place and matches(row["accelerator"], accelerator):
            known = most_by_asking(provider, region, accelerator, option, limits)
            usual = _usual_most(accelerator, option)
            largest = max(
                (one for one in (known, usual) if one is not None), default=float(row["accelerators"])
            )
            part = offer.accelerators * nodes / largest
            lead, mean_hours = float(row["lead_hours"]), float(row["hours"]) * part
            never, size = float(row["never_ratio"]) * part, offer.accelerators * nodes
            free = 0.0 if row["start_utc"] else lead  # of a calendar
            longer, oftener, shape = _learnt(offer, limits, (free, mean_hours / size, never / size))
            begin = max(
                start, min(planned or start, start) + timedelta(hours=lead * (longer if free else 1.0))
            )
            before = (_at_hour(begin, row["start_utc"]) - start).total_seconds() / 3600.0
            return Wait(before, before + mean_hours * longer, shape, 1.0 - min(never * oftener, 0.5))
    return Wait(0.0, 0.0, inf, 1.0)


def _learnt(
    offer: Offer, limits: Constraints, table: tuple[float, float, float]
) -> tuple[float, float, float]:
    """How much longer capacity takes, how much more often it never comes, by the user's requests; shape of the wait.

    Args:
        offer: what was asked for.
        limits: the workload's.
        table: hours whatever the size, hours and chance of never coming of each accelerator.
    """
    prior = {row["name"]: float(row["value"]) for row in _table("waiting_prior")}
    names = [offer.text("provider"), offer.text("purchase_option"), offer.text("region")]
    longer, came, missed, expected = prior["requests"], prior["requests"], prior["nevers"], prior["nevers"]
    for request in limits.waited:
        rules = zip(names, (request.provider or "*", request.purchase_option, request.region), strict=True)
        fits = all(matches(rule, text) for text, rule in rules)
        usual = table[0] + table[1] * request.accelerators
        if not fits or not fits_name(request.accelerator, str(offer.kind["accelerator"])) or usual <= 0:
            continue
        longer += request.waited_hours / usual
        came += request.came
        missed += not request.came and request.waited_hours >= prior["never_after_hours"]
        expected += min(table[2] * request.accelerators, 0.5)
    return longer / came, missed / expected, 1.0 + came


def booked_from(offer: Offer, start: datetime, planned_at: datetime) -> str:
    """The day from which an offer can be booked for `start`; "" where that day has come, or no window is known."""
    days = offer.rule.book_days
    if not days or offer.text("purchase_option") not in (
        "capacity_block",
        "future_reservation",
        "flex_start",
    ):
        return ""
    opens = start - timedelta(days=days)
    return f"{opens:%Y-%m-%d}" if opens > planned_at else ""


def most_by_asking(
    provider: str, region: str, accelerator: str, option: str, limits: Constraints
) -> float | None:
    """Most accelerators that asking brings at once: the user's word, else obtainable.csv; None: firm."""
    limits_of_type = [
        stated.accelerators
        for stated in limits.obtainable
        if fits_name(stated.accelerator, accelerator) and matches(stated.region, region)
        if stated.purchase_option == option and matches(stated.provider or "*", provider)
    ]
    return limits_of_type[-1] if limits_of_type else _usual_most(accelerator, option)


def _usual_most(accelerator: str, option: str) -> float | None:
    """The same by obtainable.csv."""
    for row in _table("obtainable"):
        if row["purchase_option"] == option and matches(row["accelerator"], accelerator):
            return float(row["most_accelerators"])
    return None


@cache
def _table(name: str) -> list[dict[str, str]]:
    return bundled_rows(f"{name}.csv")


def _at_hour(begin: datetime, clock: str) -> datetime:
    """The next such hour of the day where there is a calendar."""
    if not clock:
        return begin
    hour, minute = (int(part) for part in clock.split(":"))
    at = begin.astimezone(UTC).replace(hour=hour, minute=minute, second=0, microsecond=0)
    return at + timedelta(days=1) if at < begin else at


@cache
def unit_quadrature(points: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights of Gauss-Legendre on 0..1, from numpy."""
    from numpy.polynomial.legendre import leggauss

    nodes, weights = leggauss(points)
    return tuple(((node + 1.0) / 2.0, weight / 2.0) for node, weight in zip(nodes, weights, strict=True))
