"""The process of the program: settings made before numpy is imported, limits, signals, and the exit.

At the start, BLAS gets one thread and the garbage collector a high threshold. At the end, no object is destroyed.

Ctrl-C: the search stops, the best answer known is shown, and the exit code is 130.

A search turns `KeyboardInterrupt` into the best point and bound that it has. The command then has `GRACE_S` seconds to
show that answer; after them, or at a second Ctrl-C, the program ends without it. What a command does with an answer
decides no exit code here: a program that was interrupted says so.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import TextIO, TypeVar

import click

from planner.asked import early
from planner.errors import LONGEST_VALUE, with_short_values
from planner.records import record

_Called = TypeVar("_Called", bound=Callable[..., object])
_THREADS = "OPENBLAS_NUM_THREADS"
_REUSED_BYTES = 16 << 20  # larger than any array of a plan
_M_ARENA_MAX = -8  # malloc.h of glibc
_STACK_WORDS = 1 << 16  # half of 1 MiB, so that the interpreter makes a piece of 1 MiB
GRACE_S = 2.0  # for the answer known so far
_MANY_OBJECTS = 100_000  # made between two looks for garbage in cycles, of which a command makes little
_LITTLE = 512 << 20  # a limit of memory within reach of what the libraries take
_NONE_FOUND = "No usable temporary directory"  # as Python's `tempfile` begins to say it
_NO_TEMPORARY = "set TMPDIR to a folder that can be written, or give the container one (--tmpfs /tmp)"
EXIT_INTERNAL = 1
EXIT_MEMORY = 6
EXIT_OUTPUT = 7
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE
EXIT_SIGNAL = 128  # and the number of the signal, as a shell reports it
EXIT_INTERRUPTED = EXIT_SIGNAL + signal.SIGINT


def _start_quickly() -> None:
    """Let the program's own process import its modules and compute at less cost.

    numpy's BLAS starts a thread per core when it is loaded, and idle threads spin for a while: on two cores that is a
    third of numpy's import. Commands hardly multiply matrices, so one thread is enough, here and in processes that this
    one starts; who wants more sets the variable, or OMP_NUM_THREADS, which BLAS takes without it.

    A command makes little garbage in cycles, so it is looked for less often than by default (700 objects), which would
    take a sixtieth of a short command; at 10,000 it was 6 ms, for no less memory. Memory that arrays give back is kept
    for the next ones (`_keep_freed_memory`).
    """
    os.environ.setdefault(_THREADS, os.environ.get("OMP_NUM_THREADS", "1"))
    gc.set_threshold(_MANY_OBJECTS)
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Let the C library keep what large arrays give back.

    By default glibc asks the kernel for each block above 128 KiB and returns it at once, so that every temporary array
    of a plan pays for its pages again, a quarter of all page faults. Its limit rises to the largest such block that was
    freed (mallopt(3), M_MMAP_THRESHOLD); this one is never written to, so it takes no memory. Nothing else changes.
    """
    block = bytes(_REUSED_BYTES)
    del block


def with_room_for_calls(function: _Called) -> _Called:
    """Let what `function` calls, however deep, find room on the interpreter's stack at once.

    CPython keeps the frames of Python functions in pieces of 16 KiB, fifty frames or so. A call that does not fit into
    the last piece asks the kernel for one more, and gives it back when it returns: a loop at that depth does so at
    every turn, 1,100 times in a `planner optimize`. A function that may need much itself gets a large piece, of which
    those below it use the rest. Pages that are never used take no memory.
    """
    if isinstance(function, FunctionType):
        function.__code__ = function.__code__.replace(co_stacksize=_STACK_WORDS)
    return function


