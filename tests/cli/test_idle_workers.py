"""Fleets with workers that no run falls to, kept for the memory asked for: the judge charges them as the plan does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_optimize import example
from tests.conftest import Run

pytestmark = pytest.mark.catalog("small")


ON_DEMAND = ("--set", "constraints.purchase_options=[on_demand]", "--set", "constraints.providers=[gcp]")


@pytest.mark.parametrize("options", [(), ON_DEMAND])
def test_a_mix_with_idle_workers_is_verified(run_cli: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    limits = ("constraints.min_total_memory_gib=6000", "constraints.budget_usd=100000")
    settings = [*options, *(word for limit in limits for word in ("--set", limit))]
    saved = tmp_path / "plan.json"
    done = run_cli(
        "optimize",
        example("hpo-fleet"),
        "--as-of",
        "2026-11-20",
        *settings,
        "-o",
        "json",
        "--out",
        str(saved),
    )
    assert done.code == 0, done.stderr
    lines = json.loads(saved.read_text(encoding="utf-8"))["lines"]
    assert any(line["throughput_per_s"] == 0 for line in lines)
    checked = run_cli("verify", str(saved), "--workload", example("hpo-fleet"), *settings)
    assert checked.code == 0, checked.stdout
