"""A Ray cluster: one that runs already, or processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, Self

from catalogs.errors import install_command
from planner.engines.pools import MOST_DEATHS, WorkerLostError
from planner.errors import InputError, TimeLimitError

_AHEAD = 64


class RayPool:
    """Tasks through Ray, which runs those of a worker that died again."""

    def __init__(self, function: Callable[[Any], Any], address: str, workers: int) -> None:
        os.environ.setdefault(
            "RAY_USAGE_STATS_ENABLED", "0"
        )  # read at import: nothing is reported to anybody
        try:
            import ray
        except ImportError:
            raise InputError(f"--engine ray needs ray: {install_command('ray')}") from None
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            self._connect(address, workers)
        self._function = ray.put(function)
        self._remote = ray.remote(_call).options(max_retries=MOST_DEATHS - 1)
        self.ahead = max(_AHEAD, 4 * int(ray.cluster_resources().get("CPU", 1)))

    def _connect(self, address: str, workers: int) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if not address:
            try:
                self._ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
            except Exception as error:
                text = (str(error).splitlines() or [type(error).__name__])[0]
                remedy = "try again when this machine is less busy, or use --engine local or dask"
                raise TimeLimitError(f"--engine ray: Ray did not start here ({text}); {remedy}") from error
            return
        try:
            self._ray.init(address=address, **quiet)
        except (ConnectionError, ValueError) as error:
            text = str(error).splitlines()[0]
            raise InputError(f"--address {address}: no Ray cluster answers there ({text})") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own:
            self._ray.shutdown()

    def submit(self, task: Any) -> Any:
        """See `Pool.submit`."""
        return self._remote.remote(self._function, task)

    def wait(self, handles: Collection[Any]) -> Collection[Any]:
        """See `Pool.wait`."""
        done: Collection[Any] = self._ray.wait(list(handles), num_returns=1)[0]
        return done

    def result(self, handle: Any) -> Any:
        """See `Pool.result`."""
        faults = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except (faults.WorkerCrashedError, faults.OutOfMemoryError, faults.NodeDiedError) as error:
            text = str(error).splitlines()[0]
            raise WorkerLostError(f"its Ray workers died {MOST_DEATHS} times: {text}") from None
        except faults.RayTaskError as error:
            raise error.cause from None


def _call(function: Callable[[Any], Any], task: Any) -> Any:
    return function(task)
