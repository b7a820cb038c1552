"""Where independent tasks are computed: here, in processes of this machine, or on a Dask or Ray cluster.

The function and the tasks can be pickled and share nothing, and all chance in a task comes from a seed in it: so the
results are the same on every engine, whatever runs first. A worker that dies loses nothing: its tasks run again. A task
whose worker dies every time is lost: `WorkerLostError`, or what `on_lost` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from planner.engines.pools import Pool, completed, in_order
from planner.errors import InputError
from planner.records import record

Task = TypeVar("Task")
Result = TypeVar("Result")
OnLost = Callable[[Task, str], Result]
ENGINES = ("local", "dask", "ray")


class Executor(Protocol):
    """Maps a function over tasks and yields the results in the order of the tasks."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order."""
        ...


class Engine(Executor, Protocol):
    """An executor that also yields each result as soon as it is there."""

    def completed(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        on_lost: OnLost[Task, Result] | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the place of each task among the tasks and its result, first finished first.

        Args:
            function: what is computed of a task; an exception of it ends the run and is the caller's.
            tasks: its arguments.
            on_lost: gives the result of a task whose workers died, from the task and the reason.

        Raises:
            WorkerLostError: a task's workers died, and there is no `on_lost`.
        """
        ...


@record(frozen=True)
class SerialExecutor:
    """Everything in this process."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order."""
        return map(function, tasks)

    def completed(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        on_lost: OnLost[Task, Result] | None = None,  # noqa: ARG002 - nobody but this process can die
    ) -> Iterator[tuple[int, Result]]:
        """See `Engine.completed`."""
        return ((place, function(task)) for place, task in enumerate(tasks))


@record(frozen=True)
class _PoolExecutor:
    """What executors with a pool of workers share."""

    def _pool(self, function: Callable[[Task], Result]) -> Pool:
        raise NotImplementedError

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield `function(task)` for each task, in order; a caller that stops early ends the work."""
        with self._pool(function) as pool:
            yield from in_order(pool, tasks)

    def completed(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        on_lost: OnLost[Task, Result] | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """See `Engine.completed`."""
        with self._pool(function) as pool:
            yield from completed(pool, tasks, on_lost)


@record(frozen=True)
class ProcessExecutor(_PoolExecutor):
    """Worker processes of this machine, started fresh so that no lock is inherited; one that dies is replaced."""

    workers: int

    def _pool(self, function: Callable[[Task], Result]) -> Pool:
        from planner.engines.processes import ProcessPool

        return ProcessPool(function, self.workers)


@record(frozen=True)
class DaskExecutor(_PoolExecutor):
    """A Dask cluster: one that runs already (`address`), else one of this machine, ended with the work.

    Attributes:
        address: of a scheduler.
        workers: without an address, worker processes; 1: threads of this process.
    """

    address: str = ""
    workers: int = 1

    def _pool(self, function: Callable[[Task], Result]) -> Pool:
        from planner.engines.dask import DaskPool

        return DaskPool(function, self.address, self.workers)


@record(frozen=True)
class RayExecutor(_PoolExecutor):
    """A Ray cluster: one that runs already (`address`), else one of this machine, ended with the work.

    Attributes:
        address: of its head, such as `auto`, `host:6379` or `ray://host:10001`.
        workers: without an address, worker processes.
    """

    address: str = ""
    workers: int = 1

    def _pool(self, function: Callable[[Task], Result]) -> Pool:
        from planner.engines.ray import RayPool

        return RayPool(function, self.address, self.workers)


def make_executor(engine: str, workers: int = 1, address: str = "") -> Engine:
    """The engine of that name.

    Args:
        engine: a name in `ENGINES`; `processes` is `local`.
        workers: processes of this machine; 1 computes here.
        address: of a running Dask or Ray cluster; empty: one of this machine.

    Raises:
        InputError: there is no such engine, or it takes no address.
    """
    if engine == "dask":
        return DaskExecutor(address, workers)
    if engine == "ray":
        return RayExecutor(address, workers)
    if engine not in ("local", "processes"):
        raise InputError(f"--engine: there is no '{engine}'; there are {', '.join(ENGINES)}")
    if address:
        raise InputError(f"--address {address}: --engine {engine} has none; name --engine dask or ray")
    return SerialExecutor() if workers <= 1 else ProcessExecutor(workers)
