"""Expected prices computed anew from quotes and the published constants, without the code that plans.

The formula is that of docs/prices.md; the constants are planner/data/prices/spot.csv and list.csv.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import erfc, exp, inf, isnan, log, nan, pi, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.flags import admit_offers, is_placeless

if TYPE_CHECKING:
    from catalogs.tables.table import Ints, Table

Z80 = 1.2815515655446004  # half of an interval that holds 80 %, in standard deviations
_MOST_DAYS = 36_525.0  # a file may be dated 9999; no quote is a hundred years old
_FRESH_DAYS = 60
_HALF_DAYS = (0.0, 3.0, 10.0, 30.0, 90.0, 365.0)
RUN_HOURS = tuple(days * 48.0 for days in _HALF_DAYS)  # of whole runs; prices are straight between them
_DATA = Path(__file__).parents[1] / "data" / "prices"
_DIGITS = Context(prec=10)
_NOT_CONTRACTUAL = ("on_demand", "flex_start", "dedicated")
_CAP, _CAP_SLACK, _LIST = 0.10, 5e-4, 0.99


PriceOf = Callable[["Table", int, bool, date, date, float], Fraction]  # as `expected_price`
_Law = Callable[[float, float], float]  # from the half length of a run in days and a probability


class Quote:
    """A price with what is expected of it at the start; the three figures are multiples of the quote.

    `path` holds the figures for the half lengths of runs in `_HALF_DAYS`, where they move; `law` gives quantiles of a
    spot price, `hours` is the length of the run that the figures are of.
    """

    # a catalog has thousands
    __slots__ = ("age_days", "expected", "hours", "kind", "law", "p10", "p90", "path")

    def __init__(
        self, kind: str, age_days: float = nan, expected: float = 1.0, p10: float = 1.0, p90: float = 1.0,
        path: tuple[tuple[float, float, float], ...] = (),
    ) -> None:  # fmt: skip
        """Take the kind of quote and its age, and the figures where they are known."""
        self.kind, self.age_days, self.path = kind, age_days, path
        self.expected, self.p10, self.p90 = expected, p10, p90
        self.law: _Law | None = None
        self.hours = 0.0

    def at_level(self, level: float) -> float:
        """What the price over the quote does not exceed with the probability `level`, at least what is expected."""
        if self.law is None:  # log-normal through the end of the interval
            z = _normal(level)
            return self.expected * exp(z / Z80 * log(self.p90 / self.expected))
        at, part = _piece(self.hours / 48.0)
        ends = [self.law(days, level) for days in _HALF_DAYS[at : at + 2]]
        return max(ends[0] + part * (ends[1] - ends[0]), self.expected)

    def during(self, run_hours: float) -> Quote:
        """The same in the middle of a run of `run_hours` from its start to its end."""
        if not self.path or run_hours <= 0:
            return self
        at, part = _piece(float(run_hours) / 48.0)
        expected, p10, p90 = (
            a + part * (b - a) for a, b in zip(self.path[at], self.path[at + 1], strict=True)
        )
        out = Quote(self.kind, self.age_days, expected, p10, p90, self.path)
        out.law, out.hours = self.law, float(run_hours)
        return out


def _piece(half: float) -> tuple[int, float]:
    """Between which of `_HALF_DAYS` a half length lies, and how far along; longer ones are at the last."""
    at = min(sum(half >= days for days in _HALF_DAYS), len(_HALF_DAYS) - 1) - 1
    return at, min((half - _HALF_DAYS[at]) / (_HALF_DAYS[at + 1] - _HALF_DAYS[at]), 1.0)


def scaled(quote: Fraction, ratio: float) -> Fraction:
    """Quote times ratio, to ten digits."""
    if ratio == 1.0:
        return quote
    exact = quote * Fraction(repr(ratio))
    return Fraction(_DIGITS.plus(Decimal(exact.numerator) / Decimal(exact.denominator)))


def expected_price(
    offers: Table, row: int, believed: bool, now: date, start: date, run_hours: float
) -> Fraction:
    """Price to expect of one offer in the middle of a run, in its currency; all of its provider tell of levels."""
    quote = Fraction(str(offers["price_per_hour"][row]))
    if offers["purchase_option"][row] not in ("spot", *_NOT_CONTRACTUAL):
        return quote
    deciding = _deciding(offers, row)
    table, at = offers.take(deciding), int((deciding == row).nonzero()[0][0])
    prices = table.number("price_per_hour").tolist()  # of one currency, in which levels are relative
    spot_quote = quotes_of(table, prices, believed, now, start)[at]
    return scaled(quote, spot_quote.during(run_hours).expected)


def _deciding(offers: Table, row: int) -> Ints:
    """Rows that the price to expect of one offer follows from: itself; of spot, its provider's spot and list prices."""
    if offers["purchase_option"][row] != "spot":
        return np.asarray([row])
    sold = offers.equals("purchase_option", "spot") | offers.equals("purchase_option", "on_demand")
    return np.flatnonzero(sold & offers.equals("provider", str(offers["provider"][row])))


