"""The commonest jobs of today, asked for a little more: what must not fall, and by how much figures may rise."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from planner.asked.job import resolve_job
from planner.inputs.load import parse_workload
from planner.performance.search import estimate_shapes
from tests.planner.performance.test_performance import A100, machines

H100 = {
    **A100, "generation": "hopper", "memory_gb_per_s": 3350.0, "bf16_tflops": 989.0, "fp16_tflops": 989.0,
    "fp8_tflops": 1979.0, "achievable_bf16_tflops": 792.0, "internode_gbps": 3200.0, "link_gb_per_s": 900.0,
    "intra_node_gb_per_s": 900.0, "memory_gib": 2048.0, "vcpus": 192.0,
}  # fmt: skip


class Job(NamedTuple):
    """A job on so many cards of a node."""

    preset: str
    machine: dict[str, Any]
    cards: int
    training: dict[str, Any]


TOKENS = {"global_batch": 64, "sequence_length": 2048}
JOBS = {
    "QLoRA 8B": Job("llama-3.1-8b", A100, 1, TOKENS | {"method": "qlora"}),
    "LoRA 8B": Job("llama-3.1-8b", H100, 8, TOKENS | {"method": "lora"}),
    "QLoRA 70B": Job("llama-3.1-70b", H100, 8, TOKENS | {"method": "qlora"}),
    "LoRA 70B": Job("llama-3.1-70b", H100, 8, TOKENS | {"method": "lora"}),
    "SFT 8B": Job("llama-3.1-8b", H100, 8, TOKENS | {"objective": "sft"}),
    "DPO 8B": Job("llama-3.1-8b", H100, 8, TOKENS | {"objective": "dpo"}),
    "SFT of experts": Job("qwen3-30b-a3b", H100, 8, TOKENS | {"objective": "sft"}),
    "SDXL": Job("sdxl", A100, 8, {"global_batch": 64, "objective": "sft"}),
    "ViT": Job("vit-l-16", A100, 8, {"global_batch": 1024}),
}
STACKS = ("eager", "compiled", "tuned")


def step_s(job: Job, stack: str, nodes: int = 2, **change: Any) -> float:
    training = {"steps": 100, "precision": "bf16", "stack": stack} | job.training | change
    document = {"version": 1, "name": "t", "model": {"preset": job.preset}, "training": training}
    asked = resolve_job(parse_workload(json.dumps(document), Path("w.yaml")).workload, date(2026, 11, 20))
    machine = machines({**job.machine, "accelerator_count": float(job.cards)})
    row = estimate_shapes(asked.model, asked.training, machine, [nodes]).row(0)
    assert row["fits"], row["reason"]
    return float(row["step_time_s"])


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", JOBS)
def test_twice_the_batch_takes_longer_and_at_most_twice_as_long(name: str, stack: str) -> None:
    job = JOBS[name]
    more = step_s(job, stack, global_batch=2 * job.training["global_batch"])
    assert step_s(job, stack) < more <= 2.0001 * step_s(job, stack)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", JOBS)
def test_twice_the_nodes_never_slow_a_step_and_hardly_more_than_halve_it(name: str, stack: str) -> None:
    job = JOBS[name]
    ratio = step_s(job, stack, nodes=4) / step_s(job, stack, nodes=2)
    # more memory for less recompute may give more than its share
    assert 0.4 < ratio <= 1.0


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if "sequence_length" in job.training])
def test_twice_the_tokens_of_each_sequence_take_at_least_twice_the_step(name: str, stack: str) -> None:
    ratio = step_s(JOBS[name], stack, sequence_length=4096) / step_s(JOBS[name], stack)
    # experts and launches of small micro-batches wait less per token
    assert (1.4 if "experts" in name else 1.9) < ratio < 3.0


@pytest.mark.parametrize("stack", STACKS)
def test_frozen_weights_are_faster_few_bits_slower_and_pairs_dearer(stack: str) -> None:
    full, lora = step_s(JOBS["SFT 8B"], stack), step_s(JOBS["LoRA 8B"], stack)
    assert 0.6 * full < lora < 0.9 * full
    assert lora < step_s(JOBS["LoRA 8B"], stack, method="qlora") < 1.4 * lora
    # two sequences, and a reference that runs forward over both
    assert 2.2 * full < step_s(JOBS["DPO 8B"], stack) < 3.5 * full


def test_adapters_on_one_node_are_within_a_fifth_of_what_was_published_in_like_jobs() -> None:
    # tokens/s per accelerator of torchtune's README (A100, compiled) and of NeMo 25.x (H100, 8 bit, tuned)
    torchtune, nemo = 437.0, 2643.0
    asked = TOKENS | {"method": "lora", "global_batch": 16}
    pin = {
        "zero_stage": 3,
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "micro_batch": 2,
        "recompute": "full",
    }
    ours = 16 * 2048 / step_s(Job("llama-3.1-70b", A100, 8, asked | {"layout": pin}), "compiled", nodes=1) / 8
    assert abs(ours / torchtune - 1.0) < 0.2
    asked = {"method": "lora", "global_batch": 32, "sequence_length": 4096, "precision": "fp8"}
    pin = {"tensor_parallel": 2, "pipeline_parallel": 4, "micro_batch": 1}
    ours = 32 * 4096 / step_s(Job("llama-3.1-70b", H100, 8, asked | {"layout": pin}), "tuned", nodes=1) / 8
    assert abs(ours / nemo - 1.0) < 0.2
