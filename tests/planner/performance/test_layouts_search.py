"""The search over layouts: complete within its bounds, the same with and without lower bounds, in any batch."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables.table import Table
from planner.performance.constants import load_constants
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import build_bounds, fits_node, grid, shard_axes, stages, tensor_degrees
from planner.performance.search import estimate_layouts, estimate_shapes
from planner.performance.search_best import Group, lower_bounds
from planner.performance.search_job import build_job, distinct_devices, step_of
from planner.performance.search_timed import Pairs
from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec
from tests.draws import draws
from tests.planner.performance.layout_cases import machine_rows, models, trainings
from tests.planner.performance.test_performance import A100, LLAMA_70B, RESNET, SMALL, best, machines
from tests.planner.performance.test_performance_laws import MOE

SLOW = draws(40)
NODES = (1, 2, 3, 4, 6, 8, 16)


def same(first: Table, second: Table) -> None:
    """Assert equality of all columns, bit by bit."""
    assert list(first) == list(second)
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=first[name].dtype.kind == "f"), name


@SLOW
@given(model=models(), training=trainings(), rows=st.lists(machine_rows(), min_size=1, max_size=4))
def test_lower_bounds_change_nothing(
    model: ModelSpec, training: TrainingSpec, rows: list[dict[str, Any]]
) -> None:
    hardware = machines(*rows)
    same(
        estimate_shapes(model, training, hardware, NODES),
        estimate_shapes(model, training, hardware, NODES, prune=False),
    )


@SLOW
@given(model=models(), training=trainings(), row=machine_rows())
def test_a_lower_bound_is_never_above_the_step(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any]
) -> None:
    job = build_job(model, training, machines(row))
    nodes = (1,) if np.isnan(row["internode_gbps"]) else NODES
    made = grid((int(row["accelerator_count"]),), nodes, build_bounds(model, training, False))
    size = made.layout.n_rows
    if job.devices.reason[0] or not size:
        return
    none, rows = np.zeros(size, dtype=np.int64), np.arange(size)
    for level in (0, 1, 2):
        pairs = Pairs(none, rows, none + level)
        ((bound,), _) = lower_bounds(job, made, [Group(none[:1], rows, pairs.level)])
        total = step_of(job, pairs.layout(made)).total
        assert (bound[0] <= total).all()
        assert (bound[0] > 0.0).all()


@SLOW
@given(
    tensor=st.sampled_from([None, 2, 4, 8]),
    experts=st.sampled_from([2, 4, 8]),
    batch=st.sampled_from([64, 480]),
    row=machine_rows(),
)
def test_lower_bounds_hold_for_pinned_experts(
    tensor: int | None, experts: int, batch: int, row: dict[str, Any]
) -> None:
    """Pinned experts may be spread over tensor ranks: then fewer replicas, on fewer nodes, are enough for them."""
    pin = LayoutPin(tensor_parallel=tensor, expert_parallel=experts)
    training = TrainingSpec(batch, 4096, "bf16", stack="tuned", layout=pin)
    hardware = machines(row)
    same(
        estimate_shapes(MOE, training, hardware, NODES),
        estimate_shapes(MOE, training, hardware, NODES, prune=False),
    )


@SLOW
@given(model=models(), training=trainings(), row=machine_rows(), nodes=st.sampled_from(NODES))
def test_no_layout_within_bounds_beats_the_search(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any], nodes: int
) -> None:
    hardware = machines(row)
    found = estimate_shapes(model, training, hardware, [nodes]).row(0)
    made = grid((int(row["accelerator_count"]),), (nodes,), build_bounds(model, training, False)).layout
    pinned = training.layout.recompute
    levels = (0, 1, 2) if pinned is None else ({"none": 0, "selective": 1, "full": 2}[pinned],)
    for level in levels:
        layout = replace(made, recompute=np.full(made.n_rows, float(level)))
        table = estimate_layouts(model, training, hardware, layout)
        if table["fits"].any():
            assert found["fits"]
            assert found["step_time_s"] <= np.nanmin(table["step_time_s"]) * (1 + 1e-12)
        elif made.n_rows and not found["fits"]:
            assert found["reason"] in table["reason"].tolist()
    if not made.n_rows:
        assert found["reason"] in {"batch_not_divisible", "layout_not_possible", "unknown_link"}


def everything(rows: int) -> tuple[ModelSpec, TrainingSpec, Table, Layouts]:
    """Many layouts on machines of all kinds, all recompute levels."""
    training = TrainingSpec(480, 4096, "bf16", stack="tuned")
    hardware = machines(A100, {**A100, "internode_gbps": 100.0, "rdma": ""}, {**A100, "intra_node": "pcie"})
    made = grid((8,), (1, 2, 4, 6, 8), build_bounds(MOE, training, False)).layout
    pick = np.arange(rows) * 7919 % made.n_rows
    columns = {
        **made.take(pick).__dict__,
        "hardware": pick % 3,
        "recompute": (pick % 5 % 3).astype(np.float64),
    }
    return MOE, training, hardware, Layouts(**columns)


@draws(10)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 97))
def test_equal_layouts_give_equal_output_in_any_order_and_chunk(seed: int, size: int) -> None:
    model, training, hardware, layout = everything(501)
    whole = estimate_layouts(model, training, hardware, layout)
    order = np.random.default_rng(seed).permutation(layout.n_rows)
    shuffled = estimate_layouts(model, training, hardware, layout.take(order))
    same(whole.take(order), shuffled)
    start = int(order[0]) % (layout.n_rows - size)
    part = np.arange(start, start + size)
    same(whole.take(part), estimate_layouts(model, training, hardware, layout.take(part)))


@pytest.mark.parametrize("model", [SMALL, LLAMA_70B, MOE, RESNET])
def test_node_counts_and_other_machines_change_no_result(model: ModelSpec) -> None:
    training = TrainingSpec(480, 1 if model is RESNET else 4096, "bf16")
    rows = [A100, {**A100, "accelerator_count": 4.0}, {**A100, "internode_gbps": 200.0}, A100]
    whole = estimate_shapes(model, training, machines(*rows), NODES)
    for position, row in enumerate(rows):
        for column, nodes in enumerate(NODES):
            alone = estimate_shapes(model, training, machines(row), [nodes])
            at = position * len(NODES) + column
            same(whole.take([at]).with_columns(hardware_row=np.zeros(1, dtype=np.int64)), alone)


def test_what_tells_machines_apart_is_all_that_the_step_reads() -> None:
    rows = [A100, {**A100, "memory_gib": 64.0}, {**A100, "vcpus": 8.0}]
    training = TrainingSpec(64, 2048, "bf16")
    job = build_job(SMALL, training, machines(*rows))
    _, inverse = distinct_devices((job.devices,), decodes=False)
    assert inverse.tolist() == [0, 0, 0]
    _, inverse = distinct_devices((job.devices,), decodes=True)
    assert inverse.tolist() == [0, 0, 1]
    alone = [best(SMALL, training, row) for row in rows]
    assert alone[0] == alone[1] == alone[2]


def test_tensor_degrees_divide_heads_and_nodes() -> None:
    training = TrainingSpec(64, 2048, "bf16")
    bounds = build_bounds(replace(SMALL, heads=40, kv_heads=10, hidden=5120), training, False)
    assert tensor_degrees(bounds) == [1, 2, 5, 10, 20, 40]
    assert tensor_degrees(replace(bounds, heads=0)) == [1, 2, 4, 8, 16, 32, 64, 128]
    degrees = np.asarray([1, 2, 3, 6, 8, 12, 16, 18, 36, 72])
    assert degrees[fits_node(degrees, 6, False)].tolist() == [1, 2, 3, 6, 12]
    assert degrees[fits_node(degrees, 72, False)].tolist() == [1, 2, 3, 6, 8, 12, 18, 36, 72]
    assert degrees[fits_node(degrees, 1, False)].tolist() == [1, 2, 3, 6, 8, 12, 16]
    assert degrees[fits_node(degrees, 1, True)].tolist() == degrees.tolist()


@pytest.mark.parametrize(("count", "heads", "tp"), [(6.0, 24, 3), (12.0, 24, 6), (72.0, 72, 36)])
def test_tensor_parallelism_is_not_only_a_power_of_two(count: float, heads: int, tp: int) -> None:
    model = replace(SMALL, heads=heads, hidden=heads * 128)
    training = TrainingSpec(72, 2048, "bf16", layout=LayoutPin(tensor_parallel=tp))
    row = best(model, training, {**A100, "accelerator_count": count}, 2)
    assert row["fits"] and row["tp"] == tp


def test_a_model_that_needs_it_runs_tensor_parallel_across_single_accelerator_machines() -> None:
    pin = LayoutPin(pipeline_parallel=1, zero_stage=1, context_parallel=1)
    one = {**A100, "accelerator_count": 1.0, "intra_node": "single", "accelerator_memory_gib": 24.0}
    row = best(replace(SMALL, params=6.7e9, layers=32, hidden=4096, heads=32, ffn=16384),
               TrainingSpec(64, 2048, "bf16", layout=pin), one, 8)  # fmt: skip
    assert row["fits"] and row["tp"] > 1


def test_pipelines_of_uneven_depth_are_tried() -> None:
    assert stages(8) == [1, 2, 3, 4, 8]
    assert {3, 6, 12, 80} <= set(stages(80)) and 35 not in stages(80)
    for depth in stages(61):
        assert -(-61 // depth) * depth <= 1.15 * 61


def test_long_sequences_are_split_and_short_ones_are_not() -> None:
    short = shard_axes(build_bounds(SMALL, TrainingSpec(64, 2048, "bf16"), False))
    long = shard_axes(build_bounds(SMALL, TrainingSpec(64, 131072, "bf16"), False))
    assert set(short[:, 2].tolist()) == {1}
    assert set(long[:, 2].tolist()) == {1, 2, 4, 8, 16, 32}
    row = best(LLAMA_70B, TrainingSpec(4, 131072, "bf16"), A100, 16)
    assert row["fits"] and row["cp"] > 1


def test_every_pin_is_respected() -> None:
    training = TrainingSpec(64, 8192, "bf16", stack="tuned")
    pins: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"expert_parallel": 4}, {"ep": 4}),
        ({"pipeline_parallel": 4, "interleave": 2, "micro_batch": 1}, {"pp": 4, "interleave": 2}),
        ({"tensor_parallel": 4, "sequence_parallel": False}, {"tp": 4, "sequence_parallel": False}),
        ({"context_parallel": 2}, {"cp": 2}),
        ({"zero_stage": 2, "pipeline_parallel": 1}, {"zero_stage": 2, "pp": 1}),
    ]
    for pin, wanted in pins:
        row = best(MOE, replace(training, layout=LayoutPin(**pin)), A100, 8)
        assert row["fits"], pin
        assert {name: row[name] for name in wanted} == wanted


def test_sequence_parallelism_costs_no_time_and_saves_memory() -> None:
    off = TrainingSpec(
        64, 2048, "bf16", layout=LayoutPin(tensor_parallel=4, recompute="none", sequence_parallel=False)
    )
    on = replace(off, layout=LayoutPin(tensor_parallel=4, recompute="none"))
    without, with_it = best(SMALL, off, A100), best(SMALL, on, A100)
    assert with_it["step_time_s"] <= without["step_time_s"]
    layout = [
        replace(off.layout, micro_batch=4, zero_stage=1),
        replace(on.layout, micro_batch=4, zero_stage=1),
    ]
    needs = [best(SMALL, replace(off, layout=pin), A100)["memory_needed_gib"] for pin in layout]
    assert needs[1] < needs[0]


def test_the_grid_lists_each_layout_once_and_only_what_divides() -> None:
    training = TrainingSpec(1920, 4096, "bf16", stack="tuned")
    made = grid((8,), NODES, build_bounds(MOE, training, False))
    layout = made.layout
    table = np.stack([getattr(layout, field.name) for field in fields(Layouts)], axis=1)
    assert len(np.unique(table, axis=0)) == layout.n_rows
    assert (np.asarray(NODES)[made.at] == layout.nodes).all() and (np.diff(made.at) >= 0).all()
    assert (layout.tp * layout.pp * layout.cp * layout.dp == 8 * layout.nodes).all()
    assert (layout.dp * layout.micro_batch * layout.micro_batches == 1920).all()
    assert (layout.dp * layout.cp % layout.ep == 0).all()
    assert ((layout.interleave == 1) | (layout.micro_batches % layout.pp == 0)).all()


def test_the_search_without_bubbles_is_the_same_with_and_without_lower_bounds() -> None:
    base = load_constants()
    bare = type(base)({**base.values, "pp.bubble_ratio": 0.0})
    training = TrainingSpec(480, 4096, "bf16")
    same(
        estimate_shapes(SMALL, training, machines(A100), NODES, constants=bare),
        estimate_shapes(SMALL, training, machines(A100), NODES, constants=bare, prune=False),
    )


@pytest.mark.parametrize(("batch", "count"), [(1000, 4), (1536, 3), (3960, 11), (997, 1), (1024, 8)])
def test_every_divisor_of_a_replicas_batch_is_a_micro_batch(batch: int, count: int) -> None:
    training = TrainingSpec(global_batch=batch, sequence_length=1, precision="fp16")
    made = grid((count,), (1,), build_bounds(RESNET, training, True)).layout
    whole = made.dp == count
    replica = batch // count
    wanted = {size for size in range(1, replica + 1) if replica % size == 0}
    assert {int(size) for size in made.micro_batch[whole]} == wanted
    assert (made.dp * made.micro_batch * made.micro_batches == batch).all()
