"""`planner catalog history` and `--as-of`: snapshots, prices over time, the catalog of a day."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from catalogs.store.history import save_snapshot
from planner.catalog.history import sparkline
from planner.render.terminal import in_encoding
from tests.catalogs.history_rows import machine, offer, refresh
from tests.conftest import Run

SERIES = (("2026-09-01", "10"), ("2026-10-01", "12"), ("2026-11-01", "8"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three prices, then the machine vanishes."""
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path))
    for day, price in SERIES:
        save_snapshot("acme", *refresh(day, {"north": price, "south": "20"}))
    save_snapshot("acme", [machine("other", as_of="2026-11-10")], [])
    return tmp_path


def test_the_price_over_time(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "history", "GPU.8X", "--region", "north")
    assert found.code == 0
    lines = found.stdout.splitlines()
    assert lines[0] == "acme gpu.8x, north, on_demand"
    assert lines[1].startswith(("▅█▁ ", "+#_ "))
    assert "lowest 8.0000, highest 12.0000" in lines[1]
    assert [line.split()[0] for line in lines[5:]] == ["2026-09-01", "2026-10-01", "2026-11-01", "2026-11-10"]
    assert "+20.0 %" in lines[6]
    assert "-33.3 %" in lines[7]
    assert "not offered" in lines[8]


def test_csv_and_json_hold_the_same(home: Path, run_cli: Run) -> None:
    question = ("catalog", "history", "gpu.8x", "--region", "north", "-o")
    rows = list(csv.DictReader(io.StringIO(run_cli(*question, "csv").stdout)))
    values = json.loads(run_cli(*question, "json").stdout)
    assert [row["price_per_hour"] for row in rows] == ["10", "12", "8", ""]
    assert [point["price_per_hour"] for point in values["points"]] == ["10", "12", "8", None]
    assert rows[0]["source"] == "Acme price list"
    assert (values["provider"], values["region"]) == ("acme", "north")


def test_without_a_region_the_cheapest_counts(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "history", "gpu.8x")
    assert "cheapest region" in found.stdout
    assert "8.0000 USD/h" in found.stdout
    assert "20.0" not in found.stdout.replace("+20.0 %", "")


def test_bundled_machines_have_a_history_of_one(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "history", "p4d.24xlarge", "--region", "us-east-1", "-o", "json")
    assert [point["snapshot"] for point in json.loads(found.stdout)["points"]] == ["bundled"]


def test_a_name_two_providers_have_needs_one(home: Path, run_cli: Run) -> None:
    save_snapshot("emca", [machine(provider="emca")], [offer(provider="emca")])
    found = run_cli("catalog", "history", "gpu.8x")
    assert found.code == 2
    assert "sold by acme, emca: say which with --provider" in found.stderr
    assert run_cli("catalog", "history", "gpu.8x", "--provider", "emca").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gpu.9x",), "did you mean gpu.8x"),
        (("gpu.8x", "--region", "east"), "never offered with region 'east' (there is north, south)"),
        (("gpu.8x", "--purchase-option", "spot"), "never offered with purchase option 'spot'"),
        (("gpu.8x", "--purchase-option", "spott"), "did you mean 'spot'"),
        (("--region", "north"), "need an instance type"),
        (("--purchase-option", "spot"), "need an instance type"),
        (("--purchase-option", "spott"), "unknown purchase option 'spott' (did you mean 'spot'?)"),
        (("--provider", "nobody"), "unknown provider 'nobody' (known: acme, alibaba, aws, "),
        (("--provider", "acmee"), "unknown provider 'acmee' (did you mean 'acme'?)"),
        (("gpu.8x", "--provider", "acmee"), "unknown provider 'acmee' (did you mean 'acme'?)"),
        (("--prune", "--provider", "acmee"), "unknown provider 'acmee' (did you mean 'acme'?)"),
        (("--prune", "--region", "north"), "need an instance type"),
        (("--older-than", "3"), "needs --compact or --prune"),
        (("gpu.8x", "--prune"), "leave the instance type out"),
    ],
)
def test_wrong_questions_end_with_2(
    home: Path, run_cli: Run, arguments: tuple[str, ...], message: str
) -> None:
    found = run_cli("catalog", "history", *arguments)
    assert found.code == 2
    assert message in found.stderr
    assert not found.stdout


def test_the_list_of_snapshots(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "history")
    assert found.code == 0
    assert all(len(line) <= 100 for line in found.stdout.splitlines())
    mine = [line for line in found.stdout.splitlines() if line.startswith("  acme")]
    assert len(mine) == 4
    assert mine[-1].endswith("in use")
    rows = json.loads(run_cli("catalog", "history", "--provider", "acme", "-o", "json").stdout)["snapshots"]
    assert [row["in_use"] for row in rows] == [False, False, False, True]
    assert run_cli("catalog", "history", "-o", "csv").stdout.count("\n") == 12


def test_the_list_without_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Run) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path))
    assert run_cli("catalog", "history").stdout.count("bundled") == 7
    assert run_cli("catalog", "history", "--compact", "--prune").code == 0
    assert not list(tmp_path.iterdir())


def test_pruning_tells_what_went(home: Path, run_cli: Run) -> None:
    save_snapshot("acme", *refresh("2026-10-02", {"north": "1"}))
    save_snapshot("acme", *refresh("2026-10-03", {"north": "2"}))
    save_snapshot("acme", *refresh("2026-11-11", {"north": "2"}))
    found = run_cli("catalog", "history", "--prune", "--older-than", "0")
    assert found.stdout.startswith("removed acme@2026-10-02 (2026-10-02-")
    assert found.stderr.endswith("snapshots removed\n")


@pytest.mark.parametrize(("day", "price"), [("2026-09-15", "10"), ("2026-10-15", "12"), ("2026-11-05", "8")])
def test_list_and_show_as_of_a_day(home: Path, run_cli: Run, day: str, price: str) -> None:
    question = ("--provider", "acme", "--as-of", day, "-o", "json")
    offers = json.loads(run_cli("catalog", "list", *question).stdout)["offers"]
    assert {offer["price_per_hour"] for offer in offers} == {price, "20"}
    shown = json.loads(run_cli("catalog", "show", "gpu.8x", *question).stdout)
    assert shown["offers"][0]["price_per_hour"] == price


def test_as_of_before_everything_ends_with_4(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "list", "--as-of", "2019-01-01")
    assert found.code == 4
    assert "no snapshot not after 2019-01-01" in found.stderr
    assert run_cli("catalog", "list", "--as-of", "soon").code == 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), ""),
        ((1.0,), "▅"),
        ((1.0, 1.0), "▅▅"),
        ((1.0, 2.0, 3.0), "▁▅█"),
        ((None, 1.0, None, 2.0), " ▁ █"),
        ((None,), " "),
    ],
)
def test_sparkline(values: tuple[float | None, ...], expected: str) -> None:
    assert sparkline(values) == expected
    assert in_encoding(sparkline(values), io.TextIOWrapper(io.BytesIO(), encoding="ascii")).isascii()
    assert len(sparkline([*values, *[1.0] * 100])) == 60
