"""`planner schedule` as a user types it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner.schedules import relaxation
from tests.conftest import ROOT, Run

EXAMPLE = str(ROOT / "examples" / "schedule.yaml")
TEXT = """version: 1
kind: schedule
name: two
start: 2026-12-01
forecast_csv: forecast.csv
pools:
  - {name: spot, provider: aws, region: us-east-1, purchase_option: spot, work_per_node_hour: 1, startup_usd: 1}
  - {name: far, provider: aws, region: us-west-2, work_per_node_hour: 1, startup_usd: 1}
jobs:
  - {name: train, work: 4, deadline: 3h, data: {size: 100GB, location: aws/us-east-1}}
"""
FORECAST = """hour,pool,usd_per_hour,available_nodes
0,spot,2,2
1,spot,9,2
2,spot,2,1
3,spot,2,4
0,far,5,1
1,far,5,1
2,far,5,1
"""


def write(folder: Path, text: str = TEXT, forecast: str = FORECAST) -> str:
    path = folder / "schedule.yaml"
    path.write_text(text, encoding="utf-8")
    (folder / "forecast.csv").write_text(forecast, encoding="utf-8")
    return str(path)


def test_a_schedule_by_hand(tmp_path: Path, run_cli: Run) -> None:
    """Three node-hours at $2 and one at $9 in between; both nodes start once: the one that goes on needs no start.

    The other region would take its place for $5, a start there, another one back and $2 for 100 GB.
    """
    found = json.loads(run_cli("schedule", write(tmp_path), "-o", "json").stdout)
    assert Decimal(found["total_usd"]) == 17
    assert {name: Decimal(usd) for name, usd in found["cost_parts_usd"].items() if Decimal(usd)} == {
        "nodes": 15, "starts": 2,
    }  # fmt: skip
    runs = [(run["pool"], run["start_hour"], run["end_hour"], run["nodes"]) for run in found["intervals"]]
    assert runs == [("spot", 0, 1, 2), ("spot", 1, 3, 1)]
    assert found["proof"]["status"] == "optimal" and found["jobs"][0]["work_done"] == 4


def test_moving_to_another_region_pays_transfer_and_storage(tmp_path: Path, run_cli: Run) -> None:
    """The dear hour at $90: the other region's $5, its start, $2 for 100 GB at $0.02 and storage; and a start back."""
    found = json.loads(
        run_cli("schedule", write(tmp_path, forecast=FORECAST.replace(",9,", ",90,")), "-o", "json").stdout
    )
    assert [run["pool"] for run in found["intervals"]] == ["spot", "far", "spot"]
    (copy,) = found["copies"]
    assert Decimal(copy["transfer_usd"]) == 2 and 0 < Decimal(copy["storage_usd"]) < Decimal("0.1")
    parts = [Decimal(found["cost_parts_usd"][name]) for name in ("nodes", "starts", "copies")]
    assert parts == [11, 4, 2]
    assert sum(Decimal(run["cost_usd"]) for run in found["intervals"]) == 15
    assert Decimal(found["total_usd"]) == 17 + Decimal(copy["storage_usd"])


def test_what_does_not_fit_is_explained(tmp_path: Path, run_cli: Run) -> None:
    """Of 9 units of work 5 fit (with data far away for an hour, so 5 + 0); with the fourth hour all 9 do."""
    path = write(tmp_path, TEXT.replace("work: 4", "work: 9"))
    result = run_cli("schedule", path, "-o", "json")
    found = json.loads(result.stdout)
    assert result.code == 3 and found["missing_work_at_best"] == [
        {"job": "train", "missing": 4.0, "work": 9.0}
    ]
    ways = {(way["kind"], way["amount"]) for way in found["ways_out"]}
    assert ways == {("later", 1), ("available", 2)}
    assert all(way["total_usd"] > 0 for way in found["ways_out"])
    table = run_cli("schedule", path)
    assert table.code == 3 and "4 of 9 units cannot be done" in table.stdout
    assert "it fits with deadlines 1 h later" in table.stdout and "two: 1 job," in table.stdout
    assert "2 more nodes of pool spot in every hour" in table.stdout
    rows = [line for line in table.stdout.splitlines() if line.startswith((" ", "PLAN", "INSTEAD"))]
    assert [row[:9].strip() for row in rows[:4]] == ["PLAN", "", "INSTEAD", ""], rows
    assert "--time-limit" not in table.stdout  # more time does not make work fit
    assert "****" not in run_cli("schedule", path, "-o", "md").stdout


