"""The choice `one offer` of a fleet from the command line: it is verified, and a forged one is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import Run

JOB = """
version: 1
kind: fleet
name: search5
model: { preset: resnet-50 }
training: { epochs: 30, global_batch: 256, precision: fp16, optimizer: sgd }
data: { samples: 126_689, sample_size: 114660B, location: aws/us-east-1 }
fleet: { runs: 5 }
spot: { fallback: none }
constraints:
  deadline: 26h
  max_nodes: 6
  instance_types: { allow: [Standard_NC24ads_A100_v4, Standard_NC40ads_H100_v5] }
"""


def test_one_offer_beside_a_mix_is_recomputed(run_cli: Run, tmp_path: Path) -> None:
    job, saved = tmp_path / "job.yaml", tmp_path / "plan.json"
    job.write_text(JOB, encoding="utf-8")
    made = run_cli("optimize", str(job), "--as-of", "2026-11-28", "-o", "json", "--out", str(saved))
    assert made.code == 0, made.stderr
    plan = json.loads(saved.read_text(encoding="utf-8"))
    assert len(plan["lines"]) > 1
    (at,) = [at for at, choice in enumerate(plan["choices"]) if "one_offer" in choice["kinds"]]
    assert plan["choices"][at]["p_meet_deadline"] >= 0.9 - 1e-6
    assert run_cli("verify", str(saved), "--workload", str(job)).code == 0

    def forged(change: Callable[[dict[str, Any]], None]) -> int:
        other = json.loads(saved.read_text(encoding="utf-8"))
        change(other["choices"][at])
        path = tmp_path / "forged.json"
        path.write_text(json.dumps(other), encoding="utf-8")
        return run_cli("verify", str(path), "--workload", str(job)).code

    assert forged(lambda one: one["best"].update(cost_usd=str(float(one["best"]["cost_usd"]) * 0.99))) == 5
    assert forged(lambda one: one.update(p_meet_deadline=0.99)) == 5
    assert forged(lambda one: one.update(kinds=["firm"])) == 5
