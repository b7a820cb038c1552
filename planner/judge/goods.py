"""What can be bought, read from the catalog and the workload: offers and instance types by key, tariffs, quotas."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from fractions import Fraction
from math import floor, inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Table
from catalogs.tariffs.carbon import load_carbon
from planner.judge.document import MalformedError
from planner.judge.prices import Quote, Quotes, expected_price, quotes_of, scaled
from planner.records import record

if TYPE_CHECKING:
    from catalogs.offers.owned_cost import OwnedCost
    from catalogs.tables.model import Catalog
    from catalogs.tariffs import FxRate, OptionRule, QuotaRule, Tariffs
    from catalogs.tariffs.carbon import Site
    from planner.inputs.schema import OwnedCommitment, Workload

KEY = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
HARDWARE = (
    "accelerator", "accelerator_count", "accelerator_memory_gib", "memory_gib", "vcpus", "intra_node",
    "intra_node_gb_per_s", "link_domain_accelerators", "internode_gbps", "rdma", "local_nvme_gib",
)  # fmt: skip
ALREADY_OWNED = "already_owned"


@record(frozen=True, eq=False)
class Offer:
    """One way to buy, with its instance type: rows of the two tables, by column name."""

    offer_id: str
    offer: dict[str, Any]
    kind: dict[str, Any]
    hardware: Table
    rule: OptionRule
    rate: FxRate
    owned: bool
    quote: Quote
    own: OwnedCost | None = None  # of an own machine whose price follows from power, hosting and purchase
    stated_site: Site | None = None  # grid and overhead in the file of an own machine
    copies: int = 1  # commitments of equal terms: what each holds adds up

    def text(self, name: str) -> str:
        """A column of the offer as text."""
        return str(self.offer[name])

    @property
    def place(self) -> tuple[str, str]:
        """Provider and region."""
        return self.text("provider"), self.text("region")

    @property
    def site(self) -> Site:
        """Where its electricity comes from: stated in the file of the machine, else that of its place."""
        return self.stated_site or load_carbon().site(*self.place)

    @property
    def is_spot(self) -> bool:
        """Whether it may be taken back."""
        return self.text("purchase_option") == "spot"

    def during(self, run_hours: float) -> Offer:
        """The same with the prices expected in the middle of a run of `run_hours`."""
        quote = self.quote.during(run_hours)
        return self if quote is self.quote else replace(self, quote=quote)

    @property
    def price(self) -> Fraction:
        """Per instance-hour, in its own currency, as expected when the run starts."""
        return scaled(self.quoted, self.quote.expected)

    @property
    def quoted(self) -> Fraction:
        """Per instance-hour, in its own currency, as quoted."""
        return Fraction(self.text("price_per_hour"))

    @property
    def marginal(self) -> Fraction | None:
        """Power and hosting per instance-hour of an own machine, USD: all that falls due."""
        return (
            None if self.own is None else sum((Fraction(p.usd_per_hour) for p in self.own.paid), Fraction(0))
        )

    @property
    def full(self) -> Fraction | None:
        """The same with the purchase spread over the machine's life; None where that is unknown."""
        paid, bought = self.marginal, None if self.own is None else self.own.purchase
        return None if paid is None or bought is None else paid + Fraction(bought.usd_per_hour)

    @property
    def upfront(self) -> Fraction:
        """Per instance, in its own currency."""
        return Fraction(self.text("upfront_per_instance") or "0")

    @property
    def flags(self) -> list[str]:
        """Flags of the price."""
        return [flag for flag in self.text("flags").split(";") if flag]

    @property
    def term_hours(self) -> float:
        """The offer's own term, else the option's; infinity where neither is known."""
        hours = float(self.offer["term_hours"])
        return (self.rule.min_term_hours or inf) if isnan(hours) else hours

    @property
    def capacity(self) -> float:
        """Most instances, infinity where nothing limits them."""
        stated = float(self.offer["capacity"])
        most = self.rule.max_instances
        return min(inf if isnan(stated) else stated, inf if most is None else most)

    @property
    def unit(self) -> int:
        """Instances that are sold together; those that the user has are there one by one."""
        stated = float(self.kind["allocation_unit"])
        return 1 if isnan(stated) or self.owned or self.text("purchase_option") == "owned" else int(stated)

    def rank(self, wishes: Sequence[str]) -> tuple[Any, ...]:
        """What zones are taken by: the cheapest first; of equal ones those of regions wished for, then by id."""
        texts = ["/".join(self.place) if "/" in pattern else self.place[1] for pattern in wishes]
        hits = [at for at, text in enumerate(texts) if fnmatchcase(text, wishes[at])]
        ids = tuple(self.text(name) for name in KEY)
        return self.price * Fraction(self.rate.rate), min(hits, default=len(wishes)), ids

    @property
    def accelerators(self) -> float:
        """Accelerators per instance."""
        return float(self.kind["accelerator_count"])


