"""What the answer of a pipeline claims and proposes where no plan keeps its limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import CliResult

Run = Callable[..., CliResult]

FILE = """\
version: 1
kind: pipeline
name: pair
start: 2027-02-01
{limits}
tasks:
  - name: first
    candidates:
      - {{provider: aws, region: us-east-1, instance_type: big, nodes: 1, hours: 6.0037, usd_per_hour: 20}}
      - {{provider: aws, region: us-east-1, instance_type: small, nodes: 1, hours: 9, usd_per_hour: 10.0001}}
  - name: second
    candidates:
      - {{provider: aws, region: us-east-1, instance_type: big, nodes: 1, hours: 8, usd_per_hour: 5}}
    reads: [{{task: first, size: 1GB}}]
"""


def _plan(folder: Path, run_cli: Run, limits: str, *options: str) -> CliResult:
    file = folder / "pipeline.yaml"
    file.write_text(FILE.format(limits=limits), encoding="utf-8")
    return run_cli("pipeline", str(file), "--as-of", "2026-11-20", *options)


def test_a_plan_over_the_budget_is_not_called_feasible_and_the_budget_named_is_enough(
    tmp_path: Path, run_cli: Run
) -> None:
    result = _plan(tmp_path, run_cli, "budget_usd: 100")
    text = " ".join(result.stdout.split())
    assert result.code == 3
    assert "PLAN none within the budget" in text and "Cheapest plan of the 3 candidates considered" in text
    assert "whatever the budget" in text and "easible plan" not in text
    assert "budget $100 -> $131" in text  # 9 x $10.0001 + $40 = $130.0009
    assert _plan(tmp_path, run_cli, "budget_usd: 131").code == 0
    assert _plan(tmp_path, run_cli, "budget_usd: 130.00").code == 3


def test_the_deadline_named_is_enough(tmp_path: Path, run_cli: Run) -> None:
    result = _plan(tmp_path, run_cli, "deadline: 10h")
    assert result.code == 3
    assert "deadline 10.0 h -> 14.1 h" in " ".join(result.stdout.split())  # 14.0037 h
    assert _plan(tmp_path, run_cli, "deadline: 14.1h").code == 0
    assert _plan(tmp_path, run_cli, "deadline: 14h").code == 3
    least = json.loads(_plan(tmp_path, run_cli, "deadline: 10h", "-o", "json").stdout)["least_hours"]
    assert abs(least - 14.0037) < 1e-9
