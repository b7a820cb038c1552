"""Months, quarters, years and weeks of fiscal calendars."""

from __future__ import annotations

import itertools
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.finops.forecast.calendars import FiscalCalendar, Size, parse_calendar
from tests.draws import draws

WEEKS = FiscalCalendar(weeks=(4, 4, 5), anchor=date(2026, 2, 1))


@draws(60)
@given(
    st.sampled_from([FiscalCalendar(), FiscalCalendar(2), FiscalCalendar(10), WEEKS]),
    st.sampled_from(["month", "quarter", "year"]),
    st.dates(date(2020, 1, 1), date(2045, 12, 31)),
)
def test_periods_follow_each_other_without_a_gap(calendar: FiscalCalendar, size: Size, day: date) -> None:
    found = calendar.periods(size, day, 14)
    assert found[0].start <= day < found[0].end
    assert all(a.end == b.start for a, b in itertools.pairwise(found))
    assert len({one.label for one in found}) == 14


def test_calendar_months_of_a_leap_year() -> None:
    first, second = FiscalCalendar().periods("month", date(2028, 2, 29), 2)
    assert (first.label, first.start, first.end) == ("2028-02", date(2028, 2, 1), date(2028, 3, 1))
    assert second.label == "2028-03"
    quarter = FiscalCalendar().periods("quarter", date(2026, 12, 31), 2)
    assert [one.label for one in quarter] == ["2026-Q4", "2027-Q1"]


def test_a_fiscal_year_is_called_by_the_year_in_which_it_ends() -> None:
    calendar = parse_calendar("02", None)
    assert [p.label for p in calendar.periods("month", date(2026, 1, 15), 2)] == [
        "FY2026 P12 (2026-01)", "FY2027 P01 (2026-02)",
    ]  # fmt: skip
    (year,) = calendar.periods("year", date(2026, 6, 1), 1)
    assert (year.label, year.start, year.end) == ("FY2027", date(2026, 2, 1), date(2027, 2, 1))
    assert calendar.periods("quarter", date(2026, 5, 1), 1)[0].label == "FY2027 Q2"


def test_periods_of_weeks() -> None:
    calendar = parse_calendar(None, "4-4-5@2026-02-01")
    lengths = [(p.end - p.start).days for p in calendar.periods("month", date(2026, 2, 1), 12)]
    assert lengths == [28, 28, 35] * 4
    assert calendar.periods("month", date(2026, 2, 1), 1)[0].label == "FY2027 P01"


def test_some_years_of_weeks_have_53_and_begin_on_the_same_weekday() -> None:
    years = WEEKS.periods("year", date(2026, 2, 1), 12)
    weeks = [(one.end - one.start).days / 7 for one in years]
    assert set(weeks) == {52.0, 53.0} and weeks.count(53.0) in (2, 3)
    for one in years:
        assert one.start.weekday() == date(2026, 2, 1).weekday()
        assert abs(one.start - date(one.start.year, 2, 1)) <= timedelta(days=3)


@pytest.mark.parametrize(
    ("start", "weeks", "said"),
    [("13", None, "01 to 12"), ("x", None, "01 to 12"), (None, "4-4-4@2026-02-01", "write 4-4-5"),
     (None, "4-4-5@2026-02-30", "not a date"), ("02", "4-4-5@2026-02-01", "exclude each other")],
)  # fmt: skip
def test_bad_calendars(start: str | None, weeks: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_calendar(start, weeks)
