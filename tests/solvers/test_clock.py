"""One time limit for all searches of an answer."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from solvers.search import search
from solvers.search.search import LEAST_SHARE, Clock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment; what is written there is what the clock reads."""
    moment = [100.0]
    monkeypatch.setattr(search, "time", SimpleNamespace(perf_counter=lambda: moment[0]))
    return moment


def test_a_clock_starts_when_it_is_first_asked(now: list[float]) -> None:
    limit = Clock(10.0)
    now[0] += 50.0
    assert limit.left_s() == 10.0
    now[0] += 4.0
    assert limit.left_s() == 6.0
    assert limit.left_s(0.5) == 1.0


def test_a_late_search_gets_a_little(now: list[float]) -> None:
    limit = Clock(10.0)
    assert limit.for_next_s() == 10.0
    now[0] += 11.0
    assert limit.left_s() == -1.0
    assert limit.for_next_s() == 10.0 * LEAST_SHARE
    assert limit.for_next_s(least=0.3) == 3.0


def test_without_a_limit_there_is_always_time(now: list[float]) -> None:
    limit = Clock(math.inf)
    limit.left_s()
    now[0] += 1e9
    assert limit.left_s() == limit.for_next_s(0.5) == math.inf
