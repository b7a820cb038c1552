"""The program started without standard streams, or with full ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BERT = str(ROOT / "examples" / "bert-large.yaml")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    ("command", "streams", "code"),
    [
        ("schema", ">&-", 7),
        ("--version", ">&- 2>&-", 7),
        ("init --model bert-base --out {folder}/w.yaml", "<&- >&- 2>&-", 0),
        ("validate none.yaml", "2>&-", 2),
        ("validate none.yaml", "2>/dev/full", 2),
        ("optimize --no-such-option", "2>/dev/full", 2),
        ("export - --to slurm", "<&-", 2),
    ],
)
def test_the_exit_code_is_that_of_the_command(command: str, streams: str, code: int, tmp_path: Path) -> None:
    """`>&-` closes a stream: what is written there is missed by its reader, and no file that is opened gets it."""
    line = f"{sys.executable} -m planner {command.format(folder=tmp_path)} {streams}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "internal" not in done.stderr and done.stdout == ""
    assert (tmp_path / "w.yaml").exists() is (code == 0)
    if streams == ">&-":
        assert done.stderr == "error: standard output: Bad file descriptor\n"
