"""A job that starts in another year than the one of planning: the deadline says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import CliResult

BASE = """version: 1
name: later
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
start: %s
constraints: {deadline: 7d, max_nodes: 1}
"""


def test_a_deadline_in_another_year_names_it(run_cli: Callable[..., CliResult], tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    heads = []
    for start in ("2027-06-01", "2026-12-01"):
        path.write_text(BASE % start, encoding="utf-8")
        done = run_cli("optimize", str(path), "--as-of", "2026-11-20")
        assert done.code == 0, done.stderr
        heads.append(done.stdout.splitlines()[0])
    assert "by Jun 8, 2027 00:00" in heads[0] and "by Dec 8 00:00" in heads[1]
