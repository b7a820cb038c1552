"""Which offers are kept out, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.offers.flags import admit_offers, join_flags, load_flags, split_flags
from catalogs.tables.model import Catalog, Severity
from catalogs.tables.table import Table

flag_sets = st.lists(st.sampled_from(sorted(load_flags())), max_size=4).map(tuple)


def offers_of(flags: list[str], prices: list[str]) -> Table:
    return Table({"flags": flags, "price_per_hour": prices}, length=len(flags))


@given(st.lists(flag_sets, max_size=8))
def test_refusing_flags_keep_out_and_allowing_admits_all(sets: list[tuple[str, ...]]) -> None:
    table = offers_of([join_flags(flags) for flags in sets], ["1"] * len(sets))
    refused = [any(load_flags()[flag].severity is Severity.REFUSE for flag in flags) for flags in sets]
    found = admit_offers(table, allow_flagged=False)
    assert list(found.mask) == [not out for out in refused]
    assert [bool(flag) for flag in found.refused_by.decode()] == refused
    assert sum(found.refused.values()) == sum(refused)
    assert admit_offers(table, allow_flagged=True).mask.all()


@given(flag_sets)
def test_joining_and_splitting_are_inverse(flags: tuple[str, ...]) -> None:
    assert set(split_flags(join_flags(flags))) == set(flags)


@pytest.mark.parametrize("price", ["", "0", "-1", "nan", "inf", "free"])
def test_a_price_that_is_none_is_never_admitted(price: str) -> None:
    found = admit_offers(offers_of(["", ""], [price, "1"]), allow_flagged=True)
    assert list(found.mask) == [False, True]
    assert found.refused_by.decode()[0] == "no_price"
    assert found.counts == {"no_price": 1}


def test_an_unknown_flag_refuses() -> None:
    assert admit_offers(offers_of(["from_the_future"], ["1"]), allow_flagged=False).refused == {
        "unknown_flag": 1
    }


def refusals(catalog: Catalog, **equal: str) -> set[tuple[str, str]]:
    found = admit_offers(catalog.offers, allow_flagged=False)
    offers = catalog.offers.with_columns(refused_by=found.refused_by)
    for column, value in equal.items():
        offers = offers.take(offers.equals(column, value))
    return set(zip(offers["purchase_option"], offers["refused_by"], strict=True))


def test_spot_equal_to_on_demand_refuses_only_the_spot_offer(bundled: Catalog) -> None:
    found = refusals(bundled, instance_type="Standard_ND96isr_H200_v5")
    assert ("spot", "spot_equals_on_demand") in found
    assert ("on_demand", "") in found


def test_p5e_keeps_spot_and_capacity_blocks(bundled: Catalog) -> None:
    found = refusals(bundled, instance_type="p5e.48xlarge")
    assert found == {("spot", ""), ("capacity_block", ""), ("spot", "far_from_neighbours")}


def test_dws_prices_are_kept_out(bundled: Catalog) -> None:
    found = refusals(bundled, instance_type="a3-ultragpu-8g")
    assert ("on_demand", "dws_priced_as_on_demand") in found


def test_disputed_prices_are_kept_out_with_both_figures(bundled: Catalog) -> None:
    offers = bundled.offers
    mine = offers.take(
        offers.equals("instance_type", "Standard_NCC40ads_H100_v5") & offers.equals("region", "eastus2")
    )
    assert set(mine["flags"]) >= {"sources_disagree"}
    assert "6.98 and 8.82 USD/h" in mine["source"][0]


def test_hidden_models_and_retired_types_are_kept_out(bundled: Catalog) -> None:
    assert {flag for _, flag in refusals(bundled, instance_type="ecs.gn8v.6xlarge")} == {"hidden_model"}
    assert {flag for _, flag in refusals(bundled, instance_type="p3.2xlarge")} == {"retired"}


def test_lambda_prices_inform_only(bundled: Catalog) -> None:
    assert refusals(bundled, provider="lambda") == {("on_demand", "")}


def test_every_flag_says_why() -> None:
    assert all(flag.description for flag in load_flags().values())
