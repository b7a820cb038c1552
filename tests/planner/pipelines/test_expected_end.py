"""When a pipeline is done if nothing takes longer than expected: the longest chain of tasks, moves and quotas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner.pipelines.screen import expected_end_hours


def _stage(task: str, start: float, end: float, expected: float) -> Any:
    way = SimpleNamespace(task=task, expected_hours=expected)
    return SimpleNamespace(way=way, start_hours=start, end_hours=end)


def _move(source: str, target: str, hours: float) -> Any:
    return SimpleNamespace(source=source, target=target, hours=hours)


def _expected(stages: list[Any], moves: list[Any], *shared: str) -> float:
    answer = SimpleNamespace(stages=stages, transfers=moves, shared=shared)
    return expected_end_hours(cast("Any", answer))


def test_the_longest_chain_counts() -> None:
    stages = [
        _stage("first", 0, 9, 5),
        _stage("long", 10, 20, 8),
        _stage("short", 9, 19, 3),
        _stage("last", 20, 24, 2),
    ]
    moves = [
        _move("first", "long", 1),
        _move("first", "short", 0),
        _move("long", "last", 0),
        _move("short", "last", 0),
    ]
    assert _expected(stages, moves) == 5 + 1 + 8 + 2


@pytest.mark.parametrize(("shared", "hours"), [((), 40 + 30), (("aws/us-east-1 vcpu",), 50 + 30)])
def test_a_shared_quota_keeps_tasks_apart_that_are_apart_in_the_plan(
    shared: tuple[str, ...], hours: float
) -> None:
    stages = [_stage("alone", 0, 100, 50), _stage("before", 0, 100, 40), _stage("after", 100, 150, 30)]
    assert _expected(stages, [_move("before", "after", 0)], *shared) == hours
