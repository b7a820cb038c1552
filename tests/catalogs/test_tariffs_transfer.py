"""Transfer prices: tiers, free parts, unknown is never zero."""

from __future__ import annotations

import csv
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tariffs import TierCurve, load_tariffs
from tests.conftest import ROOT

D = Decimal
TARIFFS = load_tariffs()
AWS_OUT = TARIFFS.transfer_curve("aws", "us-east-2", "gcp", "us-central1")
PLACES = [
    ("aws", "us-east-1"),
    ("aws", "sa-east-1"),
    ("aws", "us-gov-east-1"),
    ("aws", "ap-southeast-3"),
    ("gcp", "us-central1"),
    ("gcp", "asia-northeast1"),
    ("gcp", "asia-northeast3"),
    ("gcp", "australia-southeast1"),
    ("azure", "eastus"),
    ("azure", "brazilsouth"),
    ("azure", "japaneast"),
    ("alibaba", "cn-hangzhou"),
    ("lambda", "us-east-1"),
    ("onprem", "hq"),
]
CURVES = [c for a in PLACES for b in PLACES if (c := TARIFFS.transfer_curve(*a, *b)) is not None]
amounts = st.decimals(min_value=0, max_value=10**7, allow_nan=False, allow_infinity=False, places=3)


def test_aws_internet_tiers_with_the_free_100_gb_first() -> None:
    assert AWS_OUT is not None
    assert AWS_OUT.cost_usd(D(100)) == 0
    assert AWS_OUT.cost_usd(D(10_240)) == D("0.09") * 10_140
    assert AWS_OUT.cost_usd(D(51_200)) == D("0.09") * 10_140 + D("0.085") * 40_960
    whole = D("0.09") * 10_140 + D("0.085") * 40_960 + D("0.07") * 102_400 + D("0.05") * 46_400
    assert AWS_OUT.cost_usd(D(200_000)) == whole
    assert AWS_OUT.cost_usd(D(50), used_gb=D(60)) == D("0.09") * 10


def test_earlier_use_of_the_month_moves_up_the_tiers() -> None:
    assert AWS_OUT is not None
    assert AWS_OUT.lines(D(1000), used_gb=D(10_000)) == [(D(240), D("0.09")), (D(760), D("0.085"))]


def test_neighbouring_aws_regions_and_destination_priced_ones() -> None:
    near = TARIFFS.transfer_curve("aws", "us-east-1", "aws", "us-east-2")
    far = TARIFFS.transfer_curve("aws", "us-east-1", "aws", "us-west-2")
    assert near is not None and near.cost_usd(D(1000)) == 10
    assert far is not None and far.cost_usd(D(1000)) == 20


def test_every_aws_pair_of_the_source_is_there() -> None:
    regions = {key[2] for key in TARIFFS._transfer._rows if key[:2] == ("aws", "inter_region")} - {
        "us-gov-east-1"
    }
    assert len(regions) == 34
    assert all(
        TARIFFS.transfer_curve("aws", a, "aws", b) is not None for a in regions for b in regions if a != b
    )


def test_gcp_counts_gib_by_continent_and_destination() -> None:
    internet = TARIFFS.transfer_curve("gcp", "us-central1", "aws", "us-east-1")
    sydney = TARIFFS.transfer_curve("gcp", "us-central1", "aws", "ap-southeast-2")
    assert internet is not None and internet.unit == "GiB"
    assert internet.cost_usd(D(1024)) == D("0.12") * 1023
    assert internet.quantity(D("1.073741824")) == 1
    assert sydney is not None and sydney.usd_per_gb[0] == D("0.19")
    within = TARIFFS.transfer_curve("gcp", "us-central1", "gcp", "us-east1")
    across = TARIFFS.transfer_curve("gcp", "us-central1", "gcp", "europe-west4")
    assert within is not None and within.usd_per_gb == (D("0.02"),)
    assert across is not None and across.usd_per_gb == (D("0.08"),)


def test_gcp_tiers_out_of_order_are_marked_and_cautious() -> None:
    tokyo = TARIFFS.transfer_curve("gcp", "asia-northeast1", "aws", "us-east-1")
    assert tokyo is not None
    assert tokyo.confidence == "suspect"
    assert tokyo.cost_usd(D(1000)) >= D("0.12") * 1000


@pytest.mark.parametrize(
    ("src", "dst", "usd_per_gb"),
    [
        ("eastus", "westus2", "0.02"),
        ("eastus", "westeurope", "0.05"),
        ("belgiumcentral", "japaneast", "0.05"),
        ("japaneast", "eastus", "0.08"),
        ("australiaeast", "newzealandnorth", "0.08"),
        ("brazilsouth", "eastus", "0.16"),
    ],
)
def test_azure_between_regions(src: str, dst: str, usd_per_gb: str) -> None:
    curve = TARIFFS.transfer_curve("azure", src, "azure", dst)
    assert curve is not None and curve.usd_per_gb == (D(usd_per_gb),)


