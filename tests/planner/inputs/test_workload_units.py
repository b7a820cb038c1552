"""Durations, sizes, counts and money as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import units


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("72h", 72),
        ("3d 4h", 76),
        ("3d4h", 76),
        ("3 days, 4 hours", 76),
        ("30m", 0.5),
        ("90 min", 1.5),
        ("2w", 336),
        ("3 weeks", 504),
        ("1.5h", 1.5),
        ("P3DT4H", 76),
        ("PT90M", 1.5),
        ("P2W", 336),
        ("72:00:00", 72),
        (" 5 H ", 5),
        ("3600s", 1),
    ],
)
def test_durations(text: str, hours: float) -> None:
    assert units.parse_duration(text) == timedelta(hours=hours)
    assert re.match(units.DURATION_PATTERN, text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (72, "write '72h' for hours"),
        ("72", "is not a duration"),
        ("", "is empty"),
        ("0h", "longer than zero"),
        ("-3h", "is not a duration"),
        ("3h 4h", "names one unit twice"),
        ("P1M", "months and years"),
        ("P", "ISO 8601"),
        ("12:30", "is not a duration"),
        ("3 fortnights", "is not a duration"),
        ("3 moons", "is not a duration"),
        ("200 years", "is not a duration"),
        ("1e9d", "longer than 100 years"),
        (True, "must be a duration"),
        ([], "must be a duration"),
    ],
)
def test_bad_durations(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        units.parse_duration(value)


@given(st.integers(1_000, 10**14))
def test_a_formatted_duration_reads_back(micros: int) -> None:
    length = timedelta(microseconds=micros)
    text = units.format_duration(length)
    assert units.parse_duration(text) == length
    assert re.match(units.DURATION_PATTERN, text)


@given(
    st.lists(
        st.tuples(st.integers(1, 999), st.sampled_from(["w", "d", "h", "m", "s"])),
        min_size=1,
        max_size=5,
        unique_by=lambda part: part[1],
    )
)
def test_parts_of_a_duration_add_up_in_any_order(parts: list[tuple[int, str]]) -> None:
    seconds = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
    text = " ".join(f"{count}{unit}" for count, unit in parts)
    assert units.parse_duration(text).total_seconds() == sum(n * seconds[u] for n, u in parts)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100GB", 100 * 10**9),
        ("1.6 TB", 1_600_000_000_000),
        ("80GiB", 80 * 2**30),
        ("2 MiB", 2 * 2**20),
        ("1e3 kB", 10**6),
        ("114660B", 114_660),
        (114_660, 114_660),
        ("100gb", 100 * 10**9),
        ("1_000 MB", 10**9),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("100 Gb", "may mean bits or bytes: write '100GB'"),
        ("100G", "write '100GB' or '100GiB'"),
        ("100 pounds", "unknown unit"),
        ("-5GB", "more than zero"),
        (-5, "at least one byte"),
        (0, "at least one byte"),
        ("GB", "is not a size"),
        (float("nan"), "at least one byte"),
        (float("inf"), "at least one byte"),
        ("1e9 PB", "more than 100 PB"),
        (True, "must be a size"),
        (None, "must be a size"),
    ],
)
def test_bad_sizes(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        units.parse_size(value)


@given(st.integers(1, 9_999), st.sampled_from(["KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"]))
def test_decimal_and_binary_sizes(count: int, unit: str) -> None:
    base = 1024 if "i" in unit else 1000
    assert units.parse_size(f"{count}{unit}") == count * base ** ("KMGT".index(unit[0]) + 1)


@pytest.mark.parametrize(("value", "count"), [(3, 3), (1e12, 10**12), ("300e9", 3 * 10**11), ("1_000", 1000)])
def test_counts(value: object, count: int) -> None:
    assert units.parse_count(value) == count


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("300B", "write '300e9'"),
        ("15 trillion", "write '15e12'"),
        ("500,000,000", "write '500_000_000'"),
        ("many", "must be a whole number"),
        (2.5, "must be a whole number"),
        (0, "more than zero"),
        (-3, "more than zero"),
        (float("inf"), "finite"),
        (float("nan"), "finite"),
        (True, "must be a whole number"),
        (1e30, "larger than 1e21"),
    ],
)
def test_bad_counts(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        units.parse_count(value)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (5000, "5000"),
        (0.1, "0.1"),
        ("$5,000", "5000"),
        ("1,00,000", "100000"),
        ("1,234,567.50", "1234567.50"),
        ("5000.50 USD", "5000.50"),
        (1e6, "1000000"),
    ],
)
def test_money_is_exact(value: object, amount: str) -> None:
    assert units.parse_money(value) == Decimal(amount)


@given(st.decimals(min_value="0.01", max_value="1e12", places=2))
def test_money_typed_as_a_number_is_what_was_typed(amount: Decimal) -> None:
    assert units.parse_money(float(amount)) == amount


@pytest.mark.parametrize("value", ["31,46", "0,5", "1234,567", "1,0000", "1,,000"])
def test_a_decimal_comma_is_no_thousand(value: str) -> None:
    """It was read as a hundred times as much."""
    with pytest.raises(
        ValueError, match=r"has a comma that separates no thousands: .*; write like 5000 or 5000\.50"
    ):
        units.parse_money(value)


@pytest.mark.parametrize(
    "value", [0, -5, "-5", "free", "5000 EUR", True, None, float("nan"), float("inf"), 1e16]
)
def test_bad_money(value: object) -> None:
    with pytest.raises(ValueError, match=r"must be|is not|is more"):
        units.parse_money(value)
