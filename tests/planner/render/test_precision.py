"""No figure has more digits than its interval supports, and none is rounded further than that."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.render.precision import (
    MOST_DIGITS,
    about,
    dollars_enough,
    dollars_known,
    figure,
    known_places,
    moment_known,
    rounded,
)

sizes = st.floats(min_value=1e-6, max_value=1e12)


@given(value=sizes, ratio=st.floats(min_value=1e-6, max_value=10.0))
def test_no_digit_is_printed_that_the_interval_does_not_support(value: float, ratio: float) -> None:
    half = value * ratio
    places = known_places(value, half)
    last = 10.0**-places  # the place of the last digit printed
    alone = last >= 10.0 ** math.floor(math.log10(value)) * (1 - 1e-9)
    assert last * 100.0 > half * (1 - 1e-9) or len(_digits(figure(value, places))) <= MOST_DIGITS
    assert last >= half / 100.0 * (1 - 1e-9) or alone
    assert len(_digits(figure(value, places))) <= MOST_DIGITS + 1  # 9,999.6 becomes 10,000


@given(value=sizes, ratio=st.floats(min_value=1e-6, max_value=0.9))
def test_rounding_is_small_beside_the_interval(value: float, ratio: float) -> None:
    half = value * ratio
    shown = rounded(value, known_places(value, half))
    error = abs(float(shown) - value)
    assert error <= max(half / 20.0, value * 10.0 ** (1 - MOST_DIGITS)) * (1 + 1e-6)


def _digits(text: str) -> str:
    return re.sub(r"[^0-9]", "", text).strip("0")


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (13149.61, 7035.0, "$13,100"), (51.55, 32.8, "$52"), (6.63, 2.0, "$6.60"), (2615835.22, 414738.0, "$2,620,000"),
        (10888.0, 0.0, "$10,890"), (-13149.61, 7035.0, "-$13,100"), (0.0, 0.0, "$0"),
        (18.6, 0.0, "$18.60"), (-18.6, 0.0, "-$18.60"), (18.0, 0.0, "$18"), (4.5, 0.0, "$4.50"), (18.6, 0.3, "$18.60"),
        (18.6, 3.0, "$18.60"), (0.01234, 0.0, "$0.01234"), (0.5, 0.01, "$0.50"), (102.53, 0.0, "$103"),
        (102.53, 4.0, "$103"), (99.96, 4.0, "$100"), (3.0974, 0.06, "$3.10"),
    ],
)  # fmt: skip
def test_money_in_the_digits_that_are_known(value: float, half: float, text: str) -> None:
    assert dollars_known(value, half) == text
    assert dollars_known(Decimal(repr(value)), half) == text


@pytest.mark.parametrize(
    ("half", "year", "text"),
    [(107.0, 2026, "Dec 3"), (5.0, 2026, "Dec 3 05:00"), (0.2, 2026, "Dec 3 04:35"), (107.0, 2025, "Dec 3, 2026")],
)  # fmt: skip
def test_a_moment_to_the_day_hour_or_minute(half: float, year: int, text: str) -> None:
    assert moment_known("2026-12-03T04:35+00:00", half, year) == text


def test_an_expected_count_has_one_digit() -> None:
    assert [about(count) for count in (60.95, 2.65, 0.04, 141.0)] == [
        "about 60", "about 3", "fewer than 1", "about 100",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("needed", "text"),
    [("1378.06", "$1,380"), ("18.85", "$18.90"), ("213.98", "$214"), ("900", "$900"), ("4.001", "$4.01")],
)
def test_what_suffices_is_rounded_up_to_three_digits(needed: str, text: str) -> None:
    assert dollars_enough(Decimal(needed)) == text
