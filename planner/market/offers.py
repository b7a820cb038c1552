"""Everything that can be bought for one workload: catalog, own machines, derived prices and overlays, in one set.

An `OfferSet` keeps offers and instance types as two tables joined by index, prices in USD as floats for the search
and the decimal price beside it for the plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from catalogs.offers.naming import fitting_names
from catalogs.patterns import matches
from catalogs.tables.table import Bools, Coded, Floats, Ints, Table
from catalogs.tariffs.carbon import load_carbon
from planner.errors import InputError
from planner.inputs.faults import FaultError
from planner.market.machines import MachineSet, build_hardware
from planner.market.place_names import unsold_fault
from planner.market.spot_prices import FIRM, price_book, with_expected
from planner.records import record

if TYPE_CHECKING:
    from datetime import date, datetime

    from catalogs.offers.overlays import PriceNote
    from catalogs.offers.owned_cost import OwnedCost
    from catalogs.tables.model import Catalog
    from catalogs.tariffs import FxRate, OptionRule, Tariffs, TierCurve
    from catalogs.tariffs.carbon import Site
    from planner.inputs.schema import OwnedCommitment, Workload
    from planner.market.spot_prices import PriceBook


_T = TypeVar("_T")
_MOST_KNOWN = 32  # answers about one set of offers
_UNKNOWN = object()


@record(frozen=True, eq=False)
class KnownPlaces:
    """What tariffs said about the places of offers, whatever the job: one after another shares it.

    Attributes:
        usd_per_gb: of the dearest tier from one region to another, by their codes; NaN: not asked yet.
        curves: the dearest curve within a set of regions, and whether it is known.
    """

    usd_per_gb: Floats
    curves: dict[frozenset[int], tuple[TierCurve, bool]]


@record(frozen=True, eq=False)
class OfferSet(MachineSet):
    """Machines with the offers of them, joined by index.

    Attributes:
        offers: one row per way to buy, shape `(n_offers,)`.
        type_of_offer: row of `types` per offer.
        usd_per_hour: price per instance-hour to expect at the start, in USD, NaN where unusable; so in `offers` too.
        upfront_usd: upfront per instance in USD (0 where the option has none).
        rate_of_offer: `(rate, source)` index into `rates`.
        rules: distinct purchase-option rules; `rule_of_offer` indexes them.
        owned_share: 0 where the user already pays (nothing more is owed), NaN elsewhere.
        capacity: most instances the offer can give, infinity where unlimited or unknown.
        book: how the expected price follows from the quote; quotes: the column of quotes, in the offer's currency.
        firm_only: only firm prices are asked for.
        own_costs: by row, what own machines cost at the margin and in full, where their price follows from it.
        own_sites: by row, grid and overhead of own machines whose file states them.
        own_ends: by row, the last day, or the last moment, of what the user already pays.
    """

    offers: Table
    type_of_offer: Ints
    usd_per_hour: Floats
    upfront_usd: Floats
    rates: tuple[FxRate, ...]
    rate_of_offer: Ints
    rules: tuple[OptionRule, ...]
    rule_of_offer: Ints
    owned_share: Floats
    capacity: Floats
    book: PriceBook
    quotes: Coded
    firm_only: bool = False
    notes: tuple[PriceNote, ...] = ()
    own_costs: Mapping[int, OwnedCost] = field(default_factory=dict)
    own_sites: Mapping[int, Site] = field(default_factory=dict)
    own_ends: Mapping[int, date | datetime] = field(default_factory=dict)

    @cached_property
    def known_places(self) -> dict[Tariffs, KnownPlaces]:
        """What tariffs were asked about the places of these offers."""
        return {}

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, work: Callable[[], _T]) -> _T:
        """What `work` says of these offers, the same for all jobs that share them; nobody may change it.

        Args:
            key: all that the answer follows from beside the offers, and whose it is.
            work: works it out.
        """
        made = self._known.pop(key, _UNKNOWN)
        if made is _UNKNOWN:
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            made = work()
            if isinstance(made, np.ndarray):
                made.setflags(write=False)
        self._known[key] = made  # last, for what was asked longest ago goes first
        known: _T = made
        return known

    def offer_id(self, row: int) -> str:
        """Return the offer's id: its six key parts joined by `/`, `-` for an empty part."""
        parts = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
        return "/".join(str(self.offers[name][row]) or "-" for name in parts)

    def site(self, row: int) -> Site:
        """Return grid and overhead of the offer's machines."""
        site = self.own_sites.get(row)
        if site is not None:
            return site
        return load_carbon().site(*(str(self.offers[name][row]) for name in ("provider", "region")))

    def price(self, row: int) -> Decimal:
        """Return the decimal price per instance-hour to expect, in its own currency."""
        return Decimal(str(self.offers["price_per_hour"][row]))

    def price_during(self, row: int, run_hours: float, name: str = "expected_ratio") -> Decimal:
        """Return the decimal price of a run of `run_hours` from start to end, in the offer's own currency."""
        if name == "expected_ratio" and run_hours == 0.0:
            return self.price(row)
        return self.book.price(self.quote(row), row, name, run_hours)

    def usd_during(self, rows: Ints, run_hours: Floats) -> Floats:
        """Price per instance-hour to expect in the middle of runs, USD, shape `(n,)`."""
        return self.usd_per_hour[rows] * self.book.growth(rows, run_hours)

    @property
    def least_usd_per_hour(self) -> Floats:
        """Least price that a run of any length can expect, USD, shape `(n_offers,)`."""
        path = self.book.path
        return self.usd_per_hour if path is None else self.usd_per_hour * path.least_growth

    def quoted_offers(self) -> Table:
        """The offers at their quotes."""
        return self.offers.with_columns(price_per_hour=self.quotes)

    def quote(self, row: int) -> Decimal:
        """Return the decimal price per instance-hour as quoted, in its own currency."""
        return Decimal(self.quotes.values[int(self.quotes.codes[row])])


