"""Frozen networks beside the model: their forward pass costs time, their weights memory, and nothing else changes."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalogs.table import Table
from planner.asked.job import resolve_job
from planner.errors import InputError
from planner.inputs import parse_workload
from planner.performance.search import estimate_shapes
from tests.planner.performance.test_performance import A100

UNET_PARAMS, UNET_FLOPS = 859_520_964, 803_273_441_280  # of the preset; FLOPs of one forward pass


def estimate(helpers: str) -> dict[str, Any]:
    text = (
        f"version: 1\nname: x\nmodel: {{preset: stable-diffusion-1.5{helpers}}}\n"
        "training: {samples: 1e6, global_batch: 512, layout: {micro_batch: 8, zero_stage: 1}}\n"
    )
    job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))
    machine = Table({name: [value] for name, value in A100.items()})
    return estimate_shapes(job.model, job.training, machine, [1]).row(0)


def test_helpers_as_large_as_the_model_add_one_forward_pass_and_their_weights() -> None:
    alone = estimate("")
    beside = estimate(f", helper_params: {UNET_PARAMS}, helper_flops_per_sample: {UNET_FLOPS}")
    added = beside["step_time_s"] - alone["step_time_s"]
    # a forward pass is a third of forward and backward
    assert added == pytest.approx((alone["compute_s"] + alone["memory_bound_s"]) / 3.0, rel=0.1)
    assert beside["other_models_s"] == pytest.approx(added, rel=1e-6)
    weights_gib = 2.0 * UNET_PARAMS / 2.0**30
    more_gib = beside["memory_needed_gib"] - alone["memory_needed_gib"]
    assert weights_gib <= more_gib <= 1.15 * weights_gib  # and their part of what the allocator cannot use


def test_larger_helpers_never_run_faster_or_in_less_memory() -> None:
    times, needs = [], []
    for size in (1e6, 1e8, 1e9):
        one = estimate(f", helper_params: {size:.0f}, helper_flops_per_sample: {size * 1e3:.0f}")
        times.append(one["step_time_s"])
        needs.append(one["memory_needed_gib"])
    assert times == sorted(times)
    assert needs == sorted(needs)


@pytest.mark.parametrize("key", ["helper_params", "helper_flops_per_sample"])
def test_helpers_need_both_figures(key: str) -> None:
    with pytest.raises(InputError, match="helpers need both"):
        estimate(f", {key}: 1000")
