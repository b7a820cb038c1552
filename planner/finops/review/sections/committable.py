"""Services with a machine whose commitment has a price: `planner commit --from-focus` refuses a bill without any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.finops.review.parts import cells, text
from planner.finops.review.sections.things import things
from planner.finops.units.names import provider_id
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.review.inputs import Inputs

Service = tuple[str, str]  # provider and name, as in the bill
Machine = tuple[str, str, str]  # provider id, region, machine type
_ON_DEMAND = "on_demand"


@record(frozen=True)
class Machines:
    """Machines of the month's use by service; `saving`: those whose own commitments cost less than use without."""

    by_service: Mapping[Service, frozenset[Machine]]
    saving: frozenset[Machine]

    def are_in(self, service: Service) -> bool:
        """Whether use of a service names machines by the hour."""
        return service in self.by_service

    def have_price(self, service: Service) -> bool:
        """Whether a commitment of one year has a price for a machine of a service, in the bill or the catalog."""
        own = self.by_service.get(service, frozenset())
        return bool(own & self.saving) or bool(own & sold_machines(frozenset(key for key, _, _ in own)))


def machines(inputs: Inputs) -> Machines:
    """The machines of the month; asked for once."""
    if "machines" not in inputs.answers:
        inputs.answers["machines"] = _machines(things(inputs, "machines"), inputs.bill.currency)
    found: Machines = inputs.answers["machines"]
    return found


def _machines(rows: Any, currency: str) -> Machines:
    by_service: dict[Service, set[Machine]] = {}
    paid: dict[Machine, float] = {}
    price: dict[Machine, float] = {}
    for provider, service, region, kind, cost, instead in cells(
        rows, "provider", "service", "region_id", "instance_type", "committed_cost", "committed_price"
    ):
        name = text(provider)
        key = (provider_id(name) or name.lower(), text(region), text(kind))
        by_service.setdefault((name, text(service)), set()).add(key)
        paid[key] = paid.get(key, 0.0) + float(cost)
        price[key] = price.get(key, 0.0) + float(instead)
    in_usd = currency == "USD"  # prices of other bills are none of the question's
    saving = frozenset(key for key in paid if in_usd and 0 < paid[key] < price[key])
    return Machines({service: frozenset(keys) for service, keys in by_service.items()}, saving)


def sold_machines(providers: frozenset[str]) -> frozenset[Machine]:
    """Machines of the catalog with a price on demand and one of a commitment of one year."""
    from catalogs.offers.query import OfferQuery, query_offers
    from catalogs.store.load import load_catalog
    from catalogs.tables.model import HOURS_PER_YEAR, PurchaseOption

    catalog = load_catalog()
    known = tuple(sorted(providers & {manifest.provider for manifest in catalog.manifests}))
    if not known:
        return frozenset()
    year = [str(option) for option in PurchaseOption if option.term_hours == HOURS_PER_YEAR]
    offers = query_offers(catalog, OfferQuery(providers=known, purchase_options=(_ON_DEMAND, *year))).offers
    on_demand, committed = set[Machine](), set[Machine]()
    columns = (
        offers[name] for name in ("purchase_option", "provider", "region", "instance_type", "usd_per_hour")
    )
    for option, provider, region, kind, usd in zip(*columns, strict=True):
        if usd > 0:
            (on_demand if option == _ON_DEMAND else committed).add((provider, region, kind))
    return frozenset(on_demand & committed)
