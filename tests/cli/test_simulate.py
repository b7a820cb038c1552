"""`planner simulate` as a user types it, on small made-up recordings."""

from __future__ import annotations

import csv
import io
import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.inputs.sweep_load import load_sweep
from planner.simulation.jobs import sweep_jobs
from tests.conftest import ROOT, Run
from tests.planner.simulation.traces import write_recording

Golden = Callable[[str, str], None]
JOB = ("--work-hours", "6", "--deadline", "9h", "--egress-usd", "0.5", "--starts", "8")


@pytest.fixture
def recording(tmp_path: Path) -> str:
    return write_recording(tmp_path / "traces")


def test_the_table(recording: str, run_cli: Run, check_golden: Golden) -> None:
    """Policies that know no hazards, so that a new fit changes nothing here."""
    result = run_cli("simulate", "--traces", recording, *JOB, "--policy", "greedy", "--policy", "spot_only")
    assert result.code == 0 and result.stderr == ""
    assert max(map(len, result.stdout.splitlines())) <= 100
    check_golden("simulate/table.txt", result.stdout)


def test_all_policies_and_no_miss_but_of_spot_alone(recording: str, run_cli: Run) -> None:
    found = json.loads(
        run_cli("simulate", "--traces", recording, *JOB, "--policy", "all", "-o", "json").stdout
    )
    assert found["complete"] is True and found["jobs"] == 1 and found["zone_groups"] == 3
    lines = {(line["label"], line["policy"]): line for line in found["by_kind"]}
    assert {policy for _, policy in lines} == {
        "survival", "uniform_progress", "greedy", "margin", "on_demand", "spot_only", "optimum",
    }  # fmt: skip
    for (label, policy), line in lines.items():
        assert policy == "spot_only" or line["misses"] == 0
        assert line["cost_ratio"]["value"] >= lines[label, "optimum"]["cost_ratio"]["value"] - 1e-9
        late = line["misses"] > 0
        assert (line["gap_closed_ratio"]["value"] is None) == late  # no saving makes a miss good
    assert lines["one zone", "optimum"]["gap_closed_ratio"]["value"] == pytest.approx(1.0)
    assert lines["one zone", "spot_only"]["misses"] > 0


