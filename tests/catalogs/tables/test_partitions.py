"""Places with an account of their own: which they are, and what names them."""

from __future__ import annotations

import pytest

from catalogs.tables.partitions import asked_places, load_partitions, partition_of
from catalogs.tables.regions import load_regions, off_by_default

PLACES = [f"{row['provider']}/{row['region']}" for row in load_regions().rows()]
APART = {place for place in PLACES if partition_of(place)}


def test_every_row_has_what_it_needs_and_a_source() -> None:
    for row in load_partitions():
        assert row.source and row.as_of
        assert bool(row.partition) == bool(row.needs)
        assert not set(row.place.partition("/")[0]) & set("*?["), "a row is of one provider"


def test_regions_that_are_off_by_default_are_regions_of_the_catalog_and_apart_from_no_account() -> None:
    assert off_by_default() <= set(PLACES) - APART
    assert "aws/eu-south-2" in off_by_default() and "aws/us-east-1" not in off_by_default()


# regions for recovery within a country, to which Azure grants access on request
RESTRICTED = (
    "australiacentral2", "brazilsoutheast", "francesouth", "germanynorth", "norwaywest", "southafricawest",
    "swedensouth", "switzerlandwest", "uaecentral",
)  # fmt: skip


def test_mainland_china_governments_and_restricted_regions_are_apart_and_no_other_region_is() -> None:
    rows = load_regions().rows()
    china = {f"{row['provider']}/{row['region']}" for row in rows if row["country"] == "CN"}
    assert china
    restricted = {f"azure/{region}" for region in RESTRICTED}
    assert {*china, *restricted, *(place for place in PLACES if "gov" in place)} == APART


@pytest.mark.parametrize(
    "place", ["aws/cn-north-1", "azure/chinaeast2", "azure/usgovvirginia", "aws/eusc-de-east-1"]
)
def test_places_without_known_offers_are_apart_too(place: str) -> None:
    assert partition_of(place)


@pytest.mark.parametrize(
    ("regions", "residency", "asked"),
    [
        ((), (), set()),
        (("*", "us-*", "alibaba/*", "aws/us-[ge]*"), ("us", "asia"), set()),
        (("us-gov-*",), (), {"aws/us-gov-east-1", "aws/us-gov-west-1"}),
        (("*", "alibaba/cn-shanghai"), (), {"alibaba/cn-shanghai"}),
        (("cn-sh*",), (), {"alibaba/cn-shanghai", "alibaba/cn-shenzhen"}),
        (("cn-*",), (), {place for place in APART if place.startswith("alibaba/")}),
        ((), ("CN",), {place for place in APART if place.startswith("alibaba/")}),
    ],
)
def test_what_holds_ordinary_places_too_names_none(
    regions: tuple[str, ...], residency: tuple[str, ...], asked: set[str]
) -> None:
    assert asked_places(APART, regions, residency) == asked
