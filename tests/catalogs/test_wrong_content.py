"""Snapshots whose hashes are right and whose content is not: every command answers or names the file, none fails."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalogs.offers.flags import admit_offers
from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory
from tests.conftest import CliResult

Rows = list[dict[str, str]]
Change = Callable[[Any], object]


def snapshot(root: Path, table: str, change: Change) -> Path:
    """The bundled prices of Alibaba Cloud with one file changed, and hashes to match.

    `table` is `manifest`, a table (its rows change) or a table with `!` (its bytes do).
    """
    to = root / "snapshot" / "alibaba"
    to.mkdir(parents=True)
    bundled = bundled_directory() / "alibaba"
    manifest = json.loads((bundled / "manifest.json").read_text(encoding="utf-8"))
    for name in manifest["files"]:
        data = gzip.decompress((bundled / name).read_bytes())
        if table.rstrip("!") == name.partition(".")[0]:
            data = change(data) if table.endswith("!") else _rewritten(data, change)  # type: ignore[assignment]
        packed = gzip.compress(data, compresslevel=1, mtime=0)
        (to / name).write_bytes(packed)
        manifest["files"][name] = hashlib.sha256(packed).hexdigest()
    hashes = manifest["files"]
    manifest["sha256"] = hashlib.sha256("".join(hashes[name] for name in sorted(hashes)).encode()).hexdigest()
    if table == "manifest":
        change(manifest)
    (to / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return to.parent


def _rewritten(data: bytes, change: Change) -> bytes:
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    change(rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def first(name: str, value: str) -> Change:
    return lambda rows: rows[0].update({name: value})


def said(**values: object) -> Change:
    return lambda manifest: manifest.update(values)


WRONG: dict[str, tuple[str, Change, str]] = {
    "a day that is not": ("manifest", said(newest_as_of="2026-02-31"), "newest_as_of is not an ISO date"),
    "a year that is not": ("manifest", said(oldest_as_of="99999-01-01"), "oldest_as_of is not an ISO date"),
    "no day": ("manifest", said(newest_as_of=5), "newest_as_of is not an ISO date or month: 5"),
    "NaN": ("manifest", said(n_offers=float("nan")), "n_offers is not a number of rows: nan"),
    "another hash": ("manifest", said(sha256="0" * 64), "its sha256 is not that of its files"),
    "sources that are none": ("manifest", said(sources=7), "sources are not all texts"),
    "rows that went": ("offers", lambda rows: rows.pop(), "its manifest says"),
    "a day of a row": (
        "offers",
        first("as_of", "2026-02-30"),
        "column as_of: '2026-02-30' is not an ISO date",
    ),
    "a price in words": (
        "offers",
        first("price_per_hour", "cheap"),
        "column price_per_hour: 'cheap' is not a number",
    ),
    "no such option": (
        "offers",
        first("purchase_option", "stolen"),
        "column purchase_option: 'stolen' is not one of",
    ),
    "a count that is none": ("instance_types", first("accelerator_count", "nan"), "'nan' is not a number"),
    "fewer than none": ("instance_types", first("accelerator_count", "-8"), "'-8' is below"),
    "bytes of another text": ("offers!", lambda data: data.replace(b"cn-", b"\xff\xfe", 3), "can't decode"),
    "a cell of 200 kB": ("offers!", lambda data: data.replace(b"ecs.", b"e" * 200_000, 1), "field larger"),
    "JSON": ("offers!", lambda data: b'{"a": [', "wrong columns for offers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_refresh_stores_is_refused_by_name(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., CliResult]
) -> None:
    table, change, says = WRONG[case]
    monkeypatch.setenv("PLANNER_CATALOG_DIR", str(snapshot(tmp_path, table, change)))
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    done = run_cli("catalog", "list")
    assert (done.code, done.stderr.count("\n")) == (4, 1)
    assert says in done.stderr and str(tmp_path) in done.stderr
    doctor = run_cli("catalog", "doctor", "-o", "json")
    assert doctor.code == 4 and "NaN" not in doctor.stdout
    json.loads(doctor.stdout)


@pytest.mark.parametrize("price", ["nan", "inf", "-1", "0", "0.000001", "99999"])
def test_a_price_that_nobody_asks_keeps_its_own_offer_out(price: str, tmp_path: Path) -> None:
    offers = load_catalog(snapshot(tmp_path, "offers", first("price_per_hour", price)), cache=False).offers
    admission = admit_offers(offers, allow_flagged=False)
    usual = admit_offers(load_catalog(bundled_directory(), cache=False).offers, allow_flagged=False)
    assert not admission.mask[0] and admission.mask.sum() > 0
    assert {"no_price", "implausible_price"} & set(admission.refused)
    assert "implausible_price" not in usual.refused


def test_a_manifest_of_deep_brackets_and_a_file_that_unpacks_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., CliResult]
) -> None:
    root = snapshot(tmp_path, "", said())
    monkeypatch.setenv("PLANNER_CATALOG_DIR", str(root))
    monkeypatch.setattr("catalogs.store.read._MAX_UNPACKED_BYTES", 1 << 10)
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    done = run_cli("catalog", "list")
    assert done.code == 4 and "unpacks to more than" in done.stderr
    (root / "alibaba" / "manifest.json").write_text("[" * 200_000, encoding="utf-8")
    done = run_cli("catalog", "list")
    assert done.code == 4 and "is not valid JSON" in done.stderr


def test_a_price_that_is_missing_is_unknown_in_a_comparison(
    tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    root = snapshot(tmp_path, "offers", first("price_per_hour", ""))
    done = run_cli("catalog", "diff", str(bundled_directory()), str(root))
    assert done.code == 0 and "unknown" in done.stdout, done.stderr