def quotes_of(offers: Table, usd: list[float], believed: bool, now: date, start: date) -> Quotes:
    """What is expected of each offer.

    Args:
        offers: all that can be bought, before overlays.
        usd: quotes, USD per hour.
        believed: spot quotes are taken as they are, but for those of no market.
        now: day of planning.
        start: day the run starts.
    """
    return Quotes(offers, usd, believed, now, start)


class Quotes:
    """What is expected of each offer, by its row: levels follow from all quotes, figures are worked out where asked."""

    def __init__(self, offers: Table, usd: list[float], believed: bool, now: date, start: date) -> None:
        """See `quotes_of`."""
        names = ("provider", "region", "instance_type", "purchase_option", "basis", "as_of", "flags")
        self._rows = list(zip(*(offers[name].tolist() for name in names), strict=True))
        self._usd, self._believed, self._now = usd, believed, now
        self._wait = max((start - now).days, 0)
        self._lists: dict[tuple[str, ...], float] = {}
        for row, price in zip(self._rows, usd, strict=True):
            if row[3] == "on_demand" and price > 0:
                self._lists[row[:3]] = min(price, self._lists.get(row[:3], inf))
        self._quoted = {
            row[:3] for row in self._rows if row[3] == "spot" and row[4] not in ("derived", "declared")
        }
        self._quoted_types = {(place[0], place[2]) for place in self._quoted}
        self._spots = self._with_levels(admit_offers(offers, allow_flagged=False).mask.tolist())
        self._known: dict[int, Quote] = {}

    def __len__(self) -> int:
        """Number of offers."""
        return len(self._rows)

    def __getitem__(self, row: int) -> Quote:
        """What is expected of the offer of a row."""
        if row not in self._known:
            self._known[row] = self._priced(row)
        return self._known[row]

    def _listed(self, at: int) -> float:
        return self._lists.get(self._rows[at][:3], nan)

    def _quote(self, at: int) -> Quote:
        return _quote(
            self._rows[at], self._usd[at], self._listed(at), self._quoted, self._quoted_types, self._now
        )

    def _with_levels(self, sound: list[bool]) -> dict[int, _Spot]:
        """Quotes of markets by row; a refused price sets no level of others."""
        constants, spots_of = _constants(), dict[int, _Spot]()
        groups: dict[bool, list[_Spot]] = {True: [], False: []}
        for at, row in enumerate(self._rows):
            if row[3] == "spot" and self._usd[at] > 0:
                quote = self._quote(at)
                if quote.kind in ("observed", "derived"):
                    spot = _Spot(self._usd[at], self._listed(at), quote, row, constants)
                    groups[bool(sound[at])].append(spot)
                    spots_of[at] = spot
        for spots in groups.values():
            _set_levels(spots)
        return spots_of

    def _priced(self, at: int) -> Quote:
        spot, price, listed = self._spots.get(at), self._usd[at], self._listed(at)
        if spot is not None:
            spot.price(self._wait)
        quote = self._quote(at) if spot is None else spot.quote
        if quote.kind in ("listed", "unplaced"):
            _price_list(quote, self._rows[at][0], self._wait)
        if quote.kind == "no_market" and price > 0 and not isnan(listed):
            quote.expected = quote.p10 = quote.p90 = max(listed / price, 1.0)
        elif self._believed and quote.kind != "no_market":
            quote.expected, quote.p10, quote.p90 = 1.0, min(quote.p10, 1.0), max(quote.p90, 1.0)
            quote.path = ()
        return quote


