"""Keep a solver's own printing away from standard output, which carries the caller's answer only.

HiGHS 1.12 prints a debugging line with `printf` in rare cases, whatever its options say, and C's buffer
would bring it out at process exit. So descriptor 1 points to the null device while a solver runs in this
process, and C's buffer is emptied before it is given back. Anything other threads write to descriptor 1
meanwhile is lost: a thread that its caller left behind at a time limit must not silence what the caller prints.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterator

_lock = threading.Lock()
_depth = 0
_saved = -1
_moment = threading.Lock()
_left_behind: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class LeftBehindError(Exception):
    """The caller of this thread has stopped waiting for it."""


def leave_behind(thread: threading.Thread) -> None:
    """Forbid `thread` to silence standard output from now on; waits for a `quiet_moment` that has begun."""
    with _moment:
        _left_behind.add(thread)


@contextlib.contextmanager
def quiet_moment() -> Iterator[None]:
    """Silence descriptor 1 for a few milliseconds.

    Raises:
        LeftBehindError: in a thread that was left behind.
    """
    with _moment:
        if threading.current_thread() in _left_behind:
            raise LeftBehindError("no caller waits for this solver")
        with quiet_stdout():
            yield


@contextlib.contextmanager
def quiet_stdout() -> Iterator[None]:
    """Silence descriptor 1 for the duration; nests, and does nothing where there is no such descriptor."""
    silenced = _silence()
    try:
        yield
    finally:
        if silenced:
            _restore()


def _silence() -> bool:
    global _depth, _saved
    with _lock:
        if _depth == 0:
            try:
                _flush()
                _saved = os.dup(1)
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.close(null)
            except OSError:
                return False
        _depth += 1
        return True


def _restore() -> None:
    global _depth, _saved
    with _lock:
        _depth -= 1
        if _depth == 0:
            _flush_c()
            os.dup2(_saved, 1)
            os.close(_saved)
            _saved = -1


def _flush() -> None:
    """Flush what was written before, so that it is not lost."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    _flush_c()


@functools.cache
def _c_library() -> ctypes.CDLL:
    """The C library of this process; looking it up takes longer than a flush."""
    return ctypes.CDLL(None)


def _flush_c() -> None:
    with contextlib.suppress(OSError, AttributeError, TypeError):
        _c_library().fflush(None)
