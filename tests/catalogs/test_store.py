"""Loading snapshots: damage is named, caches may fail, writers may be killed."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
from collections import deque
from pathlib import Path

import pytest

from catalogs.cache.copies import cache_directory, open_copy
from catalogs.errors import CatalogError
from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory
from catalogs.store.write import write_snapshot
from catalogs.tables.model import Catalog
from catalogs.tables.table import Table

OFFERS = "lambda/offers.csv.gz"
MANIFEST = "lambda/manifest.json"
ROWS = 24  # of the bundled provider


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every load is the first of its process."""
    monkeypatch.setattr("catalogs.store.load._LAST", deque(maxlen=0))


def same(one: Table, other: Table) -> bool:
    return list(one) == list(other) and all(
        str(one[name].tolist()) == str(other[name].tolist()) for name in one
    )


def edit_manifest(root: Path, **changes: object) -> None:
    path = root / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def rewrite_offers(root: Path, data: bytes) -> None:
    """Replace the offers and make the manifest agree, as somebody who edits by hand may."""
    (root / OFFERS).write_bytes(data)
    files = json.loads((root / MANIFEST).read_text())["files"]
    files = {**files, "offers.csv.gz": hashlib.sha256(data).hexdigest()}
    whole = hashlib.sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest()
    edit_manifest(root, files=files, sha256=whole)


def test_a_process_reads_the_rows_of_a_snapshot_once(snapshot: Path) -> None:
    first = load_catalog(snapshot)
    assert load_catalog(snapshot) is first
    assert load_catalog(snapshot, cache=False) is not first


def test_a_snapshot_that_changes_under_a_process_is_read_again(snapshot: Path) -> None:
    price = str(load_catalog(snapshot).offers["price_per_hour"][0])
    text = gzip.decompress((snapshot / OFFERS).read_bytes()).replace(f",{price},".encode(), b",1234.5,")
    rewrite_offers(snapshot, gzip.compress(text))
    after = set(load_catalog(snapshot).offers["price_per_hour"])
    assert "1234.5" in after
    assert price not in after


def test_damage_is_named_however_often_the_snapshot_was_read(snapshot: Path) -> None:
    load_catalog(snapshot)
    (snapshot / OFFERS).write_bytes((snapshot / OFFERS).read_bytes()[:-40])
    with pytest.raises(CatalogError, match="was changed or cut short"):
        load_catalog(snapshot)


@pytest.mark.usefixtures("processes")
def test_a_cached_load_gives_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: Catalog
) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path))
    load_catalog(bundled_directory())
    assert list(tmp_path.glob("catalog-*.bin"))
    cached = load_catalog(bundled_directory())
    for name in ("offers", "instance_types"):
        assert same(getattr(cached, name), getattr(bundled, name))


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04nonsense", b"not a zip"])
def test_a_damaged_cache_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Path, damage: bytes
) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    load_catalog(snapshot)
    (copy,) = (tmp_path / "cache").glob("catalog-*.bin")
    copy.write_bytes(damage)
    assert load_catalog(snapshot).offers.n_rows == ROWS


@pytest.mark.usefixtures("processes")
def test_a_cache_that_is_a_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Path
) -> None:
    (tmp_path / "cache").write_text("in the way")
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    assert load_catalog(snapshot).offers.n_rows == ROWS


@pytest.mark.usefixtures("processes")
def test_a_read_only_cache_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Path
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(cache))
    try:
        assert load_catalog(snapshot).offers.n_rows == ROWS
        if os.geteuid() != 0:
            assert not list(cache.iterdir())
    finally:
        cache.chmod(stat.S_IRWXU)


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("how", ["owned by another", "open to all"])
def test_a_copy_that_another_user_can_have_written_is_ignored(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: Catalog
) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path))
    load_catalog(bundled_directory())
    (copy,) = tmp_path.glob("catalog-*.bin")
    open_copy(copy).close()
    if how == "open to all":
        copy.chmod(0o666)
    else:
        real = os.fstat
        monkeypatch.setattr(
            "catalogs.cache.copies.os.fstat",
            lambda handle: os.stat_result(
                [4242 if at == stat.ST_UID else value for at, value in enumerate(real(handle)[:10])]
            ),
        )
    with pytest.raises(PermissionError, match="another user"):
        open_copy(copy)
    assert same(load_catalog(bundled_directory()).offers, bundled.offers)


def test_the_cache_directory_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_CACHE_DIR")
    assert cache_directory().name == "ml-training-planner"


def test_a_cut_file_is_named(snapshot: Path) -> None:
    path = snapshot / OFFERS
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(
        CatalogError, match=r"offers\.csv\.gz was changed or cut short.*; copy the directory again"
    ):
        load_catalog(snapshot, cache=False)


