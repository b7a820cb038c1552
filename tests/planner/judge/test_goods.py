"""What the judge reads of the catalog."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from catalogs.tariffs import load_tariffs
from planner.judge.goods import Goods
from planner.judge.money import rounded
from tests.planner.spine_catalogs import A10G, Offer, make_catalog


def test_a_fallback_is_bought_in_the_first_of_zones_that_are_alike() -> None:
    # seed 77 of the forgeries: another zone of the same price and terms changed no figure, so it was not seen
    zones = [("us-east-1b", "2"), ("us-east-1c", "2"), ("us-east-1a", "3")]
    offers = [Offer(A10G, "us-east-1", price, "on_demand", zone=zone) for zone, price in zones]
    goods = Goods(make_catalog(offers), None, load_tariffs(), Path(), date(2026, 11, 20))
    key = f"aws/us-east-1/{{}}/{A10G.instance_type}/on_demand/-"
    for zone, first in (
        ("us-east-1c", "us-east-1b"),
        ("us-east-1b", "us-east-1b"),
        ("us-east-1a", "us-east-1a"),
    ):
        assert goods.first_alike(goods.offer("", key.format(zone))).offer_id == key.format(first)


@given(st.fractions(-1e6, 1e6, max_denominator=10**7) | st.floats(-1e9, 1e9), st.integers(0, 12))
def test_amounts_round_half_to_even(value: Fraction | float, digits: int) -> None:
    assert rounded(value, digits) == round(Fraction(value), digits)
    assert rounded(Fraction(5, 2), 0) == 2
    assert rounded(Fraction(-7, 2), 0) == -4
