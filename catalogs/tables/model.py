"""Words of the catalog: purchase options, bases, table columns, and the value of a loaded catalog."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from catalogs.tables.table import Coded, Table

SCHEMA_VERSION = 1
HOURS_PER_YEAR = 8760.0


class PurchaseOption(StrEnum):
    """How a machine is bought."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED_1Y = "reserved_1y"
    RESERVED_3Y = "reserved_3y"
    SAVINGS_PLAN_1Y = "savings_plan_1y"
    SAVINGS_PLAN_3Y = "savings_plan_3y"
    CUD_1Y = "cud_1y"
    CUD_3Y = "cud_3y"
    CAPACITY_BLOCK = "capacity_block"
    FLEX_START = "flex_start"
    FUTURE_RESERVATION = "future_reservation"
    SUBSCRIPTION = "subscription"
    DEDICATED = "dedicated"
    OWNED = "owned"

    @property
    def term_hours(self) -> float:
        """Length of the obligation in hours; NaN where there is none or the buyer chooses it."""
        years = {"_1y": 1.0, "_3y": 3.0}.get(self.value[-3:])
        return years * HOURS_PER_YEAR if years else float("nan")


class Severity(StrEnum):
    """What a flag does: `info` is shown, `refuse` keeps the offer out unless flagged offers are allowed."""

    INFO = "info"
    REFUSE = "refuse"


INSTANCE_TYPE_KEY = ("provider", "instance_type")
OFFER_KEY = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
REGIONAL_OFFER_KEY = ("provider", "region", "instance_type", "purchase_option", "option_variant")


class ProviderManifest(NamedTuple):
    """What one provider's snapshot says of itself.

    Attributes:
        provider: provider id.
        oldest_as_of: date or month of its oldest offer (of its oldest row where it has no offers).
        newest_as_of: date or month of its newest offer.
        sha256: hash over the hashes of its data files.
        n_offers: number of offers by offer_id.
        n_instance_types: number of instance types, those without any price included.
        schema_version: version of the columns.
        sources: distinct sources of its offers.
    """

    provider: str
    oldest_as_of: str
    newest_as_of: str
    sha256: str
    n_offers: int
    n_instance_types: int
    schema_version: int
    sources: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Catalog:
    """A loaded catalog: what there is, how it is bought, and how fast its accelerators are.

    Attributes:
        instance_types: one row per (provider, instance_type), those without an offer included.
        offers: one row per offer_id.
        accelerators: one row per canonical accelerator id.
        manifests: one per provider, sorted by provider.
    """

    instance_types: Table
    offers: Table
    accelerators: Table
    manifests: tuple[ProviderManifest, ...]

    @property
    def sha256(self) -> dict[str, str]:
        """Hash per provider."""
        return {manifest.provider: manifest.sha256 for manifest in self.manifests}


def offer_id(key: tuple[str, ...]) -> str:
    """Print an offer's key: its parts joined by `/`, `-` where a part is empty.

    Args:
        key: (provider, region, zone, instance_type, purchase_option, option_variant).
    """
    return "/".join(part or "-" for part in key)


def places_of(offers: Table) -> Coded:
    """Place of each offer, `provider/region`."""
    codes, keys = offers.distinct_keys("provider", "region")
    return Coded(codes.astype(np.int32), tuple("/".join(key) for key in keys))
