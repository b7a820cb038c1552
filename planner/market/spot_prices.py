"""The quote of every offer, and the price to expect when the run starts (`planner.market.expected_price`).

Candidates compete by the expected price: it replaces the quote in the table of offers, and the quote is kept beside it.
Prices of reservations, blocks, own machines and the user's own lists are firm. Published on-demand prices rarely
change: the list price is expected, with an interval. If a list names no place, a margin is added for finding the
machine, so that near-ties go to a known place.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal
from math import log
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.flags import admit_offers, placeless
from catalogs.tables.table import Bools, Coded, Floats, Ints, Table
from planner.market.expected_price import Quotes, list_terms, price_terms
from planner.market.price_path import NAMES, PricePath
from planner.market.pricing import price_age_days
from planner.normal import Z80
from planner.normal.arrays import normal_quantile
from planner.records import record

if TYPE_CHECKING:
    from datetime import date

    from planner.market.expected_price import PriceTerms


EXPECTED, QUOTED, FIRM = "expected", "quoted", "firm"
_DIGITS = Context(prec=10)  # of an expected price
# What an offer's price is. No market: a derived price at the cap of its feed (a bound, not a price), spot at list, or a
# derived price where the type is quoted elsewhere but not in this region; there on-demand is what must be expected.
KINDS = ("firm", "observed", "derived", "declared", "no_market", "listed", "unplaced")
IS_FIRM, OBSERVED, DERIVED, DECLARED, NO_MARKET, LISTED, UNPLACED = range(len(KINDS))
_NOT_CONTRACTUAL = ("on_demand", "flex_start", "dedicated")
CAP_RATIO, CAP_SLACK = 0.10, 5e-4


@record(frozen=True, eq=False)
class PriceBook:
    """Quote and expectation of each offer, shape `(n_offers,)`.

    Attributes:
        kind: index into `KINDS`.
        age_days: of the quote when planned; horizon_days: from the quote to the start of the run; NaN for firm prices.
        expected_ratio, p10_ratio, p90_ratio: price to expect at the start, and its 80 % interval, over the quote.
        path: how they change over a run; None: constant from the start on.
        laws: distributions of spot prices, also in mode `quoted`; None: no spot quotes.
    """

    kind: Ints
    age_days: Floats
    horizon_days: Floats
    expected_ratio: Floats
    p10_ratio: Floats
    p90_ratio: Floats
    path: PricePath | None = None
    laws: PricePath | None = None

    def during(self, name: str, rows: Ints, run_hours: Floats) -> Floats:
        """Ratio `name` of `rows` in the middle of runs of `run_hours`, shape `(n,)`."""
        out: Floats = getattr(self, name).take(rows)
        if self.path is not None:
            own = np.flatnonzero(self.path.place.take(rows) >= 0)
            out[own] = self.path.ratios(name, rows.take(own), run_hours.take(own))
        return out

    def quantile(self, row: int, level: Floats, run_hours: float = 0.0) -> Floats:
        """Quantiles of the price of offer `row` over the quote at probabilities `level`, shape `(n,)`.

        In the middle of a run of `run_hours`. Prices without a law of their own are log-normal through the interval.
        """
        if self.laws is not None and self.laws.place[row] >= 0:
            return self.laws.quantile(row, level, 0.0 if self.path is None else run_hours)
        mean, low, high = (float(getattr(self, name)[row]) for name in NAMES)
        down, up = log(mean / low) / Z80, log(high / mean) / Z80
        z = normal_quantile(level)
        return np.asarray(mean * np.exp(np.where(z > 0, z * up, z * down)), dtype=np.float64)

    def growth(self, rows: Ints, run_hours: Floats) -> Floats:
        """Expected price in the middle of a run over that of its start, shape `(n,)`."""
        if self.path is None:
            return np.ones(len(rows))
        return self.during("expected_ratio", rows, run_hours) / self.expected_ratio.take(rows)

    def cheapest_hours(self, rows: Ints, run_hours: Floats) -> Floats:
        """Run length of at least `run_hours` with the least expected price, hours, shape `(n,)`."""
        out: Floats = np.array(run_hours, dtype=np.float64)
        if self.path is not None:
            own = np.flatnonzero(self.path.place[rows] >= 0)
            out[own] = self.path.cheapest_hours(rows[own], out[own])
        return out

    def is_known(self) -> Bools:
        """Mask of prices that were observed or are listed, at a known place."""
        return np.isin(self.kind, (IS_FIRM, OBSERVED, DECLARED, LISTED))

    def price(
        self, quote: Decimal, row: int, name: str = "expected_ratio", run_hours: float = 0.0
    ) -> Decimal:
        """A price of offer `row` in the middle of a run, rounded as the offers' table holds it."""
        if self.path is not None and self.path.place[row] >= 0:
            ratio = self.path.ratio(name, row, run_hours)
        else:
            ratio = float(getattr(self, name)[row])
        return scaled(quote, ratio)


