"""The doctor looks at refreshed prices too: damage, age, regions lost, disagreement with the bundled ones."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path

from catalogs.inspection.doctor import examine
from catalogs.inspection.history import HistoryHealth, examine_history
from catalogs.store.history import save_snapshot
from catalogs.store.read import bundled_directory, history_directory, read_provider
from catalogs.store.snapshots import source_rows
from tests.catalogs.history_rows import Rows, refresh
from tests.conftest import CliResult

TODAY = datetime.date(2026, 11, 20)


def only(home: Path) -> HistoryHealth:
    (found,) = examine_history(home, TODAY)
    return found


def bundled_rows(provider: str = "lambda") -> tuple[Rows, Rows]:
    return source_rows(read_provider(bundled_directory() / provider))


def test_no_history_is_healthy(home: Path) -> None:
    found = examine(None, TODAY)
    assert found.is_healthy
    assert found.history == ()
    assert examine(bundled_directory(), TODAY).history == ()


def test_a_whole_history(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", {"north": "10"}))
    save_snapshot("acme", *refresh("2026-11-08", {"north": "11"}))
    found = only(home)
    assert (found.n_snapshots, found.damaged, found.n_leftovers) == (2, (), 0)
    assert (found.oldest, found.newest) == (datetime.date(2026, 11, 1), datetime.date(2026, 11, 8))


def test_kept_regions_show_their_age_and_lost_ones_their_name(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", {"north": "10", "south": "10", "west": "10"}))
    save_snapshot("acme", *refresh("2026-11-08", {"north": "11"}), merge_regions=["south"])
    found = only(home)
    assert found.kept_age_days == {"south": 19}
    assert found.missing_regions == ("west",)


def test_damage_is_named_and_leftovers_are_counted(home: Path) -> None:
    old = save_snapshot("acme", *refresh("2026-11-01", {"north": "10"}))
    save_snapshot("acme", *refresh("2026-11-08", {"north": "11"}))
    (old.path / "offers.csv.gz").write_bytes(b"")
    (home / "acme" / ".new-x").mkdir()
    found = only(home)
    assert len(found.damaged) == 1
    assert "cut short" in found.damaged[0]
    assert found.n_leftovers == 1
    assert not examine(None, TODAY).is_healthy
    (home / "acme" / "current.json").unlink()
    assert "current.json is missing" in only(home).damaged[-1]


def test_a_pointer_to_nothing_is_named(home: Path) -> None:
    saved = save_snapshot("acme", *refresh("2026-11-01", {"north": "10"}))
    saved.path.rename(saved.path.with_name("aside"))
    assert "which is not there" in only(home).damaged[0]
    assert examine(None, TODAY).providers  # the bundled ones


def test_prices_far_from_the_bundled_ones_are_told(home: Path) -> None:
    types, offers = bundled_rows()
    listed = [row for row in offers if row["purchase_option"] != "spot"]
    listed[0]["price_per_hour"] = str(float(listed[0]["price_per_hour"]) * 1.3)
    listed[1]["price_per_hour"] = str(float(listed[1]["price_per_hour"]) * 1.1)
    for row in offers:
        row["as_of"] = "2026-11-01"
    save_snapshot("lambda", types, offers)
    found = only(home)
    assert [round(move.change_ratio, 3) for move in found.disagreements] == [0.3]
    assert found.n_compared == len(listed)
    assert found.missing_regions == ()


def test_rows_that_validation_refuses_are_found_in_refreshed_prices(home: Path) -> None:
    types, offers = bundled_rows()
    for row in offers:
        row["as_of"] = "2026-11-01"
    offers[0]["price_per_hour"] = "9000"
    save_snapshot("lambda", types, offers)
    found = examine(None, TODAY)
    faults = next(one.faults for one in found.providers if one.manifest.provider == "lambda")
    assert ["implausible" in fault.reason for fault in faults] == [True]
    assert not found.is_healthy


def test_the_command_tells_it_and_ends_with_4(home: Path, run_cli: Callable[..., CliResult]) -> None:
    types, offers = bundled_rows()
    for row in offers:
        row["as_of"] = "2026-11-01"
        row["price_per_hour"] = str(float(row["price_per_hour"]) * 1.5)
    saved = save_snapshot("lambda", types, offers, merge_regions=["us-east-1"])
    found = run_cli("catalog", "doctor")
    assert found.code == 0
    assert "prices are more than 20 % from the bundled ones" in found.stdout.replace("\n  ", " ")
    assert all(len(line) <= 100 for line in found.stdout.splitlines())
    values = json.loads(run_cli("catalog", "doctor", "-o", "json").stdout)["history"][0]
    assert values["provider"] == "lambda"
    assert len(values["disagreements"]) == values["n_compared_with_bundled"]
    (saved.path / "manifest.json").unlink()
    broken = run_cli("catalog", "doctor")
    assert broken.code == 4
    assert "broken: " in broken.stdout


def test_the_history_stands_where_the_user_says(home: Path) -> None:
    assert history_directory() == home
