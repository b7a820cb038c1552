"""Logs as they are found: columns under many names, and every way a log can be damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.tracking.model import MEASURES, Progress
from planner.tracking.progress import known_as, read_progress
from planner.tracking.row_order import intervals_of
from planner.tracking.time_breakdown import split_time

FIXTURES = Path(__file__).parents[2] / "fixtures"


def write(folder: Path, text: str, name: str = "run.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, rows: list[tuple[object, ...]], head: str = "step,time") -> Progress:
    return read_progress(write(folder, "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"))


def test_a_table_of_steps_and_moments(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [(10, "2026-03-02T08:00:00+00:00", 100, 85), (20, "2026-03-02T08:10:00Z", 200, 95)],
        "global_step;timestamp;consumed_tokens;GPU_util".replace(";", ","),
    )
    assert found.absolute and found.step.tolist() == [10, 20] and found.tokens.tolist() == [100, 200]
    assert np.diff(found.seconds).tolist() == [600]
    assert found.measures["gpu_busy"].tolist() == [0.85, 0.95]  # percent become shares


def test_tokens_and_samples_are_two_columns(tmp_path: Path) -> None:
    found = read(tmp_path, [(1, 5, 2048, 4), (2, 9, 4096, 8)], "step,time,consumed_tokens,consumed_samples")
    assert found.tokens.tolist() == [2048, 4096]
    assert found.samples is not None and found.samples.tolist() == [4, 8]


def test_lines_of_json_and_seconds_since_the_start(tmp_path: Path) -> None:
    lines = [json.dumps({"step": n, "time": 2.0 * n, "loader_seconds": 0.5, "other": [1]}) for n in range(5)]
    found = read_progress(write(tmp_path, "\n".join(lines), "run.jsonl"))
    assert not found.absolute and found.n_rows == 5 and found.measures["loader_s"].tolist() == [0.5] * 5


def test_a_log_of_calibrate_is_read_by_its_own_reader() -> None:
    found = read_progress(FIXTURES / "calibration" / "megatron.log")
    assert found.kind == "megatron" and intervals_of(found).step_s > 0
    assert "step times only" in found.notes[-1]


def test_rows_that_say_nothing_are_counted_and_left_out(tmp_path: Path) -> None:
    rows = [
        (1, 10),
        ("nan", 20),
        (3, 30),
        (4, "inf"),
        ("", ""),
        (6, 60),
        (7, 70),
        (8, 80),
        ("x", "y,z"),
        (9, 90),
    ]
    found = read(tmp_path, rows)
    assert found.step.tolist() == [1, 3, 6, 7, 8, 9]
    assert found.notes == ("4 of 10 rows left out: no step or no time in them",)


def test_a_last_line_that_is_cut_short_is_left_out(tmp_path: Path) -> None:
    whole = "".join(json.dumps({"step": n, "time": 10.0 * n}) + "\n" for n in range(1, 9))
    found = read_progress(write(tmp_path, whole + '{"step": 9, "ti', "run.jsonl"))
    assert found.step[-1] == 8 and "1 of 9 rows" in found.notes[0]


def test_what_a_gpu_does_not_support_is_not_a_figure(tmp_path: Path) -> None:
    found = read(tmp_path, [(1, 10, 9223372036854775794), (2, 20, 0.5), (3, 30, -1)], "step,time,gpu_busy")
    assert np.isnan(found.measures["gpu_busy"][[0, 2]]).all() and found.measures["gpu_busy"][1] == 0.5


def test_lines_out_of_order_are_sorted_and_doubles_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, [(1, 10), (2, 20), (4, 40), (3, 30), (5, 50), (5, 50)])
    assert found.step.tolist() == [1, 2, 3, 4, 5]
    assert any("out of order" in note for note in found.notes) and any(
        "twice" in note for note in found.notes
    )


def test_a_clock_that_is_set_back_loses_no_steps(tmp_path: Path) -> None:
    rows = [(n, 1000 + 10 * n if n <= 20 else 10 * n) for n in range(1, 41)]
    found = read(tmp_path, rows)
    assert (np.diff(found.seconds) == 10).all() and found.step.tolist() == list(range(1, 41))
    assert "the clock went back 1 time" in found.notes[0]


def test_steps_done_again_after_a_restart_are_lost(tmp_path: Path) -> None:
    rows = [(n, 60 * n) for n in range(1, 101)]  # 100 minutes, checkpoint at step 80
    rows += [(n, 60 * 100 + 1800 + 60 * (n - 80)) for n in range(80, 141)]
    found = read(tmp_path, rows)
    split = split_time(found, intervals_of(found))
    assert split.waiting == pytest.approx(0.5)
    assert split.lost == pytest.approx(20 / 60)
    assert split.hours == pytest.approx(split.compute + split.waiting + split.lost)


def test_regular_pauses_are_checkpoints_and_single_ones_are_waits(tmp_path: Path) -> None:
    def log(slow: set[int]) -> Progress:
        seconds = np.cumsum([40.0 if n in slow else 10.0 for n in range(1, 301)])
        return read(tmp_path, [(n, seconds[n - 1]) for n in range(1, 301)])

    every = split_time(found := log(set(range(30, 301, 30))), intervals_of(found))
    assert every.checkpoint == pytest.approx(10 * 30 / 3600) and every.waiting == 0
    once = split_time(found := log({100, 120, 230}), intervals_of(found))
    assert once.waiting == pytest.approx(90 / 3600) and once.checkpoint == 0


def test_a_stop_with_steps_after_it_is_a_wait(tmp_path: Path) -> None:
    found = read(tmp_path, [(n, 10 * n + (7200 if n > 50 else 0)) for n in range(1, 101)])
    intervals = intervals_of(found)
    assert intervals.gap.sum() == 1 and split_time(found, intervals).waiting == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("step,time\n", "none of its 0 rows"),
        ("step,time\n1,10\n", "a speed needs two"),
        ("step,time\n5,10\n5,20\n5,30\n", "no step follows"),
        ("step,time\n" + "a,b\n" * 9 + "1,1\n", "9 of 10 rows have no step"),
        ("step,time\n1,2026-03-02T08:00Z\n2,20\n3,30\n", "mixes timestamps and seconds"),
        ("loss,grad\n1,2\n", "no column of step times"),
        ("\x00\x01\x02", "no column of step times"),
    ],
)
def test_a_damaged_log_is_an_error_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=said) as error:
        intervals_of(read_progress(path))
    assert "run.csv" in str(error.value)


def test_no_such_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match=r"no such file|cannot be read"):
            read_progress(path)
    with pytest.raises(InputError, match="has no columns of progress"):
        read_progress(write(tmp_path, "loss\n1\n"), "progress")


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1e4)), min_size=2, max_size=60))
def test_whatever_the_rows_the_parts_of_the_time_add_up(rows: list[tuple[int, float]]) -> None:
    from planner.tracking.model import Rows
    from planner.tracking.row_order import in_order

    try:
        columns = {"step": [float(step) for step, _ in rows], "seconds": [time for _, time in rows]}
        found = in_order(Rows("x", "csv", columns, [], False))
        intervals = intervals_of(found)
    except InputError:
        return
    split = split_time(found, intervals)
    parts = (split.compute, split.checkpoint, split.lost, split.waiting, split.loader)
    assert min(parts) >= -1e-12 and sum(parts) == pytest.approx(split.hours)
    assert (np.diff(found.seconds) >= 0).all()


def test_every_name_of_a_column_means_one_measure() -> None:
    names = [name for names in MEASURES.values() for name in names]
    assert len(names) == len(set(names)) and all(known_as(name.upper()) for name in names)