def scaled(quote: Decimal, ratio: float) -> Decimal:
    """Quote times ratio to ten digits; the quote itself where nothing changes it."""
    return quote if ratio == 1.0 else _DIGITS.plus(quote * Decimal(repr(ratio)))


def price_book(offers: Table, usd: Floats, mode: str, now: date, start: date) -> PriceBook:
    """Price all offers for a run.

    Args:
        offers: all that can be bought, at its quote.
        usd: the quotes in USD per hour, shape `(n_offers,)`.
        mode: `expected`, or `quoted`: take quotes as they are, except those of no market; intervals stay.
        now: day of planning.
        start: day the run starts.
    """
    kind = _kinds(offers, usd)
    dates = offers.coded("as_of")
    ages = np.asarray([*(price_age_days(text, now) for text in dates.values), None], dtype=np.float64)[
        dates.codes
    ]
    ages = np.where(kind == IS_FIRM, np.nan, np.maximum(np.nan_to_num(ages, nan=0.0), 0.0))
    horizon = ages + max((start - now).days, 0)
    one = np.ones(offers.n_rows)
    book = PriceBook(kind, ages, horizon, one, one.copy(), one.copy())
    rows = np.flatnonzero(np.isin(kind, (OBSERVED, DERIVED)) & (usd > 0))
    listed = on_demand_usd(offers, usd)
    path: list[tuple[Ints, PriceTerms]] = []
    if len(rows):
        admitted = admit_offers(offers, allow_flagged=False).mask
        known = rows[admitted[rows]]
        path = _expect(book, offers, usd, listed, rows, known)
    _expect_lists(book, offers)
    none = np.flatnonzero((kind == NO_MARKET) & (usd > 0) & np.isfinite(listed))
    for column in (book.expected_ratio, book.p10_ratio, book.p90_ratio):
        column[none] = np.maximum(listed[none] / usd[none], 1.0)
    if path:
        laws = PricePath(offers.n_rows, tuple(path), horizon, usd)
        book = replace(book, laws=laws, path=None if mode == QUOTED else laws)
    if mode == QUOTED:
        market = kind != NO_MARKET
        book.expected_ratio[market] = 1.0
        np.minimum(book.p10_ratio, 1.0, out=book.p10_ratio, where=market)
        np.maximum(book.p90_ratio, 1.0, out=book.p90_ratio, where=market)
    return book


def with_expected(offers: Table, book: PriceBook) -> Table:
    """The offers with the expected price as their price."""
    changed = np.flatnonzero(book.expected_ratio != 1.0)
    if not len(changed):
        return offers
    column = offers.coded("price_per_hour")
    values, codes = list(column.values), column.codes.copy()
    quotes, ratios = codes[changed].tolist(), book.expected_ratio[changed].tolist()
    known: dict[tuple[int, float], int] = {}
    for pair in zip(quotes, ratios, strict=True):
        if pair not in known:
            known[pair] = len(values)
            values.append(f"{scaled(Decimal(values[pair[0]]), pair[1]):f}")
    codes[changed] = [known[pair] for pair in zip(quotes, ratios, strict=True)]
    parsed = column.parsed
    if parsed is not None:
        parsed = np.append(parsed, [float(text) for text in values[len(parsed) :]])
    return offers.with_columns(price_per_hour=Coded(codes, tuple(values), parsed))