def _quote(
    row: tuple[str, ...], price: float, listed: float, quoted: set[tuple[str, ...]], types: set[tuple[str, str]],
    now: date,
) -> Quote:  # fmt: skip
    if row[3] in _NOT_CONTRACTUAL and row[4] != "declared":
        kind = "unplaced" if is_placeless(row[6]) else "listed"
        return Quote(kind, max(_age(row[5], now), 0.0))
    if row[3] != "spot":
        return Quote("firm")
    kind = row[4] if row[4] in ("derived", "declared") else "observed"
    ratio = price / listed
    elsewhere = (row[0], row[2]) in types and row[:3] not in quoted
    if kind == "derived" and (abs(ratio - _CAP) < _CAP_SLACK or elsewhere):
        kind = "no_market"
    if kind == "observed" and ratio > _LIST:
        kind = "no_market"
    return Quote(kind, max(_age(row[5], now), 0.0))


def _price_list(quote: Quote, provider: str, wait: int) -> None:
    """What a published price may have become: rare changes, and a margin where no place is named."""
    row = _lists().get(provider) or _lists()["*"]
    days = quote.age_days + wait
    spread = Z80 * float(row["change_sd"]) * sqrt(float(row["changes_per_year"]) * days / 365.25)
    quote.expected = 1.0 + float(row["unplaced_margin"]) if quote.kind == "unplaced" else 1.0
    quote.p10, quote.p90 = exp(-spread), quote.expected * exp(spread)


@lru_cache(maxsize=4096)
def _age(text: str, now: date) -> float:
    parts = [int(part) for part in text.split("-") if part.isdigit()]
    try:
        return float((now - date(*[*parts, 1, 1][:3])).days)
    except (ValueError, TypeError):
        return 0.0


@cache
def _lists() -> dict[str, dict[str, str]]:
    text = (_DATA / "list.csv").read_text(encoding="utf-8")
    return {row["provider"]: row for row in csv.DictReader(text.splitlines())}


@cache
def _constants() -> dict[str, dict[str, str]]:
    text = (_DATA / "spot.csv").read_text(encoding="utf-8")
    return {row["provider"]: row for row in csv.DictReader(text.splitlines())}


class _Spot:
    """One spot quote and the level of its type."""

    def __init__(
        self, usd: float, listed: float, quote: Quote, row: tuple[str, ...], known: dict[str, dict[str, str]]
    ) -> None:  # fmt: skip
        self.usd, self.quote = usd, quote
        self.row = known.get(row[0], known["*"])
        self.bounded = self.row["base"] == "on_demand" and not isnan(listed)
        self.base = listed if self.bounded else 1.0
        x = log(usd / self.base)
        self.x = min(x, 0.0) if self.bounded else x
        self.usable = isnan(listed) or usd <= self.of("no_offer_ratio") * listed
        self.type = (row[0], row[2], self.bounded)
        self.level = self.x

    def of(self, name: str) -> float:
        return float(self.row[name])

    def price(self, wait: int) -> None:
        """Set the expected price and its interval, at the start and over runs."""
        start = self.quote.age_days + wait
        self.quote.path = tuple(self.figures(start + half) for half in _HALF_DAYS)
        self.quote.expected, self.quote.p10, self.quote.p90 = self.quote.path[0]
        self.quote.law = lambda half, level: self.at(start + half).quantile(level) / self.usd

    def figures(self, days: float) -> tuple[float, float, float]:
        """Expected price, P10 and P90 over the quote, `days` after it."""
        if days <= 0 and self.quote.kind != "derived":
            return 1.0, 1.0, 1.0
        later = self.at(days)
        mean, p10, p90 = later.mean(), later.quantile(0.1), later.quantile(0.9)
        return mean / self.usd, min(p10, mean) / self.usd, max(p90, mean) / self.usd

    def at(self, days: float) -> _Later:
        """How the price is distributed `days` after the quote."""
        days = min(days, _MOST_DAYS)
        derived, still = self.quote.kind == "derived", 0.0
        if self.of("still_days") > 0 and not derived:  # a derived price was never quoted
            still = exp(-((days / self.of("still_days")) ** self.of("still_power")))
        left = self.of("rest") + (1 - self.of("rest")) * exp(
            -((days / self.of("decay_days")) ** self.of("decay_power"))
        )
        # the rest of all distances is that of unchanged prices plus that of changed ones
        correlation = max((left - still) / (1 - still), 0.0) if still < 1 else 1.0
        middle = self.level + correlation * (self.of("derived_slope") if derived else 1.0) * (
            self.x - self.level
        )
        variance = self.of("place_sd") ** 2 * (1 - correlation**2)
        variance += (self.of("type_sd") ** 2 + self.of("market_sd") ** 2) * days ** (
            2 * self.of("level_power")
        )
        sd = max(sqrt(variance + (self.of("derived_sd") ** 2 if derived else 0.0)), 1e-9)
        low = min(log(self.of("floor_ratio")) if self.bounded else -inf, self.x)
        at_list = self.bounded and days > self.of("list_after_days")
        return _Later(self.base, self.x, still, middle, sd, low, 0.0 if self.bounded else inf, at_list)