def test_without_time_no_change_is_said_to_be_useless(
    tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([0.0] + [1e6] * 1_000)
    monkeypatch.setattr(relaxation, "time", SimpleNamespace(perf_counter=moments.__next__))
    path = write(tmp_path, TEXT.replace("work: 4", "work: 9"))
    table = run_cli("schedule", path)
    assert table.code == 3 and "4 of 9 units cannot be done" in table.stdout
    assert "not all were tried within the time limit (--time-limit)" in " ".join(table.stdout.split())
    assert "no single change" not in table.stdout


@pytest.mark.parametrize("fmt", ["table", "csv", "md", "yaml"])
def test_the_example_in_every_format(fmt: str, run_cli: Run, asked_once: Callable[[str], None]) -> None:
    asked_once("planner.schedules.answer.plan_schedule")
    result = run_cli("schedule", EXAMPLE, "-o", fmt)
    assert result.code == 0 and "use1-spot" in result.stdout
    assert fmt != "table" or max(map(len, result.stdout.splitlines())) <= 100


def test_csv_rows_add_up_to_the_total(run_cli: Run, asked_once: Callable[[str], None]) -> None:
    asked_once("planner.schedules.answer.plan_schedule")
    total = Decimal(json.loads(run_cli("schedule", EXAMPLE, "-o", "json").stdout)["total_usd"])
    rows = list(csv.DictReader(io.StringIO(run_cli("schedule", EXAMPLE, "-o", "csv").stdout)))
    assert {row["row"] for row in rows} == {"run", "copy"}
    assert sum(Decimal(row["cost_usd"]) for row in rows) == total


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("work: 4", "work: 0", "schedule.yaml:10:"),
        ("work: 4", "wrok: 4", "did you mean 'work'"),
        ("deadline: 3h", "deadline: 9h", "is 9 hours from the start; the forecast ends after 4"),
        ("deadline: 3h", "deadline: 30m", "leaves no whole hour"),
        ("deadline: 3h", "earliest_start: 2026-11-01", "before the start of the forecast"),
        ("deadline: 3h", "min_nodes: 3, max_nodes: 2", "is below min_nodes (3)"),
        ("deadline: 3h", "work_per_node_hour: {spto: 1}", "no pool 'spto' (did you mean 'spot'?)"),
        ("location: aws/us-east-1", "location: aws", "must be provider/region"),
        ("name: far", "name: spot", "two pools are called 'spot'"),
        ("name: far", "name: farther", "no pool 'far'"),
        ("forecast.csv", "absent.csv", "no such file: absent.csv"),
        ("kind: schedule", "kind: schedul", "kind"),
    ],
)
def test_faults_of_the_file(old: str, new: str, message: str, tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("schedule", write(tmp_path, TEXT.replace(old, new, 1)))
    assert result.code == 2 and message in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hour,pool", "hours,pool", "forecast.csv:1: there is no column 'hour'"),
        ("1,spot,9,2", "1,sopt,9,2", "forecast.csv:3: no pool 'sopt' (did you mean 'spot'?)"),
        ("1,spot,9,2", "1,spot,nan,2", "forecast.csv:3: usd_per_hour must be a number from 0 to"),
        ("1,spot,9,2", "1,spot,-9,2", "forecast.csv:3: usd_per_hour"),
        ("1,spot,9,2", "1,spot,9,1.5", "forecast.csv:3: available_nodes must be a whole number"),
        ("1,spot,9,2", "1,spot,9", "available_nodes must be a whole number from 0 to 1,000,000, got ''"),
        ("1,spot,9,2", "99999,spot,9,2", "forecast.csv:3: hour must be a whole number"),
        ("1,spot,9,2", "0,spot,9,2", "forecast.csv:3: hour 0 of 'spot' is given twice"),
        (FORECAST.partition("\n")[2], "", "forecast.csv:2: there is no row"),
    ],
)  # fmt: skip
def test_faults_of_the_forecast(old: str, new: str, message: str, tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("schedule", write(tmp_path, forecast=FORECAST.replace(old, new, 1)))
    assert result.code == 2 and message in result.stderr and "Traceback" not in result.stderr


def test_a_pool_without_a_forecast_is_named(tmp_path: Path, run_cli: Run) -> None:
    forecast = "".join(line for line in FORECAST.splitlines(keepends=True) if "far" not in line)
    result = run_cli("schedule", write(tmp_path, forecast=forecast))
    assert result.code == 2 and "schedule.yaml:8:" in result.stderr and "no row of this pool" in result.stderr


def test_an_hour_without_a_row_is_not_offered(tmp_path: Path, run_cli: Run) -> None:
    """Without the second hour of spot, the dear hour is spent in the other region."""
    found = json.loads(
        run_cli(
            "schedule", write(tmp_path, forecast=FORECAST.replace("1,spot,9,2\n", "")), "-o", "json"
        ).stdout
    )
    assert [run["pool"] for run in found["intervals"]] == ["spot", "far", "spot"]


def test_without_time_there_is_a_schedule_with_an_open_gap(run_cli: Run) -> None:
    result = run_cli("schedule", EXAMPLE, "--time-limit", "0.001s", "-o", "json")
    found = json.loads(result.stdout)
    assert result.code == 0 and found["intervals"] and found["proof"]["status"] == "feasible"


def test_an_unknown_backend_is_a_fault_of_the_call(tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("schedule", write(tmp_path), "--backend", "abacus")
    assert result.code == 2 and "--backend" in result.stderr


def test_hours_before_the_day_of_the_plan_are_past(tmp_path: Path, run_cli: Run) -> None:
    rows = [f"{hour},spot,{1 if hour < 24 else 3},2" for hour in range(72)]
    rows += ["0,far,9,1"]
    path = write(
        tmp_path, TEXT.replace("3h", "60h"), "hour,pool,usd_per_hour,available_nodes\n" + "\n".join(rows)
    )
    first, total = [], []
    for words in ((), ("--as-of", "2026-11-20"), ("--as-of", "2026-12-02")):
        found = json.loads(run_cli("schedule", path, "-o", "json", *words).stdout)
        first.append(min(run["start_hour"] for run in found["intervals"]))
        total.append(Decimal(found["total_usd"]))
    assert first[0] == first[1] < 24 <= first[2] and total[0] == total[1] < total[2]
    late = run_cli("schedule", path, "--as-of", "2026-12-04")
    assert late.code == 2 and "--as-of 2026-12-04: job 'train' ends by 2026-12-03 12:00" in late.stderr
