"""Limits of a task's workload file: a pipeline has its own, and says so where it has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CliResult

WORKLOAD = """version: 1
name: small
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
constraints: {deadline: 2d, budget_usd: 500, max_nodes: 1}
"""
PIPELINE = "version: 1\nkind: pipeline\nname: two\n%stasks:\n  - {name: a, workload: w.yaml}\n"


@pytest.mark.parametrize(
    ("own", "left_out"),
    [
        ("", ["deadline", "budget_usd"]),
        ("deadline: 3d\n", ["budget_usd"]),
        ("deadline: 3d\nbudget_usd: 900\n", []),
    ],
)
def test_a_limit_that_does_not_apply_is_named(
    run_cli: Callable[..., CliResult], tmp_path: Path, own: str, left_out: list[str]
) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD, encoding="utf-8")
    (tmp_path / "p.yaml").write_text(PIPELINE % own, encoding="utf-8")
    done = run_cli("pipeline", str(tmp_path / "p.yaml"), "--as-of", "2026-11-20", "--details", "warnings")
    assert done.code == 0, done.stderr
    for key in ("deadline", "budget_usd"):
        said = f"a: its workload's {key} does not apply here: state the pipeline's own {key}"
        assert (said in done.unwrapped) == (key in left_out)
