"""A small soak: a few rounds of what `python -m benchmarks.soak` asks thousands of times, and what it would report."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from benchmarks.soak import QUESTIONS, Soak, soak

CHEAP = ("optimize bert-large", "validate", "refused", "tco", "budget")
pytestmark = pytest.mark.catalog("small")


def test_memory_does_not_grow_and_no_file_is_left(tmp_path: Path) -> None:
    gc.collect()
    gc.freeze()  # each round collects garbage: not in what the tests before have left (2 of 7 CPU s)
    seen = soak({name: QUESTIONS[name] for name in CHEAP}, 45, 1, tmp_path)
    assert seen.asked == 45
    assert seen.growth < 0.05, seen.memory_mb
    assert seen.left == []


def test_growth_and_files_are_noticed() -> None:
    seen = Soak(
        memory_mb=[50.0, 90.0, 95.0, 97.0, 99.0, *(100.0 + 2 * n for n in range(9))],
        first={"cache/a": b"", "tmp/b": b""},
        last={"cache/a": b"", "cache/c": b"", "tmp/b": b""},
    )
    assert seen.growth == pytest.approx(114 / 102 - 1)
    assert seen.left == ["cache/c", "tmp/b"]