def test_a_cut_file_of_the_package_is_mended_by_reinstalling_it(
    snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalogs.store.read.bundled_directory", lambda: snapshot)
    path = snapshot / OFFERS
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CatalogError, match=r"was changed or cut short.*; reinstall the package"):
        load_catalog(snapshot, cache=False)


def test_a_cut_file_whose_hash_was_renewed_is_named(snapshot: Path) -> None:
    rewrite_offers(snapshot, (snapshot / OFFERS).read_bytes()[:-40])
    with pytest.raises(CatalogError, match=r"cannot read .*offers\.csv\.gz"):
        load_catalog(snapshot, cache=False)


def test_an_edited_price_is_refused(snapshot: Path) -> None:
    path = snapshot / OFFERS
    text = gzip.decompress(path.read_bytes()).replace(b"0.75", b"0.01")
    path.write_bytes(gzip.compress(text))
    with pytest.raises(CatalogError, match="was changed"):
        load_catalog(snapshot, cache=False)


def test_a_number_that_is_none_is_named_with_its_row(snapshot: Path) -> None:
    lines = gzip.decompress((snapshot / OFFERS).read_bytes()).decode().splitlines()
    cells = lines[1].split(",")
    cells[9] = "many"
    rewrite_offers(snapshot, gzip.compress("\n".join([lines[0], ",".join(cells), *lines[2:]]).encode()))
    with pytest.raises(CatalogError, match=r"row 2, column term_hours: 'many' is not a number"):
        load_catalog(snapshot, cache=False)


def test_a_row_with_too_few_cells_is_named(snapshot: Path) -> None:
    lines = gzip.decompress((snapshot / OFFERS).read_bytes()).decode().splitlines()
    rewrite_offers(snapshot, gzip.compress("\n".join([lines[0], "lambda,us-east-1"]).encode()))
    with pytest.raises(CatalogError, match="row 2 has 2 cells, expected 16"):
        load_catalog(snapshot, cache=False)


def test_a_missing_column_is_named(snapshot: Path) -> None:
    text = gzip.decompress((snapshot / OFFERS).read_bytes()).decode().replace("price_per_hour", "price", 1)
    rewrite_offers(snapshot, gzip.compress(text.encode()))
    with pytest.raises(CatalogError, match="missing price_per_hour; unexpected price"):
        load_catalog(snapshot, cache=False)


def test_a_missing_manifest_is_named(snapshot: Path) -> None:
    (snapshot / MANIFEST).unlink()
    with pytest.raises(CatalogError, match=r"cannot read .*manifest\.json: No such file"):
        load_catalog(snapshot, cache=False)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{}", '{"files": 3}'])
def test_a_manifest_that_is_none_is_named(snapshot: Path, text: str) -> None:
    (snapshot / MANIFEST).write_text(text)
    with pytest.raises(CatalogError, match=r"manifest\.json"):
        load_catalog(snapshot, cache=False)


def test_a_newer_schema_says_update(snapshot: Path) -> None:
    edit_manifest(snapshot, schema_version=99)
    with pytest.raises(CatalogError, match=r"schema version 99.*update the planner"):
        load_catalog(snapshot, cache=False)


def test_an_empty_or_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no provider in the catalog directory"):
        load_catalog(tmp_path)
    with pytest.raises(CatalogError, match=r"cannot read the catalog directory .*nowhere"):
        load_catalog(tmp_path / "nowhere")


def test_the_environment_chooses_the_directory(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_CATALOG_DIR", str(snapshot.parent))
    assert [m.provider for m in load_catalog(cache=False).manifests] == ["lambda"]


def test_a_writer_killed_between_its_renames_leaves_the_old_snapshot(snapshot: Path) -> None:
    (snapshot / "lambda").rename(snapshot / ".old-lambda")
    (snapshot / ".new-lambda-1").mkdir()
    assert load_catalog(snapshot, cache=False).offers.n_rows == ROWS


def test_a_half_written_snapshot_is_not_seen(snapshot: Path) -> None:
    (snapshot / ".new-other-1").mkdir()
    (snapshot / ".new-other-1" / "manifest.json").write_text("{")
    assert load_catalog(snapshot, cache=False).offers.n_rows == ROWS


def test_written_bytes_do_not_depend_on_row_order(tmp_path: Path, bundled: Catalog) -> None:
    types = [{"provider": "x", "instance_type": name, "source": "s", "as_of": "2026-01"} for name in "ab"]
    offers = [{"provider": "x", "region": name, "source": "s", "as_of": "2026-01"} for name in "cd"]
    one = write_snapshot(tmp_path / "1", "x", types, offers)
    other = write_snapshot(tmp_path / "2", "x", types[::-1], offers[::-1])
    assert one == other
    replaced = write_snapshot(tmp_path / "1", "x", types, offers[:1])
    assert replaced.n_offers == 1
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == ["x"]
