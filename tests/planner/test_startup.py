"""How the program's own process is set up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASK = """
import os
from planner import startup
startup._start_quickly()
print(os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.parametrize(
    ("own", "threads"),
    [
        ({}, "1"),
        ({"OMP_NUM_THREADS": "3"}, "3"),
        ({"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "2"}, "2"),
    ],
)
def test_threads_that_a_user_sets_are_kept(own: dict[str, str], threads: str) -> None:
    given = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=given | own, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == threads
