"""Cubes answer like the bill they were made of, add up, and are there whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import planner.finops
import planner.finops.cube as cube_module
from planner.errors import InputError, OutputError
from planner.finops.cube import LEFT_OUT, MANIFEST, build_cube, merge_cubes, open_cube, read_cube
from planner.finops.quality import assess_quality
from planner.finops.read import Bill, open_bill
from tests.focus_company import make_company
from tests.planner.finops.engine.golden import CENT, parameters_of, rows_of
from tests.planner.finops.read.test_adapters import CUR, cur
from tests.planner.finops.read.test_open import line, write
from tests.planner.finops.small_bill import each_day, write_bill

QUERIES = sorted((Path(planner.finops.__file__).parent / "kpis").glob("**/*.sql"))
TAGS = ("team", "env", "cost_center", "run_id")


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    make_company(2, seed=5, rows_per_month=6_000, version="1.4", out=folder)
    return folder


@pytest.fixture(scope="module")
def bill(company: Path) -> Iterator[Bill]:
    with open_bill([company]) as opened:
        yield opened


@pytest.fixture(scope="module")
def cube(bill: Bill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cubes") / "all"
    made = build_cube(bill, folder, tags=TAGS)
    assert read_cube(folder) == made
    assert made.charges > 2 * made.rows or made.rows < made.charges
    return folder


@pytest.fixture(scope="module")
def opened(cube: Path) -> Iterator[Bill]:
    with open_cube([cube]) as answering:
        yield answering


def equal(first: Bill, second: Bill, path: Path) -> None:
    sql = path.read_text(encoding="utf-8")
    here = rows_of(first.engine.query(sql, parameters_of(sql)))
    there = rows_of(second.engine.query(sql, parameters_of(sql)))
    assert len(there) == len(here)
    for name in here.columns:
        if "rows" in name or name in ("charges", "row_count"):
            continue  # a cube has fewer rows, which is its point
        if name == "product":
            assert all(
                one == other for one, other in zip(here[name], there[name], strict=True) if other != "(none)"
            )
        elif here[name].dtype == "float64":
            assert list(there[name]) == pytest.approx(list(here[name]), rel=1e-9, abs=CENT, nan_ok=True), name
        else:
            assert list(there[name]) == list(here[name]), name


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_queries_without_resources_answer_alike(path: Path, bill: Bill, opened: Bill) -> None:
    used = path.read_text(encoding="utf-8")
    # what a charge is called is not what it cost: where it has no meter, a cube has no description of it either
    only_named = path.stem in ("price_volume", "anomaly_cause")
    if any(name in used for name in LEFT_OUT if not (only_named and name == "ChargeDescription")):
        pytest.skip("asks for single resources, which a cube does not have")
    equal(bill, opened, path)


def test_the_gate_sees_the_same_costs(bill: Bill, opened: Bill) -> None:
    checks = zip(*(assess_quality(b, date(2026, 10, 1)).checks for b in (bill, opened)), strict=True)
    for here, there in checks:
        if here.key not in ("commitment_status", "effective_zero_rows", "unknown_cost", "tags_known"):
            assert there.value == pytest.approx(here.value), here.key


def test_months_built_apart_and_merged_are_the_whole(company: Path, cube: Path, tmp_path: Path) -> None:
    parts = []
    for number, path in enumerate(sorted(company.glob("focus*"))):
        with open_bill([path]) as opened:
            parts.append(build_cube(opened, tmp_path / f"part-{number}", tags=TAGS).folder)
    merged, whole = merge_cubes(parts, tmp_path / "merged"), read_cube(cube)
    assert (merged.billed, merged.effective) == (pytest.approx(whole.billed), pytest.approx(whole.effective))
    assert merged.months == whole.months
    with open_cube([cube]) as here, open_cube([merged.folder]) as there:
        equal(here, there, next(path for path in QUERIES if path.stem == "price_volume"))


def test_a_month_grain_keeps_the_sums(bill: Bill, tmp_path: Path) -> None:
    monthly = build_cube(bill, tmp_path / "monthly", grain="month")
    daily = build_cube(bill, tmp_path / "daily")
    assert monthly.rows < daily.rows
    assert monthly.effective == pytest.approx(daily.effective)


@pytest.mark.parametrize("lacking", ["AWS", "Azure"])
def test_a_month_grain_shows_which_days_a_month_lacks(lacking: str, tmp_path: Path) -> None:
    """September without its last 20 days was compared as a whole month: 241 % more in October."""
    rows = []
    for name in ("AWS", "Azure"):
        last = date(2026, 9, 10) if name == lacking or lacking == "AWS" else date(2026, 9, 30)
        rows += each_day(date(2026, 8, 1), date(2026, 8, 31), ProviderName=name)
        rows += each_day(date(2026, 9, 1), last, ProviderName=name)
        rows += each_day(date(2026, 10, 1), date(2026, 10, 31), 110, ProviderName=name)
    path = write_bill(tmp_path / "bill.csv", rows)
    with open_bill([path]) as bill:
        months = {"month": date(2026, 10, 1), "before": date(2026, 9, 1)}
        expected = assess_quality(bill, **months).status("bridge_change_money")
        cube = build_cube(bill, tmp_path / "cube", grain="month")
    assert expected[0] == "withheld"
    assert cube.rows < len(rows)  # October is two rows
    with open_cube([cube.folder]) as opened:
        assert assess_quality(opened, **months).status("bridge_change_money") == expected


def small(tmp_path: Path, name: str = "a", **options: object) -> Path:
    with open_bill([write(tmp_path / f"{name}.csv", line(), line(2, sku=name))]) as opened:
        return build_cube(opened, tmp_path / f"cube {name}", **options).folder  # type: ignore[arg-type]


def test_what_is_refused(tmp_path: Path) -> None:
    first, second = small(tmp_path), small(tmp_path, "b", grain="month")
    with open_bill([tmp_path / "a.csv"]) as opened, pytest.raises(InputError, match="exists already"):
        build_cube(opened, first)
    with pytest.raises(InputError, match=r"were both made of a\.csv"):
        with open_bill([tmp_path / "a.csv"]) as opened:
            again = build_cube(opened, tmp_path / "again").folder
        open_cube([first, again])
    with pytest.raises(InputError, match="different grain"):
        merge_cubes([first, second], tmp_path / "x")
    with pytest.raises(InputError, match="is not a cube"):
        read_cube(tmp_path)
    with open_bill([tmp_path / "a.csv"]) as opened, pytest.raises(InputError, match="double quote"):
        build_cube(opened, tmp_path / "y", tags=['a"b'])
    with (
        open_bill([tmp_path / "a.csv"]) as opened,
        pytest.raises(InputError, match="cannot be written there"),
    ):
        build_cube(opened, tmp_path / "none" / "y")


def test_a_changed_or_missing_file_is_noticed(tmp_path: Path) -> None:
    folder = small(tmp_path)
    (file,) = folder.glob("focus*.parquet")
    data = file.read_bytes()
    file.write_bytes(data[:-10])
    with pytest.raises(InputError, match="was changed"):
        open_cube([folder])
    file.unlink()
    with pytest.raises(InputError, match=r"lacks focus-2026-10\.parquet"):
        open_cube([folder])
    (folder / MANIFEST).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        open_cube([folder])


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("planner.finops.cube._manifest", full)
    with pytest.raises(OutputError, match="No space left on device"):
        small(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


def test_of_two_writers_the_second_reports_that_the_cube_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small(tmp_path)
    of_another, manifest = folder.rename(tmp_path / "other"), cube_module._manifest

    def describe_and_lose(*arguments: Any) -> str:
        of_another.rename(folder)  # another process is a moment quicker
        return manifest(*arguments)

    monkeypatch.setattr(cube_module, "_manifest", describe_and_lose)
    with open_bill([tmp_path / "a.csv"]) as opened, pytest.raises(InputError, match="exists already"):
        build_cube(opened, folder)
    read_cube(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", folder.name]


def test_a_folder_that_may_not_be_listed_gives_no_cube_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def closed(path: Path) -> list[str]:  # for root no folder is closed
        if Path(path).name.startswith(".cube"):
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr("os.listdir", closed)
    with pytest.raises(InputError, match="Permission denied"):
        small(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".csv"] == []


_KILLED = """
import sys
from pathlib import Path
import planner.finops.cube as cube
from planner.finops.read import open_bill
write = cube._manifest
def slow(*args):
    print("half way", flush=True)
    sys.stdin.read()
