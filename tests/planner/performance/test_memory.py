"""The memory model against published tables and measured runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.performance.constants import load_constants
from planner.performance.memory import FULL, GIB, NONE, PARTS, SELECTIVE
from planner.performance.memory_activations import layers_in_flight, passing
from planner.performance.memory_host import HOST_PARTS, host_needs, offload_traffic_s
from planner.performance.memory_options import MemoryOptions
from planner.performance.memory_risk import budget_gib, oom_probability, usable_gib
from planner.performance.memory_states import states
from planner.performance.memory_work import state_bytes_per_param
from planner.performance.spec import ModelFamily, ModelSpec
from tests.planner.performance.memory_cases import (
    BERT,
    GPT3,
    LLAMA_8B,
    MIXTRAL,
    RESNET,
    footprint,
    layout,
    need,
    parts,
    training,
)

C = load_constants()
# Counts of the papers: no gradients of the layer at work, no allocator.
BARE = C.replace({"memory.activation_ratio": 1.0, "memory.live_ratio": 1.0})


@pytest.mark.parametrize(
    ("precision", "whole", "shared", "sharded"),
    [("fp16", 20.0, 4.0, 16.0), ("bf16", 18.0, 6.0, 12.0), ("fp32", 16.0, 8.0, 8.0)],
)
def test_bytes_per_parameter_are_those_of_the_megatron_readme(
    precision: str, whole: float, shared: float, sharded: float
) -> None:
    # github.com/NVIDIA/Megatron-LM, README, "Distributed Optimizer": theoretical bytes per parameter.
    found = state_bytes_per_param(training(GPT3, precision))
    assert found["weight_bytes"] + found["grad_bytes"] + found["opt_bytes"] == whole
    assert found["weight_bytes"] + found["grad_bytes"] == shared
    assert found["opt_bytes"] == sharded


@pytest.mark.parametrize(("stage", "published_gb"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_zero_stages_are_those_of_the_zero_paper(stage: int, published_gb: float) -> None:
    # arXiv 1910.02054, figure 1: 7.5 billion parameters, mixed-precision Adam (16 bytes), 64 devices.
    model = replace(GPT3, params=7.5e9, layers=36, hidden=4096, heads=32, ffn=16384, vocab=50257)
    found = states(footprint(model, "fp16", stack="eager"), layout(dp=64, zero=stage), C)
    lasting = float((found.weights + found.gradients + found.optimizer)[0]) / 1e9
    assert lasting == pytest.approx(published_gb, rel=0.02)


def test_activations_are_those_of_korthikanti() -> None:
    # arXiv 2205.05198, table 2: bytes per layer, s b h x (...), for a transformer with dropout.
    job = footprint(GPT3, "fp16", stack="tuned", attention="materialised")
    s, b, h, a, layers, t = 2048, 1, 12288, 96, 96, 8
    unit = s * b * h * layers
    scores = 5 * a * s / h

    def saved(level: int, **given: float) -> float:
        return float(
            passing(job, layout(micro_batch=b, pp=2, micro_batches=2, **given), level, BARE).activations[0]
        )

    def layer_at_work(split: float, gathered: float) -> float:
        return s * b * h * ((34 + scores) / split + gathered)

    assert saved(NONE) == pytest.approx(unit * (34 + scores))
    tensor = unit * (10 + 24 / t + scores / t)
    assert saved(NONE, tp=t, sequence_parallel=0) == pytest.approx(tensor)
    # With sequence parallelism one layer gathers its input and its gradient: 2 x 2 bytes per element.
    assert saved(NONE, tp=t) == pytest.approx(unit * (34 + scores) / t + 4 * s * b * h * (1 - 1 / t))
    selective = saved(SELECTIVE, tp=t)
    assert selective == pytest.approx(
        unit * 34 / t + layer_at_work(t, 4 * (1 - 1 / t)) - s * b * h * 34 / t, rel=1e-9
    )
    full = saved(FULL, tp=t)
    assert full == pytest.approx(
        unit * 2 / t + layer_at_work(t, 4 * (1 - 1 / t)) - s * b * h * 2 / t, rel=1e-9
    )


def test_pipelines_hold_what_a_stage_has_sent() -> None:
    # DeepSpeed and PyTorch keep a stage's outputs of all micro-batches in flight, Megatron-LM frees them.
    def kept(stack: str, pp: int) -> float:
        job = footprint(GPT3, stack=stack, attention="flash")
        return float(passing(job, layout(pp=pp), FULL, C).activations[0])

    outputs = 4 * 2048 * 12288 * 2
    assert kept("fused", 4) - kept("tuned", 4) == pytest.approx(outputs, rel=0.01)
    assert kept("fused", 1) == pytest.approx(kept("tuned", 1), rel=0.01)


def test_megatron_deepspeed_sums_gradients_in_a_bucket() -> None:
    # 500 M gradients at once after the last micro-batch of a pipeline, 2 bytes each in fp16.
    few, many = (states(footprint(GPT3, "fp16", stack="fused"), layout(pp=8, dp=dp), C) for dp in (1, 4))
    assert float(few.gathered[0]) == 0.0
    assert float(many.gathered[0]) == 1e9


def test_sixteen_bit_gradients_are_copied_for_the_update() -> None:
    # ZeRO and Megatron-LM update in 32 bit whichever half precision the gradients have.
    half = MemoryOptions(gradients="half")
    job = footprint(GPT3, "bf16", stack="fused", options=half)
    assert float(job.opt_bytes[0]) == 16.0
    assert float(footprint(GPT3, "bf16", stack="fused").opt_bytes[0]) == 12.0


def test_layers_in_flight_of_both_schedules() -> None:
    # arXiv 2104.04473, section 2.2: one-forward-one-backward keeps pp micro-batches on the first stage; interleaving
    # raises that by 1 + (pp - 1) / (pp v).
    job = footprint(GPT3)
    first, last = layers_in_flight(job, layout(pp=8))
    assert (first[0], last[0]) == (96.0, 12.0)
    first, last = layers_in_flight(job, layout(pp=8, interleave=3))
    assert first[0] == pytest.approx(96 * (1 + 7 / 24))
    assert last[0] < first[0]
    few, _ = layers_in_flight(job, layout(pp=8, micro_batches=2))
    assert few[0] == 24.0


def test_measured_runs_are_met() -> None:
    # torchtitan benchmarks/llama3_h100_202412: Llama-3 8B, 8 H100-96, sequence 8,192, batch 2, op-level selective
    # recompute, compiled: 77.0 GiB reserved; 128 accelerators: 62.0 GiB.
    spec = replace(training(LLAMA_8B), sequence_length=8192)
    from planner.performance.memory_work import build_footprint

    job = build_footprint(LLAMA_8B, spec)
    for dp, reserved in ((8, 77.0), (128, 62.0)):
        found = parts(job, zero=3, dp=dp, micro_batch=2, recompute=SELECTIVE)
        assert sum(found.values()) - found["runtime_gib"] == pytest.approx(reserved, rel=0.1)


def test_parts_sum_to_the_need_and_tell_what_they_are() -> None:
    for model in (GPT3, LLAMA_8B, MIXTRAL, BERT, RESNET):
        job = footprint(model)
        found = parts(job, dp=4, zero=1)
        assert tuple(found) == PARTS
        assert all(value >= 0 for value in found.values())
        assert sum(found.values()) == pytest.approx(need(job, dp=4, zero=1))
    found = parts(footprint(LLAMA_8B), dp=8, zero=1)
    assert found["weights_gib"] == pytest.approx(2 * 8.03e9 / GIB, rel=1e-6)
    assert found["gradients_gib"] == pytest.approx(4 * 8.03e9 / GIB, rel=1e-6)
    assert found["optimizer_gib"] == pytest.approx(12 * 8.03e9 / 8 / GIB, rel=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "states"), [("adamw", 8.0), ("adam", 8.0), ("sgd", 4.0), ("lion", 4.0), ("adamw_8bit", 2.0)]
)
def test_optimizers_of_the_workload_have_their_moments(optimizer: str, states: float) -> None:
    found = state_bytes_per_param(training(LLAMA_8B, optimizer=optimizer))
    assert found["opt_bytes"] == 4.0 + states


def test_the_last_stage_may_be_the_fullest() -> None:
    # A vocabulary this large makes the logits outweigh the extra micro-batches of the first stage.
    wide = replace(LLAMA_8B, vocab=1_000_000, params=8.03e9 + 2 * 4096 * (1_000_000 - 128256))
    assert parts(footprint(wide), pp=2, micro_batch=4, recompute=FULL)["logits_gib"] > 0
    deep = parts(footprint(GPT3), pp=8, tp=8, micro_batch=4)
    assert deep["logits_gib"] == 0 and deep["activations_gib"] > 0


def test_lora_keeps_weights_but_hardly_any_states() -> None:
    whole, adapters = parts(footprint(LLAMA_8B)), parts(footprint(LLAMA_8B, lora_rank=16))
    assert adapters["weights_gib"] == pytest.approx(whole["weights_gib"])
    assert adapters["gradients_gib"] + adapters["optimizer_gib"] < 0.01 * whole["optimizer_gib"]
    assert adapters["activations_gib"] < whole["activations_gib"]


def test_options_take_memory_away_where_they_say() -> None:
    plain = parts(footprint(LLAMA_8B), dp=8, zero=3, recompute=FULL)

    def with_options(**given: object) -> dict[str, float]:
        options = MemoryOptions(**given)  # type: ignore[arg-type]
        return parts(footprint(LLAMA_8B, options=options), dp=8, zero=3, recompute=FULL)

    assert with_options(offload_optimizer=True)["optimizer_gib"] == 0.0
    assert with_options(offload_weights=True)["weights_gib"] == 0.0
    assert with_options(offload_activations=True)["activations_gib"] < plain["activations_gib"]
    assert with_options(loss="tiled")["logits_gib"] < with_options(loss="fused")["logits_gib"]
    assert with_options(loss="fused")["logits_gib"] < plain["logits_gib"]
    assert with_options(master="none")["optimizer_gib"] < plain["optimizer_gib"]
    assert with_options(gradients="half")["gradients_gib"] < plain["gradients_gib"]
    assert with_options(gradients="both")["gradients_gib"] > plain["gradients_gib"]


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (RESNET, 0.3),  # no blocks: sqrt(n) checkpointing
        (replace(RESNET, family=ModelFamily.DIFFUSION, layers=57, heads=24, hidden=3072), 0.059 + 1 / 57),
        (
            replace(RESNET, family=ModelFamily.VIT, layers=2, heads=3, hidden=192),
            0.3,
        ),  # two blocks: no gain from one
    ],
)
def test_blocks_of_attention_are_recomputed_one_by_one(model: ModelSpec, share: float) -> None:
    job = footprint(model)
    kept = [parts(job, micro_batch=64, recompute=level)["activations_gib"] for level in (NONE, FULL)]
    assert kept[1] == pytest.approx(share * kept[0])


def test_hybrid_sharding_stops_at_its_group() -> None:
    hybrid = footprint(LLAMA_8B, options=MemoryOptions(shard_ranks=8))
    whole = footprint(LLAMA_8B)
    assert need(hybrid, dp=64, zero=3) == pytest.approx(need(whole, dp=8, zero=3))
    assert need(hybrid, dp=4, zero=3) == need(whole, dp=4, zero=3) > need(hybrid, dp=8, zero=3)


def test_an_adaptive_softmax_makes_fewer_logits() -> None:
    # Transformer-XL large: 257 million parameters in all cannot hold 267,735 x 1,024 of a full output table.
    whole = replace(
        LLAMA_8B, params=1.2e9, layers=18, hidden=1024, heads=16, kv_heads=None, ffn=4096, vocab=267735
    )
    adaptive = replace(whole, params=2.57e8)
    assert parts(footprint(adaptive))["logits_gib"] < 0.5 * parts(footprint(whole))["logits_gib"]


def test_risk_is_even_at_the_brink_and_the_budget_has_the_stated_risk() -> None:
    assert oom_probability(80.0, 80.0, C) == pytest.approx(0.5)
    assert oom_probability(40.0, 80.0, C) < 0.01 < 0.99 < oom_probability(160.0, 80.0, C)
    assert np.isnan(oom_probability(math.nan, 80.0, C)) and np.isnan(oom_probability(8.0, math.nan, C))
    budget = budget_gib(np.asarray([80.0]), C)
    assert oom_probability(budget, 80.0, C)[0] == pytest.approx(C["memory.oom_limit"])
    assert oom_probability(70.0, 80.0, C, scale=0.02) < oom_probability(70.0, 80.0, C)


def test_usable_memory_is_what_frameworks_see() -> None:
    # torch.cuda.mem_get_info and nvidia-smi: A100-40 39.4-39.6, H100-80 79.1-79.6, T4 14.6-14.7, A10G 22.1-22.5 GiB.
    nominal = np.asarray([40.0, 80.0, 16.0, 24.0, 22.35])
    rate = np.asarray([1555.0, 3350.0, 320.0, 600.0, 600.0]) * 1e9
    for value, (low, high) in zip(
        usable_gib(nominal, rate, C),
        ((39.3, 39.6), (78.7, 79.6), (14.5, 15.0), (22.0, 22.6), (22.0, 22.6)),
        strict=True,
    ):
        assert low <= value <= high


def test_host_memory_counts_processes_loaders_checkpoints_and_offload() -> None:
    eight = np.asarray([8.0])
    plain = host_needs(footprint(LLAMA_8B), layout(dp=8, zero=3), eight, C)
    assert tuple(plain) == HOST_PARTS
    assert plain["checkpoint_gib"][0] == pytest.approx(14 * 8.03e9 / GIB)
    assert plain["offload_gib"][0] == 0.0
    off = footprint(LLAMA_8B, options=MemoryOptions(offload_optimizer=True))
    moved = host_needs(off, layout(dp=8, zero=3), eight, C)
    # ZeRO-Offload (arXiv 2101.06840): 32-bit weights, moments and gradients of all parameters on the host.
    assert moved["offload_gib"][0] == pytest.approx(16 * 8.03e9 / GIB)
    seconds = offload_traffic_s(off, layout(dp=8, zero=3), np.asarray([25e9]))
    assert seconds[0] == pytest.approx(6 * 8.03e9 / 8 / 25e9)
    assert offload_traffic_s(footprint(LLAMA_8B), layout(dp=8), np.asarray([25e9]))[0] == 0.0
    two = host_needs(footprint(LLAMA_8B), layout(nodes=2, dp=16, zero=3), eight, C)
    assert two["checkpoint_gib"][0] == pytest.approx(plain["checkpoint_gib"][0] / 2)


def test_an_eager_step_of_the_optimizer_keeps_one_copy_of_the_weights_while_activations_are_gone() -> None:
    halved = MemoryOptions(master="none", gradients="half")
    small = replace(training(LLAMA_8B, stack="eager", options=halved), sequence_length=128)
    from planner.performance.memory_work import build_footprint

    job = build_footprint(LLAMA_8B, small)
    plain = replace(job, step_bytes=np.zeros(1))
    waste = 1.0 + load_constants().of_stack("memory.fragmentation_ratio", "eager")
    found = parts(job, recompute=FULL)
    passing_gib = found["activations_gib"] + found["logits_gib"]
    copy = 2 * 8.03e9 / GIB
    assert copy > passing_gib
    added = need(job, recompute=FULL) - need(plain, recompute=FULL)
    assert added == pytest.approx((copy - passing_gib) * waste, rel=1e-6)
    assert sum(found.values()) == pytest.approx(need(job, recompute=FULL))
    # Activations beyond the copy hide it; sharded states, other optimizers and compiled code have none.
    assert need(job, micro_batch=64) == need(plain, micro_batch=64)
    assert need(job, recompute=FULL, zero=1, dp=2) == need(plain, recompute=FULL, zero=1, dp=2)
    for stack, optimizer in (
        ("compiled", "adamw"),
        ("tuned", "adamw"),
        ("eager", "adamw_8bit"),
        ("eager", "sgd"),
    ):
        assert (
            state_bytes_per_param(training(LLAMA_8B, stack=stack, optimizer=optimizer))["step_bytes"] == 0.0
        )
    assert state_bytes_per_param(training(LLAMA_8B, stack="eager"))["step_bytes"] == 4.0


def test_gradients_applied_one_by_one_and_states_on_the_host_need_no_copy() -> None:
    halved = MemoryOptions(master="none", gradients="half")
    for option in (replace(halved, optimizer_in_backward=True), replace(halved, offload_optimizer=True)):
        job = footprint(LLAMA_8B, stack="eager", options=option)
        plain = replace(job, step_bytes=np.zeros(1))
        assert need(job, recompute=FULL) == need(plain, recompute=FULL)
