"""How numbers read."""

from __future__ import annotations

import io
import math
import os
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.render import numbers, units
from planner.render.terminal import MAX_WIDTH, terminal_width, wants_color

D = Decimal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (D("1234.5"), "$1,234.50"),
        (D("0.005"), "$0.00"),
        (D("0.015"), "$0.02"),
        (D("-3"), "-$3.00"),
        (D("-0.001"), "$0.00"),
        (D("1e9"), "$1,000,000,000.00"),
        (D("NaN"), "unknown"),
        (D("Infinity"), "unknown"),
        (None, "unknown"),
    ],
)
def test_money_to_the_cent(value: Decimal | None, text: str) -> None:
    assert numbers.usd(value) == text


def test_money_of_any_size_is_exact() -> None:
    assert numbers.usd(D("123456789012345678901234567890123.456")) == (
        "$123,456,789,012,345,678,901,234,567,890,123.46"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(D("12"), "+$12.00"), (D("-3"), "-$3.00"), (D("-0.001"), "$0.00"), (None, "unknown")]
)
def test_changes_have_a_sign(value: Decimal | None, text: str) -> None:
    assert numbers.usd_change(value) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.1 + 0.2, "$0.30"),  # 0.30000000000000004
        (np.float64(422.301), "$422.31"),
        (D("422.300001"), "$422.31"),
        (D("422.30"), "$422.30"),
    ],
)
def test_dollars_that_suffice_are_rounded_up(amount: Decimal | float, text: str) -> None:
    assert numbers.usd_enough(amount) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0 / 3.0, "0.34"), (2.25, "2.25"), (9.991, "10.0"), (100.01, "100.1"), (1000.2, "1,001")],
)
def test_hours_that_suffice_are_rounded_up(value: float, text: str) -> None:
    assert numbers.hours_enough(value) == text


@pytest.mark.parametrize(
    ("value", "currency", "text"),
    [
        (D("32.7726"), "USD", "$32.7726"),
        (D("21.957642"), "USD", "$21.9576"),
        (D("13.2"), "CNY", "CNY 13.20"),
        (D("0.000012345"), "USD", "$0.0000123"),
        (D("0"), "USD", "$0.00"),
        (D("NaN"), "USD", "unknown"),
    ],
)
def test_unit_prices_keep_their_telling_digits(value: Decimal, currency: str, text: str) -> None:
    assert numbers.price(value, currency) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (D("0.000608666"), "0.000609"), (D("0.0142141"), "0.0142"), (D("0.0766272"), "0.0766"), (D("7.12796"), "7.128"),
        (D("15.6918"), "15.6918"), (D("7008.251"), "7,008.25"), (0.0, "0"), (math.inf, "unknown"),
        (math.nan, "unknown"),
    ],
)  # fmt: skip
def test_quantities_with_a_price_have_four_decimals_at_most(value: Decimal, text: str) -> None:
    assert numbers.billed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(98765.4, "98,765"), (0.01234, "0.0123"), (5.0, "5"), (0.0, "0"), (-2.5, "-2.5"), (math.nan, "unknown")],
)
def test_quantities(value: float, text: str) -> None:
    assert numbers.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.10"),
        (9.999, "10.0"),
        (101.25, "101.2"),
        (12345.6, "12,346"),
        (math.inf, "unknown"),
        (-0.001, "0.00"),
    ],
)
def test_hours(value: float, text: str) -> None:
    assert numbers.hours(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.374, "37 %"),
        (0.0051, "1 %"),
        (0.0049, "0.5 %"),
        (0.0003, "0.03 %"),
        (0.0, "0 %"),
        (None, "unknown"),
    ],
)
def test_whole_percents_of_something_are_not_0(value: float | None, text: str) -> None:
    assert numbers.whole_percent(value) == text


def test_changes_of_hours_have_a_sign() -> None:
    assert [numbers.hours_change(v) for v in (3.6, -46.15, 0.0, -0.001)] == ["+3.60", "-46.1", "0.00", "0.00"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.375, "37.5 %"),
        (0.99999, ">99.9 %"),
        (1.0, "100.0 %"),
        (1.0004, ">100.0 %"),
        (1.0006, "100.1 %"),
        (None, "unknown"),
    ],
)
def test_a_ratio_near_one_never_reads_as_one(value: float | None, text: str) -> None:
    assert numbers.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-11-24T19:15:00+02:00", "2026-11-24 17:15 UTC"),
        ("2026-11-24T17:15:00Z", "2026-11-24 17:15 UTC"),
        ("2026-11-24", "2026-11-24"),
        ("next Tuesday", "next Tuesday"),
        (None, "unknown"),
    ],
)
def test_moments(value: str | None, text: str) -> None:
    assert numbers.moment(value) == text


@given(st.floats())
def test_no_float_breaks_a_format(value: float) -> None:
    for function in (numbers.number, numbers.hours, numbers.hours_change, numbers.percent, numbers.days_of):
        assert isinstance(function(value), str)


@given(st.decimals(min_value=-(10**15), max_value=10**15, allow_nan=False))
def test_money_is_within_half_a_cent(value: Decimal) -> None:
    shown = D(numbers.usd(value).replace("$", "").replace(",", ""))
    assert abs(shown - value) <= D("0.005")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1


def test_colour_only_on_a_terminal_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_color(_Terminal())
    assert not wants_color(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color(_Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(_Terminal())


def test_width_is_the_terminals_up_to_one_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"columns": 72}
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((sizes["columns"], 24)))
    assert terminal_width(_Terminal()) == 72
    sizes["columns"] = 240
    assert terminal_width(_Terminal()) == MAX_WIDTH
    assert terminal_width(io.StringIO()) == MAX_WIDTH


@pytest.mark.parametrize(
    ("ratio", "digits", "text"),
    [
        (0.004, 0, "same"), (-0.5, 0, "-50 %"), (7.61, 0, "+761 %"), (9.994, 0, "+999 %"), (9.995, 0, "x 11"),
        (39702.84, None, "x 40,000"), (0.1234, None, "+12.3 %"),
    ],
)  # fmt: skip
def test_a_change_of_more_than_tenfold_is_a_factor(ratio: float, digits: int | None, text: str) -> None:
    assert units.change(ratio, digits) == text


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.143, "14.3 % slower than"),
        (0.8, "20.0 % faster than"),
        (2.678, "2.7 times as slow as"),
        (0.4, "2.5 times as fast as"),
    ],
)
def test_a_pace_of_twice_another_is_worded_in_times(ratio: float, words: str) -> None:
    assert numbers.pace(ratio, "planned") == f"{words} planned"
