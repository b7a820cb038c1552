"""Tasks through a pool of workers: how many wait at once, in which order results come, what is done with lost ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from planner.errors import PlannerError

MOST_DEATHS = 3  # of workers at one task, before it counts as lost
Handle = Any  # of a task that was submitted: what the engine calls a future or a reference


class WorkerLostError(PlannerError):
    """Workers died at a task, every time that it was tried."""


class Pool(Protocol):
    """Workers that compute one function of tasks.

    Attributes:
        ahead: tasks that may wait at once, so that no worker is idle; a sweep may have millions of them.
    """

    ahead: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def submit(self, task: Any) -> Handle:
        """Hand a task to the workers; the handle can be a key of a dictionary."""
        ...

    def wait(self, handles: Collection[Handle]) -> Collection[Handle]:
        """Wait until at least one of the tasks is finished or lost; return those that are."""
        ...

    def result(self, handle: Handle) -> Any:
        """The result of a finished task, which the pool then forgets.

        Raises:
            WorkerLostError: the task is lost.
        """
        ...


def in_order(pool: Pool, tasks: Iterable[Any]) -> Iterator[Any]:
    """Results in the order of the tasks."""
    waiting: deque[Handle] = deque()
    for task in tasks:
        waiting.append(pool.submit(task))
        if len(waiting) >= pool.ahead:
            pool.wait([waiting[0]])
            yield pool.result(waiting.popleft())
    while waiting:
        pool.wait([waiting[0]])
        yield pool.result(waiting.popleft())


def completed(
    pool: Pool, tasks: Iterable[Any], on_lost: Callable[[Any, str], Any] | None
) -> Iterator[tuple[int, Any]]:
    """Places of the tasks and their results, first finished first."""
    waiting: dict[Handle, tuple[int, Any]] = {}
    coming = enumerate(tasks)
    while True:
        while len(waiting) < pool.ahead and (item := next(coming, None)) is not None:
            waiting[pool.submit(item[1])] = item
        if not waiting:
            return
        for handle in pool.wait(waiting):
            place, task = waiting.pop(handle)
            try:
                result = pool.result(handle)
            except WorkerLostError as error:
                if on_lost is None:
                    raise
                result = on_lost(task, str(error))
            yield place, result