def _expect(
    book: PriceBook, offers: Table, usd: Floats, listed: Floats, rows: Ints, known: Ints
) -> list[tuple[Ints, PriceTerms]]:
    """Fill in the ratios of the spot quotes `rows`; price levels are estimated from the admitted ones, `known`.

    Returns:
        Rows and their price terms, by group.
    """
    provider, types = offers.coded("provider"), offers.key_codes("provider", "instance_type")

    def quotes(at: Ints) -> Quotes:
        return Quotes(
            usd_per_hour=usd[at], on_demand_usd_per_hour=listed[at], provider=provider.codes[at].astype(np.int64),
            type=types[at].astype(np.int64), age_days=book.age_days[at], derived=book.kind[at] == DERIVED,
            providers=tuple(provider.values),
        )  # fmt: skip

    own = np.isin(rows, known)
    groups = [(at, price_terms(quotes(at))) for at in (rows[own], rows[~own]) if len(at)]
    for at, terms in groups:
        later = terms.expect(np.arange(len(at)), book.horizon_days[at])
        book.expected_ratio[at] = later.mean / usd[at]
        book.p10_ratio[at], book.p90_ratio[at] = later.p10 / usd[at], later.p90 / usd[at]
    return groups


def _expect_lists(book: PriceBook, offers: Table) -> None:
    """Fill in the ratios of published on-demand prices: the variances of their rare, independent changes add up."""
    provider = offers.coded("provider")
    terms = [list_terms(name) for name in provider.values]
    at = np.flatnonzero(np.isin(book.kind, (LISTED, UNPLACED)))
    own = provider.codes[at]
    per_day = np.asarray([one.change_sd**2 * one.changes_per_year / 365.25 for one in terms])
    sd = np.sqrt(per_day[own] * book.horizon_days[at])
    margin = np.asarray([one.unplaced_margin for one in terms])[own]
    book.expected_ratio[at] = np.where(book.kind[at] == UNPLACED, 1.0 + margin, 1.0)
    book.p10_ratio[at] = np.exp(-Z80 * sd)
    book.p90_ratio[at] = book.expected_ratio[at] * np.exp(Z80 * sd)


def on_demand_usd(offers: Table, usd: Floats) -> Floats:
    """On-demand price of each offer's type in its region, the least of its zones, NaN without one."""
    place = offers.key_codes("provider", "region", "instance_type")
    listed = np.flatnonzero(offers.equals("purchase_option", "on_demand") & (usd > 0))
    price = np.full(int(place.max(initial=-1)) + 1, np.inf)
    np.minimum.at(price, place[listed], usd[listed])
    return np.where(np.isfinite(price), price, np.nan)[place]


def _kinds(offers: Table, usd: Floats) -> Ints:
    spot = offers.equals("purchase_option", "spot")
    derived = spot & offers.equals("basis", "derived")
    declared = spot & offers.equals("basis", "declared")
    kind = np.full(offers.n_rows, IS_FIRM, dtype=np.int64)
    kind[spot], kind[derived], kind[declared] = OBSERVED, DERIVED, DECLARED
    listed = offers.is_in("purchase_option", _NOT_CONTRACTUAL) & ~offers.equals("basis", "declared")
    kind[listed] = np.where(placeless(offers), UNPLACED, LISTED)[listed]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = usd / on_demand_usd(offers, usd)
        capped = derived & (np.abs(ratio - CAP_RATIO) < CAP_SLACK)
    observed = spot & ~derived & ~declared
    kind[capped | (observed & (ratio > 0.99)) | (derived & _unquoted(offers, observed))] = NO_MARKET
    return kind


def _unquoted(offers: Table, observed: Bools) -> Bools:
    """Mask of offers whose type is quoted somewhere, but not in their region."""
    types = offers.key_codes("provider", "instance_type")
    places = offers.key_codes("provider", "region", "instance_type")
    return np.asarray(np.isin(types, types[observed]) & ~np.isin(places, places[observed]), dtype=np.bool_)
