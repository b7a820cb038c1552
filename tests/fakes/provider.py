"""A provider in memory, for tests of what surrounds providers; and rows that validation accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalogs.providers.base import (
    FetchOptions,
    ProviderError,
    ProviderInfo,
    map_regions,
    text_frame,
)

if TYPE_CHECKING:
    from pandas import DataFrame

AS_OF = "2026-11-20"


def type_row(provider: str, instance_type: str, **cells: str) -> dict[str, str]:
    """A machine with eight A100."""
    return {
        "provider": provider,
        "instance_type": instance_type,
        "family": instance_type.split(".")[0],
        "accelerator": "a100-40gb-sxm",
        "accelerator_name": "A100",
        "accelerator_count": "8",
        "accelerator_memory_gib": "40",
        "vcpus": "96",
        "memory_gib": "1152",
        "arch": "x86_64",
        "intra_node": "nvswitch",
        "status": "current",
        "source": "fake",
        "as_of": AS_OF,
        **cells,
    }


def offer_row(provider: str, region: str, instance_type: str, **cells: str) -> dict[str, str]:
    """An on-demand price of such a machine."""
    return {
        "provider": provider,
        "region": region,
        "zone": "",
        "instance_type": instance_type,
        "purchase_option": "on_demand",
        "price_per_hour": "32.7726",
        "currency": "USD",
        "basis": "list",
        "source": "fake",
        "as_of": AS_OF,
        **cells,
    }


@dataclass
class FakeProvider:
    """Answers from lists; `broken` maps a region to the error it raises, `boom` is raised by every fetch."""

    name: str = "aws"
    regions: tuple[str, ...] = ("us-east-1", "us-west-2")
    types: list[dict[str, str]] = field(default_factory=list)
    offers: list[dict[str, str]] = field(default_factory=list)
    broken: dict[str, ProviderError] = field(default_factory=dict)
    boom: Exception | None = None
    sells: frozenset[str] = frozenset({"on_demand"})
    options: FetchOptions = field(default_factory=FetchOptions)
    before: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.info = ProviderInfo(self.name, False, self.sells, login_hint="run `fake login`")
        self.types = self.types or [type_row(self.name, "p4d.24xlarge"), type_row(self.name, "p4d.unpriced")]
        self.offers = self.offers or [offer_row(self.name, r, "p4d.24xlarge") for r in self.regions]

    def with_options(self, options: FetchOptions) -> FakeProvider:
        """Take the options of a refresh."""
        self.options = options
        return self

    def fetch_regions(self) -> list[str]:
        self.before()
        if self.boom is not None:
            raise self.boom
        return list(self.regions)

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        return text_frame("instance_types", self.types)

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        def one(region: str) -> list[dict[str, str]]:
            if region in self.broken:
                raise self.broken[region]
            rows = [
                row for row in self.offers if row["region"] == region and row["purchase_option"] in options
            ]
            self.options.log.progress(region, "fake:ListPrices", len(rows))
            return rows

        found = map_regions(regions, one, self.options)
        return text_frame("offers", [row for rows in found.values() for row in rows])
