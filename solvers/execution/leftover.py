"""Solver threads that were left behind at a time limit, and how a program ends while one is still at work.

A solver cannot be stopped from outside its own code. Python ends such threads by ending the process, but a C++ library
then takes down its own threads in the middle of their work and aborts: the answer was printed, and the exit code says
that the program crashed. So a program that has its exit code calls `leave_with`: if a solver is still at work when the
interpreter ends, the process ends at once with that code, after its output was flushed.

A program that says nothing of its code (a script, a notebook) waits at its end for the solvers, which stop soon after
their own time limits. Those that do not within `PATIENCE_S` are cut off after the end of the interpreter, where the C
library still knows the code. Until then one may come back from C++ and ask for the interpreter: Python before 3.14
unwinds the thread then, and C++ code that allows no unwinding (pybind11's destructors) ends the process with
"terminate called without an active exception". Such a thread is put to sleep instead, as Python 3.14 does.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time

PATIENCE_S = 2.0

_threads: list[threading.Thread] = []
_exit_code: int | None = None


def watch(thread: threading.Thread) -> None:
    """Remember a thread that runs a solver."""
    if not _threads:
        atexit.register(_leave)
    _threads[:] = [*(watched for watched in _threads if watched.is_alive()), thread]


def leave_with(code: int) -> None:
    """Set the exit code of a program that ends while a solver is still running."""
    global _exit_code
    _exit_code = code


def _leave() -> None:
    if not _running():
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if _exit_code is not None:
        os._exit(_exit_code)
    end = time.monotonic() + PATIENCE_S
    for thread in _running():
        thread.join(max(end - time.monotonic(), 0.0))
    if _running():
        _skip_destructors()


def _running() -> list[threading.Thread]:
    return [thread for thread in _threads if thread.is_alive()]


def _skip_destructors() -> None:
    """Let the C library call `_exit` with the exit code before it takes down what solvers still use (glibc only).

    And let a thread sleep that C++ would end the process for (libstdc++ only).
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)
        cpp = ctypes.CDLL("libstdc++.so.6")
        cpp._ZSt13set_terminatePFvvE(ctypes.cast(library.pause, ctypes.c_void_p))  # std::set_terminate
