"""Queries: filters, a strict order, and near misses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.errors import CatalogInputError
from catalogs.offers.query import SORT_KEYS, OfferQuery, query_offers
from catalogs.tables.model import OFFER_KEY, Catalog
from tests.draws import draws


@pytest.mark.parametrize("sort", SORT_KEYS)
def test_order_is_strict_with_unknown_last(bundled: Catalog, sort: str) -> None:
    found = query_offers(bundled, OfferQuery(sort=sort)).offers
    values = found[SORT_KEYS[sort]]
    known = values[~np.isnan(values)]
    assert np.isnan(values[len(known) :]).all()
    rows = list(zip(known, found.keys_of(*OFFER_KEY), strict=False))
    assert rows == sorted(rows)


@draws(5)
@given(st.integers(0, 2**32 - 1))
def test_order_does_not_depend_on_row_order(seed: int) -> None:
    from catalogs.store.load import load_catalog
    from catalogs.store.read import bundled_directory

    catalog = load_catalog(bundled_directory())
    shuffled = np.random.default_rng(seed).permutation(catalog.offers.n_rows)
    other = Catalog(
        catalog.instance_types, catalog.offers.take(shuffled), catalog.accelerators, catalog.manifests
    )
    query = OfferQuery(accelerators=("a100",))
    keys = [query_offers(c, query).offers.keys_of(*OFFER_KEY) for c in (catalog, other)]
    assert keys[0] == keys[1]


def test_a_plain_accelerator_word_is_not_a_prefix_of_another_model(bundled: Catalog) -> None:
    assert set(query_offers(bundled, OfferQuery(accelerators=("a10",))).offers["accelerator"]) == {
        "a10-24gb-pcie"
    }
    found = set(query_offers(bundled, OfferQuery(accelerators=("A100",))).offers["accelerator"])
    assert {"a100-40gb-sxm", "a100-80gb-pcie", "a100-80gb-unknown"} <= found
    assert set(query_offers(bundled, OfferQuery(accelerators=("*-sxm",))).offers["accelerator"]) >= {
        "h100-80gb-sxm"
    }


def test_filters_hold_together(bundled: Catalog) -> None:
    query = OfferQuery(
        accelerators=("h100",),
        providers=("aws", "gcp"),
        regions=("aws/us-*", "us-central1"),
        purchase_options=("on_demand",),
        max_usd_per_hour=60.0,
        min_accelerators=8,
        min_memory_gib=600,
    )
    found = query_offers(bundled, query).offers
    assert found.n_rows
    for row in found.rows():
        assert row["accelerator"].startswith("h100-")
        assert row["purchase_option"] == "on_demand"
        assert row["usd_per_hour"] <= 60
        assert row["accelerator_count"] * row["accelerator_memory_gib"] >= 600
        assert (row["provider"], row["region"][:3]) in (("aws", "us-"), ("gcp", "us-"))


def test_flagged_offers_are_counted_and_admitted_on_request(bundled: Catalog) -> None:
    hidden = query_offers(bundled, OfferQuery(instance_types=("p3.*",)))
    assert hidden.offers.n_rows == 0
    shown = query_offers(bundled, OfferQuery(instance_types=("p3.*",), allow_flagged=True))
    assert shown.offers.n_rows == hidden.n_flagged > 0
    assert set(shown.offers["refused_by"]) == {"retired"}


def test_price_per_pflop_hour_uses_dense_peaks(bundled: Catalog) -> None:
    query = OfferQuery(
        instance_types=("p4d.24xlarge",), regions=("aws/us-east-1",), purchase_options=("on_demand",)
    )
    row = query_offers(bundled, query).offers.row(0)
    assert row["usd_per_pflop_hour"] == pytest.approx(21.957642 / (8 * 0.312))
    v100 = OfferQuery(
        instance_types=("Standard_NC6s_v3",),
        regions=("azure/eastus",),
        purchase_options=("on_demand",),
        allow_flagged=True,  # retired
    )
    assert query_offers(bundled, v100).offers.row(0)["usd_per_pflop_hour"] == pytest.approx(3.06 / 0.112)


def test_cny_is_compared_in_usd(bundled: Catalog) -> None:
    query = OfferQuery(instance_types=("ecs.gn7e-c16g1.4xlarge",), regions=("cn-hangzhou",))
    row = query_offers(bundled, OfferQuery(**{**vars(query), "purchase_options": ("on_demand",)})).offers.row(
        0
    )
    assert row["currency"] == "CNY"
    assert 4.0 < row["usd_per_hour"] < 6.0


def test_unknown_words_get_near_misses(bundled: Catalog) -> None:
    with pytest.raises(CatalogInputError) as caught:
        query_offers(bundled, OfferQuery(providers=("awz",), purchase_options=("spot_price",), sort="prise"))
    text = str(caught.value)
    assert "did you mean 'aws'?" in text
    assert "did you mean 'spot'?" in text
    assert "did you mean 'price'?" in text
    misses = query_offers(
        bundled, OfferQuery(accelerators=("h1000",), regions=("us-est-1",), instance_types=("p4d.24",))
    ).unmatched
    close = {name: near for name, _, near in misses}
    assert "p4d.24xlarge" in close["instance type"]
    assert "us-east-1" in close["region"]
    assert any(near.startswith("h100") for near in close["accelerator"])


def test_the_memory_of_a_share_is_its_own(bundled: Catalog) -> None:
    query = OfferQuery(
        instance_types=("Standard_NV6ads_A10_v5",), regions=("azure/eastus",), min_memory_gib=4.0
    )
    row = query_offers(bundled, query).offers.row(0)
    assert row["usd_per_gib_hour"] == pytest.approx(row["usd_per_hour"] / 4)
    assert query_offers(bundled, replace(query, min_memory_gib=4.1)).offers.n_rows == 0


def test_machines_without_a_price_are_named_where_they_are_asked_for(bundled: Catalog) -> None:
    abroad = query_offers(bundled, OfferQuery(instance_types=("ecs.gn7-*",), regions=("alibaba/ap-*",)))
    assert abroad.offers.n_rows == 0
    assert "ecs.gn7-c12g1.3xlarge" in abroad.unpriced
    nowhere = query_offers(bundled, OfferQuery(instance_types=("ecs.gn7-c13g1.6xlarge",)))
    assert (nowhere.unmatched, nowhere.unpriced) == ((), ("ecs.gn7-c13g1.6xlarge",))
    assert query_offers(bundled, OfferQuery(regions=("alibaba/ap-*",))).unpriced == ()


@pytest.mark.parametrize(
    "query", [OfferQuery(accelerators=("",)), OfferQuery(instance_types=("",)), OfferQuery(regions=("",))]
)
def test_an_empty_text_names_nothing(bundled: Catalog, query: OfferQuery) -> None:
    [(_, text, _)] = query_offers(bundled, query).unmatched
    assert text == ""
