"""A Dask cluster: one that runs already, or processes (or threads) of this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, Self

from catalogs.errors import install_command
from planner.engines.pools import WorkerLostError
from planner.errors import InputError

_AHEAD = 64
_CONNECT = "10s"


class DaskPool:
    """Tasks through `distributed`, which gives the tasks of a worker that died to others."""

    def __init__(self, function: Callable[[Any], Any], address: str, workers: int) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError(f"--engine dask needs distributed: {install_command('dask')}") from None
        self._distributed: Any = distributed
        self._function = function
        self._address = address
        self._cluster: Any = None
        try:
            self._client: Any = distributed.Client(self._where(workers), timeout=_CONNECT)
        except OSError as error:
            self._close_cluster()
            raise InputError(f"--address {address}: no Dask scheduler answers there ({error})") from error
        threads = sum(self._client.nthreads().values())
        self.ahead = max(_AHEAD, 4 * threads)

    def _where(self, workers: int) -> Any:
        if self._address:
            return self._address
        # On loopback: nothing outside this machine need be reached to find out its address. The scheduler's HTTP
        # server takes any free port: on its usual one, a second run beside the first would warn of the first.
        # Below errors, Dask logs what asks nothing of the user, such as a worker that is slow to end.
        self._cluster = self._distributed.LocalCluster(
            silence_logs=logging.ERROR,
            processes=workers > 1, n_workers=workers, threads_per_worker=1, dashboard_address=None,
            host="127.0.0.1", protocol="tcp", scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        )  # fmt: skip
        return self._cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()  # tasks that nobody waits for are forgotten with it
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def submit(self, task: Any) -> Any:
        """See `Pool.submit`."""
        # Tasks of one run are equal only if they are the same task; `pure=False` still computes each once.
        return self._client.submit(self._function, task, pure=False)

    def wait(self, handles: Collection[Any]) -> Collection[Any]:
        """See `Pool.wait`."""
        from concurrent.futures import CancelledError

        try:
            done: Collection[Any] = self._distributed.wait(list(handles), return_when="FIRST_COMPLETED").done
        except CancelledError:
            raise self._gone() from None
        return done

    def result(self, handle: Any) -> Any:
        """See `Pool.result`."""
        from concurrent.futures import CancelledError

        try:
            return handle.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise WorkerLostError(f"its Dask workers died: {str(error).splitlines()[0]}") from None
        except CancelledError:
            raise self._gone() from None
        finally:
            handle.release()

    def _gone(self) -> InputError:
        return InputError(f"--address {self._address or 'of this machine'}: the Dask scheduler went away")
