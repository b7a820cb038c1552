"""What workers compute in tests: a module that costs little to import, because every process that starts imports it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from planner.errors import InputError


def square(value: int) -> int:
    return value * value


def fail(value: int) -> int:
    raise InputError(f"no {value}")


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def logged_square(item: tuple[int, str]) -> int:
    """The square, and a line in a log for each time that it is computed."""
    value, log = item
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{value}\n")
    return value * value


def killed(item: tuple[int, str]) -> int:
    """As `logged_square`; the first process at item 1 dies, and every one at item 3."""
    value, log = item
    marker = Path(log).with_suffix(".killed")
    if value == 3 or (value == 1 and not marker.exists()):
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return logged_square(item)
