"""Tables with decimal commas: read where a whole column can only mean them, else refused with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.files.tables import csv_rows, with_points
from planner.finops.forecast.daily import load_daily
from planner.finops.read.rates import load_rates
from planner.finops.utilisation import load_utilisation
from tests.draws import draws


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["1,5", "2", "10,25"], ["1.5", "2", "10.25"]),
        (["1.234,50", "7"], ["1234.50", "7"]),
        (["1 234,5", "-3,75"], ["1234.5", "-3.75"]),
        (["0,125", "12"], ["0.125", "12"]),
        (["1.234.567,001", ""], ["1234567.001", ""]),
        (["1 234,567", "1,234"], ["1234.567", "1.234"]),
        (["1234,567"], ["1234.567"]),
        (["1" + ".234" * 30_000, "1,234"], ["1" + ".234" * 30_000, "1,234"]),  # in a moment, however long
        (["1,234", "5,678"], ["1,234", "5,678"]),  # a thousand and more, or one and a bit
        (["1,5", "2.25"], ["1,5", "2.25"]),  # both signs in one column
        (["1,5", "a,b"], ["1,5", "a,b"]),
        (["1.5", "2"], ["1.5", "2"]),
    ],
)
def test_a_column_that_is_sure_gets_points(written: list[str], read: list[str]) -> None:
    assert with_points([[cell] for cell in written]) == [[cell] for cell in read]


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6), st.sampled_from([1, 2, 4]))
@draws(60)
def test_what_a_spreadsheet_writes_is_read_back(cents: list[int], digits: int) -> None:
    values = [cent / 10**digits for cent in cents]
    written = [f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,")) for value in values]
    text = "name;value\n" + "".join(f"n{at};{cell}\n" for at, cell in enumerate(written))
    rows = list(csv_rows(text, Path("t.csv")))
    assert [float(row["value"]) for row in rows] == values


def test_lines_and_columns_keep_their_places() -> None:
    reader = csv_rows('day;note;cost\n1;"a\nb";1,5\n\n2;c,5;2,25\n', Path("t.csv"))
    assert [(reader.line_num, row["day"], row["note"], row["cost"]) for row in reader] == [
        (3, "1", "a\nb", "1.5"), (5, "2", "c,5", "2.25"),
    ]  # fmt: skip


def test_readers_of_tables_take_decimal_commas(tmp_path: Path) -> None:
    daily, busy, rates = (tmp_path / name for name in ("daily.csv", "busy.csv", "rates.csv"))
    daily.write_text("date;scope;cost\n2026-10-01;all;1.234,50\n2026-10-02;all;7\n")
    assert load_daily(daily)["all"].cost.tolist() == [1234.5, 7.0]
    busy.write_text('date,allocated_gpu_hours,busy_gpu_hours,goodput_gpu_hours\n2026-10-01,"8,5","7,25",7\n')
    found = load_utilisation(busy)
    assert [row.values[:3] for row in found.rows] == [(8.5, 7.25, 7.0)]
    rates.write_text("date;from;to;rate\n2026-10;EUR;USD;1,17\n2026-09;EUR;USD;1,2\n")
    assert sorted(rate for _, rate in load_rates(rates, "USD").by_currency["EUR"]) == [1.17, 1.2]


def test_a_number_that_may_be_two_is_refused_with_the_remedy(tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("date;from;to;rate\n2026-10;JPY;USD;1,234\n")
    with pytest.raises(InputError, match=r"rates\.csv:2: rate: '1,234' .*decimals with a point"):
        load_rates(rates, "USD")


def test_a_first_line_that_is_no_header_is_refused() -> None:
    with pytest.raises(InputError, match=r"t\.csv:1: the name of a column has over 200 characters"):
        next(csv_rows(f"{'x' * 201},b\n1,2\n", Path("t.csv")))


def test_days_decades_apart_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "daily.csv"
    path.write_text("date,scope,cost\n2026-09-28,all,3\n2066-09-29,all,4\n", encoding="utf-8")
    with pytest.raises(InputError, match="days from 2026-09-28 to 2066-09-29: at most 20 years"):
        load_daily(path)