def gather_offers(
    catalog: Catalog, workload: Workload, tariffs: Tariffs, base: str, on: date, start: date | None = None
) -> OfferSet:
    """Join catalog offers, static catalogs, derived prices, overlays and owned commitments of `workload`.

    An overlay changes the quote; what is expected of it stays in proportion.

    Args:
        catalog: the loaded snapshot.
        workload: gives `prices`, `commitments` and the flags about derived prices.
        tariffs: option rules and exchange rates.
        base: folder that relative static-catalog paths start from.
        on: date for exchange rates, and the day of planning.
        start: day the run starts, default the day of planning.

    Raises:
        InputError: a static catalog, overlay or owned commitment is wrong.
    """
    if workload.prices.offers:  # files, which may change between two questions
        return _gather(catalog, workload, tariffs, base, on, start)
    # jobs of a portfolio, tasks of a pipeline and rows of a comparison share what they can buy
    asked = (
        workload.preferences.prices, on, start, workload.prices.overlays, workload.commitments,
        workload.constraints.allow_derived,
    )  # fmt: skip
    for known_catalog, known_tariffs, known, offer_set in list(_LAST):
        if known_catalog is catalog and known_tariffs is tariffs and known == asked:
            return offer_set
    gathered = _gather(catalog, workload, tariffs, base, on, start)
    _LAST.append((catalog, tariffs, asked, gathered))
    return gathered


_LAST: deque[tuple[Catalog, Tariffs, tuple[object, ...], OfferSet]] = deque(maxlen=2)