_LAST: deque[tuple[Table, Tariffs, tuple[bool, date, date], Quotes]] = deque(maxlen=2)


class Goods:
    """Offers of the catalog with those that the workload adds, by id."""

    def __init__(
        self, catalog: Catalog, workload: Workload | None, tariffs: Tariffs, folder: Path, on: date,
        start: date | None = None,
    ) -> None:  # fmt: skip
        """Join the tables.

        Args:
            catalog: the snapshots that the answer names.
            workload: adds own machines, commitments, derived prices and overlays; None: the catalog alone.
            tariffs: what is paid beside the instance price.
            folder: the folder that the workload's file names start from.
            on: day of planning, and of exchange rates.
            start: day the run starts, default the day of planning.
        """
        self.start = on if start is None else start
        self.catalog, self.workload, self.tariffs, self.on = catalog, workload, tariffs, on
        self.folder = folder
        self.notes: tuple[str, ...] = ()
        self.offers, self.types = catalog.offers, catalog.instance_types
        self._found: dict[str, Offer | None] = {}
        self._ids: dict[tuple[str, ...], list[str]] = {}
        self._own_costs: dict[tuple[str, ...], OwnedCost] = {}
        self._own_sites: dict[tuple[str, ...], Site | None] = {}
        self._expected: dict[tuple[int, bool, date, date, float], Fraction] = {}
        if workload is not None:
            self._join(workload, folder)
        else:
            self.quotes = self._quotes(believed=False)

    def _join(self, workload: Workload, folder: Path) -> None:
        from catalogs.offers.overlays import Overlay, apply_overlays

        for name in workload.prices.offers:
            from catalogs.offers.static import load_static

            static_catalog = load_static(folder / name, self.on)
            keys = static_catalog.offers.keys_of(*KEY)
            self._own_costs |= {
                key: cost for key, cost in zip(keys, static_catalog.costs, strict=True) if cost is not None
            }
            self._own_sites |= dict(zip(keys, static_catalog.sites, strict=True))
            self.offers = Table.concat([self.offers, static_catalog.offers.select(list(self.offers))])
            self.types = Table.concat([self.types, static_catalog.instance_types.select(list(self.types))])
        if workload.constraints.allow_derived:
            from catalogs.offers.derive import derive_offers

            derived = derive_offers(self.catalog).select(list(self.offers))
            self.offers = Table.concat([self.offers, derived])
        for commitment in workload.commitments:
            self.offers = Table.concat([self.offers, self._owned(commitment)])
        self.quotes = self._quotes(believed=workload.preferences.prices == "quoted")
        if workload.prices.overlays:
            overlays = [Overlay(**overlay.model_dump()) for overlay in workload.prices.overlays]
            self.offers, notes = apply_overlays(self.offers, self.types, overlays)
            self.notes = tuple(map(str, notes))

    def price_of(
        self, offers: Table, row: int, believed: bool, now: date, start: date, run_hours: float
    ) -> Fraction:
        """The price to expect of one of these offers, worked out once."""
        key = (row, believed, now, start, run_hours)
        if key not in self._expected:
            self._expected[key] = expected_price(offers, row, believed, now, start, run_hours)
        return self._expected[key]

    def _quotes(self, *, believed: bool) -> Quotes:
        """What is expected of each offer, in the order of the table; of a catalog alone worked out once."""
        key = (believed, self.on, self.start)
        for offers, tariffs, remembered, quotes in list(_LAST):
            if offers is self.offers and tariffs is self.tariffs and remembered == key:
                return quotes
        expected = self._worked_out(believed)
        if self.offers is self.catalog.offers:
            _LAST.append((self.offers, self.tariffs, key, expected))
        return expected

    def _worked_out(self, believed: bool) -> Quotes:
        rates = {
            name: float(self.tariffs.usd_per(name, self.on).rate) for name in set(self.offers["currency"])
        }
        prices = self.offers.number("price_per_hour").tolist()
        usd = [price * rates[name] for price, name in zip(prices, self.offers["currency"], strict=True)]
        return quotes_of(self.offers, usd, believed, self.on, self.start)

    def _owned(self, owned: OwnedCommitment) -> Table:
        """The offer of a commitment that the user already pays for."""
        names = ("provider", "region", "instance_type")
        hit = self.offers.equals(names[0], owned.provider)
        for name in names[1:]:
            hit &= self.offers.equals(name, getattr(owned, name))
        same = hit & self.offers.equals("purchase_option", owned.purchase_option)
        if not same.any():
            same = hit & self.offers.equals("purchase_option", "on_demand")
        like = self.offers.take(same.nonzero()[0][:1])
        free = floor(owned.nodes * (1 if owned.share is None else float(owned.share)))
        row = like.with_columns(
            option_variant=[ALREADY_OWNED] * like.n_rows,
            purchase_option=[owned.purchase_option] * like.n_rows,
            zone=[""] * like.n_rows,
            capacity=[float(free)] * like.n_rows,
        )
        for key, like_key in zip(row.keys_of(*KEY), like.keys_of(*KEY), strict=True):
            self._own_sites[key] = self._own_sites.get(like_key)
        return row.select(list(self.offers))

    def find(self, offer_id: str) -> Offer | None:
        """The offer of an id, None where the catalog has none."""
        if offer_id not in self._found:
            parts = tuple("" if part == "-" else part for part in offer_id.split("/"))
            self._found[offer_id] = self._at(offer_id, parts) if len(parts) == len(KEY) else None
        return self._found[offer_id]

    def offer(self, path: str, offer_id: str) -> Offer:
        """The offer of an id.

        Raises:
            MalformedError: the catalog has none; names the place.
        """
        offer = self.find(offer_id)
        if offer is None:
            raise UnknownOfferError(f"{path.removeprefix('$.')}: {offer_id} is not in the catalog")
        return offer

    def _at(self, offer_id: str, parts: tuple[str, ...]) -> Offer | None:
        hit = self.offers.equals(KEY[0], parts[0])
        for name, part in zip(KEY[1:], parts[1:], strict=True):
            hit &= self.offers.equals(name, part)
        rows = hit.nonzero()[0]
        if not len(rows):
            return None
        offer, owned = self.offers.row(int(rows[0])), parts[5] == ALREADY_OWNED
        if owned:
            offer["capacity"] = float(self.offers.take(rows).number("capacity").sum())
        kinds = self.types.equals("provider", parts[0]) & self.types.equals("instance_type", parts[3])
        at = kinds.nonzero()[0]
        if not len(at):
            return None
        kind = self.types.take(at[:1])
        offered = Offer(
            offer_id=offer_id, offer=offer, kind=kind.row(0), hardware=hardware_of(kind),
            rule=self.tariffs.option_rule(parts[0], parts[4], parts[5]),
            rate=self.tariffs.usd_per(str(offer["currency"]), self.on), owned=owned,
            quote=self.quotes[int(rows[0])], copies=len(rows) if owned else 1,
            stated_site=self._own_sites.get(parts),
        )  # fmt: skip
        owned_cost = self._own_costs.get(parts)
        follows = owned_cost is not None and offered.price == sum(
            Fraction(part.usd_per_hour) for part in owned_cost.parts
        )
        return replace(offered, own=owned_cost) if follows else offered

    def vendor(self, accelerator: str) -> str:
        """Vendor of an accelerator."""
        from catalogs.tables.accelerators import load_accelerators

        accelerators = load_accelerators()
        return str(accelerators.take(accelerators.equals("accelerator", accelerator))["vendor"][0])

    def ids_but_zone(self, offer: Offer) -> list[str]:
        """Ids of all offers that differ from one in their zone at most, in order."""
        fixed = [name for name in KEY if name != "zone"]
        values = tuple(offer.text(name) for name in fixed)
        if values not in self._ids:
            hit = np.ones(self.offers.n_rows, dtype=np.bool_)
            for name, value in zip(fixed, values, strict=True):
                hit &= self.offers.equals(name, value)
            keys = self.offers.take(np.flatnonzero(hit)).keys_of(*KEY)
            self._ids[values] = sorted("/".join(part or "-" for part in key) for key in keys)
        return self._ids[values]

    def first_alike(self, offer: Offer) -> Offer:
        """Of the offers that differ from one in their zone alone the first by id: where on-demand is bought."""
        return next(
            (
                other
                for offer_id in self.ids_but_zone(offer)
                if (other := self.find(offer_id)) is not None and _alike(other, offer)
            ),
            offer,
        )

    def quota(self, offer: Offer, nodes: int) -> dict[str, Any]:
        """The quota that instances count against, in the unit of the declared limit that leaves least room.

        Without a declared limit: the provider's own quota in its own unit.
        """
        provider, region = offer.place
        family, accelerator = str(offer.kind["family"]), str(offer.kind["accelerator"])
        option = offer.text("purchase_option")
        rule = self.tariffs.quota_rule(provider, family, accelerator, option)
        per_unit = {"vCPU": float(offer.kind["vcpus"]), "GPU": offer.accelerators, "instances": 1.0}
        name, code, scope = (
            ("unknown quota", "", provider) if rule is None else (rule.name, rule.code, rule.scope)
        )
        units = self._quota_units(offer, rule)
        declared = [] if self.workload is None else [
            (limit, per_unit[limit.unit or units[limit.quota]] * nodes)
            for limit in self.workload.constraints.quota
            if limit.provider == provider and limit.quota in units and fnmatchcase(region, limit.region)
        ]  # fmt: skip
        if not declared:
            unit = "instances" if rule is None else rule.unit
            check = {"unit": unit, "needed": per_unit[unit] * nodes, "limit": None, "status": "not checked"}
            return {"name": name, "code": code, "scope": scope, **check}
        limit, needed = max(declared, key=lambda pair: pair[1] / max(pair[0].limit, 1e-300))
        whose = getattr(limit, "whose", "declared limit")
        return {
            "name": limit.quota if rule is None else name, "code": code, "scope": scope,
            "unit": limit.unit or units[limit.quota], "needed": needed, "limit": limit.limit,
            "status": f"within the {whose}" if needed <= limit.limit else "above the limit",
        }  # fmt: skip

    def _quota_units(self, offer: Offer, rule: QuotaRule | None) -> dict[str, str]:
        """What a quota that the offer counts against may be called, each name with its own unit."""
        family, accelerator = str(offer.kind["family"]), str(offer.kind["accelerator"])
        ways = (offer.text("purchase_option"), "on_demand", "spot")
        rules = (self.tariffs.quota_rule(offer.place[0], family, accelerator, way) for way in ways)
        own_unit = next((known_rule.unit for known_rule in rules if known_rule is not None), "instances")
        names = {accelerator.split("-")[0]: "GPU", accelerator: "GPU", family: own_unit}
        return names if rule is None else {**names, rule.name: own_unit, rule.code: own_unit}


class UnknownOfferError(MalformedError):
    """An offer that the catalog does not have: a fault of the answer, not of the file."""


def hardware_of(kind: Table) -> Table:
    """Instance types with the columns of their accelerators."""
    from catalogs.tables.accelerators import load_accelerators

    accelerators = load_accelerators()
    rows = accelerators.take(kind.lookup(accelerators, ("accelerator",)))
    more = {name: rows.column(name) for name in accelerators if name not in kind}
    return kind.select(HARDWARE).with_columns(**more)


def _alike(one: Offer, other: Offer) -> bool:
    """Whether two offers say the same but for the zone; unknown equals unknown."""
    pairs = [(one.offer[name], other.offer[name]) for name in one.offer if name != "zone"]
    return all(mine == its or (mine != mine and its != its) for mine, its in pairs)