cube._manifest = slow
with open_bill([sys.argv[1]]) as bill:
    cube.build_cube(bill, Path(sys.argv[2]))
"""


def test_a_killed_writer_leaves_no_cube(tmp_path: Path) -> None:
    path, folder = write(tmp_path / "a.csv", line()), tmp_path / "cube"
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(planner.finops.__file__).parents[2])},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"half way\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not folder.exists()
    with pytest.raises(InputError, match="is not a cube"):
        read_cube(folder)
    with open_bill([tmp_path]) as opened:  # what the killed writer left is not read as a bill
        assert opened.sources[0].rows == 1
        assert read_cube(build_cube(opened, folder).folder).charges == 1


def test_a_manifest_is_plain_json(cube: Path) -> None:
    told = json.loads((cube / MANIFEST).read_text())
    assert told["schema_version"] == 1
    assert told["months"] == ["2026-09", "2026-10"]
    assert time.strptime(told["months"][0], "%Y-%m")


def test_a_discount_that_is_a_row_stays_one_in_a_cube(tmp_path: Path) -> None:
    rows = [CUR[0], CUR[0] | {"lineItem/LineItemType": "EdpDiscount", "lineItem/UnblendedCost": "-0.10"}]
    path = next(path for path in QUERIES if path.stem == "savings_rate")
    with open_bill([cur(tmp_path / "cur.csv", rows)]) as bill:
        build_cube(bill, tmp_path / "cube")
        with open_cube([tmp_path / "cube"]) as cube:
            equal(bill, cube, path)
            assert (
                cube.engine.query("SELECT SUM(EffectiveCost) AS e FROM focus WHERE x_list_known")["e"][0]
                == 0.9
            )
