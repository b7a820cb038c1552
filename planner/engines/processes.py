"""Worker processes of this machine (`concurrent.futures`), replaced where one dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from types import TracebackType
from typing import Any, Self

from planner.engines.pools import MOST_DEATHS, WorkerLostError
from planner.records import record

_SUSPECT = MOST_DEATHS - 1  # deaths of workers after which a task runs with no other beside it


@record(eq=False)
class _Job:
    """A task that was submitted, and how often workers died while it was waiting or running."""

    task: Any
    future: Future[Any]
    deaths: int = 0
    lost: bool = False


class ProcessPool:
    """Processes started fresh, so that no lock is inherited.

    When one dies, `concurrent.futures` gives up all of them and does not say whose task it was. So all tasks that were
    not finished run again, and those for which this happens twice run one by one: then a death has one possible cause.
    """

    def __init__(self, function: Callable[[Any], Any], workers: int) -> None:
        self.ahead = 4 * workers
        self._function = function
        self._workers = workers
        self._jobs: dict[_Job, None] = {}  # in the order of their submission
        self._others = set(active_children())
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"), initializer=_begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            for process in set(active_children()) - self._others:
                process.terminate()  # nobody waits for its task any more, which may be a minute's work
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, task: Any) -> _Job:
        """See `Pool.submit`."""
        while True:
            try:
                job = _Job(task, self._pool.submit(self._function, task))
            except BrokenProcessPool:
                self._replace()
            else:
                self._jobs[job] = None
                return job

    def wait(self, handles: Collection[_Job]) -> Collection[_Job]:
        """See `Pool.wait`."""
        while True:
            wait([job.future for job in handles], return_when=FIRST_COMPLETED)
            finished = [job for job in handles if job.lost or job.future.done()]
            if not any(_is_broken(job) for job in finished):
                return finished
            self._replace()

    def result(self, handle: _Job) -> Any:
        """See `Pool.result`."""
        del self._jobs[handle]
        if handle.lost:
            raise WorkerLostError(f"its worker process died {handle.deaths} times, as where memory runs out")
        return handle.future.result()

    def _replace(self) -> None:
        """Start new processes and give them what the old ones had not finished."""
        self._pool.shutdown(wait=True)
        self._pool = self._start()
        unfinished = [job for job in self._jobs if _is_broken(job)]
        for job in unfinished:
            job.deaths += 1
        for job in unfinished:
            if job.deaths >= _SUSPECT:
                self._run_alone(job)
        for job in unfinished:
            if job.deaths < _SUSPECT:
                job.future = self._pool.submit(self._function, job.task)

    def _run_alone(self, job: _Job) -> None:
        job.future = self._pool.submit(self._function, job.task)
        wait([job.future])
        if _is_broken(job):
            job.deaths += 1
            job.lost = True
            self._pool.shutdown(wait=True)
            self._pool = self._start()


def _is_broken(job: _Job) -> bool:
    """Whether the job ended because some process died; a lost one stays as it is."""
    return not job.lost and job.future.done() and isinstance(job.future.exception(), BrokenProcessPool)


def _begin() -> None:
    """Prepare a worker: Ctrl-C reaches every process of the terminal, and the parent alone decides what is kept."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # as in `planner.startup`: planning multiplies no matrices