@functools.cache
def share_freed_memory() -> None:
    """Let all threads take memory from one place, in a process that answers again and again.

    glibc gives a new thread an arena of its own, and what a solver's or a database's thread gives back there no other
    takes: a process of many answers came to keep half as much again (mallopt(3), M_ARENA_MAX; only glibc has it).
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


_HOLDERS = ("coverage", "dask", "duckdb", "multiprocessing", "ray")  # objects that hold files or processes
_codes: list[int] = []


def end(*, is_program: bool) -> Callable[[int], None] | None:
    """Let the process exit right after its exit functions, as mypy does; to be called before anything else.

    Destroying every module and object only frees memory that the kernel reclaims anyway, and takes a thirtieth of a
    short command. Exit functions still run, threads are joined and output is flushed. Nothing changes if a library was
    loaded whose objects hold more than memory.

    Returns:
        A function to call with the exit code (a solver left running gets it too); without the call the process exits as
        usual. None if the process is not the program's own.
    """
    if not is_program:
        share_freed_memory()
        return None
    early.open_streams()
    _start_quickly()
    atexit.register(_leave)
    return _end_with


def _end_with(code: int) -> None:
    _codes.append(code)
    leftover = sys.modules.get("solvers.execution.leftover")
    if leftover is not None:
        leftover.leave_with(code)


def _leave() -> None:
    if not _codes or any(name in sys.modules for name in _HOLDERS) or threading.active_count() > 1:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # the interpreter says what it says of streams that cannot be written
        return
    os._exit(_codes[-1])


class EndedError(BaseException):
    """The program must end now; not an `Exception` or a `KeyboardInterrupt`, so that no search takes it for its own.

    Attributes:
        signal: what ended it.
    """

    def __init__(self, signal_number: int = signal.SIGINT) -> None:
        super().__init__(signal_number)
        self.signal = int(signal_number)

    def report(self) -> int:
        """Print what ended the program; returns the exit code."""
        return fail("interrupted" if self.signal == signal.SIGINT else "ended", EXIT_SIGNAL + self.signal)


def limit_memory(size_bytes: int) -> None:
    """Limit the private memory of the process and its children; beyond it, `MemoryError` is raised. 0: no limit.

    Mapped files (numpy's own code, the catalog) do not count. No effect on systems without such a limit.
    """
    try:
        import resource
    except ImportError:  # not a Unix
        return
    if 0 < size_bytes < _LITTLE:
        import numpy as np

        # OpenBLAS allocates its buffers at the first product and ends the process where there is no room for them
        np.ones((64, 64)) @ np.ones((64, 64))
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = size_bytes if most == resource.RLIM_INFINITY else min(size_bytes, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if size_bytes else most, most))


@record
class Interruption:
    """Whether Ctrl-C was pressed in a block, and the signal that ended the block."""

    happened: bool = False
    over: bool = False  # the block has ended: nothing is left to stop
    ended_by: int = 0

    def exit_code(self, code: int) -> int:
        """The exit code of a command that returned `code`; after a signal, that of the signal, which is reported."""
        if self.ended_by:
            ended = EXIT_SIGNAL + self.ended_by
            return code if code == ended else fail("ended", ended)
        if self.happened and code != EXIT_INTERRUPTED:
            answered = "; the answer is the best one known by then" if code == 0 else ""
            return fail(f"interrupted{answered}", EXIT_INTERRUPTED)
        return code


_latest: list[Interruption] = []


def is_interrupted() -> bool:
    """Whether Ctrl-C was pressed: the answer is then the best one known, not a proven optimum."""
    return any(seen.happened for seen in _latest)


@contextmanager
def watch_for_interrupt() -> Iterator[Interruption]:
    """Handle Ctrl-C inside the block as described at the top of the module.

    Nothing is changed outside the main thread, or where the process was started to ignore Ctrl-C.
    """
    seen = Interruption()
    _latest[:] = [seen]
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not ours or before not in (signal.default_int_handler, early.leave):
        with _end_at_once(seen, ours):
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
        with _end_at_once(seen, ours):
            yield seen
    finally:
        seen.over = True
        if seen.happened and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, before)


@contextmanager
def _end_at_once(seen: Interruption, is_main_thread: bool) -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into `EndedError` inside the block, so that clean-up code runs.

    A signal that the process was started to ignore (`nohup`) stays ignored.
    """
    before = {
        number: signal.getsignal(number)
        for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
        if number is not None
    }
    ours = [n for n, handler in before.items() if is_main_thread and handler in (signal.SIG_DFL, early.leave)]

    def end(number: int, _frame: FrameType | None) -> None:
        for one in ours:  # a second signal ends the clean-up as well
            signal.signal(one, signal.SIG_DFL)
        seen.ended_by = number
        raise EndedError(number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def _printable(text: str) -> str:
    """Escape control characters, which a hostile input file could use to rewrite the terminal."""
    if text.replace("\n", "").isprintable():  # nearly every message
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def given(arguments: Sequence[str], settings: Sequence[str]) -> list[str]:
    """What the user gave, and a message may quote."""
    folders = [value for name, value in os.environ.items() if name.startswith(("HOME", "PLANNER_", "XDG_"))]
    return [*arguments, *settings, *folders]


def as_shown(message: str, arguments: Sequence[str] = ()) -> str:
    """A message as a terminal may show it: printable, and of a long value its two ends.

    Args:
        message: what went wrong.
        arguments: what was given; the message may quote it, or its values, without quotation marks.
    """
    long = [text for text in arguments if len(text) > LONGEST_VALUE]
    values = (_printable(part.strip()) for text in long for part in (text, text.partition("=")[2]))
    return with_short_values(_printable(message), values)


def fail(message: str, code: int, arguments: Sequence[str] = ()) -> int:
    """Print an error message, where that is possible; returns the exit code."""
    try:
        click.echo(f"error: {as_shown(message, arguments)}", file=sys.stderr)
    except OSError:
        abandon(sys.stderr)
    return code


def _beyond_memory(limit: int) -> str:
    had = (
        f"needs more than {limit / 2**30:,.1f} GiB of memory" if limit else "needs more memory than there is"
    )
    return (
        f"{had}: narrow the question (max_nodes, accelerators, regions, points, jobs), "
        f"or allow more, e.g. --max-memory {max(4, 2 * limit >> 30)}GiB"
    )


def report(error: Exception, verbosity: int, max_memory_bytes: int, arguments: Sequence[str] = ()) -> int:
    """Print the message of an exception; returns the exit code.

    Args:
        error: what was raised.
        verbosity: above 0, tracebacks of our own defects; above 1, all.
        max_memory_bytes: limit of the process, 0 where there is none.
        arguments: as `given`.
    """
    from planner.asked.calls import as_planner_error

    # A library may have taken the signal for a failure of its own: pandas "was not installed".
    if _latest and _latest[-1].ended_by:
        return fail("ended", EXIT_SIGNAL + _latest[-1].ended_by)
    if isinstance(error, MemoryError):
        return fail(_beyond_memory(max_memory_bytes), EXIT_MEMORY)
    if (
        isinstance(error, OSError) and error.strerror and error.filename is None
    ):  # open already: the answer's way out
        abandon_stdout()
        where = _NO_TEMPORARY if error.strerror.startswith(_NONE_FOUND) else "standard output"
        return fail(f"{where}: {error.strerror}", EXIT_OUTPUT)
    said = as_planner_error(error)
    if verbosity > 0:
        import traceback

        if said is None or verbosity > 1:
            click.echo("".join(traceback.format_exception(error)), file=sys.stderr, nl=False)
    if said is not None:
        return fail(str(said), said.exit_code, arguments)
    hint = "" if verbosity > 0 else "; run with -v for the traceback"
    return fail(f"internal error: {type(error).__name__}: {error}{hint}", EXIT_INTERNAL, arguments)


def abandon_stdout() -> int:
    """Point standard output at nothing, so that the interpreter's last flush does not complain."""
    abandon(sys.stdout)
    return EXIT_BROKEN_PIPE


def abandon(stream: TextIO) -> None:
    """Point a stream that cannot be written at nothing, so that the interpreter's last flush does not complain."""
    with contextlib.suppress(OSError, ValueError):  # not a real file, as in a test: nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
