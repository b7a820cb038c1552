"""Training logs of every format give the same steady step; broken ones name file, line and remedy."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.calibration.logs import READERS, Log, ReadOptions, detect, read_log
from planner.calibration.steps import summarise_steps, warm_up
from planner.commands.options import LOG_FORMATS
from planner.errors import InputError
from tests.conftest import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "calibration"
# fixture, format, unit of its values, steady figure in that unit
CASES = [
    ("steps.csv", "csv", "seconds", 2.0),
    ("tokens.csv", "csv", "tokens", 16384.0),
    ("progress.jsonl", "progress", "seconds", 2.1),
    ("megatron.log", "megatron", "seconds", 2.002),
    ("trainer_state.json", "hf", "seconds", 2.2),
    ("hf_output.log", "hf", "seconds", 2.2),
    ("torch_trace.json", "torch", "seconds", 2.01),
    ("nsys.csv", "nsys", "seconds", 2.0),
    ("events.out.tfevents", "tensorboard", "seconds", 2.0),
    ("wandb-summary.json", "wandb", "seconds", 2.2),
]


def steady(log: Log) -> float:
    return summarise_steps(log.values).seconds


@pytest.mark.parametrize(("name", "kind", "unit", "value"), CASES)
def test_each_format_is_told_by_its_look_and_gives_the_steady_step(
    name: str, kind: str, unit: str, value: float
) -> None:
    log = read_log(FIXTURES / name)
    assert (log.kind, log.unit) == (kind, unit)
    assert steady(log) == pytest.approx(value, rel=0.01)
    assert read_log(FIXTURES / name, kind) == log


def test_every_reader_has_a_fixture_and_is_offered_by_the_command() -> None:
    assert {kind for _, kind, _, _ in CASES} == set(READERS)
    assert ("auto", *READERS) == LOG_FORMATS


def test_progress_that_is_tracked_calibrates_too(tmp_path: Path) -> None:
    moments = [f"{step},2026-11-20T00:{minute:02d}:00Z" for minute, step in enumerate((0, 30, 60, 90))]
    rows = tmp_path / "progress.csv"
    rows.write_text("\n".join(["global_step,timestamp", *moments]) + "\n", encoding="utf-8")
    assert read_log(rows).values == (2.0, 2.0, 2.0)
    rows.write_text("step,time,step_seconds\n1,2,0.5\n2,4,0.5\n", encoding="utf-8")
    assert read_log(rows).kind == "csv" and set(read_log(rows).values) == {0.5}


def test_what_the_log_tells_of_the_run_is_kept() -> None:
    assert read_log(FIXTURES / "megatron.log").global_batch == 16
    assert read_log(FIXTURES / "torch_trace.json").accelerators == 8
    assert "whole run" in read_log(FIXTURES / "trainer_state.json").note


def test_event_files_of_both_writers_are_read_and_fall_back_to_the_moments(tmp_path: Path) -> None:
    tensors = read_log(FIXTURES / "events.tensor.tfevents").values
    assert tensors == pytest.approx((2.0, 2.02, 1.98), rel=1e-6)
    unnamed = tmp_path / "events.out.tfevents.1"
    unnamed.write_bytes(
        (FIXTURES / "events.out.tfevents").read_bytes().replace(b"iteration-time", b"iteration-loss")
    )
    log = read_log(unnamed)
    assert "between logged steps" in log.note
    assert steady(log) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("cut", [1, 13, 40, 200])
def test_event_files_cut_short_give_what_is_whole(cut: int, tmp_path: Path) -> None:
    data = (FIXTURES / "events.out.tfevents").read_bytes()
    whole = len(read_log(FIXTURES / "events.out.tfevents").values)
    short = tmp_path / "events"
    short.write_bytes(data[:-cut])
    assert 0 < len(read_log(short).values) <= whole
    short.write_bytes(data[:24] + b"\xff" * 40 + data[64:])
    with pytest.raises(InputError, match=r"damaged|no scalar"):
        read_log(short, "tensorboard")


def test_a_wandb_summary_without_steps_says_what_to_export(tmp_path: Path) -> None:
    path = tmp_path / "wandb-summary.json"
    path.write_text('{"_runtime": 10, "_step": 5}')
    with pytest.raises(InputError, match=r"export the run's history"):
        read_log(path)
    path.write_text('{"_runtime": 10, "perf/step_time": 1.5}')
    assert read_log(path).values == (1.5,)
    path.write_text('{"_runtime": 1000, "train/global_step": 500, "train/step_time": 1.5}')
    assert read_log(path).values == (1.5,)


@pytest.mark.parametrize(("whole", "told"), [(9000, True), (1100, False)])
def test_a_wandb_run_far_longer_than_its_training_may_have_been_resumed(
    whole: int, told: bool, tmp_path: Path
) -> None:
    path = tmp_path / "wandb-summary.json"
    summary = {"_runtime": whole, "train/train_runtime": 1000, "train/global_step": 500}
    path.write_text(json.dumps(summary))
    log = read_log(path)
    assert log.values == (2.0,) and ("if it was resumed" in log.note) is told


def test_a_time_that_a_trainer_logs_for_one_pass_of_several_is_not_taken_for_a_step(tmp_path: Path) -> None:
    path = tmp_path / "wandb-summary.json"
    path.write_text('{"_runtime": 4000, "train/global_step": 100, "train/step_time": 9.5}')
    with pytest.raises(
        InputError, match=r"logged is 9.5 s, the run's mean 40 s a step.*--measured '0.025 steps/s'"
    ):
        read_log(path)


def test_nsys_ranks_do_not_add_up_and_other_names_can_be_asked_for() -> None:
    log = read_log(FIXTURES / "nsys.csv")
    assert len(log.values) == 5  # one rank, not both
    forward = read_log(FIXTURES / "nsys.csv", options=ReadOptions("forward"))
    assert steady(forward) == pytest.approx(1.0, rel=0.01)
    with pytest.raises(InputError, match=r"no NVTX range is named like a step.*step 0.*--step-name"):
        read_log(FIXTURES / "nsys.csv", options=ReadOptions("optimizer"))
    with pytest.raises(InputError, match="not a regular expression"):
        read_log(FIXTURES / "nsys.csv", options=ReadOptions("("))


def test_an_nsys_export_is_read_from_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    base = sqlite3.connect(path)
    base.execute("create table StringIds (id integer, value text)")
    base.execute(
        "create table NVTX_EVENTS (start integer, end integer, text text, textId integer, globalTid integer)"
    )
    base.execute("insert into StringIds values (7, 'train_step')")
    rows = [(int(k * 3e9), int(k * 3e9 + 2e9), None, 7, 1) for k in range(6)]
    rows.append((0, int(9e9), "epoch 1", None, 1))
    base.executemany("insert into NVTX_EVENTS values (?, ?, ?, ?, ?)", rows)
    base.commit()
    base.close()
    log = read_log(path)
    assert (log.kind, log.values) == ("nsys", pytest.approx((2.0,) * 6))


def test_an_nsys_export_without_ranges_says_how_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    base = sqlite3.connect(path)
    base.execute("create table OTHER (a integer)")
    base.commit()
    base.close()
    with pytest.raises(InputError, match=r"run.sqlite: no table of NVTX ranges .*nsys export --type sqlite"):
        read_log(path)


def test_packed_traces_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress((FIXTURES / "torch_trace.json").read_bytes()))
    assert read_log(path) == read_log(FIXTURES / "torch_trace.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (
            "step,loss\n1,2.0\n",
            r":1: no column of step times; the header must name one of seconds.* or step and time",
        ),
        ('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n', r":1: an object of a step without its time"),
        ("step,seconds\n1,2.0\n2,fast\n", r":3: seconds must be a number, got 'fast'"),
        ("step,seconds\n1,2.0\n2,-1\n", r":3: seconds must be above 0"),
        ("step,seconds\n1,nan\n", r":2: seconds must be above 0"),
        ("step,seconds\n1\n", r":2: seconds must be a number, got ''"),
        ("step,seconds\n", "no training step found in this csv log"),
        (
            "iteration 1/ 9 | elapsed time per iteration (ms): 12x.3 |\n",
            r":1: the time of iteration 1 is not a number",
        ),
        (
            "iteration 1/ 9 | elapsed time per iteration (ms): 0.0 |\n",
            r":1: the time of iteration 1 is not a number",
        ),
        ('{"log_history": [{"loss": 1.0, "step": 10}]}', "state of a run that has not ended"),
        ('{"log_history": [{"loss"', r":1: not whole JSON .*cut short"),
        (
            '{"traceEvents": [{"name": "aten::mm", "ph": "X"}]}',
            r"no range 'ProfilerStep#N'; call prof.step\(\)",
        ),
        ('{"traceEvents": [{"name"', r":1: not whole JSON .*cut short"),
        ('{"traceEvents": 7}', "no 'traceEvents'"),
        ("{'train_runtime': 0.0, 'train_steps_per_second': 0.0}", "above 0"),
        ("{'train_runtime': open('x')}", "cannot be read"),
        (
            "{'train_samples_per_second': 1, 'train_steps_per_second': 0.016, 'train_runtime': 0}",
            "rounded too coarsely",
        ),
        ("Start (ns),Duration (ns),Name\n1,many,step 1\n", r":2: 'Duration \(ns\)' must be a number"),
    ],
)
def test_broken_logs_name_the_place_and_the_remedy(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words) as raised:
        read_log(path)
    assert str(path) in str(raised.value)


def test_a_summary_of_odd_figures_is_refused_without_a_warning_of_python(tmp_path: Path) -> None:
    path = tmp_path / "run.log"  # found by `python -m benchmarks.fuzz --only log --n 2400 --seed 53`
    path.write_text("{'train_runtime': 264.0, 'train_steps_per_second': 0.4in_losss': 1.8}", encoding="utf-8")
    with warnings.catch_warnings(record=True) as seen, pytest.raises(InputError, match="cannot be read"):
        warnings.simplefilter("always")
        read_log(path)
    assert not seen


def test_unreadable_files_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_log(tmp_path / "absent.csv")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"step,seconds\n" * 99)[:40])
    with pytest.raises(InputError, match="cannot be read"):
        read_log(cut)


def test_a_number_cut_off_at_the_end_of_a_log_is_no_step_time(tmp_path: Path) -> None:
    line = "iteration {}/ 9 | elapsed time per iteration (ms): {}"
    path = tmp_path / "cut.log"
    path.write_text("".join(line.format(k, "70123.4 |\n") for k in range(1, 9)) + line.format(9, "701"))
    assert len(read_log(path).values) == 8


def test_a_batch_ramp_counts_only_the_last_batch(tmp_path: Path) -> None:
    line = "iteration {}/ 9 | elapsed time per iteration (ms): {} | global batch size: {} |\n"
    path = tmp_path / "ramp.log"
    path.write_text("".join(line.format(k, 900 if k < 4 else 2000, 8 if k < 4 else 16) for k in range(1, 10)))
    log = read_log(path)
    assert (log.global_batch, set(log.values)) == (16, {2.0})
    assert "another batch" in log.note


def test_the_look_of_a_file_decides_even_with_a_byte_order_mark() -> None:
    assert detect(b"\xef\xbb\xbfstep,seconds\n") == "csv"
    assert detect(json.dumps({"train_loss": 1.0, "train_runtime": 2.0}).encode()) == "hf"


def test_warm_up_is_an_unbroken_run_from_the_start() -> None:
    assert warm_up([9.0, 4.0, 2.0, 2.0, 6.0, 2.0, 2.0, 2.0, 2.0, 2.0]) == 2
    assert warm_up([2.0, 9.0, 2.0, 2.0, 2.0, 2.0]) == 0
    assert warm_up([5.0]) == 0


def test_fewer_steps_tell_less() -> None:
    few, many = summarise_steps([2.0, 2.1, 1.9, 2.05, 1.95]), summarise_steps([2.0, 2.1, 1.9, 2.05, 1.95] * 9)
    assert few.error is not None and many.error is not None
    assert few.error > many.error > 0
    assert summarise_steps([2.0]).error is None


def test_skipping_all_steps_is_refused() -> None:
    with pytest.raises(InputError, match="lower --skip"):
        summarise_steps([2.0, 2.0], skip=2)


@given(st.lists(st.floats(0.9, 1.1), min_size=8, max_size=60), st.integers(0, 4), st.floats(1e-3, 1e3))
def test_the_median_ignores_warm_up_and_scales_with_the_clock(
    steps: list[float], slow: int, scale: float
) -> None:
    whole = [50.0] * slow + steps
    found = summarise_steps(whole)
    assert 0.9 <= found.seconds <= 1.1
    scaled = summarise_steps([value * scale for value in whole])
    assert scaled.seconds == pytest.approx(found.seconds * scale)
    assert (scaled.used, scaled.dropped) == (found.used, found.dropped)


def test_a_folder_names_the_event_file_that_was_written_last(tmp_path: Path) -> None:
    """TensorBoard itself takes the folder."""
    with pytest.raises(InputError, match="is a folder; name the log in it"):
        read_log(tmp_path)
    for at, name in enumerate(("run/events.out.tfevents.2", "run/events.out.tfevents.1")):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
        os.utime(file, (at, at))
    with pytest.raises(InputError, match=r"is a folder; name .*: .*tfevents\.1; 1 older in it"):
        read_log(tmp_path)
