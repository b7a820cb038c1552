"""The program's own process: what a short command does before it imports numpy, and what Ctrl-C does to any command.

Imports: no thread pool, and no garbage collection while modules load.

Ctrl-C: the search stops, the best answer known is shown, and the exit code is 130.

A search turns `KeyboardInterrupt` into the best point and bound that it has. The command then has `GRACE_S` seconds to
show that answer; after them, or at a second Ctrl-C, the program ends without it. What a command does with an answer
decides no exit code here: a program that was interrupted says so.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_THREADS = "OPENBLAS_NUM_THREADS"
GRACE_S = 2.0  # for the answer known so far


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import modules inside this block at less cost.

    numpy's BLAS starts a thread per core when it is loaded, and idle threads spin for a while: on two cores that is a
    third of numpy's import. Planning multiplies no matrices, so one thread is enough; who wants more sets the
    variable. Modules make many objects and no garbage, so the collector would search in vain, now and at the exit.
    In a process that has numpy already (a notebook, a test) nothing is changed.
    """
    if "numpy" in sys.modules:
        yield
        return
    own_threads, collecting = _THREADS not in os.environ, gc.isenabled()
    if own_threads:
        os.environ[_THREADS] = "1"
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()
        if own_threads:
            del os.environ[_THREADS]


class EndedError(BaseException):
    """The program must end now; not an `Exception` or a `KeyboardInterrupt`, so that no search takes it for its own."""


@dataclass
class Interruption:
    """What became of Ctrl-C in a block: whether it was pressed."""

    happened: bool = False
    over: bool = False  # the block has ended: nothing is left to stop


@contextmanager
def watch_for_interrupt() -> Iterator[Interruption]:
    """Handle Ctrl-C inside the block as the module's text says.

    Nothing is changed outside the main thread, or where the process was started to ignore Ctrl-C.
    """
    seen = Interruption()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        if not seen.over:
            raise EndedError

    def stop(_signal: int, _frame: FrameType | None) -> None:
        seen.happened = True
        signal.signal(signal.SIGINT, end)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, end)
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield seen
    finally:
        seen.over = True
        if seen.happened and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
