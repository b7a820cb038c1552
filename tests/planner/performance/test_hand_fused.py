"""Hand-fused code: its softmax kernel takes attention matrices in fours. Parts of the rows can be fitted alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accelerators import load_devices
from benchmarks.fit_class import fit_class, write
from benchmarks.measured import load_cases
from benchmarks.points import load_rows
from benchmarks.predict import settle
from benchmarks.rows import write_csv, write_records
from planner.performance.constants import DIRECTORY, load_constants
from planner.performance.layouts import explicit
from planner.performance.search import estimate_layouts
from planner.performance.spec import AttentionKernel, ModelFamily, ModelSpec, StackClass, TrainingSpec
from tests.draws import draws
from tests.planner.performance.test_performance import A100, machines

APART = {"attention.softmax_launch_ratio": 0.0}


def step_s(
    heads: int, tp: int, micro: int, stack: StackClass, attention: AttentionKernel, changed: dict[str, float]
) -> float:
    """Step of one micro-batch of a small decoder, whose layers wait for the host."""
    model = ModelSpec(
        "m", ModelFamily.TRANSFORMER, 2e8, layers=12, hidden=64 * heads, heads=heads, vocab=32000
    )
    training = TrainingSpec(micro, 1024, "fp16", stack=stack, attention=attention)
    table = machines({**A100, "accelerator_count": float(tp)})
    layout = explicit(
        float(tp), training, 12, 1, [{"nodes": 1, "tp": tp, "micro_batch": micro, "recompute": 0}]
    )
    constants = load_constants().replace(changed)
    return float(estimate_layouts(model, training, table, layout, constants=constants)["step_time_s"][0])


@draws(60)
@given(
    heads=st.sampled_from([8, 12, 16]),
    tp=st.sampled_from([1, 2, 4, 8]),
    micro=st.sampled_from([1, 2, 3, 4, 8]),
    stack=st.sampled_from(["fused", "tuned"]),
    attention=st.sampled_from(["fused", "flash", "materialised"]),
)
def test_other_numbers_than_fours_of_attention_matrices_are_launched_operator_by_operator(
    heads: int, tp: int, micro: int, stack: StackClass, attention: AttentionKernel
) -> None:
    now, without = (step_s(heads, tp, micro, stack, attention, changed) for changed in ({}, APART))
    operators = stack == "fused" and attention == "fused" and (heads // tp * micro) % 4 != 0
    if operators:
        assert now > without
        assert now > step_s(heads, tp, micro, stack, attention, {"attention.score_passes.materialised": 0.0})
    else:
        assert now == without


def test_a_class_is_fitted_alone() -> None:
    rows = [row for row in load_rows(None) if row["source"].startswith(("vTrain", "BigScience"))][::12]
    held = load_constants()
    cases, _ = settle(load_cases(rows, load_devices())[0], held)
    fitted = fit_class(cases, "fused", held)
    changed = {name for name, value in fitted.values.items() if value != held.get(name, 1.0)}
    assert changed and all(name.endswith(".fused") for name in changed)
    machines_changed = {name.split(".")[2] for name in changed if name.startswith("multiplier.")}
    assert machines_changed <= {"ampere", "volta", "a100-sxm", "v100-sxm"}
    assert np.isfinite(list(fitted.values.values())).all()


def test_racks_are_fitted_alone() -> None:
    rows = [row for row in load_rows(None) if row["source"].startswith("MLPerf") and row["tp"] == ""][::3]
    held = load_constants()
    cases, _ = settle(load_cases(rows, load_devices())[0], held)
    fitted = fit_class(cases, "racks", held)
    changed = {name for name, value in fitted.values.items() if value != held.get(name, 1.0)}
    racks = {
        name
        for name in changed
        if name.startswith(("multiplier.transformer.gb200", "multiplier.transformer.gb300"))
    }
    assert racks and changed - racks == {"dp.exposed_ratio.rack"}


@pytest.mark.parametrize("name", ["vTrain ground truth single", "vTrain ground truth multi"])
def test_what_ran_counts_where_the_table_says_otherwise(name: str) -> None:
    rows = [row for row in load_rows(None) if row["source"] == name][:3]
    assert {row["activation_ckpt"] for row in rows} == {"full"}
    levels = {case.layout["recompute"] for case in load_cases(rows, load_devices())[0] if case.layout}
    assert levels == ({0} if name.endswith("single") else {2})


def test_new_values_are_all_that_a_fit_changes_in_a_table(tmp_path: Path) -> None:
    table = tmp_path / "transformer.csv"
    before = (DIRECTORY / "transformer.csv").read_text(encoding="utf-8")
    table.write_text(before, encoding="utf-8")
    write(table, {})
    assert table.read_text(encoding="utf-8") == before
    write(table, {"tp.skew_s.fused": 0.25})
    lines = zip(before.splitlines(), table.read_text(encoding="utf-8").splitlines(), strict=True)
    changed = [after.split(",")[:2] for line, after in lines if line != after]
    assert changed == [["tp.skew_s.fused", "0.25"]]


def test_a_fit_that_stops_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    def rows() -> Iterator[list[str]]:
        yield ["name", "value"]
        raise KeyboardInterrupt

    table = tmp_path / "table.csv"
    table.write_text("name,value\na,1\n", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        write_csv(table, rows())
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert table.read_text(encoding="utf-8") == "name,value\na,1\n"


def test_records_are_written_by_their_keys_not_by_their_order(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    write_records(table, [{"name": "a", "value": 1}, {"value": 2, "name": "b"}])
    assert table.read_text(encoding="utf-8") == "name,value\na,1\nb,2\n"
    with pytest.raises(ValueError, match="unit"):
        write_records(table, [{"name": "a", "value": 1}, {"name": "b", "value": 2, "unit": "s"}])
    assert table.read_text(encoding="utf-8") == "name,value\na,1\nb,2\n"
