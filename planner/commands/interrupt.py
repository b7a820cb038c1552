"""Ctrl-C, for every command alike: the search stops, the best answer known is shown, and the exit code is 130.

A search turns `KeyboardInterrupt` into the best point and bound that it has. The command then has `GRACE_S` seconds to
show that answer; after them, or at a second Ctrl-C, the program ends without it. What a command does with an answer
decides no exit code here: a program that was interrupted says so.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

GRACE_S = 2.0  # for the answer known so far


class EndedError(BaseException):
    """The program must end now; not an `Exception` or a `KeyboardInterrupt`, so that no search takes it for its own."""


@dataclass
class Interruption:
    """What became of Ctrl-C in a block: whether it was pressed."""

    happened: bool = False
    over: bool = False  # the block has ended: nothing is left to stop


@contextlib.contextmanager
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
