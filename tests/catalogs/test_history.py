"""The history: content-addressed, whole, in order; what a refresh did not reach keeps its last good rows."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.store import files as snapshot_files
from catalogs.store.history import list_snapshots, open_snapshot, save_snapshot
from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory
from catalogs.tables.model import Catalog
from tests.catalogs.history_rows import machine, offer, refresh
from tests.catalogs.stored import stored
from tests.conftest import CliResult
from tests.draws import draws

BUNDLED = sum(one.is_dir() for one in bundled_directory().iterdir())  # providers
PRICES = {"north": "16.00", "south": "20.00"}


def prices(catalog: Catalog) -> dict[str, str]:
    own = catalog.offers.take(catalog.offers.equals("provider", "acme"))
    return dict(zip(own["region"], own["price_per_hour"], strict=True))


def test_a_refresh_is_used_from_then_on(home: Path) -> None:
    before = load_catalog(cache=False)
    saved = save_snapshot("acme", *refresh("2026-11-01", PRICES))
    assert saved.status == "added"
    assert saved.path.name == f"2026-11-01-{saved.manifest.sha256[:12]}"
    assert sorted(path.name for path in saved.path.iterdir()) == [
        "instance_types.csv.gz",
        "manifest.json",
        "offers.csv.gz",
    ]
    after = load_catalog(cache=False)
    assert prices(after) == PRICES
    assert {m.provider for m in after.manifests} == {m.provider for m in before.manifests} | {"acme"}
    assert after.offers.n_rows == before.offers.n_rows + 2


def test_an_unchanged_refresh_adds_nothing_but_renews_the_age(home: Path) -> None:
    first = save_snapshot("acme", *refresh("2026-11-01", PRICES))
    again = save_snapshot("acme", *refresh("2026-11-08", PRICES))
    assert again.status == "unchanged"
    assert again.path == first.path
    assert len(list_snapshots("acme")) == 1
    manifest = {m.provider: m for m in stored("acme").manifests}["acme"]
    assert manifest.newest_as_of == "2026-11-08"
    assert manifest.oldest_as_of == "2026-11-01"


def test_a_partial_or_failed_refresh_does_not_renew_the_age(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    types, offers = refresh("2026-11-08", {"north": "16.00"})
    result = save_snapshot("acme", types, offers, merge_regions=["south"])
    assert result.status == "unchanged"
    assert {m.provider: m for m in stored("acme").manifests}["acme"].newest_as_of == "2026-11-01"


def test_a_changed_price_adds_a_snapshot_and_keeps_the_old_one(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    save_snapshot("acme", *refresh("2026-11-08", {**PRICES, "north": "15.00"}))
    found = list_snapshots("acme")
    assert [one.as_of.isoformat() for one in found] == ["2026-11-01", "2026-11-08"]
    assert [one.is_current for one in found] == [False, True]
    assert [one.sequence for one in found] == [1, 2]
    assert prices(stored("acme"))["north"] == "15.00"
    assert prices(open_snapshot("acme@2026-11-07"))["north"] == "16.00"


def test_a_failed_region_keeps_its_last_rows_with_their_age(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES, ("gpu.8x", "gpu.1x")))
    types, offers = refresh("2026-11-08", {"north": "15.00"})
    saved = save_snapshot("acme", types, offers, merge_regions=["south"])
    assert saved.kept_regions == {"south": "2026-11-01"}
    assert saved.n_kept_offers == 2
    catalog = stored("acme")
    own = catalog.offers.take(catalog.offers.equals("provider", "acme"))
    rows = {(row["region"], row["instance_type"]): row for row in own.rows()}
    assert rows["south", "gpu.8x"]["as_of"] == "2026-11-01"
    assert rows["north", "gpu.8x"]["as_of"] == "2026-11-08"
    assert ("north", "gpu.1x") not in rows  # answered without it: gone, not kept
    assert {m.provider: m for m in catalog.manifests}["acme"].oldest_as_of == "2026-11-01"
    assert list_snapshots("acme")[-1].kept_regions == {"south": "2026-11-01"}


def test_a_whole_refresh_without_a_region_drops_it(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    saved = save_snapshot("acme", *refresh("2026-11-08", {"north": "16.00"}))
    assert saved.status == "added"
    assert prices(stored("acme")) == {"north": "16.00"}


def test_a_refresh_of_some_regions_or_options_leaves_the_others(home: Path) -> None:
    types, offers = refresh("2026-11-01", PRICES)
    spot = [offer("5.00", "north", purchase_option="spot"), offer("6.00", "south", purchase_option="spot")]
    save_snapshot("acme", types, [*offers, *spot])
    new = [offer("4.00", "north", purchase_option="spot", as_of="2026-11-08")]
    save_snapshot("acme", types, new, regions=["north"], purchase_options={"spot"})
    catalog = stored("acme")
    own = catalog.offers.take(catalog.offers.equals("provider", "acme"))
    found = {(r["region"], r["purchase_option"]): r["price_per_hour"] for r in own.rows()}
    assert found == {
        ("north", "on_demand"): "16.00",
        ("south", "on_demand"): "20.00",
        ("north", "spot"): "4.00",
        ("south", "spot"): "6.00",
    }


def test_the_first_refresh_of_a_bundled_provider_keeps_bundled_rows_where_it_failed(
    home: Path, bundled: Catalog
) -> None:
    own = bundled.offers.take(bundled.offers.equals("provider", "lambda"))
    region = sorted(set(own["region"]))[0]
    names = bundled.instance_types.take(bundled.instance_types.equals("provider", "lambda"))["instance_type"]
    types = [machine(name, "lambda", "2026-11-08") for name in names]
    fresh = [offer("9.00", region, names[0], "lambda", "2026-11-08")]
    saved = save_snapshot("lambda", types, fresh, regions=[region])
    assert region not in saved.kept_regions
    assert saved.n_kept_offers == int((own["region"] != region).sum())
    assert set(saved.kept_regions.values()) <= set(own["as_of"])


def test_frames_are_taken_too(home: Path) -> None:
    types, offers = refresh("2026-11-01", PRICES)
    frame = pd.DataFrame(offers)
    frame.loc[0, "zone"] = None
    assert save_snapshot("acme", pd.DataFrame(types), frame).manifest.n_offers == 2
    assert save_snapshot("acme", types, offers).status == "unchanged"


def test_bundled_prices_win_over_an_older_refresh(home: Path, bundled: Catalog) -> None:
    types = [machine("old", "lambda", "2020-01-01")]
    save_snapshot("lambda", types, [offer("1", "us-east-1", "old", "lambda", "2020-01-01")])
    catalog = stored("lambda")
    assert catalog.sha256["lambda"] == bundled.sha256["lambda"]


@pytest.mark.parametrize(
    ("types", "offers", "message"),
    [
        ([], [], "no instance type"),
        ([machine()], [offer(provider="other")], "another provider"),
        ([machine()], [offer(), offer()], "is listed twice"),
        ([machine(), machine()], [], "is listed twice"),
        ([machine(as_of="")], [], "no as_of"),
        ([machine("a")], [offer(name="b")], "not among its instance types"),
    ],
)
def test_rows_that_must_not_replace_good_data(
    home: Path, types: list[dict[str, str]], offers: list[dict[str, str]], message: str
) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    with pytest.raises(CatalogError, match=message):
        save_snapshot("acme", types, offers)
    assert prices(stored("acme")) == PRICES


def test_a_provider_id_cannot_leave_the_directory(home: Path) -> None:
    for name in ("../acme", "", "ACME", ".x"):
        with pytest.raises(CatalogError, match="not a provider id"):
            save_snapshot(name, [machine(provider=name)], [])


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"snapshot": "../../etc"}', '{"snapshot": 3}', "missing", "odd day"]
)
def test_a_damaged_pointer_falls_back_to_the_newest(
    home: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    pointer = home / "acme" / "current.json"
    if damage == "missing":
        pointer.unlink()
    elif damage == "odd day":
        pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "checked_as_of": "zzz"}))
    else:
        pointer.write_text(damage)
    assert prices(stored("acme")) == {"north": "15.00"}
    assert "is damaged" in caplog.text
    save_snapshot("acme", *refresh("2026-11-09", {"north": "14.00"}))
    caplog.clear()
    assert prices(stored("acme")) == {"north": "14.00"}
    assert not caplog.text


@pytest.mark.parametrize("file", ["offers.csv.gz", "instance_types.csv.gz", "manifest.json"])
def test_a_damaged_snapshot_in_use_falls_back_to_the_one_before(
    home: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    saved = save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    (saved.path / file).write_bytes(b"x")
    assert prices(stored("acme")) == PRICES
    assert "damaged" in caplog.text
    healed = save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    assert healed.status == "added"
    assert prices(stored("acme")) == {"north": "15.00"}


@pytest.mark.parametrize(
    "change",
    [
        {"as_of": "soon"},
        {"as_of": 3},
        {"sequence": "many"},
        {"kept_regions": [1]},
        {"kept_regions": {"n": "x"}},
    ],
)
def test_a_manifest_that_makes_no_sense_is_damage(
    home: Path, change: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    saved = save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    values = json.loads((saved.path / "manifest.json").read_text())
    (saved.path / "manifest.json").write_text(json.dumps({**values, **change}))
    assert prices(stored("acme")) == PRICES
    assert "damaged" in caplog.text
    assert len(list_snapshots("acme")) == 1


def test_with_everything_damaged_the_bundled_prices_are_used(
    home: Path, bundled: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    saved = save_snapshot(
        "lambda", [machine("x", "lambda", "2026-11-01")], [offer("1", "us-east-1", "x", "lambda")]
    )
    (saved.path / "manifest.json").unlink()
    assert load_catalog(cache=False).sha256 == bundled.sha256
    assert "damaged" in caplog.text


def test_a_clock_that_went_back_loses_nothing(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-08", PRICES))
    saved = save_snapshot("acme", *refresh("2026-11-01", {"north": "15.00"}))
    assert saved.status == "added"
    assert prices(stored("acme")) == {"north": "15.00"}  # what was written last is in use
    (home / "acme" / "current.json").unlink()
    assert prices(stored("acme")) == {"north": "15.00"}  # the order of writing, not the clock
    assert [one.as_of.isoformat() for one in list_snapshots("acme")] == ["2026-11-01", "2026-11-08"]


def test_leftovers_of_killed_writers_are_not_seen_and_are_removed(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    (home / "acme" / ".new-2026-11-09-0123456789ab-1").mkdir()
    (home / "acme" / ".gone-2026-11-09-0123456789ab-1").mkdir()
    (home / "acme" / ".new-current.json-1").write_text("{")
    assert prices(stored("acme")) == PRICES
    save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    assert not [path.name for path in (home / "acme").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("fails_at", ["_write_synced", "_sync_directory", "write_pointer", "rename"])
def test_a_failing_disk_is_reported_and_loses_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, code: int, fails_at: str
) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        if fails_at == "rename":
            patched.setattr(Path, "rename", fail)
        elif fails_at == "write_pointer":
            patched.setattr("catalogs.store.history.write_pointer", fail)
        else:
            patched.setattr(snapshot_files, fails_at, fail)
        with pytest.raises(CatalogError, match=rf"{os.strerror(code)}.*unchanged.*PLANNER_DATA_DIR"):
            save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    assert prices(stored("acme")) == PRICES
    assert not [path.name for path in (home / "acme").iterdir() if path.name.startswith(".new-2026")]
    assert save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"})).manifest.n_offers == 1
    assert prices(stored("acme")) == {"north": "15.00"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if (
        os.geteuid() != 0
        or not shutil.which("mount")
        or subprocess.run(command, capture_output=True).returncode
    ):
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_reported_and_loses_nothing(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(small_disk))
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    room = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(os.urandom(room.f_bavail * room.f_frsize - 4096))
    with pytest.raises(CatalogError, match=r"No space left on device.*free space"):
        save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    assert prices(stored("acme")) == PRICES
    (small_disk / "filler").unlink()
    save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    assert prices(stored("acme")) == {"north": "15.00"}


@contextlib.contextmanager
def without_rights(place: Path) -> Iterator[None]:
    """Run as a user who may enter `place` but not write there."""
    user = os.geteuid()
    place.chmod(0o755 if user == 0 else 0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        place.chmod(0o755)


def test_a_read_only_directory_is_reported_and_reads_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        tempfile.TemporaryDirectory() as name
    ):  # not below pytest's own folder, which another user may not enter
        monkeypatch.setenv("PLANNER_DATA_DIR", name)
        with (
            without_rights(Path(name)),
            pytest.raises(CatalogError, match=r"cannot write the acme catalog to .*: Permission denied"),
        ):
            save_snapshot("acme", *refresh("2026-11-01", PRICES))
        # as the owner again: the checkout itself may lie where another user cannot read
        assert load_catalog(cache=False).manifests


def test_a_file_in_the_way_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("")
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(CatalogError, match="Not a directory"):
        save_snapshot("acme", *refresh("2026-11-01", PRICES))
    assert load_catalog(cache=False).manifests


@pytest.mark.parametrize(
    ("ref", "count"),
    [
        ("bundled", BUNDLED),
        ("latest", BUNDLED + 1),
        ("2026-11-05", BUNDLED + 1),
        ("acme@2026-11-05", 1),
        ("acme@latest", 1),
        ("aws@bundled", 1),
        ("aws@latest", 1),
    ],
)
def test_a_snapshot_is_opened_by_name(home: Path, ref: str, count: int) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    save_snapshot("acme", *refresh("2026-11-08", {"north": "15.00"}))
    assert len(open_snapshot(ref).manifests) == count


def test_a_snapshot_is_opened_by_path_and_hash(home: Path) -> None:
    saved = save_snapshot("acme", *refresh("2026-11-01", PRICES))
    for ref in (str(saved.path), f"acme@{saved.manifest.sha256[:8]}"):
        assert prices(open_snapshot(ref)) == PRICES
    assert len(open_snapshot(str(bundled_directory())).manifests) == BUNDLED


@pytest.mark.parametrize(
    "ref", ["yesterday", "acme@2020-01-01", "nobody@2026-11-01", "2026-13-01", "acme@ab"]
)
def test_an_unknown_name_is_refused(home: Path, ref: str) -> None:
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    with pytest.raises(CatalogInputError, match="no snapshot"):
        open_snapshot(ref)


def test_the_manifest_tells_the_story(home: Path) -> None:
    saved = save_snapshot("acme", *refresh("2026-11-01", PRICES), as_of=date(2026, 11, 2))
    values = json.loads((saved.path / "manifest.json").read_text())
    assert values["as_of"] == "2026-11-02"
    assert values["schema_version"] == 1
    assert values["sources"] == ["Acme price list"]
    assert (values["n_offers"], values["n_instance_types"], values["sequence"]) == (2, 1, 1)
    assert set(values["files"]) == {"instance_types.csv.gz", "offers.csv.gz"}


@given(days=st.lists(st.tuples(st.integers(1, 28), st.integers(1, 3)), min_size=1, max_size=8))
@draws(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_series_of_refreshes_reads_as_the_last_one(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, days: list[tuple[int, int]]
) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path_factory.mktemp("history")))
    for day, price in days:
        save_snapshot("acme", *refresh(f"2026-11-{day:02}", {"north": str(price)}))
        assert prices(open_snapshot("acme@latest")) == {"north": str(price)}
    found = list_snapshots("acme")
    changes = sum(one[1] != other[1] for one, other in itertools.pairwise(days))
    assert len(found) <= 1 + changes
    assert len({one.path for one in found}) == len(found)


_LOAD = """
import sys
from catalogs.store.load import load_catalog
heavy = {"catalogs.store.snapshots", "filelock", "platformdirs", "pandas"}
print(len(load_catalog().manifests), *sorted(heavy & set(sys.modules)))
"""


def test_a_start_pays_only_for_what_it_needs(home: Path, run_process: Callable[..., CliResult]) -> None:
    """Without a history nothing of it is imported; with one, nothing of writing."""
    place = {"PLANNER_DATA_DIR": str(home.parent)}
    assert run_process("-c", _LOAD, python=True, env=place).stdout.split() == [str(BUNDLED)]
    save_snapshot("acme", *refresh("2026-11-01", PRICES))
    assert run_process("-c", _LOAD, python=True, env=place).stdout.split() == [
        str(BUNDLED + 1),
        "catalogs.store.snapshots",
    ]
    none = run_process(
        "-c", _LOAD, python=True, env={"PLANNER_DATA_DIR": "", "XDG_DATA_HOME": str(home.parent / "xdg")}
    )
    assert none.stdout.split() == [str(BUNDLED)]
