"""The catalog as it was known on a day."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from catalogs.errors import CatalogError
from catalogs.store.history import catalog_as_of, save_snapshot
from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory
from catalogs.tables.model import Catalog
from tests.catalogs.history_rows import refresh


@pytest.fixture(autouse=True)
def refreshed(home: Path) -> None:
    """A history of three refreshes: the middle one was taken back."""
    for day, price in (("2026-09-01", "10"), ("2026-10-01", "12"), ("2026-11-01", "10")):
        save_snapshot("acme", *refresh(day, {"north": price}))


def price(catalog: Catalog) -> str:
    own = catalog.offers.take(catalog.offers.equals("provider", "acme"))
    return str(own["price_per_hour"][0]) if own.n_rows else ""


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-08-31", ""),
        ("2026-09-01", "10"),
        ("2026-09-30", "10"),
        ("2026-10-01", "12"),
        ("2026-10-31", "12"),
        ("2026-11-01", "10"),
        ("2030-01-01", "10"),
    ],
)
def test_the_newest_not_after_the_day_counts(home: Path, day: str, expected: str) -> None:
    when = date.fromisoformat(day)
    assert price(load_catalog(cache=False, as_of=when)) == expected
    assert price(catalog_as_of(when)) == expected


def test_the_bundled_snapshot_counts_by_its_newest_price(
    home: Path, bundled: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    newest = {m.provider: m.newest_as_of for m in bundled.manifests}
    found = {m.provider for m in load_catalog(cache=False, as_of=date(2026, 7, 1)).manifests}
    assert found == {name for name, day in newest.items() if day < "2026-07-01"}
    assert "no prices as old as 2026-07-01 are stored for aws (2026-07-22), gcp (2026-08-03)" in caplog.text


def test_before_everything_there_is_nothing(home: Path) -> None:
    with pytest.raises(CatalogError, match=r"no snapshot not after 2020-01-01 .*the oldest: .*aws"):
        load_catalog(as_of=date(2020, 1, 1))


def test_without_a_history_the_bundled_snapshot_has_its_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: Catalog
) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "none"))
    assert load_catalog(cache=False, as_of=date(2026, 11, 20)).sha256 == bundled.sha256


def test_a_directory_that_was_named_is_used_whatever_its_date(home: Path) -> None:
    assert len(load_catalog(bundled_directory(), cache=False, as_of=date(2020, 1, 1)).manifests) == 7


def test_a_damaged_snapshot_of_the_day_is_passed_over(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    (october,) = (home / "acme").glob("2026-10-01-*")
    (october / "offers.csv.gz").write_bytes(b"")
    assert price(catalog_as_of(date(2026, 10, 15))) == "10"
    assert "passed over" in caplog.text


def test_two_snapshots_of_one_day_go_by_the_order_of_writing(home: Path) -> None:
    for value in ("11", "9", "13"):
        save_snapshot("acme", *refresh("2026-11-10", {"north": value}))
    assert price(catalog_as_of(date(2026, 11, 10))) == "13"


def test_a_refresh_that_found_nothing_new_has_no_day_of_its_own(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-15", {"north": "10"}))
    catalog = catalog_as_of(date(2026, 11, 5))
    assert {m.provider: m.newest_as_of for m in catalog.manifests}["acme"] == "2026-11-01"
