"""Solver threads that were left behind at a time limit, and how a program ends while one is still at work.

A solver cannot be stopped from outside its own code. Python ends such threads by ending the process, but a C++ library
then takes down its own threads in the middle of their work and aborts: the answer was printed, and the exit code says
that the program crashed. So a program that has its exit code calls `leave_with`: if a solver is still at work when the
interpreter ends, the process ends at once with that code, after its output was flushed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading

_threads: list[threading.Thread] = []
_exit_code: int | None = None


def watch(thread: threading.Thread) -> None:
    """Remember a thread that runs a solver."""
    if not _threads:
        atexit.register(_leave)
    _threads[:] = [*(known for known in _threads if known.is_alive()), thread]


def leave_with(code: int) -> None:
    """Say with which code the program ends, should a solver still be at work then."""
    global _exit_code
    _exit_code = code


def _leave() -> None:
    if _exit_code is None or not any(thread.is_alive() for thread in _threads):
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(_exit_code)
