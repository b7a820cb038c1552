"""One run, all the way: plan, export, a real Slurm, log, track, calibrate, plan again, bill, review by run id."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.export.names import RUN_TAG
from tests.conftest import ROOT, CliResult
from tests.focus_company import make_company
from tests.focus_company.runs import Run
from tests.planner.export import slurm as helper
from tests.planner.export.slurm import Slurm, slurm, until
from tests.planner.export.validators import shellcheck

EXAMPLE = ROOT / "examples" / "running"
DAY = date(2026, 10, 5)
STEP_S, STEPS, BATCH_TOKENS = 4.2, 3815, 64 * 4096  # of the stand-in for a training
STARTED = datetime(2026, 10, 5, 0, 20, tzinfo=UTC)


@pytest.fixture
def planner(run_cli: Callable[..., CliResult]) -> Callable[..., Any]:
    """Run the program for its JSON."""

    def run(*words: str | Path) -> Any:
        done = run_cli(*map(str, words), "-o", "json")
        assert done.code == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def submit(server: Slurm) -> None:
    """As a user in the folder of the job, whose machine has no PyTorch."""
    done = server.run(
        "sbatch", "job.sbatch", PATH=f"{server.folder}:{os.environ['PATH']}", STARTED=STARTED.isoformat(),
        ROW_SECONDS="0.05", STEP_SECONDS=str(STEP_S),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def tags_of(job: str) -> dict[str, str]:
    """What Slurm keeps of the export's tags."""
    found = re.search(r"Comment=(.+)", job)
    assert found is not None, job
    return dict(word.split("=", 1) for word in found[1].split())


def as_billed(tags: dict[str, str], plan: Any, hours: float, price: float) -> Run:
    """The run as the generated bill has it: the run id is that of the export, the hours are those of the log."""
    return Run(
        tags[RUN_TAG], "aws-gpu", 0, "spot", DAY, 1, hours, price, 0, 0.0, STEPS * BATCH_TOKENS, 1, plan["hours"],
        price, tag_key=RUN_TAG,
    )  # fmt: skip


def test_the_stand_ins_are_clean_for_shellcheck() -> None:
    assert (
        shellcheck(*((EXAMPLE / name).read_text(encoding="utf-8") for name in ("train.sh", "torchrun"))) == ""
    )


def test_where_slurm_is_required_its_absence_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for required, end in ((True, pytest.fail.Exception), (False, pytest.skip.Exception)):
        monkeypatch.setattr(helper, "REQUIRED", required)
        with pytest.raises(end, match="slurmctld is not installed"), slurm(tmp_path / "none", real=True):
            pass


