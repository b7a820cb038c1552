"""What can be bought and what it costs one job, with the codes by which its offers are compared."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.model import places_of
from catalogs.tables.table import Bools, Coded, Ints, Table
from planner.market.costs import CostModel
from planner.market.offers import known_places, preference_rank
from planner.market.storage.stores import Stores
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.model import Catalog
    from catalogs.tariffs import Tariffs
    from planner.asked.model import Asked
    from planner.market.offers import KnownPlaces, OfferSet


@record(frozen=True, eq=False)
class Market:
    """What can be bought and what it costs `asked`: offers, tariffs, and codes by which offers are compared."""

    catalog: Catalog
    offer_set: OfferSet
    tariffs: Tariffs
    asked: Asked

    @cached_property
    def costs(self) -> CostModel:
        """Prices candidates of this job."""
        share = self.asked.workload.prices.commitment_share
        return CostModel(self.offer_set, self.asked.job, self.tariffs, share)

    @cached_property
    def stores(self) -> Stores:
        """Chooses where nodes read the data of this job from."""
        return Stores(self.offer_set, self.asked, self.tariffs)

    @property
    def known_places(self) -> KnownPlaces:
        """What the tariffs were asked about the places of the offers, by this job and those before."""
        return known_places(self.offer_set, self.tariffs)

    @cached_property
    def pool_of_offer(self) -> Ints:
        """Code of (instance type, region, zone) per offer: what interruptions differ in."""
        codes = self.offer_set.offers.key_codes("provider", "region", "zone", "instance_type")
        return codes.astype(np.int64)

    @cached_property
    def region_of_offer(self) -> Ints:
        """Code of (provider, region) per offer."""
        codes = self.offer_set.offers.key_codes("provider", "region")
        return codes.astype(np.int64)

    @cached_property
    def is_spot(self) -> Bools:
        """Mask of offers that may be interrupted."""
        return self.offer_set.offers.equals("purchase_option", "spot")

    def family_of(self, row: int) -> str:
        """Instance family of an offer."""
        return str(self.offer_set.types["family"][self.offer_set.type_of_offer[row]])

    def vendor_of(self, accelerator: str) -> str:
        """Vendor of an accelerator."""
        return self._fact_of(accelerator, "vendor")

    def generation_of(self, accelerator: str) -> str:
        """Generation of an accelerator, by which measured runs correct its speed."""
        return self._fact_of(accelerator, "generation")

    def _fact_of(self, accelerator: str, name: str) -> str:
        table = self.catalog.accelerators
        return str(table.take(table.equals("accelerator", accelerator))[name][0])

    @cached_property
    def id_rank(self) -> Ints:
        """Rank of each offer for ties: preferred regions first, then its id in lexical order."""
        offers = self.offer_set.offers
        wished = tuple(self.asked.workload.preferences.prefer_regions)
        return self.offer_set.once(("id_rank", wished), lambda: _id_rank(offers, wished))

    @cached_property
    def option_of_offer(self) -> Ints:
        """Code of the purchase option per offer; a commitment that is already paid for is an option of its own."""
        codes = self.offer_set.offers.coded("purchase_option").codes.astype(np.int64)
        return codes * 2 + ~np.isnan(self.offer_set.owned_share)

    @cached_property
    def accelerator_of_offer(self) -> Ints:
        """Code of the accelerator per offer."""
        codes = self.offer_set.types.coded("accelerator").codes.astype(np.int64)
        return np.asarray(codes[self.offer_set.type_of_offer], dtype=np.int64)

    @cached_property
    def provider_of_offer(self) -> Ints:
        """Code of the provider per offer."""
        return self.offer_set.offers.coded("provider").codes.astype(np.int64)


def _id_rank(offers: Table, wished: Sequence[str]) -> Ints:
    names = ("option_variant", "purchase_option", "instance_type", "zone", "region", "provider")
    wishes = preference_rank(places_of(offers), wished)
    order = np.lexsort([*(_lexical(offers.coded(name)) for name in names), wishes])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _lexical(column: object) -> Ints:
    assert isinstance(column, Coded)
    order = np.argsort(np.asarray(column.values))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[column.codes]
