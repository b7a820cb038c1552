"""Embedding tables: their share of memory, the time of look-ups and exchanges, and measured recommenders."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recommenders import score
from catalogs.tables.table import Table
from planner.asked.job import Job, resolve_job
from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.performance.embeddings import TABLES_WITHIN
from planner.performance.parts import model_from
from planner.performance.search import estimate_shapes
from planner.plan.plain import plain
from tests.planner.performance.test_performance import A100

DENSE = "family: cnn, params: 2.4e6, forward_flops_per_sample: 5e6, activations_per_sample: 8000"
PINNED = "layout: {micro_batch: 2048}"
ROWS = 100e6
GIB = 2.0**30


def job(tables: str, training: str = "", more: str = "") -> Job:
    text = (
        f"version: 1\nname: x\nmodel: {{{DENSE}{tables and f', embedding_tables: {{{tables}}}'}}}\n"
        f"training: {{steps: 1000, global_batch: 65536, precision: fp16, optimizer: sgd, stack: tuned,"
        f" {PINNED}{training}}}\n{more}"
    )
    return resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))


def estimate(tables: str, nodes: int = 1, accelerators: float = 8.0) -> dict[str, Any]:
    asked = job(tables)
    machine = Table({name: [value] for name, value in (A100 | {"accelerator_count": accelerators}).items()})
    return estimate_shapes(asked.model, asked.training, machine, [nodes]).row(0)


def test_tables_are_divided_among_all_accelerators() -> None:
    rows = "rows: 400e6, width: 128, tables: 26"  # 191 GiB in 32 bit
    assert estimate(rows, accelerators=2.0)["reason"] == "out_of_memory"
    one, two = estimate(rows), estimate(rows, nodes=2)
    share = 400e6 * 512 / GIB / 8
    assert share < one["memory_needed_gib"] < 1.3 * share
    assert two["memory_needed_gib"] < 0.6 * one["memory_needed_gib"]
    assert one["checkpoint_gib"] == pytest.approx(400e6 * 512 / GIB, rel=0.001)


@pytest.mark.parametrize(
    ("more", "row_bytes"),
    [
        ("", 512.0),
        (", precision: fp16", 256.0),
        (", optimizer: adam", 1536.0),
        (", optimizer: rowwise_adagrad", 516.0),
    ],
)
def test_states_of_rows_count_beside_them(more: str, row_bytes: float) -> None:
    tables = job(f"rows: {ROWS}, width: 128, tables: 26{more}").model.tables
    assert tables is not None and tables.all_bytes == pytest.approx(ROWS * row_bytes)


def test_look_ups_take_memory_bandwidth_and_vectors_the_links() -> None:
    without, few = estimate(""), estimate(f"rows: {ROWS}, width: 128, tables: 26")
    many = estimate(f"rows: {ROWS}, width: 128, tables: 26, lookups_per_sample: 2600")
    samples = 65536 / 8
    read = samples * 26 * 512 * 3 / 2039e9  # forward, and twice as much backward
    assert few["memory_bound_s"] - without["memory_bound_s"] == pytest.approx(read, rel=0.01)
    assert many["memory_bound_s"] - few["memory_bound_s"] == pytest.approx(99 * read, rel=0.05)
    assert without["tp_comm_s"] == 0.0 and few["tp_comm_s"] > 0.0
    alone = estimate("rows: 10e6, width: 128, tables: 26", accelerators=1.0)
    assert alone["tp_comm_s"] == 0.0
    across = estimate(f"rows: {ROWS}, width: 128, tables: 26", nodes=4)
    assert across["tp_comm_s"] > few["tp_comm_s"] / 4  # fewer samples each, over slower links


def test_narrow_rows_reach_less_bandwidth() -> None:
    wide = estimate(f"rows: {ROWS}, width: 128, tables: 26, lookups_per_sample: 2600")
    narrow = estimate(f"rows: {4 * ROWS}, width: 32, tables: 26, lookups_per_sample: 10400")
    dense = estimate("")["memory_bound_s"]
    ratio = (narrow["memory_bound_s"] - dense) / (wide["memory_bound_s"] - dense)
    assert ratio == pytest.approx(1.75, rel=0.01)


def test_the_interval_says_that_tables_are_by_formula() -> None:
    spread = [
        row["step_time_high_s"] / row["step_time_s"]
        for row in (estimate(""), estimate("rows: 1e6, width: 128, tables: 26"))
    ]
    assert spread[1] > spread[0] * 1.1


def test_a_model_with_tables_comes_back_from_plain_values() -> None:
    model = job(f"rows: {ROWS}, width: 128, tables: 26").model
    assert model_from(plain(model)) == model


def test_exported_weights_hold_the_tables() -> None:
    assert job(f"rows: {ROWS}, width: 128, tables: 26").export_gb == pytest.approx(
        ROWS * 128 * 2 / 1e9, rel=0.001
    )


@pytest.mark.parametrize("stack", ["tuned", "compiled"])
def test_measured_recommenders_lie_within_the_factor_that_is_stated(stack: str) -> None:
    rows = score(stack)
    assert len(rows) == 10
    assert sum(row.factor <= TABLES_WITHIN for row in rows) >= 9
    assert all(row.low <= row.measured <= row.high for row in rows)


@pytest.mark.parametrize(
    ("tables", "training", "more", "message"),
    [
        ("rows: 1e6, width: 64, tables: 8, lookups_per_sample: 4", "", "", "below the 8 tables"),
        ("rows: 1e6, width: 64", "", "", "embedding_tables.tables: is required|tables"),
        ("rows: 0, width: 64, tables: 2", "", "", "rows"),
        ("rows: 1e6, width: 64, tables: 2", ", method: lora", "", "learn with the dense network"),
    ],
)
def test_tables_that_cannot_be_are_refused(tables: str, training: str, more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job(tables, training, more)
