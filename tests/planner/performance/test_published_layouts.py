"""Layouts of published runs that no constant was fitted on: Llama 3 405B on H100 (arXiv 2407.21783, table 4).

The shares of the peak (38 to 43 %) were read in secondary sources, layouts and batches are as recalled.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.accelerators import find_device, load_devices
from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.inputs.load import parse_workload
from planner.performance.layouts import explicit
from planner.performance.layouts_grid import build_bounds, grid
from planner.performance.search import estimate_layouts, estimate_shapes


def machines() -> Table:
    """A machine of eight H100 with a network of 400 Gb/s for each."""
    device: dict[str, Any] | None = find_device(load_devices(), "H100-SXM")
    assert device is not None
    row = {
        **device, "accelerator_count": 8.0, "accelerator_memory_gib": device["memory_gib"], "memory_gib": np.nan,
        "vcpus": np.nan, "intra_node": "nvswitch", "intra_node_gb_per_s": np.nan, "internode_gbps": 3200.0,
        "rdma": "roce", "trainable": "true",
    }  # fmt: skip
    return Table({name: [value] for name, value in row.items()})


def llama(sequence: int, batch: int, layout: dict[str, int]) -> Any:
    training = {
        "steps": 1000, "precision": "bf16", "global_batch": batch, "sequence_length": sequence, "stack": "tuned",
        "layout": layout,
    }  # fmt: skip
    workload = {"version": 1, "name": "llama", "model": {"preset": "llama-3.1-405b"}, "training": training}
    return resolve_job(parse_workload(json.dumps(workload), Path("llama.yaml")).workload, date(2024, 6, 1))


@pytest.mark.parametrize(
    ("nodes", "context", "sequence", "batch", "measured"),
    [(1024, 1, 8192, 2048, 0.43), (2048, 1, 8192, 2048, 0.41), (2048, 16, 131072, 128, 0.38)],
)
def test_llama_3_runs_as_published(
    nodes: int, context: int, sequence: int, batch: int, measured: float
) -> None:
    job = llama(sequence, batch, {"tensor_parallel": 8, "pipeline_parallel": 16, "context_parallel": context})
    shape = estimate_shapes(job.model, job.training, machines(), [nodes]).row(0)
    assert shape["fits"]
    assert shape["mfu"] == pytest.approx(measured, rel=0.12)


def test_the_search_tries_virtual_stages_of_one_layer_and_none_shorter() -> None:
    job = llama(8192, 2048, {"tensor_parallel": 8})
    found = grid((8,), (1024,), build_bounds(job.model, job.training, sampled=False)).layout
    stages = found.interleave * found.pp
    assert found.interleave.max() == 8.0
    assert 126.0 >= stages.max() > 126.0 / 2.0


def test_more_virtual_stages_shorten_the_bubble() -> None:
    job = llama(8192, 2048, {})
    rows = [
        {"nodes": 1024, "tp": 8, "pp": 16, "zero": 1, "interleave": stages, "recompute": 2}
        for stages in range(1, 8)
    ]
    table = estimate_layouts(job.model, job.training, machines(), explicit(8.0, job.training, 126, 1, rows))
    bubbles = [float(value) for value in table["bubble_s"]]
    assert all(table["fits"])
    assert bubbles == sorted(bubbles, reverse=True)
    assert bubbles[6] == pytest.approx(bubbles[0] / 7.0, rel=0.2)


def test_where_layers_do_not_divide_evenly_the_last_stage_has_one_less_beside_the_output_layer() -> None:
    """126 layers and two tables on 16 stages, as Megatron divides them; 128 layers have no room for the output."""
    steps = []
    for layers in (126, 128):
        job = llama(8192, 2048, {"tensor_parallel": 8, "pipeline_parallel": 16})
        model = replace(job.model, layers=layers)
        steps.append(estimate_shapes(model, job.training, machines(), [1024]).row(0)["step_time_s"])
    assert 0.9 < steps[0] / steps[1] < 126 / 128


@pytest.mark.parametrize("part", ["compute_s", "evaluation_s", "step_time_s"])
def test_more_layers_of_one_size_never_shorten_a_step(part: str) -> None:
    job = llama(
        8192, 2048, {"tensor_parallel": 8, "pipeline_parallel": 16, "interleave": 1, "micro_batch": 1}
    )
    each = (job.model.params - 2 * 128256 * 16384) / 126
    training = replace(job.training, evaluated=1.0)
    steps = []
    for layers in (121, 125, 127, 128, 129):
        model = replace(job.model, layers=layers, params=job.model.params + (layers - 126) * each)
        steps.append(estimate_shapes(model, training, machines(), [1024]).row(0)[part])
    assert steps == sorted(steps)
    assert steps[2] - steps[0] < 0.2 * (steps[3] - steps[2])  # the last stage is full first at 128
