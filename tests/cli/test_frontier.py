"""`planner frontier` on the bundled catalog, as a user types it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_optimize import write
from tests.conftest import ROOT, Run

DAY = ("--as-of", "2026-11-20")
pytestmark = pytest.mark.catalog("small")
IMAGES = str(ROOT / "examples" / "images-100gb.yaml")


def test_the_table_thins_and_the_data_formats_hold_all(
    run_cli: Run, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.job.frontier.frontier")
    table = run_cli("frontier", IMAGES, "--points", "4", *DAY)
    assert table.code == 0 and "points between not shown" in table.stdout
    assert re.search(r"next: planner optimize FILE --set constraints\.deadline=\d+h(\d+m)?,", table.unwrapped)
    found = json.loads(run_cli("frontier", IMAGES, "-o", "json", *DAY).stdout)
    assert found["points"] and found["deadline_confidence"] == 0.9
    assert len(run_cli("frontier", IMAGES, "-o", "csv", *DAY).stdout.splitlines()) == 1 + len(found["points"])


@pytest.mark.parametrize("fmt", ["table", "md"])
def test_nothing_possible_is_exit_3(tmp_path: Path, fmt: str, run_cli: Run) -> None:
    text = (ROOT / "examples" / "llama-3-8b.yaml").read_text(encoding="utf-8")
    path = tmp_path / "w.yaml"
    path.write_text(
        text.replace("constraints:", "constraints:\n  min_total_memory_gib: 900000"), encoding="utf-8"
    )
    result = run_cli("frontier", str(path), "-o", fmt, *DAY)
    assert (
        result.code == 3 and "no candidate passes the limits other than deadline and budget" in result.stdout
    )


def test_a_fleet_has_no_frontier(run_cli: Run) -> None:
    result = run_cli("frontier", str(ROOT / "examples" / "hpo-fleet.yaml"), *DAY)
    assert result.code == 2 and "one synchronous job" in result.stderr and not result.stdout


def test_the_last_deadline_is_listed_once_and_none_is_rounded_down(
    run_cli: Run, tmp_path: Path, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.job.frontier.frontier")
    path = tmp_path / "w.yaml"
    path.write_text(
        "version: 1\nname: w\nmodel: {preset: bert-base}\n"
        "training: {epochs: 3, global_batch: 32, sequence_length: 128}\n"
        "data: {samples: 25_000, sample_size: 1KB}\nconstraints: {deadline: 1d, providers: [gcp]}\n",
        encoding="utf-8",
    )
    points = json.loads(run_cli("frontier", str(path), "-o", "json", *DAY).stdout)["points"]
    deadlines = [point["deadline_hours"] for point in points]
    assert min(np.diff(deadlines)) > 1e-6 and 24.0 in deadlines
    table = run_cli("frontier", str(path), *DAY)
    soonest = re.search(r"SOONEST .* by (Nov 20 \d\d:\d\d)", table.stdout)
    assert soonest is not None and deadlines[0] < 1.0
    by = datetime.strptime(f"2026 {soonest[1]}", "%Y %b %d %H:%M")
    assert 0 <= (by - datetime(2026, 11, 20)).total_seconds() / 3600.0 - deadlines[0] <= 1 / 60
    assert re.search(r"--set constraints\.deadline=\d+m,", table.unwrapped)


def test_the_cheapest_is_the_cheapest_of_any_deadline(run_cli: Run, tmp_path: Path) -> None:
    """Spot that no deadline admits alone is on no front of single offers; with a fall-back it gets cheaper."""
    path = write(
        tmp_path, model={"preset": "llama-3.1-8b"},
        training={"tokens": 2e9, "global_batch": 64, "sequence_length": 2048}, data={"location": "aws/us-west-2"},
        constraints={
            "deadline": "1h", "regions": ["aws/us-west-2"], "accelerators": {"allow": ["h100-*"]}, "max_nodes": 4,
        },
    )  # fmt: skip
    points = json.loads(run_cli("frontier", path, "-o", "json", *DAY).stdout)["points"]
    late = run_cli("optimize", path, "--set", "constraints.deadline=60d", "-o", "json", *DAY)
    assert float(points[-1]["cost_usd"]) <= 1.031 * float(json.loads(late.stdout)["total_usd"])
