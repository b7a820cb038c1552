"""`planner track` and `planner diagnose` as a user types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import planner
from planner.calibration.logs import READERS
from planner.commands.options import LOG_FORMATS
from planner.commands.track import SECTIONS
from planner.render import ANSWER_FORMATS
from planner.tracking.report import DETAILS
from tests.conftest import CliResult, Run
from tests.planner.finops.small_bill import each_day, write_bill
from tests.planner.tracking.runs import PER_ROW, START, STEP_S, spot_plan

Golden = Callable[[str, str], None]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan, and the log of a run 60 h under way whose loader is slow and whose steps take a quarter longer.

    It is up for ten hours at a time and then away for two, and starts again where it was an hour of work before: as
    often and as long as the plan expects, so that its speed alone makes it late.
    """
    folder = tmp_path_factory.mktemp("track")
    spot_plan(140.0, "320", 0.8).save(folder / "plan.json")
    start, step_s, step, seconds = datetime.fromisoformat(START), 1.25 * STEP_S, 0, 600.0
    rows = ["step,time,nodes,loader_seconds,gpu_busy"]
    while seconds < 60 * 3600:
        step, seconds = step + PER_ROW, seconds + PER_ROW * step_s
        rows.append(f"{step},{(start + timedelta(seconds=seconds)).isoformat()},2,18.5,0.55")
        if seconds % (12 * 3600) >= 10 * 3600:
            step, seconds = step - round(3600 / step_s), seconds + 2 * 3600
    (folder / "log.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def ask(run_cli: Run, files: Path, *more: str) -> CliResult:
    return run_cli("track", str(files / "plan.json"), "--log", str(files / "log.csv"), *more)


@pytest.fixture
def now(files: Path) -> str:
    return (files / "log.csv").read_text(encoding="utf-8").splitlines()[-1].split(",")[1]


def test_the_screen(run_cli: Run, files: Path, now: str, check_golden: Golden) -> None:
    result = ask(run_cli, files, "--now", now)
    assert result.code == 5  # the plan states 80 %
    assert max(map(len, result.stdout.splitlines())) <= 100
    check_golden("cli/track.txt", result.stdout)


def test_gates_decide_the_exit_code(run_cli: Run, files: Path) -> None:
    late = json.loads(ask(run_cli, files, "-o", "json").stdout)["p_late_ratio"]
    assert 0.5 < late < 1.0
    assert ask(run_cli, files, "--fail-late", "100%").code == 0
    assert ask(run_cli, files, "--fail-late", f"{late - 0.01:.3f}").code == 5
    assert ask(run_cli, files, "--fail-over", "99%").code == 0
    refused = ask(run_cli, files, "--fail-late", "130%")
    assert refused.code == 2 and "is not a probability; write it as 20% or 0.2" in refused.stderr


@pytest.mark.parametrize("tag", ["planner_run_id", "run_id", "Job"])
def test_spend_is_that_of_the_bill_and_an_estimate_after_its_last_charge(
    run_cli: Run, files: Path, tmp_path: Path, tag: str
) -> None:
    run_id = json.loads((files / "plan.json").read_text(encoding="utf-8"))["run_id"]
    first = datetime.fromisoformat(START).date()
    day = {"PricingQuantity": "48", "SkuPriceDetails": '{"InstanceType":"p3.2xlarge","GpuCount":1}'}
    rows = [
        row
        for name in (run_id, "run-of-another")
        for at, key in enumerate((tag, tag.upper()))  # as bills mix them
        for row in each_day(
            first + timedelta(at), first + timedelta(at), 70, Tags=json.dumps({key: name}), **day
        )
    ]
    bill = str(write_bill(tmp_path / "bill.csv", rows))
    asked = () if tag != "Job" else ("--run-tag", tag)
    by_bill = json.loads(ask(run_cli, files, "--bill", bill, *asked, "-o", "json").stdout)
    alone = json.loads(ask(run_cli, files, "-o", "json").stdout)
    hours_after = (
        datetime.fromisoformat(by_bill["now"]) - datetime.fromisoformat(START)
    ).total_seconds() / 3600 - 40
    assert (by_bill["spent_from"], alone["spent_from"]) == ("bill and estimate", "estimate")
    assert 140 < by_bill["spent_usd"] <= 140 + 2 * hours_after  # two nodes at $1
    assert by_bill["expected_cost_usd"] - by_bill["spent_usd"] == pytest.approx(
        alone["expected_cost_usd"] - alone["spent_usd"], rel=0.02
    )
    if tag == "Job":
        refused = ask(run_cli, files, "--bill", bill)
        assert refused.code == 2 and f"no charge carries the run id {run_id}" in refused.stderr


@pytest.mark.parametrize("output", [name for name in ANSWER_FORMATS if name != "table"])
def test_every_format(run_cli: Run, files: Path, tmp_path: Path, output: str) -> None:
    for words in (("track", str(files / "plan.json"), "--log"), ("diagnose",)):
        made = tmp_path / f"{words[0]}.{output}"
        result = run_cli(*words, str(files / "log.csv"), "-o", output, "--out", str(made))
        assert result.code in (0, 5), result.stderr
        assert made.stat().st_size > 200


def test_a_log_without_moments_counts_from_the_start(run_cli: Run, files: Path, tmp_path: Path) -> None:
    log = tmp_path / "steps.csv"
    log.write_text("step_time_s\n" + "60\n" * 400, encoding="utf-8")
    words = ("track", str(files / "plan.json"), "--log", str(log), "-o", "json")
    first = json.loads(run_cli(*words, "--started", "2026-03-02T09:00Z").stdout)
    assert first["last_step_at"].startswith("2026-03-02T15:40") and first["done_steps"] == 401
    assert "step times only" in " ".join(first["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--log", "none.csv"), "none.csv: no such file"),
        ((), "give --log FILE or --prometheus URL, one of the two"),
        (("--log", "log.csv", "--prometheus", "http://h"), "one of the two"),
        (("--prometheus", "h:9090"), "must be an address like http://127.0.0.1:9090"),
        (("--prometheus", "http://h", "--metric", "step"), "is not NAME=QUERY"),
        (("--log", "log.csv", "--replan"), "name its file with --workload"),
        (("--log", "log.csv", "--now", "soon"), "is not a timestamp; write it as 2026-11-20T08:00Z, or now"),
        (("--log", "log.csv", "--now", "2026-03-02T09:00Z"), "after the present"),
        (("--log", "plan.json"), "plan.json"),
        (("--log", "log.csv", "--bill", "none.csv"), "none.csv"),
    ],
)
def test_bad_input_names_place_and_remedy(
    run_cli: Run, files: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(files)
    result = run_cli("track", "plan.json", *words)
    assert result.code == 2 and said in result.stderr and "Traceback" not in result.stderr


def test_an_infeasible_plan_and_a_fleet_are_refused(run_cli: Run, files: Path, tmp_path: Path) -> None:
    values = json.loads((files / "plan.json").read_text(encoding="utf-8"))
    made = tmp_path / "plan.json"
    made.write_text(json.dumps({**values, "kind": "fleet"}), encoding="utf-8")
    result = run_cli("track", str(made), "--log", str(files / "log.csv"))
    assert result.code == 2 and "planner diagnose LOG" in result.stderr


def test_diagnose_needs_no_plan(run_cli: Run, files: Path) -> None:
    result = run_cli("diagnose", str(files / "log.csv"))
    assert result.code == 0 and result.stdout.startswith("log.csv: limited by the data loader")
    found = json.loads(run_cli("diagnose", str(files / "log.csv"), "-o", "json").stdout)
    assert found["bottleneck"] == "loader" and found["logged"]


def test_the_functions_answer_the_same(files: Path) -> None:
    tracked = planner.track(files / "plan.json", files / "log.csv", fail_late=0.5)
    assert tracked.broken and tracked.to_dict()["causes"][0]["cause"] == "loader"
    assert planner.diagnose(files / "log.csv").bottleneck == "loader"
    assert list(tracked.to_frame()["first_cause"]) == ["loader"]


def test_formats_and_sections_are_those_there_are() -> None:
    assert ("auto", *READERS) == LOG_FORMATS
    assert SECTIONS == DETAILS
