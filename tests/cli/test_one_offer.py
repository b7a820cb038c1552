"""The choice `one offer` of a fleet from the command line: it is verified, and a forged one is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import CliResult

JOB = """
version: 1
kind: fleet
name: bert24
model: { preset: bert-base }
training: { samples: 1_000_000, global_batch: 32, sequence_length: 128, precision: fp16 }
data: { samples: 1_000_000, sample_size: 2KB }
fleet: { runs: 24 }
constraints:
  deadline: 24h
  max_nodes: 12
  regions: ["*", "cn-*"]
  purchase_options: [spot]
  instance_types: { allow: [g2-standard-4, Standard_NC4as_T4_v3, ecs.gn7i-c8g1.2xlarge] }
"""
Run = Callable[..., CliResult]


def test_one_offer_beside_a_mix_is_recomputed(run_cli: Run, tmp_path: Path) -> None:
    job, saved = tmp_path / "job.yaml", tmp_path / "plan.json"
    job.write_text(JOB, encoding="utf-8")
    made = run_cli("optimize", str(job), "--as-of", "2026-11-20", "-o", "json", "--out", str(saved))
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