def _gather(
    catalog: Catalog, workload: Workload, tariffs: Tariffs, base: str, on: date, start: date | None
) -> OfferSet:
    offers, types = catalog.offers, catalog.instance_types
    notes: list[PriceNote] = []
    own: dict[int, OwnedCost] = {}
    sites: dict[int, Site] = {}
    for path in workload.prices.offers:
        from catalogs.offers.static import load_static

        static = load_static(Path(base) / path, on)
        own |= {offers.n_rows + at: cost for at, cost in enumerate(static.costs) if cost is not None}
        sites |= {offers.n_rows + at: site for at, site in enumerate(static.sites) if site is not None}
        offers = Table.concat([offers, static.offers.select(list(offers))])
        types = static.types_beside(types)
    if workload.constraints.allow_derived:
        from catalogs.offers.derive import derive_offers

        offers = Table.concat([offers, derive_offers(catalog).select(list(offers))])
    ends = {
        offers.n_rows + number: owned.expires
        for number, owned in enumerate(workload.commitments) if owned.expires is not None
    }  # fmt: skip
    offers, shares = _add_commitments(offers, workload.commitments, sites)
    wish = workload.preferences.prices
    book = price_book(offers, _usd(offers, tariffs, on)[0], wish, on, on if start is None else start)
    if workload.prices.overlays:
        from catalogs.offers.overlays import Overlay, apply_overlays

        overlays = [Overlay(**overlay.model_dump()) for overlay in workload.prices.overlays]
        offers, overlay_notes = apply_overlays(offers, types, overlays)
        notes.extend(overlay_notes)
    offer_set = _index(offers, types, shares, tariffs, on, book)
    # a price that an overlay changed no longer follows from power, hosting and purchase
    kept = {row: cost for row, cost in own.items() if offer_set.price(row) == cost.usd_per_hour}
    return replace(
        offer_set, notes=tuple(notes), firm_only=wish == FIRM, own_costs=kept, own_sites=sites, own_ends=ends
    )


def gather_machines(catalog: Catalog, workload: Workload, base: str) -> MachineSet:
    """Machines of the catalog and of the workload's static catalogs, without their prices.

    Rows are those of `gather_offers`.

    Args:
        catalog: the loaded snapshot.
        workload: gives `prices.offers`.
        base: folder that relative static-catalog paths start from.

    Raises:
        InputError: a static catalog is wrong.
    """
    types = catalog.instance_types
    for path in workload.prices.offers:
        from catalogs.offers.static import load_static

        types = load_static(Path(base) / path).types_beside(types)
    hardware, hardware_of_type = build_hardware(types)
    return MachineSet(types, hardware, hardware_of_type)


def _usd(offers: Table, tariffs: Tariffs, on: date) -> tuple[Floats, tuple[FxRate, ...]]:
    """Prices per hour in USD, and the exchange rates by code of the currency."""
    currencies = offers.coded("currency")
    rates = tuple(tariffs.usd_per(currency, on) for currency in currencies.values)
    rate = np.asarray([float(r.rate) for r in rates])[currencies.codes]
    return offers.number("price_per_hour") * rate, rates


def _add_commitments(
    offers: Table, owned: Sequence[OwnedCommitment], sites: dict[int, Site]
) -> tuple[Table, Floats]:
    """Append one offer per owned commitment: no extra cost up to the part of its capacity that is free.

    `sites` gets its site where its machine has one of its own.
    """
    shares = [np.full(offers.n_rows, np.nan)]
    for number, commitment in enumerate(owned):
        hit = (
            offers.equals("provider", commitment.provider)
            & offers.equals("region", commitment.region)
            & offers.equals("instance_type", commitment.instance_type)
        )
        exact = hit & offers.equals("purchase_option", commitment.purchase_option)
        rows = np.flatnonzero(exact if exact.any() else hit & offers.equals("purchase_option", "on_demand"))
        if not len(rows):
            raise FaultError(unsold_fault(("commitments", number), commitment, offers))
        usable = float(
            np.floor(commitment.nodes * (1.0 if commitment.share is None else float(commitment.share)))
        )
        row = offers.take(rows[:1]).with_columns(
            option_variant=["already_owned"],
            purchase_option=[commitment.purchase_option],
            zone=[""],
            capacity=np.asarray([usable]),
        )
        if int(rows[0]) in sites:
            sites[offers.n_rows] = sites[int(rows[0])]
        offers = Table.concat([offers, row.select(list(offers))])
        shares.append(np.zeros(1))
    return offers, np.concatenate(shares)


