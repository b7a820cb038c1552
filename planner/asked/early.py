"""The process before the program has imported its modules: signals that end it, and standard streams that are closed.

`planner/__init__.py` calls `guard` before any other import; `planner.startup` takes the signals over for a command.
"""

from __future__ import annotations

import os
import sys
from types import FrameType


def leave(number: int, _frame: FrameType | None) -> None:
    """End the process with the exit code that a shell reports of the signal; nothing has been begun."""
    os._exit(128 + number)


def is_program() -> bool:
    """Whether this process is `planner` or `python -m planner`, not one that imports the package."""
    given = getattr(sys, "argv", None) or [""]
    words = sys.orig_argv
    if given[0] not in words:  # a worker that was started with its parent's arguments
        return False
    if given[0] == "-m":
        return words[words.index("-m") + 1 :][:1] == ["planner"]
    return os.path.basename(given[0]) in ("planner", "planner.exe")  # noqa: PTH119 - without importing pathlib


def guard() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the program; one that it was started to ignore stays ignored."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, leave)


def open_streams() -> None:
    """Open the standard streams that whoever started the program closed (`>&-`), before another file has their number.

    Reading gives nothing, messages go nowhere, and writing an answer fails as on a full disk.
    """
    ways = {"stdin": os.O_RDONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, way) in enumerate(ways.items()):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, way)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(
                sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)
            )
