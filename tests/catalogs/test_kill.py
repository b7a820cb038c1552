"""Writers killed anywhere leave the old or the new snapshot, whole, and no lock."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CliResult
from tests.draws import share_of

# at random, beside those before each change of the file system
KILLS, REFRESHES = share_of(220), share_of(200)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked writers")


def test_writers_killed_anywhere_never_show_a_mix(
    tmp_path: Path, run_process: Callable[..., CliResult]
) -> None:
    done = run_process(
        *("-m", "tests.catalogs.kill_driver", str(KILLS), "20261120"),
        python=True,
        env={"OPENBLAS_NUM_THREADS": "1", "PLANNER_DATA_DIR": str(tmp_path)},
    )
    assert done.code == 0, done.stderr
    assert not done.stderr  # no reader had to fall back
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert found["kills"] == KILLS
    assert found["steps"] >= 10  # and once before each change of the file system
    assert found["written"] > share_of(20)
    assert found["reads"] > found["versions"] > share_of(20)
    assert found["left"] == []
    assert found["last"]


def test_refreshes_killed_anywhere_never_show_a_mix(
    tmp_path: Path, run_process: Callable[..., CliResult]
) -> None:
    done = run_process(
        *("-m", "tests.catalogs.refresh_kill_driver", str(REFRESHES), "20261120"),
        python=True,
        env={"OPENBLAS_NUM_THREADS": "1", "PLANNER_DATA_DIR": str(tmp_path)},
    )
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert found["kills"] == REFRESHES
    assert found["written"] > 5
    assert found["reads"] > share_of(100)
    assert found["left"] == []
    assert found["last"]
