"""What a start imports: help needs click alone, a single training job needs numpy but no heavier library."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.architecture.modules import ROOT

SDKS = {"boto3", "botocore", "google", "azure"}
HEAVY = {"pandas", "scipy", "matplotlib", "plotly", "highspy", "pint", *SDKS}
NOT_FOR_HELP = {
    *HEAVY,
    "numpy",
    "pydantic",
    "rich",
    "yaml",
    "requests",
    "platformdirs",
    "catalogs",
    "solvers",
}


def _imported(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "planner", *args],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("args", [("--help",), ("--version",)])
def test_help_imports_click_and_nothing_heavier(args: tuple[str, ...]) -> None:
    imported = _imported(*args)
    assert "click" in imported
    assert imported & NOT_FOR_HELP == set()


@pytest.mark.parametrize("fmt", ["table", "json"])
def test_a_single_training_job_needs_no_heavy_library(fmt: str) -> None:
    imported = _imported("optimize", "examples/llama-3-8b.yaml", "-o", fmt)
    assert "numpy" in imported
    assert imported & {*HEAVY, "rich", "requests"} == set()
