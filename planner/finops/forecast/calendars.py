"""Months, quarters and years of a calendar or a fiscal year, also in weeks (4-4-5)."""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from typing import Literal

from planner.errors import InputError
from planner.inputs.quantities import of_our_time
from planner.records import record

Size = Literal["month", "quarter", "year"]
SIZES: tuple[Size, ...] = ("month", "quarter", "year")
_PERIODS = {"month": 12, "quarter": 4, "year": 1}
_WEEKS = re.compile(r"([45])-([45])-([45])@(\d{4}-\d{2}-\d{2})")


@record(frozen=True)
class Period:
    """Days from `start` to before `end`; `label` as people call it; `is_horizon`: the next days, no calendar period."""

    label: str
    start: date
    end: date
    is_horizon: bool = False


@record(frozen=True)
class FiscalCalendar:
    """How a year is divided.

    Attributes:
        first_month: month in which the fiscal year begins (1: the calendar year).
        weeks: weeks of the three periods of a quarter; empty: calendar months.
        anchor: with `weeks`, a day on which a fiscal year begins. Other years begin on its weekday nearest to the same
            day of their year, so that some have 53 weeks, the last of them in the last period.
    """

    first_month: int = 1
    weeks: tuple[int, ...] = ()
    anchor: date = date(2026, 1, 1)

    def periods(self, size: Size, first: date, count: int) -> tuple[Period, ...]:
        """The period in which `first` lies, and those after it.

        Args:
            size: month (of a 4-4-5 calendar: period), quarter or year.
            first: a day.
            count: how many periods.
        """
        year = first.year - 1
        found: list[Period] = []
        while len(found) < count:
            found += [period for period in self._year(year, size) if period.end > first]
            year += 1
        return tuple(found[:count])

    def _year(self, year: int, size: Size) -> list[Period]:
        """Periods of the fiscal year that begins in (or, in weeks, nearest to) the calendar year `year`."""
        bounds = self._month_bounds(year)
        step = 12 // _PERIODS[size]
        pairs = [(bounds[i], bounds[i + step]) for i in range(0, 12, step)]
        return [Period(self._label(size, at, pair[0], bounds[12]), *pair) for at, pair in enumerate(pairs, 1)]

    def _month_bounds(self, year: int) -> list[date]:
        if not self.weeks:
            months = [self.first_month - 1 + i for i in range(13)]
            return [date(year + month // 12, month % 12 + 1, 1) for month in months]
        start, end = self._week_start(year), self._week_start(year + 1)
        lengths = [7 * weeks for weeks in self.weeks * 4]
        return [start + timedelta(days=sum(lengths[:i])) for i in range(12)] + [end]

    def _week_start(self, year: int) -> date:
        """First day of the fiscal year: the anchor's weekday nearest to the anchor's day of that year."""
        day = min(self.anchor.day, calendar.monthrange(year, self.anchor.month)[1])
        near = date(year, self.anchor.month, day)
        away = (self.anchor.weekday() - near.weekday()) % 7
        return near + timedelta(days=away if away <= 3 else away - 7)

    def _label(self, size: Size, number: int, start: date, year_end: date) -> str:
        plain = not self.weeks and self.first_month == 1
        if plain:
            return {"month": f"{start:%Y-%m}", "quarter": f"{start:%Y}-Q{number}", "year": f"{start:%Y}"}[
                size
            ]
        name = f"FY{(year_end - timedelta(days=1)).year}"
        if size == "year":
            return name
        part = f"{name} {'P' if size == 'month' else 'Q'}{number:0{2 if size == 'month' else 1}}"
        return f"{part} ({start:%Y-%m})" if size == "month" and not self.weeks else part


class CalendarError(InputError):
    """A fiscal calendar that cannot be read; `reason` is the message without the flags it begins with."""

    def __init__(self, flags: str, reason: str) -> None:
        """Keep the reason beside the whole message."""
        self.reason = reason
        super().__init__(f"{flags} {reason}")


def parse_calendar(fiscal_start: str | None, weeks: str | None) -> FiscalCalendar:
    """Read `--fiscal-start 02` and `--fiscal-weeks 4-4-5@2026-02-01`.

    Raises:
        CalendarError: neither form fits, or both are given.
    """
    if fiscal_start and weeks:
        raise CalendarError(
            "--fiscal-start and --fiscal-weeks", "exclude each other: the anchor of the weeks says the start"
        )
    if weeks:
        return _weeks(weeks)
    if not fiscal_start:
        return FiscalCalendar()
    month = int(fiscal_start) if re.fullmatch(r"\d{1,2}", fiscal_start) else 0
    if not 1 <= month <= 12:
        raise CalendarError(
            f"--fiscal-start {fiscal_start}:", "write the month of the year's first day, 01 to 12"
        )
    return FiscalCalendar(first_month=month)


def _weeks(text: str) -> FiscalCalendar:
    match = _WEEKS.fullmatch(text)
    pattern = tuple(int(part) for part in match.groups()[:3]) if match else ()
    if match is None or sum(pattern) != 13:
        raise CalendarError(
            f"--fiscal-weeks {text}:", "write 4-4-5@2026-02-01: weeks, and a day on which a year begins"
        )
    try:
        anchor = date.fromisoformat(match[4])
    except ValueError:
        raise CalendarError(f"--fiscal-weeks {text}:", f"{match[4]} is not a date") from None
    try:
        return FiscalCalendar(weeks=pattern, anchor=of_our_time(anchor))
    except ValueError as error:
        raise CalendarError(f"--fiscal-weeks {text}:", str(error)) from None