class _Later:
    """A price some days after its quote: the quote itself with the probability `still`, else clipped log-normal."""

    def __init__(
        self, base: float, x: float, still: float, middle: float, sd: float, low: float, high: float, at_list: bool
    ) -> None:  # fmt: skip
        self.base, self.x, self.still, self.at_list = base, x, still, at_list
        self.middle, self.sd, self.low, self.high = middle, sd, low, high

    def mean(self) -> float:
        moved = _clipped_mean(self.middle, self.sd, self.low, self.high)
        return self.base * (self.still * exp(self.x) + (1.0 - self.still) * moved)

    def quantile(self, level: float) -> float:
        """The price that is not exceeded with the probability `level`."""
        if self.at_list and level >= 0.9:
            return self.base
        under = (1.0 - self.still) * _below((self.x - self.middle) / self.sd)
        if self.still and under <= level <= under + self.still:
            return self.base * exp(self.x)
        share = (level if level < under or not self.still else level - self.still) / (1.0 - self.still)
        value = self.middle + self.sd * _normal(share)
        return self.base * exp(min(max(value, self.low), self.high))


def _clipped_mean(middle: float, sd: float, low: float, high: float) -> float:
    """Mean of exp of a normal value clipped to [low, high]."""
    a, b = (low - middle) / sd, (high - middle) / sd
    inside = exp(middle + 0.5 * sd**2) * (_below(b - sd) - _below(a - sd))
    return (
        inside
        + (exp(low) * _below(a) if low > -inf else 0.0)
        + (exp(high) * (1 - _below(b)) if high < inf else 0.0)
    )


def _below(z: float) -> float:
    return 0.5 * erfc(-min(max(z, -40.0), 40.0) * sqrt(0.5))


@lru_cache(maxsize=4096)
def _normal(share: float) -> float:
    """The standard normal quantile, by Newton's method from the middle: its distribution is convex left of it."""
    if share > 0.5:
        return -_normal(1.0 - share)
    z = 0.0
    for _ in range(100):
        step = (_below(z) - share) * sqrt(2.0 * pi) * exp(0.5 * z * z)
        z -= step
        if abs(step) < 1e-14:
            break
    return z


def _set_levels(spots: list[_Spot]) -> None:
    """The level of each type: the median of its fresh, preferably observed quotes, drawn to the provider's mean."""
    groups: dict[tuple[str, str, bool], list[_Spot]] = {}
    for spot in spots:
        if spot.usable:
            groups.setdefault(spot.type, []).append(spot)
    middles: dict[tuple[str, str, bool], tuple[float, int, float]] = {}
    for key, group in groups.items():
        seen = [spot for spot in group if spot.quote.kind == "observed"] or group
        newest = min(spot.quote.age_days for spot in seen)
        fresh = sorted(spot.x for spot in seen if spot.quote.age_days <= newest + _FRESH_DAYS)
        middle = (fresh[(len(fresh) - 1) // 2] + fresh[len(fresh) // 2]) / 2
        middles[key] = middle, len(fresh), group[0].of("type_weight")
    for provider in {key[0] for key in middles}:
        observed = [key for key in middles if key[0] == provider and key[2]]
        mean = sum(middles[key][0] for key in observed) / len(observed) if observed else 0.0
        for key in observed:
            value, count, weight = middles[key]
            middles[key] = (count * value + weight * mean) / (count + weight), count, weight
    for spot in spots:
        if spot.type in middles:
            spot.level = middles[spot.type][0]
