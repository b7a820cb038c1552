"""Runs that go on: nothing computed is computed again, a worker that dies loses nothing, damage is named."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from planner.engines.executors import ProcessExecutor, SerialExecutor
from planner.engines.pools import WorkerLostError, completed
from planner.engines.resume import map_items, parts_of, resumed
from planner.errors import InputError
from tests.planner.engines.work import killed, logged_square


def items(count: int, folder: Path) -> dict[str, tuple[int, str]]:
    return {f"item {value}": (value, str(folder / "log")) for value in range(count)}


def computed(folder: Path) -> list[int]:
    return sorted(int(line) for line in (folder / "log").read_text(encoding="utf-8").split())


SQUARES = {f"item {value}": value * value for value in range(6)}


def test_what_is_computed_is_not_computed_again(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    assert map_items(logged_square, items(4, tmp_path), folder=parts) == {
        k: v for k, v in SQUARES.items() if v < 16
    }
    told: list[tuple[int, int]] = []
    found = map_items(
        logged_square, items(6, tmp_path), folder=parts, on_done=lambda done, all_: told.append((done, all_))
    )
    assert found == SQUARES and list(found) == list(SQUARES)
    assert computed(tmp_path) == [0, 1, 2, 3, 4, 5] and told == [(5, 6), (6, 6)]
    assert sorted(path.name for path in parts.glob("part*")) == ["part-000001.jsonl", "part-000002.jsonl"]


def test_a_run_that_ends_early_keeps_what_it_has(tmp_path: Path) -> None:
    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_items(logged_square, items(6, tmp_path), folder=tmp_path / "parts", on_done=stop)
    assert map_items(logged_square, items(6, tmp_path), folder=tmp_path / "parts") == SQUARES
    assert computed(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_workers_that_die_lose_nothing_but_the_item_that_kills_them_all(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    asked = items(6, tmp_path)
    with parts_of(folder) as parts:
        found = resumed(
            killed, asked, ProcessExecutor(2), parts, on_lost=lambda item, why: f"{item[0]} {why}"
        )
    assert (tmp_path / "log").with_suffix(".killed").exists()
    assert found.pop("item 3") == "3 its worker process died 3 times, as where memory runs out"
    assert found == {key: value for key, value in SQUARES.items() if value != 9}
    with parts_of(folder) as parts:
        assert set(parts.read()) == set(found)  # the lost one is tried again by the next run


def test_a_lost_item_ends_a_run_that_has_no_word_for_it() -> None:
    class Deadly:
        ahead = 2

        def submit(self, task: int) -> int:
            return task

        def wait(self, handles: Collection[int]) -> Collection[int]:
            return [max(handles)]

        def result(self, handle: int) -> int:
            if handle == 3:
                raise WorkerLostError("its workers died")
            return handle

    pool: Any = Deadly()
    assert list(completed(pool, [1, 3, 2], lambda task, why: -task)) == [(1, -3), (2, 2), (0, 1)]
    with pytest.raises(WorkerLostError, match="its workers died"):
        list(completed(pool, [1, 3], None))


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        parts_of(tmp_path / "parts"),
        pytest.raises(InputError, match="another run stores its results there"),
    ):
        map_items(logged_square, {}, folder=tmp_path / "parts")


@pytest.mark.parametrize("text", ['{"key": "item 1", "val', "[1]\n", '{"key": "item 1"}\n'])
def test_a_damaged_part_is_named_with_the_remedy(text: str, tmp_path: Path) -> None:
    part = tmp_path / "parts" / "part-000001.jsonl"
    part.parent.mkdir()
    part.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"part-000001.jsonl: is not a part of results .*; remove it"):
        map_items(logged_square, items(1, tmp_path), folder=part.parent)


def test_a_value_that_is_no_json_is_refused_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"), parts_of(tmp_path / "parts") as parts:
        parts.add("item", float("nan"))
    assert list((tmp_path / "parts").glob("part*")) == []


def test_this_process_counts_places_as_engines_do() -> None:
    assert list(SerialExecutor().completed(abs, [-1, 2])) == [(0, 1), (1, 2)]
