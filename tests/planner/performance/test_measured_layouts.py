"""Layouts that others measured as the fastest are taken where the model cannot tell, and nowhere else."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.accelerators import load_devices
from benchmarks.measured_layouts import main
from planner.performance import measured_layouts
from planner.performance.measured_layouts import DATA_FILE, TOLD_APART, MeasuredLayout, nearby
from planner.performance.search import estimate_shapes
from planner.performance.search_explain import explain_layouts, report_lines
from planner.performance.spec import LayoutPin, ModelFamily, ModelSpec, TrainingSpec
from tests.planner.performance.test_performance import A100, machines

KEPT = LayoutPin(recompute="none")
MODEL = ModelSpec(
    "gpt", ModelFamily.TRANSFORMER, 1.3e9, layers=24, hidden=2048, heads=16, ffn=8192, vocab=51200
)
TRAINING = TrainingSpec(4, 1024, "fp16", stack="fused", layout=KEPT)
EIGHT = {**A100, "accelerator": "a100-80gb-sxm"}
DEGREES = ("tp", "pp", "cp", "micro_batch")


def found(
    model: ModelSpec = MODEL, training: TrainingSpec = TRAINING, prune: bool = True, **row: Any
) -> dict[str, Any]:
    return estimate_shapes(model, training, machines({**EIGHT, **row}), [1], prune=prune).row(0)


def by_prediction(model: ModelSpec = MODEL, training: TrainingSpec = TRAINING) -> dict[str, Any]:
    """The pick on the same machine under a name for which nothing was measured."""
    learned = "a100-81gb-sxm"  # of the same family, so with the same learned factors
    return found(model, training, accelerator=learned)


def test_a_layout_measured_as_the_fastest_is_taken_within_the_error_of_the_model() -> None:
    taken, predicted = found(), by_prediction()
    assert [taken[name] for name in DEGREES] != [predicted[name] for name in DEGREES]
    eight = [item for item in nearby(MODEL, TRAINING) if item.accelerators == 8]
    assert tuple(taken[name] for name in DEGREES) in {(i.tp, i.pp, i.cp, i.micro_batch) for i in eight}
    assert predicted["step_time_s"] < taken["step_time_s"] <= TOLD_APART * predicted["step_time_s"]
    assert found(prune=False) == taken


def test_the_explanation_names_who_measured_it() -> None:
    report = explain_layouts(MODEL, TRAINING, machines(EIGHT), 1)
    taken = found()
    assert report.best is not None and report.best.step_time_s == taken["step_time_s"]
    assert "vTrain measured it as the fastest of 17 layouts" in "\n".join(report_lines(report))
    other = explain_layouts(MODEL, TRAINING, machines(A100), 1)
    assert other.measured == ""


@pytest.mark.parametrize(
    ("model", "training"),
    [
        (MODEL, replace(TRAINING, stack="compiled")),
        (MODEL, replace(TRAINING, layout=LayoutPin(recompute="full"))),
        (MODEL, replace(TRAINING, layout=replace(KEPT, tensor_parallel=1))),
        (MODEL, replace(TRAINING, global_batch=8192)),
        (replace(MODEL, hidden=8192, heads=64, params=2e10), TRAINING),
        (replace(MODEL, experts=8, experts_per_token=2, moe_ffn=2048, params=5e9), TRAINING),
    ],
)
def test_other_jobs_take_the_fastest_by_prediction(model: ModelSpec, training: TrainingSpec) -> None:
    taken, predicted = found(model, training), by_prediction(model, training)
    assert taken["fits"] and taken["step_time_s"] == predicted["step_time_s"]


def test_a_measured_layout_beyond_the_error_of_the_model_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = MeasuredLayout("somebody", "gpt", "a100-80gb-sxm", 8, "fused", "half", 2048, 24, 1024, 4, 1, 8, 1, False,
                          1, 2.0, 5)  # fmt: skip
    monkeypatch.setattr(measured_layouts, "load_measured_layouts", lambda *_: (slow,))
    assert found()["step_time_s"] == by_prediction()["step_time_s"]


def test_the_table_is_what_the_measured_rows_say(tmp_path: Any) -> None:
    made = tmp_path / "made.csv"
    assert main(["--out", str(made)]) == 0
    assert made.read_text(encoding="utf-8") == DATA_FILE.read_text(encoding="utf-8")
    with made.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {str(device["accelerator"]) for device in load_devices().values()}
    assert {row["accelerator"] for row in rows} <= known
    assert all(row["read_from"] and int(row["layouts"]) >= 3 for row in rows)
