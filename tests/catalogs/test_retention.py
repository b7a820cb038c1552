"""Tidying the history never changes an answer it should not, and never removes the snapshot in use."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from catalogs.store.history import list_snapshots, save_snapshot
from catalogs.store.read import history_directory
from catalogs.store.retention import compact, prune
from catalogs.store.snapshots import source_rows, stored_source
from tests.catalogs.history_rows import refresh
from tests.draws import draws

TODAY = date(2026, 11, 20)


def price(day: date) -> list[str]:
    source = stored_source(history_directory() / "acme", day)
    return [row["price_per_hour"] for row in source_rows(source)[1]] if source else []


def fill(days: list[tuple[str, str]]) -> None:
    for day, value in days:
        save_snapshot("acme", *refresh(day, {"north": value}))


def days_left() -> list[str]:
    return [one.as_of.isoformat() for one in list_snapshots("acme")]


def test_prune_keeps_the_first_and_last_of_a_month_and_what_is_young(home: Path) -> None:
    days = [f"2026-{month:02}-{day:02}" for month in (1, 2, 11) for day in (3, 10, 17, 19)]
    fill([(day, str(at + 1)) for at, day in enumerate(days)])
    removed = prune(older_than_days=90, today=TODAY)
    assert [one.as_of.day for one in removed] == [10, 17, 10, 17]
    assert days_left() == [day for day in days if day[5:7] == "11" or day[-2:] in ("03", "19")]


def test_the_snapshot_in_use_stays_whatever_its_date(home: Path) -> None:
    fill([("2026-01-05", "1"), ("2026-01-25", "2"), ("2026-01-15", "3")])
    assert prune(older_than_days=0, today=TODAY) == ()
    (home / "acme" / "current.json").unlink()
    assert prune(older_than_days=0, today=TODAY) == ()


def test_compact_drops_only_repeats(home: Path) -> None:
    # The clock went back and forth, so that neighbours by date hold the same.
    fill([("2026-01-01", "1"), ("2026-01-10", "2"), ("2026-01-05", "1"), ("2026-01-20", "3")])
    assert [one.as_of.day for one in compact(today=TODAY)] == [5]
    assert compact(today=TODAY) == ()
    assert days_left() == ["2026-01-01", "2026-01-10", "2026-01-20"]


def test_only_the_provider_asked_for(home: Path) -> None:
    fill([("2026-01-05", "1"), ("2026-01-15", "2"), ("2026-01-25", "3"), ("2026-02-25", "4")])
    assert prune(older_than_days=0, provider="other", today=TODAY) == ()
    assert len(prune(older_than_days=0, provider="acme", today=TODAY)) == 1


@given(series=st.lists(st.tuples(st.integers(0, 120), st.integers(1, 2)), min_size=1, max_size=9))
@draws(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_compact_changes_no_price_of_any_day(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, series: list[tuple[int, int]]
) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path_factory.mktemp("history")))
    start = date(2026, 7, 1)
    days = [start + timedelta(days=one) for one, _ in series]
    fill([(day.isoformat(), str(value)) for day, (_, value) in zip(days, series, strict=True)])
    before = {day: price(day) for day in days}
    compact(older_than_days=0, today=TODAY)
    assert {day: price(day) for day in days} == before