def _index(
    offers: Table, types: Table, shares: Floats, tariffs: Tariffs, on: date, book: PriceBook
) -> OfferSet:
    hardware, hardware_of_type = build_hardware(types)
    type_of_offer = offers.lookup(types, ("provider", "instance_type"))
    if (type_of_offer < 0).any():
        lost = offers["instance_type"][int(np.argmin(type_of_offer))]
        raise InputError(f"offers name the instance type {lost!r} that no instance-type table has")
    quotes = offers.coded("price_per_hour")
    offers = with_expected(offers, book)
    usd, rates = _usd(offers, tariffs, on)
    currencies = offers.coded("currency")
    rate = np.asarray([float(r.rate) for r in rates])[currencies.codes]
    rules, rule_of_offer = _rules(offers, tariffs)
    upfront = offers.number("upfront_per_instance") * rate
    capacity = np.where(np.isnan(offers["capacity"]), np.inf, offers["capacity"])
    limits = np.asarray([np.inf if r.max_instances is None else float(r.max_instances) for r in rules])
    return OfferSet(
        offers=offers,
        types=types,
        hardware=hardware,
        type_of_offer=type_of_offer,
        hardware_of_type=hardware_of_type,
        usd_per_hour=usd,
        upfront_usd=np.nan_to_num(upfront, nan=0.0),
        rates=rates,
        rate_of_offer=currencies.codes.astype(np.int64),
        rules=rules,
        rule_of_offer=rule_of_offer,
        owned_share=shares,
        capacity=np.minimum(capacity, limits[rule_of_offer]),
        book=book,
        quotes=quotes,
    )


def _rules(offers: Table, tariffs: Tariffs) -> tuple[tuple[OptionRule, ...], Ints]:
    codes, keys = offers.distinct_keys("provider", "purchase_option", "option_variant")
    return tuple(tariffs.option_rule(*key) for key in keys), codes


def known_places(offer_set: OfferSet, tariffs: Tariffs) -> KnownPlaces:
    """What these tariffs were asked about the places of the offers."""
    if tariffs not in offer_set.known_places:
        count = int(offer_set.offers.key_codes("provider", "region").max(initial=-1)) + 1
        offer_set.known_places[tariffs] = KnownPlaces(np.full((count, count), np.nan), {})
    return offer_set.known_places[tariffs]


def unit_of_offer(offer_set: OfferSet) -> Ints:
    """Machines that each offer is sold in units of, 1 for those that the user has, shape `(n_offers,)`."""
    return offer_set.once("unit_of_offer", lambda: _unit_of_offer(offer_set))


def _unit_of_offer(offer_set: OfferSet) -> Ints:
    unit = np.fmax(np.nan_to_num(offer_set.types.number("allocation_unit"), nan=1.0), 1.0)
    had = ~np.isnan(offer_set.owned_share) | offer_set.offers.equals("purchase_option", "owned")
    return np.where(had, 1, unit[offer_set.type_of_offer].astype(np.int64))


def match_globs(column: Coded, patterns: Sequence[str]) -> Bools:
    """Mask of rows matching a glob, over `provider/region` or, without a slash, over the region alone."""
    hits = []
    for text in column.values:
        tail = text.rpartition("/")[2]
        hits.append(any(matches(pattern, text if "/" in pattern else tail) for pattern in patterns))
    return np.asarray([*hits, False], dtype=np.bool_)[column.codes]


def match_names(column: Coded, patterns: Sequence[str]) -> Bools:
    """Mask of rows that one of `patterns` names, as people write accelerators and instance types."""
    named = set[str]().union(*(fitting_names(pattern, column.values) for pattern in patterns))
    hits = [text in named for text in column.values]
    return np.asarray([*hits, False], dtype=np.bool_)[column.codes]


def preference_rank(places: Coded, patterns: Sequence[str]) -> Ints:
    """Position of the first pattern that each place matches, shape `(n_offers,)`; past the last where none does."""
    rank = np.full(len(places.codes), len(patterns), dtype=np.int64)
    for position in reversed(range(len(patterns))):
        rank[match_globs(places, patterns[position : position + 1])] = position
    return rank
