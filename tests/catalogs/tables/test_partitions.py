"""Places with an account of their own: which they are, and what names them."""

from __future__ import annotations

import pytest

from catalogs.tables.partitions import asked_places, load_partitions, partition_of
from catalogs.tables.regions import load_regions

PLACES = [f"{row['provider']}/{row['region']}" for row in load_regions().rows()]
APART = {place for place in PLACES if partition_of(place)}


def test_every_row_has_what_it_needs_and_a_source() -> None:
    for row in load_partitions():
        assert row.source and row.as_of
        assert bool(row.partition) == bool(row.needs)


def test_all_of_mainland_china_and_of_governments_is_apart() -> None:
    rows = load_regions().rows()
    china = {f"{row['provider']}/{row['region']}" for row in rows if row["country"] == "CN"}
    assert china
    assert china <= APART
    assert APART - china == {place for place in PLACES if "gov" in place}
    assert {"aws/cn-north-1", "azure/chinaeast2", "azure/usgovvirginia", "aws/eusc-de-east-1"} <= {
        place
        for place in ("aws/cn-north-1", "azure/chinaeast2", "azure/usgovvirginia", "aws/eusc-de-east-1")
        if partition_of(place)
    }


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
