"""When a pipeline is done if nothing takes longer than expected: the longest chain of tasks, moves and quotas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner.pipelines.screen import expected_end_hours


def _stage(task: str, hours: float, *waits_for: str) -> Any:
    return SimpleNamespace(way=SimpleNamespace(task=task, expected_hours=hours), waits_for=waits_for)


def _move(source: str, target: str, hours: float) -> Any:
    return SimpleNamespace(source=source, target=target, hours=hours)


@pytest.mark.parametrize(("waits", "hours"), [((), 5 + 1 + 8 + 2), (("long",), 5 + 1 + 8 + 3 + 2)])
def test_the_longest_chain_counts(waits: tuple[str, ...], hours: float) -> None:
    stages = (_stage("first", 5), _stage("long", 8), _stage("short", 3, *waits), _stage("last", 2))
    moves = (
        _move("first", "long", 1), _move("first", "short", 0), _move("long", "last", 0), _move("short", "last", 0),
    )  # fmt: skip
    answer = cast("Any", SimpleNamespace(stages=stages, transfers=moves))
    assert expected_end_hours(answer) == hours