def test_rows_for_spreadsheets_are_every_cell(recording: str, run_cli: Run) -> None:
    text = run_cli("simulate", "--traces", recording, *JOB, "--policy", "greedy", "-o", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3 * 3  # zone groups, and greedy, baseline, optimum
    assert {row["launches"] for row in rows} == {"8"} and {row["complete"] for row in rows} == {"yes"}


def test_the_answer_does_not_depend_on_who_computes_it(recording: str, run_cli: Run) -> None:
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    command = ("simulate", "--traces", recording, *JOB, "--starts", "2", "-o", "csv")
    first = run_cli(*command)
    assert first.code == 0 and "survival" in first.stdout
    assert run_cli(*command, "--workers", "2").stdout == first.stdout
    assert run_cli(*command, "--engine", "dask").stdout == first.stdout
    assert run_cli(*command, "--seed", "1").stdout != first.stdout


def test_an_interruption_keeps_what_is_done_and_says_so(
    recording: str, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def map(self, function: Any, tasks: Any) -> Any:
            yield function(tasks[0])
            raise KeyboardInterrupt

    monkeypatch.setattr("planner.engines.executors.make_executor", lambda *_: Interrupted())
    command = ("simulate", "--traces", recording, *JOB, "--policy", "greedy")
    result = run_cli(*command)
    assert result.code == 130 and result.stdout.startswith("PARTIAL (1 of 3 tasks)")
    rows = list(csv.DictReader(io.StringIO(run_cli(*command, "-o", "csv").stdout)))
    assert rows and {row["complete"] for row in rows} == {"partial"}
    assert json.loads(run_cli(*command, "-o", "json").stdout)["complete"] is False


def test_an_interruption_before_anything_is_done_is_an_interruption(
    recording: str, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def map(self, function: Any, tasks: Any) -> Any:
            raise KeyboardInterrupt
            yield

    monkeypatch.setattr("planner.engines.executors.make_executor", lambda *_: Interrupted())
    result = run_cli("simulate", "--traces", recording, *JOB)
    assert result.code == 130 and result.stdout == ""


def test_plots_are_files_a_browser_reads(recording: str, run_cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    result = run_cli("simulate", "--traces", recording, *JOB, "--policy", "greedy", "--plots", str(folder))
    assert result.code == 0 and "wrote" in result.stderr
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["cost-by-zone-group.svg", "cost.svg", "gap-closed.svg"]
    for path in folder.iterdir():
        assert "greedy" in [element.text for element in ET.parse(path).iter() if element.text]


SWEEP = """version: 1
kind: sweep
name: grid
work_hours: [3, 6]
deadline_ratio: [1.5, 2]
restart_hours: [0.1, 0.2]
"""


def test_a_sweep_is_every_combination(recording: str, run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP, encoding="utf-8")
    result = run_cli(
        "simulate", "--sweep", str(path), "--traces", recording, "--starts", "1", "--policy", "greedy", "--no-optimum",
        "--plots", str(tmp_path / "plots"), "-o", "csv",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 8 * 3 * 2 and len({row["job"] for row in rows}) == 8
    assert (tmp_path / "plots" / "cost-by-job.svg").is_file()


def test_the_example_sweep() -> None:
    jobs = list(sweep_jobs(load_sweep(ROOT / "examples" / "spot-sweep.yaml").sweep))
    assert len({job.name for job in jobs}) == 27


def test_generated_traces(run_cli: Run) -> None:
    asked = (
        "simulate",
        "--generate",
        "2",
        "--instance-type",
        "p3.2xlarge",
        *JOB,
        "--policy",
        "greedy",
        "-o",
        "json",
    )
    first = run_cli(*asked, "--no-optimum").stdout
    found = json.loads(first)
    assert found["zone_groups"] == 3 and "p3.2xlarge" in found["notes"][0]
    costs = [line["cost_ratio"]["value"] for line in found["by_kind"]]
    assert all(0.3 < cost < 1.05 for cost in costs)  # spot at 0.3 of on-demand
    assert run_cli(*asked, "--no-optimum").stdout == first


def test_a_workload_is_planned_and_replayed_on_traces_of_its_type_or_on_stand_ins(
    recording: str, run_cli: Run
) -> None:
    workload = str(ROOT / "examples" / "resnet50-imagenet.yaml")
    asked = (
        "simulate",
        workload,
        "--traces",
        recording,
        "--starts",
        "3",
        "--policy",
        "greedy",
        "--no-optimum",
    )
    refused = run_cli(*asked)
    assert (
        refused.code == 2
        and "the traces are of m.big x1" in refused.stderr
        and "--any-trace" in refused.stderr
    )
    stand_in = run_cli(*asked, "--any-trace")
    assert stand_in.code == 0 and "resnet-50-imagenet: greedy costs" in stand_in.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of: workload files, --sweep FILE, or --work-hours with --deadline"),
        (("--work-hours", "6"), "--work-hours needs --deadline"),
        (("--work-hours", "6", "--deadline", "soon"), "is not a duration"),
        (("--work-hours", "-6", "--deadline", "9"), "is not a time"),
        (("--work-hours", "6", "--deadline", "5"), "too near even for on-demand"),
        (("--work-hours", "60", "--deadline", "90"), "is shorter than the deadline"),
        (("--work-hours", "6", "--deadline", "9", "--instance-type", "p9"), "no trace of p9 xany"),
        (("--work-hours", "6", "--deadline", "9", "--generate", "2"), "give either --traces"),
        (("--work-hours", "6", "--deadline", "9", "--policy", "best"), "best"),
        (("absent.yaml",), "absent.yaml"),
    ],
)
def test_bad_questions(arguments: tuple[str, ...], message: str, tmp_path: Path, run_cli: Run) -> None:
    recording = write_recording(tmp_path / "traces", ("a",), 800)
    result = run_cli("simulate", "--traces", recording, *arguments)
    assert result.code == 2 and message in result.stderr, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[1.5, 2]", "[0.5]", "deadline_ratio"),
        ("[3, 6]", "[]", "give hours of work"),
        ("[3, 6]", "[.nan]", "work_hours"),
        ("kind: sweep", "kind: schedule", "kind"),
        ("restart_hours", "restart", "did you mean 'restart_hours'"),
        ("name: grid", "name: grid\nworkloads: [absent.yaml]", "absent.yaml"),
    ],
)
def test_bad_sweeps(old: str, new: str, message: str, recording: str, run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP.replace(old, new), encoding="utf-8")
    result = run_cli("simulate", "--sweep", str(path), "--traces", recording)
    assert result.code == 2 and message in result.stderr


def test_a_folder_without_traces(tmp_path: Path, run_cli: Run) -> None:
    assert run_cli("simulate", "--traces", str(tmp_path), *JOB).code == 2
    assert run_cli("simulate", "--traces", str(tmp_path / "absent"), *JOB).code == 2


@pytest.mark.shared
def test_recorded_traces_end_to_end(shared_dir: Path, run_cli: Run) -> None:
    file = str(shared_dir / "spot" / "v100x4_preempt_2023-08_b1.json")
    result = run_cli(
        "simulate", "--traces", file, "--work-hours", "24", "--deadline", "36", "--starts", "10",
        "--policy", "survival", "--no-optimum", "-o", "json",
    )  # fmt: skip
    found = json.loads(result.stdout)
    ours = {line["label"]: line for line in found["by_kind"] if line["policy"] == "survival"}
    assert all(line["misses"] == 0 for line in ours.values())
    assert (
        ours["one zone"]["cost_ratio"]["value"] < 0.75 and ours["several zones"]["cost_ratio"]["value"] < 0.45
    )


def test_public_traces_have_no_prices(tmp_path: Path, run_cli: Run) -> None:
    """Then spot is taken as a share of on-demand, and that is said."""
    samples = [[1, 1, 1, 0][at // 40 % 4] for at in range(900)]
    text = json.dumps({"metadata": {"gap_seconds": 600}, "data": samples})
    (tmp_path / "us-west-2z_v100_1.json").write_text(text, encoding="utf-8")
    asked = ("--work-hours", "6", "--deadline", "9h", "--starts", "5", "--polarity", "instances")
    cost = []
    for ratio in ("0.2", "0.4"):
        result = run_cli(
            "simulate", "--traces", str(tmp_path), *asked, "--policy", "spot_only", "--spot-ratio", ratio, "-o", "json"
        )  # fmt: skip
        assert result.code == 0, result.stderr
        found = json.loads(result.stdout)
        assert any("no spot price" in note for note in found["notes"])
        cost.append(next(e for e in found["by_kind"] if e["policy"] == "optimum")["cost_ratio"]["value"])
    assert 0.2 <= cost[0] < cost[1]


def test_the_published_table(run_cli: Run) -> None:
    """Table 3 of "Can't Be Late": 8 pools, 13 days of 2022-10, 48 h of work in 60 h, restart 0.2 h.

    Hours on-demand / on spot: greedy 30.8 / 17.2, Uniform Progress 25.1 / 22.9.
    """
    folder = os.environ.get("SPOT_TRACES_2022")
    if not folder:
        pytest.skip("needs the public 2022-10 traces: set SPOT_TRACES_2022 to their folder")
    asked = (
        "--work-hours",
        "48",
        "--deadline",
        "60",
        "--restart",
        "0.2",
        "--groups",
        "single",
        "--starts",
        "300",
    )
    result = run_cli(
        "simulate", "--traces", folder, *asked, "--policy", "greedy", "--no-optimum", "-o", "json"
    )
    assert result.code == 0, result.stderr
    found = {line["policy"]: line for line in json.loads(result.stdout)["by_kind"]}
    published = {"greedy": (30.8, 17.2), "uniform_progress": (25.1, 22.9)}
    for policy, (on_demand, spot) in published.items():
        assert found[policy]["on_demand_hours"] == pytest.approx(on_demand, abs=1.5)
        assert found[policy]["spot_hours"] == pytest.approx(spot, abs=1.5)


def test_what_is_replayed_is_the_plan_of_the_workload(run_cli: Run) -> None:
    """With on-demand to fall back on, other machines may be the cheapest than on spot alone."""
    example = str(ROOT / "examples" / "vlm-8b.yaml")
    first = json.loads(run_cli("optimize", example, "-o", "json").stdout)["lines"][0]
    assert first["purchase_option"] == "spot"
    made_up = ("--generate", "2", "--starts", "2", "--policy", "greedy", "--no-optimum", "-o", "json")
    found = json.loads(run_cli("simulate", example, *made_up).stdout)
    assert f"zones of {first['instance_type']} x{first['nodes']} generated" in " ".join(found["notes"])


@pytest.mark.catalog("small")
def test_of_a_fleet_that_falls_back_one_worker_is_replayed(run_cli: Run, tmp_path: Path) -> None:
    """Its share of the runs is a job; where no worker changes to on-demand, no policy has anything to decide."""
    mixed = ROOT / "examples" / "hpo-fleet.yaml"
    file = tmp_path / "fleet.yaml"
    lines = mixed.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(line for line in lines if "_share" not in line and "fallback:" not in line))
    plan = json.loads(run_cli("optimize", str(file), "-o", "json").stdout)
    line = next(line for line in plan["lines"] if line["purchase_option"] == "spot")
    made_up = ("--generate", "2", "--starts", "2", "--policy", "greedy", "--no-optimum", "-o", "json")
    made = run_cli("simulate", str(file), *made_up)
    assert made.code == 0, made.stderr
    found = json.loads(made.stdout)
    share = -(-64 // line["nodes"])
    assert f"hpo-fleet, a worker with {share} of 64 runs" in made.stdout
    assert f"zones of {line['instance_type']} x1 generated" in " ".join(found["notes"])
    file.write_text("\n".join(line for line in lines if "fallback:" not in line))
    plan = json.loads(run_cli("optimize", str(file), "-o", "json").stdout)
    assert plan["launch"]["strategy"] == "fallback_in_fleet"
    speed = [line["throughput_per_s"] for line in plan["lines"]]
    share = -(-round(64 * sum(speed[:2]) / sum(speed)) // plan["lines"][0]["nodes"])
    made = run_cli("simulate", str(file), *made_up)
    assert made.code == 0, made.stderr
    assert f"hpo-fleet, a worker with {share} of 64 runs" in made.stdout
    beside = float(plan["lines"][2]["cost_usd"]) / float(plan["total_usd"])
    said = f"the other part of its fleet is on-demand whatever the policy, {beside:.0%}".replace(
        "%", " % of the cost"
    )
    assert said in " ".join(made.stdout.split())
    refused = run_cli("simulate", str(mixed), *made_up)
    assert refused.code == 2 and "policies decide when a worker changes" in " ".join(refused.stderr.split())
