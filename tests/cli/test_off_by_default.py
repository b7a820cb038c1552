"""Regions that an account must enable first are named by every question whose answer rests on one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from planner.plan.words import enable_first
from tests.conftest import Run

DAY = ("--as-of", "2026-11-20")
SAID = "eu-south-2 is off by default: enable it in the account first"
JOB = (
    "version: 1\nname: tiny\nmodel: {preset: bert-base}\n"
    "training: {epochs: 3, global_batch: 32, sequence_length: 128}\n"
    "data: {samples: 25_000, sample_size: 1KB}\n"
    "constraints: {deadline: 1d, regions: [REGION]}\n"
)
SERVING = (
    "version: 1\nkind: serving\nname: small\nbuckets: [{name: chat, requests_per_s: 1}]\n"
    "machines:\n  - {name: a, provider: aws, region: REGION, instance_type: p5en.48xlarge, requests_per_s: {chat: 4}}\n"
)
SCHEDULE = (
    "version: 1\nkind: schedule\nname: one\nstart: 2026-12-01\nforecast_csv: forecast.csv\n"
    "pools: [{name: a, provider: aws, region: REGION, work_per_node_hour: 100}]\n"
    "jobs: [{name: train, work: 200, deadline: 4h, max_nodes: 1}]\n"
)


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], dict[str, Path]]:
    """Input files by kind, all in one region."""

    def write(region: str) -> dict[str, Path]:
        texts = {
            "job": JOB,
            "serving": SERVING,
            "schedule": SCHEDULE,
            "portfolio": "version: 1\nkind: portfolio\nname: one\njobs: [{workload: job.yaml, name: a}]\n",
            "pipeline": "version: 1\nkind: pipeline\nname: one\ntasks: [{name: a, workload: job.yaml}]\n",
            "sweep": "version: 1\nkind: sweep\nname: one\nworkloads: [job.yaml]\ndays: [2026-11-20]\n",
        }
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text.replace("REGION", region), encoding="utf-8")
        (tmp_path / "forecast.csv").write_text(
            "hour,pool,usd_per_hour,available_nodes\n" + "".join(f"{hour},a,1,1\n" for hour in range(4)),
            encoding="utf-8",
        )
        return {name: tmp_path / f"{name}.yaml" for name in texts}

    return write


def questions(path: dict[str, Path], out: Path) -> dict[str, tuple[object, ...]]:
    """Commands by name."""
    return {
        "frontier": ("frontier", path["job"], *DAY),
        "compare": ("compare", path["job"], "--over", "region", *DAY),
        "portfolio": ("portfolio", path["portfolio"], *DAY),
        "portfolio_frontier": ("portfolio", path["portfolio"], "--frontier", "2", *DAY),
        "pipeline": ("pipeline", path["pipeline"], *DAY),
        "serving": ("serving", path["serving"], *DAY),
        "schedule": ("schedule", path["schedule"]),
        "sweep": ("sweep", path["sweep"], "--results", out / "rows.csv"),
    }


@pytest.mark.parametrize(
    "name",
    ["frontier", "compare", "portfolio", "portfolio_frontier", "pipeline", "serving", "schedule", "sweep"],
)
def test_a_region_that_is_off_is_named(
    name: str, files: Callable[[str], dict[str, Path]], tmp_path: Path, run_cli: Run
) -> None:
    shown = run_cli(*questions(files("eu-south-2"), tmp_path)[name])
    assert shown.code == 0, shown.stderr
    assert SAID in shown.unwrapped


# all ask the same function about the regions that they buy in
@pytest.mark.parametrize("name", ["compare", "portfolio"])
def test_no_other_region_is_named(
    name: str, files: Callable[[str], dict[str, Path]], tmp_path: Path, run_cli: Run
) -> None:
    shown = run_cli(*questions(files("us-east-1"), tmp_path)[name])
    assert shown.code == 0, shown.stderr
    assert "off by default" not in shown.unwrapped


def test_launch_files_say_so(files: Callable[[str], dict[str, Path]], tmp_path: Path, run_cli: Run) -> None:
    plan = tmp_path / "plan.json"
    assert run_cli("optimize", files("eu-south-2")["job"], *DAY, "-o", "json", "--out", plan).code == 0
    written = run_cli("export", plan, "--to", "skypilot")
    assert written.code == 0 and f"# {SAID}" in written.stdout


def test_several_regions_are_named_once_and_many_cut() -> None:
    off = ("af-south-1", "ap-east-1", "ap-south-2", "eu-south-1", "eu-south-2")
    assert enable_first([("aws", "us-east-1"), ("gcp", "eu-south-2")]) == ()
    assert enable_first([("aws", off[0]), ("aws", off[1]), ("aws", off[0])]) == (
        "af-south-1, ap-east-1 are off by default: enable them in the account first",
    )
    assert enable_first([("aws", one) for one in off])[0].startswith(
        "af-south-1, ap-east-1, ap-south-2, eu-south-1 and 1 more are off by default"
    )
