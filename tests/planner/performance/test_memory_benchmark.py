"""The memory benchmark reads measured rows honestly: inputs only, every row counted, accuracy where the data is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.memory_rows import memory_rule
from benchmarks.memory_score import lines, load_memory_rows, memory_score, predict_memory
from benchmarks.rows import read_csv
from planner.performance.constants import load_constants
from tests.planner.performance.test_performance_benchmark import DEV, ROW

C = load_constants()
# A row as of a source never seen: every column that the reader asks for is there.
RAN = {**ROW, "url_or_repo_path": "", "mem_gib_per_gpu": "40", "source": "somebody new"}
HUGE = {**RAN, "row_id": "b", "metric": "oom", "value": "1", "mem_gib_per_gpu": "", "micro_batch": "64"}


def gib(**change: str) -> float:
    rows = load_memory_rows([{**RAN, **change}])
    assert len(rows.cases) == 1, rows.left_out
    return float(predict_memory(rows.cases, C).counted[0])


def test_rows_that_ran_out_of_memory_are_scored_too() -> None:
    score = memory_score([RAN, HUGE], C)
    assert score["n"] == 1
    assert score["out of memory"]["n"] == 1 and score["out of memory"]["recall"] == 1.0
    assert score["false alarms"]["all rows that ran"] == {"n": 1, "ratio": 0.0}
    text = "\n".join(lines(score))
    assert "out of memory recalled: 100.0% of 1" in text and "false out of memory: 0.0% of 1" in text


def test_what_was_measured_never_changes_the_prediction() -> None:
    assert gib(mem_gib_per_gpu="1") == gib(mem_gib_per_gpu="79") == gib(value="3", notes="used 3 GiB")


def test_an_unseen_source_counts_by_the_framework_and_smi_by_the_device() -> None:
    assert memory_rule(RAN, 3).convention == "reserved"
    assert memory_rule({**RAN, "source": "Sailor SOSP25 artifact"}, 0).convention == "device"
    assert memory_rule({**RAN, "source": "Sailor SOSP25 artifact"}, 0).options.groups == "many"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"micro_batch": "", "metric": "oom"}, "out of memory: micro-batch not stated"),
        ({"micro_batch": ""}, "micro-batch not stated"),
        ({"tp": ""}, "layout not stated"),
        ({"gpu": "Abacus"}, "accelerator: Abacus"),
    ],
)
def test_rows_left_out_are_counted_by_reason(change: dict[str, str], reason: str) -> None:
    score = memory_score([{**RAN, **change}], C)
    assert score["n"] == 0 and score["left out"] == {reason: 1}
    assert lines(score) == ["memory per accelerator: no row states it"]


def test_a_level_of_recompute_that_is_not_stated_is_scored_apart() -> None:
    score = memory_score([{**RAN, "activation_ckpt": "unknown (recipe)", "mem_gib_per_gpu": "40"}], C)
    alarms: dict[str, Any] = score["false alarms"]
    assert alarms["all rows that ran"]["n"] == 0
    assert alarms["recompute not stated"] == {"n": 1, "ratio": 0.0}


@pytest.mark.skipif(not DEV.exists(), reason=f"measured rows are not at {DEV}")
def test_accuracy_on_the_measured_rows() -> None:
    score = memory_score(read_csv(Path(DEV)), C)
    assert score["n"] == 82
    assert score["mape"] < 11.0 and score["median"] < 9.0 and score["p90"] < 22.0
    assert score["out of memory"]["recall"] >= 0.95
    assert score["false alarms"]["all rows that ran"]["ratio"] <= 0.05


def test_the_scatter_is_valid_and_shows_every_point() -> None:
    from xml.dom import minidom

    from benchmarks.scatter import scatter_svg

    drawn = scatter_svg({"a <b>": ([1.0, 20.0], [1.1, 18.0]), "c": ([5.0], [4.0])}, "title & more", "GiB")
    circles = minidom.parseString(drawn).getElementsByTagName("circle")
    assert len(circles) == 3 + 2  # points and the legend
