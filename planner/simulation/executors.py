"""Where the cells of a simulation are computed: here, in processes, or on an engine that exists already.

An executor is anything with `map(function, tasks)` that yields one result per task **in the order of the tasks**; the
function and the tasks can be pickled and share nothing, and all chance in a task comes from the seed in it. So the
answer is the same on every executor, whatever runs first. Adapters for other engines are a few lines: see `RayExecutor`
in docs/spot/drivers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from catalogs.errors import install_command
from planner.errors import InputError
from planner.records import record

if TYPE_CHECKING:
    from concurrent.futures import Future

Task = TypeVar("Task")
Result = TypeVar("Result")
ENGINES = ("processes", "dask")


class Executor(Protocol):
    """Maps a function over tasks and yields the results in the order of the tasks."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order."""
        ...


@record(frozen=True)
class SerialExecutor:
    """Everything in this process."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order."""
        return map(function, tasks)


@record(frozen=True)
class ProcessExecutor:
    """Worker processes of this machine (`concurrent.futures`), started fresh so that no lock is inherited."""

    workers: int

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order; a caller that stops early ends the workers at once."""
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import active_children, get_context

        others = set(active_children())
        pool = ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=_ignore_interrupt
        )
        try:
            yield from _in_order(pool.submit, function, tasks, ahead=4 * self.workers)
        except BaseException:
            for process in set(active_children()) - others:
                process.terminate()  # nobody waits for its task any more, which may be a minute's work
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@record(frozen=True)
class DaskExecutor:
    """A Dask cluster: one that runs already (`address`), or threads of this process (`address` empty)."""

    address: str = ""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order."""
        try:
            from distributed import Client
        except ImportError:
            raise InputError(f"--engine dask needs distributed: {install_command('dask')}") from None
        try:
            given: dict[str, Any] = {"address": self.address, "timeout": "10s"}
            # on loopback: nothing outside this machine need be reached to find out its address
            own: dict[str, Any] = {
                "processes": False, "n_workers": 1, "dashboard_address": None, "host": "127.0.0.1", "protocol": "tcp",
            }  # fmt: skip
            client: Any = Client(**(given if self.address else own))
        except OSError as error:
            raise InputError(
                f"--dask-address {self.address}: no scheduler answers there ({error})"
            ) from error
        with client:
            # Tasks of one sweep are equal only if they are the same task; `pure=False` still computes each once.
            yield from _in_order(
                lambda run, task: client.submit(run, task, pure=False), function, tasks, ahead=1000
            )


def make_executor(engine: str, workers: int, address: str = "") -> Executor:
    """The executor of that name.

    Args:
        engine: a name in `ENGINES`.
        workers: processes; 1 computes here.
        address: of a Dask scheduler; empty: a cluster inside this process.

    Raises:
        InputError: there is no such engine.
    """
    if engine == "dask":
        return DaskExecutor(address)
    if engine != "processes":
        raise InputError(f"--engine: there is no '{engine}'; there are {', '.join(ENGINES)}")
    return SerialExecutor() if workers <= 1 else ProcessExecutor(workers)


def _in_order(
    submit: Callable[[Callable[[Task], Result], Task], Future[Result]],
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    ahead: int,
) -> Iterator[Result]:
    """Results in the order of the tasks, with at most `ahead` tasks waiting: a sweep may have millions."""
    from collections import deque

    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(submit(function, task))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _ignore_interrupt() -> None:
    """Ctrl-C reaches every process of the terminal; the parent alone decides what is kept."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