def test_azure_regions_all_have_a_price_between_them() -> None:
    with (ROOT / "catalogs" / "data" / "regions.csv").open(encoding="utf-8", newline="") as file:
        regions = [row["region"] for row in csv.DictReader(file) if row["provider"] == "azure"]
    pairs = [(src, dst) for src in regions for dst in regions if src != dst]
    assert [
        pair for pair in pairs if TARIFFS.transfer_curve("azure", pair[0], "azure", pair[1]) is None
    ] == []


def test_azure_zone_meter() -> None:
    curve = TARIFFS.transfer_curve("azure", "westeurope", "aws", "us-east-1")
    assert curve is not None
    assert curve.cost_usd(D(100)) == 0
    assert curve.cost_usd(D(1100)) == D("87")


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (("azure", "japaneast"), ("aws", "us-east-1")),  # only the free part of zone 2 is known
        (("azure", "eastus"), ("azure", "chinaeast2")),  # another cloud
        (("alibaba", "cn-hangzhou"), ("aws", "us-east-1")),
        (("lambda", "us-east-1"), ("aws", "us-east-1")),
        (("gcp", "me-west1"), ("gcp", "me-central1")),
        (("gcp", "asia-northeast3"), ("aws", "ap-southeast-2")),
        (("aws", "mx-central-1"), ("gcp", "us-central1")),
        (("aws", "nowhere-1"), ("aws", "us-east-1")),
        (("nobody", "x"), ("aws", "us-east-1")),
    ],
)
def test_unknown_is_none_never_free(src: tuple[str, str], dst: tuple[str, str]) -> None:
    assert TARIFFS.transfer_curve(*src, *dst) is None


def test_staying_in_a_region_and_leaving_the_own_site_cost_nothing_and_say_why() -> None:
    stay = TARIFFS.transfer_curve("lambda", "us-east-1", "lambda", "us-east-1")
    for own in (("onprem", "hq"), (None, None), ("", "")):
        leave = TARIFFS.transfer_curve(*own, "aws", "us-east-1")
        assert leave is not None and leave.cost_usd(D(10**6)) == 0
        assert "own site" in leave.note
    assert stay is not None and stay.cost_usd(D(10**6)) == 0 and "region" in stay.source


def test_results_leave_for_the_own_site_at_the_internet_price() -> None:
    assert TARIFFS.transfer_curve("aws", "us-east-1", None, None) == TARIFFS.transfer_curve(
        "aws", "us-east-1", "onprem", "hq"
    )


def test_the_stand_in_for_an_unknown_price_is_the_dearest() -> None:
    stand_in = TARIFFS.dearest_internet_curve()
    assert stand_in.confidence == "assumed"
    assert all(
        price <= stand_in.usd_per_gb[0] for c in CURVES if c.kind == "internet" for price in c.usd_per_gb
    )


def test_only_known_zero_curves_are_free_without_end() -> None:
    free = {c.kind for c in CURVES if not any(c.usd_per_gb)}
    assert free <= {"same_region", "internet"}
    assert all("own site" in c.note for c in CURVES if c.kind == "internet" and not any(c.usd_per_gb))


@given(st.sampled_from(CURVES), amounts, amounts, amounts)
def test_cost_is_monotone_and_adds_up(
    curve: TierCurve, used: Decimal, first: Decimal, second: Decimal
) -> None:
    one = curve.cost_usd(first, used)
    both = curve.cost_usd(first + second, used)
    assert both >= one >= 0
    assert both == one + curve.cost_usd(second, used + first)


@given(st.sampled_from(CURVES), amounts)
def test_cost_is_continuous(curve: TierCurve, used: Decimal) -> None:
    step = D("0.001")
    assert curve.cost_usd(step, used) <= step * max(curve.usd_per_gb)


@pytest.mark.parametrize("curve", CURVES[:40])
def test_cost_equals_the_list_table_at_the_edges(curve: TierCurve) -> None:
    table = D(0)
    for (low, high), price in zip(pairwise(curve.edges_gb), curve.usd_per_gb[:-1], strict=True):
        table += (high - low) * price
        assert curve.cost_usd(high) == table


@given(st.sampled_from(CURVES), amounts, amounts)
def test_lines_sum_to_the_quantity(curve: TierCurve, gb: Decimal, used: Decimal) -> None:
    assert sum((quantity for quantity, _ in curve.lines(gb, used)), D(0)) == gb


@pytest.mark.parametrize("wrong", [D(-1), D("NaN"), D("Infinity")])
def test_impossible_quantities_are_refused(wrong: Decimal) -> None:
    assert AWS_OUT is not None
    with pytest.raises(ValueError, match="quantities"):
        AWS_OUT.cost_usd(wrong)
