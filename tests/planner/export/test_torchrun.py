"""The script of torchrun: shellcheck, and torchrun's own options."""

from __future__ import annotations

import subprocess

import pytest

from planner.export.registry import Options, export
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import shellcheck


@pytest.mark.parametrize("name", LAUNCHES)
def test_shellcheck_finds_nothing(name: str) -> None:
    assert shellcheck(export(LAUNCHES[name], "torchrun", Options())[0].text) == ""


def test_without_a_command_the_script_stops_with_the_remedy() -> None:
    script = export(LAUNCHES["azure"], "torchrun", Options())[0].text
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=20
    )
    assert done.returncode != 0
    assert "set run.command in workload.yaml" in done.stderr
