"""Physical sense of given layouts, on random models and machines."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from catalogs.tables.table import Table
from planner.performance.constants import load_constants
from planner.performance.device import build_devices
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import build_bounds, divisors, grid
from planner.performance.search import estimate_layouts
from planner.performance.search_job import build_job, memory_levels, step_of
from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec
from tests.draws import draws
from tests.planner.performance.layout_cases import machine_rows, models, trainings
from tests.planner.performance.test_performance import A100, LLAMA_70B, SMALL, machines
from tests.planner.performance.test_performance_laws import MOE, RATES

CHECKS = draws(60)
ACCELERATORS = Path(__file__).resolve().parents[3] / "catalogs" / "data" / "accelerators.csv"
NUMBERS = ("memory_gib", "memory_gb_per_s", "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops",
           "fp4_tflops", "achievable_bf16_tflops", "link_gb_per_s", "pcie_gen")  # fmt: skip


def all_layouts(model: ModelSpec, training: TrainingSpec, row: dict[str, Any], level: float) -> Layouts:
    """Every layout within bounds on 1, 2, 6 and 8 nodes of a machine (one where the network is unknown)."""
    nodes = (1,) if np.isnan(row["internode_gbps"]) else (1, 2, 6, 8)
    made = grid((int(row["accelerator_count"]),), nodes, build_bounds(model, training, False)).layout
    return replace(made, recompute=np.full(made.n_rows, level))


def times(model: ModelSpec, training: TrainingSpec, row: dict[str, Any], layout: Layouts) -> Any:
    job = build_job(model, training, machines(row))
    assume(not job.devices.reason[0] and layout.n_rows > 0)
    return step_of(job, layout).total


@CHECKS
@given(model=models(), training=trainings(), row=machine_rows(), level=st.sampled_from([0.0, 1.0, 2.0]))
def test_no_layout_is_above_the_roofline(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any], level: float
) -> None:
    layout = all_layouts(model, training, row, level)
    total = times(model, training, row, layout)
    job = build_job(model, training, machines(row))
    peak = layout.nodes * job.devices.count[0] * max(job.devices.gemm_peak[0], job.devices.attn_peak[0])
    assert (job.work.flops_per_sample * training.global_batch <= total * peak * (1 + 1e-9)).all()
    assert np.isfinite(total).all()


@CHECKS
@given(
    model=models(), training=trainings(), row=machine_rows(), level=st.sampled_from([0.0, 1.0, 2.0]),
    factor=st.floats(1.0, 8.0),
    which=st.sampled_from(["peak", "memory_gb_per_s", "internode_gbps", "intra_node_gb_per_s"]),
)  # fmt: skip
def test_a_faster_part_slows_no_layout(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any], level: float, factor: float, which: str
) -> None:
    names = RATES if which == "peak" else (which,)
    faster = {**row, **{name: row[name] * factor for name in names}}
    layout = all_layouts(model, training, row, level)
    before, after = times(model, training, row, layout), times(model, training, faster, layout)
    assert (after <= before * (1 + 1e-9)).all()


@CHECKS
@given(model=models(), training=trainings(), row=machine_rows())
def test_recompute_costs_time_and_saves_memory(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any]
) -> None:
    free = replace(training, layout=replace(training.layout, recompute=None))
    layout = all_layouts(model, free, row, 0.0)
    rising = [times(model, free, row, replace(layout, recompute=0.0 * layout.tp + k)) for k in (0, 1, 2)]
    assert (rising[0] <= rising[1] * (1 + 1e-12)).all() and (rising[1] <= rising[2] * (1 + 1e-12)).all()
    falling = memory_levels(build_job(model, free, machines(row)), layout)
    assert (falling[0] >= falling[1] * (1 - 1e-12)).all() and (falling[1] >= falling[2] * (1 - 1e-12)).all()


def need(model: ModelSpec, training: TrainingSpec, **given_: float) -> float:
    """Memory of one layout, GiB; `level` is its recompute level."""
    row = {"nodes": 8.0, "tp": 1.0, "pp": 1.0, "cp": 1.0, "ep": 1.0, "dp": 8.0, "zero": 1.0, "micro_batch": 1.0,
           "micro_batches": 16.0, "interleave": 1.0, "sequence_parallel": 1.0, "recompute": 0.0, **given_}  # fmt: skip
    layout = Layouts(
        np.zeros(1, dtype=np.int64),
        *(np.full(1, row[field.name]) for field in fields(Layouts) if field.name != "hardware"),
    )
    job = build_job(model, training, machines(A100))
    return float(memory_levels(job, layout)[int(row["recompute"])][0])


@CHECKS
@given(
    model=st.sampled_from([SMALL, LLAMA_70B, MOE]), stack=st.sampled_from(["eager", "compiled", "tuned"]),
    level=st.sampled_from([0.0, 1.0, 2.0]), zero=st.sampled_from([0.0, 1.0, 2.0, 3.0]),
    pp=st.sampled_from([1.0, 2.0, 4.0]), micro=st.sampled_from([1.0, 2.0, 4.0]), virtual=st.sampled_from([1.0, 2.0]),
)  # fmt: skip
def test_memory_never_rises_with_a_degree_at_equal_micro_batch_and_cluster(
    model: ModelSpec, stack: Any, level: float, zero: float, pp: float, micro: float, virtual: float
) -> None:
    training = TrainingSpec(1024, 4096, "bf16", stack=stack)
    same = {"micro_batch": micro, "zero": zero, "recompute": level, "interleave": virtual if pp > 1 else 1.0}
    ranks = 64.0 / pp

    def at(tp: float, **more: float) -> float:
        dp = ranks / tp
        return need(
            model,
            training,
            **{**same, "pp": pp, "tp": tp, "dp": dp, "micro_batches": 1024 / dp / micro, **more},
        )

    assert at(1.0) >= at(2.0) >= at(4.0) >= at(8.0)
    stages = [at(1.0, zero=stage) for stage in (0.0, 1.0, 2.0, 3.0)]
    assert stages == sorted(stages, reverse=True)
    assert at(2.0, sequence_parallel=1.0) <= at(2.0, sequence_parallel=0.0)
    assert at(1.0, dp=2.0 * ranks, nodes=16.0) <= at(1.0)


@CHECKS
@given(
    model=st.sampled_from([SMALL, LLAMA_70B, MOE]), zero=st.sampled_from([0.0, 1.0]),
    micro=st.sampled_from([1.0, 2.0]), stack=st.sampled_from(["eager", "compiled", "tuned"]),
)  # fmt: skip
def test_deeper_pipelines_hold_less_state(model: ModelSpec, zero: float, micro: float, stack: Any) -> None:
    training = TrainingSpec(1024, 2048, "bf16", stack=stack)
    needs = [
        need(model, training, pp=pp, dp=64.0 / pp, zero=zero, micro_batch=micro, recompute=2.0,
             micro_batches=1024.0 * pp / 64.0 / micro)
        for pp in (1.0, 2.0, 4.0, 8.0)
    ]  # fmt: skip
    assert needs == sorted(needs, reverse=True)


@CHECKS
@given(
    model=st.sampled_from([SMALL, LLAMA_70B, MOE]), tp=st.sampled_from([1, 2, 8]), pp=st.sampled_from([1, 2, 4]),
    cp=st.sampled_from([1, 2]), ep=st.sampled_from([1, 2]), zero=st.sampled_from([0, 1, 2, 3]),
    level=st.sampled_from([0, 1, 2]), nodes=st.sampled_from([8, 16]), factor=st.sampled_from([2, 3, 4]),
)  # fmt: skip
def test_more_nodes_never_reduce_headroom_whatever_the_layout(
    model: ModelSpec, tp: int, pp: int, cp: int, ep: int, zero: int, level: int, nodes: int, factor: int
) -> None:
    dp = nodes * 8 / (tp * pp * cp)
    assume(dp >= 1 and dp % 1 == 0 and dp * cp % ep == 0)
    training = TrainingSpec(12288, 4096, "bf16")
    needs = [
        need(model, training, tp=tp, pp=pp, cp=cp, ep=ep if model is MOE else 1, zero=zero, recompute=level,
             nodes=nodes * k, dp=dp * k, micro_batches=12288 / (dp * k))
        for k in (1, factor)
    ]  # fmt: skip
    assert needs[1] <= needs[0] * (1 + 1e-12)


@CHECKS
@given(
    model=st.sampled_from([SMALL, LLAMA_70B, MOE]), pp=st.sampled_from([2, 4, 8]), tp=st.sampled_from([1, 2, 4]),
    virtual=st.sampled_from([1, 2]), number=st.sampled_from([8, 16, 32]), zero=st.sampled_from([0, 1, 3]),
    level=st.sampled_from([0, 1, 2]), stack=st.sampled_from(["eager", "compiled", "tuned"]),
)  # fmt: skip
def test_more_micro_batches_never_worsen_the_bubble_of_any_layout(
    model: ModelSpec, pp: int, tp: int, virtual: int, number: int, zero: int, level: int, stack: Any
) -> None:
    nodes = pp * tp
    shares = []
    for times_more in (1, 2, 4):
        training = TrainingSpec(8 * number * times_more, 2048, "bf16", stack=stack)
        pin = LayoutPin(tp, pp, 1, zero, 1, interleave=virtual)
        bounds = build_bounds(model, replace(training, layout=pin), False)
        made = grid((8,), (nodes,), bounds).layout
        layout = replace(made.take(made.ep == 1), recompute=np.full(int((made.ep == 1).sum()), float(level)))
        assume(layout.n_rows == 1)
        step = step_of(build_job(model, training, machines(A100)), layout)
        shares.append(float(step.parts["bubble_s"][0] / step.total[0]))
    assert shares == sorted(shares, reverse=True)


def test_tensor_and_expert_traffic_across_nodes_costs_more_than_inside() -> None:
    training = TrainingSpec(512, 4096, "bf16")
    slow = {**A100, "internode_gbps": 100.0, "rdma": ""}
    for name, degree in (("tp", 8.0), ("ep", 8.0)):
        row = {"tp": 1.0, "ep": 1.0, name: degree}
        dp = 16.0 / row["tp"]
        columns = {"nodes": 2.0, "pp": 1.0, "cp": 1.0, "dp": dp, "zero": 1.0, "micro_batch": 1.0,
                   "micro_batches": 512.0 / dp, "interleave": 1.0, "sequence_parallel": float(name == "tp"),
                   "recompute": 0.0, **row}  # fmt: skip
        ordered = {field.name: np.full(1, columns.get(field.name, 0.0)) for field in fields(Layouts)}
        layout = Layouts(**{**ordered, "hardware": np.zeros(1, dtype=np.int64)})
        traffic = []
        for count, nodes in ((8.0, 2.0), (4.0, 4.0)):
            machine = {**slow, "accelerator_count": count}
            table = estimate_layouts(
                MOE, training, machines(machine), replace(layout, nodes=np.full(1, nodes))
            )
            traffic.append(float(step_of(build_job(MOE, training, machines(machine)),
                                         replace(layout, nodes=np.full(1, nodes))).parts["tp_comm_s"][0]))  # fmt: skip
            assert table["nodes"][0] == nodes
        assert traffic[1] > 1.5 * traffic[0], name


def accelerator_rows() -> list[dict[str, str]]:
    with ACCELERATORS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", accelerator_rows(), ids=lambda row: row["accelerator"])
def test_every_accelerator_has_a_peak_or_says_that_it_is_unknown(row: dict[str, str]) -> None:
    numbers = {name: float(row[name]) if row[name] else float("nan") for name in NUMBERS}
    machine = {
        **A100, **numbers, "accelerator_memory_gib": numbers["memory_gib"], "memory_gib": 512.0,
        "generation": row["generation"], "vendor": row["vendor"], "trainable": row["trainable"] or "true",
    }  # fmt: skip
    hardware = Table({name: [value] for name, value in machine.items()})
    constants = load_constants()
    reasons = {
        precision: str(build_devices(hardware, TrainingSpec(8, 128, precision), "transformer", constants).reason[0])
        for precision in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
    }  # fmt: skip
    peaks = [
        name
        for name in NUMBERS
        if name.endswith("_tflops") and row[name] and not name.startswith("achievable")
    ]
    if row["trainable"] == "false":
        assert set(reasons.values()) == {"not_trainable"}
    elif peaks:
        assert row["source"] and row["as_of"]
        stated = {name.removesuffix("_tflops") for name in peaks}
        assert {p for p, reason in reasons.items() if reason != "no_peak_for_precision"} == stated
    else:
        assert set(reasons.values()) == {"no_peak_for_precision"}
        assert "no peaks" in row["note"] or "no peaks" in row["source"]


@given(number=st.integers(1, 3_000), most=st.integers(1, 3_000))
@CHECKS
def test_divisors_up_to_a_limit(number: int, most: int) -> None:
    expected = [d for d in range(1, number + 1) if number % d == 0 and d <= most]
    assert divisors(number, most) == expected


def test_divisors_of_a_mistyped_batch_are_found_without_trying_its_root() -> None:
    assert divisors(10**18, 20) == [1, 2, 4, 5, 8, 10, 16, 20]
