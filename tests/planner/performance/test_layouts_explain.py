"""Why a layout wins: counts that add up, runner-ups that lose by what they say, memory that would pay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.performance.layouts_grid import build_bounds, grid
from planner.performance.measured_layouts import LAYOUT_ERROR
from planner.performance.search_explain import LayoutReport, RankedLayout, explain_layouts, report_lines
from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec
from tests.draws import draws
from tests.planner.performance.layout_cases import machine_rows, models, trainings
from tests.planner.performance.test_performance import A100, LLAMA_70B, SMALL, best, machines

TRAINING = TrainingSpec(1024, 4096, "bf16")


def report(nodes: int, training: TrainingSpec = TRAINING, **change: Any) -> LayoutReport:
    return explain_layouts(LLAMA_70B, training, machines({**A100, **change}), nodes)


@draws(40)
@given(model=models(), training=trainings(), row=machine_rows(), nodes=st.sampled_from([1, 2, 6, 8]))
def test_the_report_agrees_with_the_search(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any], nodes: int
) -> None:
    found = best(model, training, row, nodes)
    if found["reason"] in {"unknown_link", "no_peak_for_precision"}:
        with pytest.raises(ValueError, match=found["reason"]):
            explain_layouts(model, training, machines(row), nodes)
        return
    told = explain_layouts(model, training, machines(row), nodes)
    assert (told.best is not None) == found["fits"]
    assert told.too_big + told.slower + (told.best is not None) == told.layouts
    listed = grid((int(row["accelerator_count"]),), (nodes,), build_bounds(model, training, False)).layout
    assert told.layouts == listed.n_rows
    assert told.shards >= told.off_node + told.off_cluster + told.off_batch
    if told.best is None:
        assert told.layouts == 0 or (told.least is not None and told.least.memory_gib > told.available_gib)
        return
    assert told.best.step_time_s == found["step_time_s"]
    assert told.best.memory_gib == found["memory_needed_gib"] <= told.available_gib
    times = [told.best.step_time_s, *(other.step_time_s for other in told.others)]
    assert times == sorted(times)
    for other in told.others:
        assert other.memory_gib <= told.available_gib
        more = sum(seconds for _, seconds in other.loses)
        assert more >= (other.step_time_s - told.best.step_time_s) - 0.03 * told.best.step_time_s
    if told.blocked is not None:
        assert told.blocked.memory_gib > told.available_gib
        assert told.blocked.step_time_s < told.best.step_time_s


KINDS = ("tensor", "pipeline", "context", "expert", "virtual stages")


def kinds(layout: RankedLayout) -> int:
    return sum(kind in layout.words for kind in KINDS)


@draws(40)
@given(model=models(), training=trainings(), row=machine_rows(), nodes=st.sampled_from([2, 6, 8]))
def test_a_simpler_layout_is_the_simplest_within_the_models_error(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any], nodes: int
) -> None:
    try:
        told = explain_layouts(model, training, machines(row), nodes, top=10_000)
    except ValueError:
        return
    if told.best is None or told.measured:
        assert told.simpler is None and told.simpler_words == ""
        return
    near = [kinds(other) for other in told.others if other.over_best_ratio <= LAYOUT_ERROR]
    if told.simpler is None:
        assert all(kinds(told.best) <= number for number in near)
        return
    assert 0.0 <= told.simpler.over_best_ratio <= LAYOUT_ERROR
    assert told.simpler.memory_gib <= told.available_gib
    assert kinds(told.simpler) < kinds(told.best)
    assert kinds(told.simpler) <= min(near, default=len(KINDS))


def test_a_plain_layout_is_named_beside_a_slightly_faster_one() -> None:
    told = report(16, TrainingSpec(256, 4096, "bf16", stack="tuned"))
    assert told.best is not None and kinds(told.best) == 1
    assert told.simpler is not None and told.simpler.words.startswith("data 128, micro-batch 1 x 2, ZeRO 3")
    assert told.simpler_words in report_lines(told)
    assert report(8).simpler is None  # the fastest is data parallel alone


def test_counts_tell_why_combinations_were_left_out() -> None:
    three = report(3)
    assert three.accelerators == 24
    assert three.off_cluster > 0 and three.off_batch > 0 and three.off_node > 0
    assert three.too_big > 0 and three.slower > 0
    (first, *_) = report_lines(three)
    assert "do not divide the cluster" in first and "out of memory" in first
    assert "do not divide the batch" not in report_lines(report(4))[0]


def test_runner_ups_are_other_combinations_and_say_what_they_lose() -> None:
    told = report(8)
    assert told.best is not None and len(told.others) == 3
    degrees = [layout.words.split(", micro-batch")[0] for layout in (told.best, *told.others)]
    assert len(set(degrees)) == 4
    assert any(other.loses for other in told.others)
    assert all("s a step" in line or "next" in line or ":" in line for line in report_lines(told))


def test_a_slow_network_names_traffic_as_what_is_lost() -> None:
    pin = LayoutPin(pipeline_parallel=1, context_parallel=1, zero_stage=3)
    told = report(8, TrainingSpec(1024, 4096, "bf16", layout=pin), internode_gbps=100.0)
    assert told.best is not None and told.others
    assert any("traffic" in name for other in told.others for name, _ in other.loses)


def test_a_faster_layout_that_does_not_fit_is_told() -> None:
    told = report(8)
    assert told.blocked is not None and told.best is not None
    assert told.blocked.over_best_ratio < 0.0
    assert any(line.startswith("out of memory: ") for line in report_lines(told))


def test_where_nothing_fits_the_nearest_layout_and_offload_are_told() -> None:
    told = report(1)
    assert told.best is None and told.least is not None
    assert told.offload_gib is not None and told.offload_gib < told.least.memory_gib
    assert told.host_gib == pytest.approx(16.0 * 70.6e9 / 1024**3)  # states, and gradients as they are made
    lines = report_lines(told)
    assert any(
        "host memory" in line and "training.memory: {offload_optimizer: true}" in line for line in lines
    )


def test_a_cluster_that_no_layout_divides_has_no_layouts() -> None:
    pin = LayoutPin(tensor_parallel=1, pipeline_parallel=1, context_parallel=1)
    told = explain_layouts(SMALL, TrainingSpec(64, 2048, "bf16", layout=pin), machines(A100), 3)
    assert (told.shards, told.off_batch, told.layouts, told.best) == (1, 1, 0, None)
    assert len(report_lines(told)) == 1


def test_a_pinned_recompute_level_is_kept() -> None:
    told = report(16, TrainingSpec(1024, 4096, "bf16", layout=LayoutPin(recompute="full")))
    assert told.best is not None and told.blocked is None
    assert all("full recompute" in layout.words for layout in (told.best, *told.others))
