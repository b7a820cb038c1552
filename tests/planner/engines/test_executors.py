"""Executors give the same answer, in order, and end early when their caller does."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import sys
from typing import Any

import pytest

from planner.engines.executors import DaskExecutor, ProcessExecutor, SerialExecutor, make_executor
from planner.engines.ray import RayPool
from planner.errors import InputError, TimeLimitError
from tests.planner.engines.work import fail, sleep, square


def test_the_names() -> None:
    assert make_executor("processes", 1) == SerialExecutor()
    assert make_executor("processes", 3) == ProcessExecutor(3)
    assert make_executor("dask", 1, "tcp://127.0.0.1:9") == DaskExecutor("tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="there are local, dask, ray"):
        make_executor("spark", 1)


def test_processes_keep_the_order_and_may_be_left_early() -> None:
    executor = ProcessExecutor(2)
    assert list(executor.map(square, range(20))) == [value * value for value in range(20)]
    started = executor.map(square, range(1000))
    assert next(iter(started)) == 0
    started.close()  # type: ignore[attr-defined]


def test_whoever_stops_early_does_not_wait_for_what_is_at_work() -> None:
    others = set(multiprocessing.active_children())
    started = ProcessExecutor(2).map(sleep, [0.0, 3600.0, 3600.0])
    assert next(started) == 0.0
    started.close()  # type: ignore[attr-defined]
    assert set(multiprocessing.active_children()) <= others


def test_an_error_in_a_process_is_the_callers() -> None:
    with pytest.raises(InputError, match="no 0"):
        list(ProcessExecutor(2).map(fail, range(4)))


def test_dask_on_this_machine() -> None:
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    assert list(DaskExecutor().map(square, range(10))) == [value * value for value in range(10)]


def test_a_scheduler_that_runs_already_is_used_and_left_running() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    with distributed.LocalCluster(
        processes=False, n_workers=1, dashboard_address=None, host="127.0.0.1", protocol="tcp",
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:  # fmt: skip
        assert list(DaskExecutor(cluster.scheduler_address).map(square, [3])) == [9]
        assert list(DaskExecutor(cluster.scheduler_address).map(square, [4])) == [16]


def test_a_second_dask_beside_the_first_warns_of_nothing() -> None:
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    with socket.socket() as other:
        with contextlib.suppress(OSError):  # taken by somebody already is as good
            other.bind(("127.0.0.1", 8787))  # where a scheduler's HTTP server usually listens
            other.listen()
        assert list(DaskExecutor(workers=1).map(square, [2, 3])) == [4, 9]


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"ml-training-planner\[dask\]"):
        list(DaskExecutor().map(square, [1]))


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("refused")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(
        InputError, match=r"--address tcp://127.0.0.1:9: no Dask scheduler answers there \(refused\)"
    ):
        list(DaskExecutor("tcp://127.0.0.1:9").map(square, [1]))


def test_any_object_with_map_is_an_executor() -> None:
    """The protocol of the documentation's Ray adapter: `map` alone."""

    class Backwards:
        def map(self, function: Any, tasks: Any) -> Any:
            done = {at: function(task) for at, task in reversed(list(enumerate(tasks)))}
            return iter([done[at] for at in range(len(done))])

    assert list(Backwards().map(square, [1, 2, 3])) == [1, 4, 9]


def test_ray_that_does_not_start_here_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine Ray gives up after a minute with a bare Exception, which was an internal error."""
    ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")

    def busy(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nThis could happen")

    monkeypatch.setattr(ray, "init", busy)
    with pytest.raises(
        TimeLimitError, match=r"Ray did not start here \(The current node timed out during startup.\)"
    ):
        RayPool(square, "", 1)