def test_from_the_plan_to_the_bill(
    planner: Callable[..., Any],
    run_cli: Callable[..., CliResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    with slurm(tmp_path / "job", real=True) as server:
        folder = server.folder
        for name in ("workload.yaml", "train.sh", "torchrun"):
            shutil.copy(EXAMPLE / name, folder)
        workload, saved, log = folder / "workload.yaml", folder / "plan.json", folder / "progress.csv"

        plan = planner("optimize", workload, "--as-of", DAY)
        page_says(page, run_cli("optimize", str(workload), "--as-of", str(DAY)), lines=7)
        saved.write_text(json.dumps(plan), encoding="utf-8")
        assert run_cli("export", saved, "--to", "slurm", "--out", folder).code == 0
        assert "\n".join((folder / "job.sbatch").read_text(encoding="utf-8").splitlines()[:16]) in page

        submit(server)
        assert until(60, lambda: log.exists() and log.read_text().count("\n") > 40)
        under_way = planner("track", saved, "--log", log)
        assert until(60, lambda: "JobState=COMPLETED" in server.run("scontrol", "show", "job", "1").stdout)
        job = server.run("scontrol", "show", "job", "1").stdout

    tags = tags_of(job)
    assert tags == {RUN_TAG: plan["run_id"], "workload": "fine-tune-8b", "team": "research"}
    assert 0.1 < under_way["done_ratio"] < 1.0 and under_way["run_id"] == plan["run_id"]
    assert STEP_S < under_way["speed"]["step_time_s"] < 1.1 * STEP_S  # with checkpoints

    finished = planner("track", saved, "--log", log)
    page_says(page, run_cli("track", str(saved), "--log", str(log)), lines=7)
    assert finished["done_steps"] == STEPS and finished["p_late_ratio"] == 0.0
    hours = (datetime.fromisoformat(finished["now"]) - STARTED).total_seconds() / 3600 + 1 / 3
    assert hours == pytest.approx((STEPS * STEP_S + saves_s(log)) / 3600 + 1 / 3, rel=0.01)

    planner("calibrate", workload, log, "--instance-type", "p5.48xlarge")
    again = planner("optimize", workload, "--as-of", DAY)
    page_says(page, run_cli("optimize", str(workload), "--as-of", str(DAY)), lines=7)
    assert (
        speed(again) == pytest.approx(BATCH_TOKENS / STEP_S, rel=0.01) != pytest.approx(speed(plan), rel=0.05)
    )
    assert spread(again) < 0.3 * spread(plan)
    assert again["hours"] > plan["hours"] and float(again["total_usd"]) > float(plan["total_usd"])

    price = float(plan["lines"][0]["costs"][0]["unit_price"]) * 1.1
    run = as_billed(tags, plan, hours, price)
    made = make_company(
        [date(2026, 9, 1), date(2026, 10, 1)], out=tmp_path / "bill", version="1.2", more_runs=(run,)
    )
    # others tag their runs in their own way
    assert {each.tag_key for each in made.runs} == {"run_id", RUN_TAG}

    bill = tmp_path / "bill"
    ask = ("review", "--focus", bill, "--plans", saved, "--no-forecast")
    said, (row,) = reviewed(planner(*ask))
    assert f"1 planned run, joined by the tag {RUN_TAG}, cost" in said
    assert row["run_id"] == plan["run_id"] and row["workload"] == "fine-tune-8b"
    assert row["billed"] == pytest.approx(hours * price)
    assert row["planned"] == pytest.approx(float(plan["total_usd"]))
    assert row["price"] == pytest.approx(price) and row["hours"] == pytest.approx(hours)
    page_says(page, run_cli(*map(str, ask)), head="Did plans match the bill?", lines=14)
    said, rows = reviewed(planner(*ask, "--run-tag", "run_id"))
    assert "in the tag 'run_id'" in said and not rows

    spent = planner("track", saved, "--log", log, "--bill", bill)
    page_says(
        page, run_cli("track", str(saved), "--log", str(log), "--bill", str(bill)), head="COST", lines=1
    )
    assert (
        spent["spent_usd"] == pytest.approx(hours * price) and spent["spent_from"] != finished["spent_from"]
    )


def page_says(page: str, answer: CliResult, *, lines: int, head: str = "") -> None:
    """docs/running.md shows these lines of an answer as they are now, from the one that begins with `head`."""
    assert answer.code == 0, answer.stderr
    whole = answer.stdout.splitlines()
    at = next(number for number, line in enumerate(whole) if line.startswith(head))
    shown = [line for line in whole[at : at + lines] if "\x1b" not in line]
    assert len(shown) == lines and "\n".join(shown) in page, "\n".join(shown)


def saves_s(log: Path) -> float:
    """Seconds of checkpoints by the log."""
    with log.open(encoding="utf-8", newline="") as file:
        return sum(float(row["checkpoint_seconds"]) for row in csv.DictReader(file))


def speed(plan: Any) -> float:
    """Tokens per second."""
    return float(plan["performance"]["throughput_per_s"])


def spread(plan: Any) -> float:
    """High over low speed, less 1."""
    told = plan["performance"]
    return float(told["throughput_high_per_s"] / told["throughput_low_per_s"] - 1)


def reviewed(made: Any) -> tuple[str, list[dict[str, Any]]]:
    """What the section on plans says, and its rows."""
    section = next(each for each in made["sections"] if each["key"] == "plan_vs_actual")
    return " ".join(section["sentences"]), [
        dict(zip((column["key"] for column in table["columns"]), row, strict=True))
        for table in section["tables"][:1]
        for row in table["rows"]
    ]
