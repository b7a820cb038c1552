"""Days and months of Parquet that has a clock of its own, and of hours beside days of one export."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pytest

from planner.errors import InputError
from planner.finops.read import open_bill
from tests.planner.finops.read.test_spellings import days_of, months, own_clock

WHOLE = {"09": 720.0, "10": 744.0}


def parquet(
    path: Path,
    moment: str,
    *,
    periods: bool = True,
    currency: str = "CNY",
    hours: int = 24,
    since: str = "2026-09-01",
    days: int = 61,
) -> Path:
    """1 an hour from 1 September to 31 October of a clock; `{0}` in the moment's expression is its time."""
    names = {"ChargePeriodStart": "day", "ChargePeriodEnd": f"day + INTERVAL {hours} HOUR"}
    if periods:
        names |= {"BillingPeriodStart": "DATE_TRUNC('month', day)"}
        names |= {"BillingPeriodEnd": "DATE_TRUNC('month', day) + INTERVAL 1 MONTH"}
    moments = ", ".join(f"{moment.format(f'({value})')} AS {name}" for name, value in names.items())
    cost = f"{hours}.0 AS BilledCost, {hours}.0 AS EffectiveCost"
    rest = f"{cost}, 'Usage' AS ChargeCategory, '{currency}' AS BillingCurrency"
    times = (
        f"SELECT TIMESTAMP '{since}' + INTERVAL {hours} HOUR * range AS day FROM range({days * 24 // hours})"
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.sql(f"SELECT {moments}, {rest} FROM ({times})").write_parquet(str(path))
    return path


@pytest.mark.parametrize("offset", ["+08:00", "-07:00", "+05:30"])
def test_texts_with_an_offset_are_of_their_clock(offset: str, tmp_path: Path) -> None:
    """The first day of each month of +08:00 was counted in the month before."""
    moment = "STRFTIME({0}, '%Y-%m-%dT%H:%M:%S" + offset + "')"
    path = parquet(tmp_path / "bill.parquet", moment)
    assert months(path) == WHOLE
    with open_bill([path]) as bill:
        (said,) = (one.message for one in bill.findings if one.code == "spelling")
    assert said.endswith("is read with days and months of its own clock, not of UTC")


@pytest.mark.parametrize(
    ("zone", "clock"),
    [("Asia/Shanghai", "UTC+08:00"), ("America/Bogota", "UTC-05:00"), ("Asia/Kolkata", "UTC+05:30")],
)
def test_billing_periods_tell_the_clock_of_typed_moments(zone: str, clock: str, tmp_path: Path) -> None:
    for name, cast in (
        ("typed", "({0} AT TIME ZONE '%s')"),
        ("naive", "({0} AT TIME ZONE '%s' AT TIME ZONE 'UTC')"),
        ("nanoseconds", "CAST({0} AT TIME ZONE '%s' AT TIME ZONE 'UTC' AS TIMESTAMP_NS)"),
        ("milliseconds", "CAST({0} AT TIME ZONE '%s' AT TIME ZONE 'UTC' AS TIMESTAMP_MS)"),
    ):
        path = parquet(tmp_path / f"{name}.parquet", cast % zone)
        with open_bill([path]) as bill:
            rows = bill.engine.rows(
                "SELECT x_month, MIN(x_day), SUM(BilledCost) FROM focus GROUP BY 1 ORDER BY 1"
            )
            (said,) = (one.message for one in bill.findings if one.code == "spelling")
        assert [(f"{month:%m}", first, cost) for month, first, cost in rows] == [
            ("09", date(2026, 9, 1), 720.0), ("10", date(2026, 10, 1), 744.0)
        ]  # fmt: skip
        assert f"is read with days and months of {clock}, where its billing periods begin at midnight" in said


def test_moments_of_utc_stay_in_utc(tmp_path: Path) -> None:
    assert months(parquet(tmp_path / "utc.parquet", "{0}")) == WHOLE
    assert months(parquet(tmp_path / "text.parquet", "STRFTIME({0}, '%Y-%m-%dT%H:%M:%SZ')")) == WHOLE
    # days alone tell no clock: they may begin at any hour
    late = parquet(tmp_path / "days.parquet", "({0} - INTERVAL 8 HOUR)", periods=False)
    assert months(late) == {"08": 24.0, "09": 720.0, "10": 720.0}
    # a zone with summer time is no one offset
    berlin = parquet(tmp_path / "berlin.parquet", "({0} AT TIME ZONE 'Europe/Berlin')")
    assert ZoneInfo("Europe/Berlin").key and months(berlin) == {"08": 24.0, "09": 720.0, "10": 720.0}
    for path in tmp_path.glob("*.parquet"):
        with open_bill([path]) as bill:
            assert [one.code for one in bill.findings if one.code == "spelling"] == []


def test_months_of_a_zone_with_summer_time_are_read_alike(tmp_path: Path) -> None:
    """A file a month: September had one offset and October two, so that 30 September was counted twice."""
    moment = "({0} AT TIME ZONE 'Europe/Berlin')"
    parquet(tmp_path / "09.parquet", moment, days=30)
    parquet(tmp_path / "10.parquet", moment, since="2026-10-01", days=31)
    found = days_of(tmp_path)
    assert set(found.values()) == {24.0} and (min(found), len(found)) == (date(2026, 8, 31), 61)
    with open_bill([tmp_path]) as bill:
        assert [one.code for one in bill.findings if one.code == "spelling"] == []


def test_a_moment_that_cannot_be_shifted_is_refused_by_name(tmp_path: Path) -> None:
    """The last moment that DuckDB can hold, eight hours later, ended in a traceback."""
    path, far = parquet(tmp_path / "bill.parquet", "({0} - INTERVAL 8 HOUR)"), tmp_path / "far.parquet"
    start = (
        "CASE WHEN DAY(ChargePeriodStart) = 3 THEN TIMESTAMP '294247-01-10 04:00' ELSE ChargePeriodStart END"
    )
    with duckdb.connect() as connection:
        table = connection.sql(f"SELECT * REPLACE ({start} AS ChargePeriodStart) FROM '{path}'")
        table.write_parquet(str(far))
    with pytest.raises(
        InputError, match=r"far\.parquet: ChargePeriodStart: 294247-01-10 is no day of a bill"
    ):
        open_bill([far])


def test_texts_by_the_hour_have_the_clock_of_days_beside_them(tmp_path: Path) -> None:
    moment = "STRFTIME({0}, '%Y-%m-%dT%H:%M:%S+08:00')"
    parquet(tmp_path / "days.parquet", moment, periods=False)
    parquet(tmp_path / "hours.parquet", moment, periods=False, hours=1)
    found = days_of(tmp_path)
    assert (min(found), max(found), set(found.values())) == (date(2026, 9, 1), date(2026, 10, 31), {48.0})


def test_currencies_of_parquet_are_read_as_of_csv(tmp_path: Path) -> None:
    """`usd` was a currency of its own in Parquet: refused beside USD."""
    parquet(tmp_path / "a.parquet", "{0}", currency="usd ")
    parquet(tmp_path / "b.parquet", "{0}", currency="USD")
    with open_bill([tmp_path]) as bill:
        assert bill.currency == "USD" and sum(source.rows for source in bill.sources) == 122


def test_hours_beside_days_of_one_export_have_its_clock(tmp_path: Path) -> None:
    """Two months by the hour outnumbered the midnights of a file by days, and both were counted in UTC."""
    own_clock(tmp_path / "days.csv", "+08:00", periods=False)
    own_clock(tmp_path / "hours.csv", "+08:00", hours=1, periods=False)
    found = days_of(tmp_path)
    assert (min(found), max(found)) == (date(2026, 9, 1), date(2026, 10, 31))
    assert all(found[date(2026, 9, 1) + timedelta(n)] == 48.0 for n in range(61))


def test_an_hour_over_midnight_is_no_file_by_days(tmp_path: Path) -> None:
    """Half of the moments of one hour's file are midnights: it tells nothing of the clock of the others."""
    hours = own_clock(tmp_path / "hours.csv", "+02:00", hours=1, periods=False)
    header = hours.read_text(encoding="utf-8").splitlines()[0]
    row = "2026-11-01T00:00:00+02:00,2026-11-01T01:00:00+02:00,1,Usage,USD"
    (tmp_path / "one.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    assert min(days_of(tmp_path)) == date(2026, 8, 31)
