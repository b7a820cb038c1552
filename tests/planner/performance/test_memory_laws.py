"""Laws of the memory model that hold whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from planner.performance.constants import load_constants
from planner.performance.layouts import Layouts
from planner.performance.memory import needed_gib
from planner.performance.memory_options import MemoryOptions
from planner.performance.memory_risk import oom_probability
from planner.performance.memory_work import STACKS as MEMORY_STACKS
from planner.performance.spec import ModelSpec
from tests.draws import draws
from tests.planner.performance.memory_cases import (
    BERT,
    GPT3,
    LLAMA_8B,
    MIXTRAL,
    RESNET,
    footprint,
    layout,
    need,
)

QUICK = draws(60)
TRANSFORMERS = st.sampled_from([GPT3, LLAMA_8B, MIXTRAL, BERT])
MODELS = st.sampled_from([GPT3, LLAMA_8B, MIXTRAL, BERT, RESNET])
DEGREES = st.sampled_from([1, 2, 4, 8])
LEVELS = st.sampled_from([0, 1, 2])
STACKS = st.sampled_from(["eager", "compiled", "tuned"])
SOME = 1 + 1e-12
OPTIONS = st.builds(
    MemoryOptions, gradients=st.sampled_from(["auto", "fp32", "half", "both"]),
    master=st.sampled_from(["auto", "none"]),
    loss=st.sampled_from(["auto", "materialised", "fused", "tiled"]), offload_optimizer=st.booleans(),
    offload_weights=st.booleans(), offload_activations=st.booleans(), fp8_weights=st.booleans(),
    shard_ranks=st.sampled_from([None, 2, 8]),
)  # fmt: skip


@st.composite
def runs(draw: st.DrawFn, models: st.SearchStrategy[ModelSpec] = MODELS) -> tuple[Any, dict[str, float]]:
    """A job and a layout for it."""
    model = draw(models)
    job = footprint(
        model, draw(st.sampled_from(["fp16", "bf16", "fp8", "fp32"])), stack=draw(STACKS), options=draw(OPTIONS),
        lora_rank=draw(st.sampled_from([None, 16])) if model is not RESNET else None,
        attention=draw(st.sampled_from(["flash", "materialised"])),
    )  # fmt: skip
    degrees = {name: draw(DEGREES) for name in ("pp", "dp")} if model is not RESNET else {"dp": draw(DEGREES)}
    return job, {
        **degrees, "micro_batch": draw(st.sampled_from([1, 2, 4])), "micro_batches": draw(st.sampled_from([1, 4, 32])),
        "zero": draw(st.sampled_from([0, 1, 2, 3])), "recompute": draw(LEVELS),
    }  # fmt: skip


@QUICK
@given(run=runs(TRANSFORMERS), tp=st.sampled_from([1, 2, 4]))
def test_memory_never_rises_with_tensor_parallelism(run: tuple[Any, dict[str, float]], tp: int) -> None:
    job, given_layout = run
    assert need(job, tp=2 * tp, **given_layout) <= need(job, tp=tp, **given_layout) * SOME


@QUICK
@given(run=runs(), zero=st.sampled_from([0, 1, 2]))
def test_memory_never_rises_with_the_zero_stage(run: tuple[Any, dict[str, float]], zero: int) -> None:
    job, given_layout = run
    lower = need(job, **{**given_layout, "zero": zero})
    assert need(job, **{**given_layout, "zero": zero + 1}) <= lower * SOME


# found by `benchmarks.properties --times 5 --seed 11`: where adapters alone are trained, stages save little
KEEPS = (
    footprint(
        BERT,
        "bf16",
        stack="eager",
        lora_rank=16,
        attention="materialised",
        options=MemoryOptions(fp8_weights=True),
    ),
    {"pp": 1, "dp": 1, "micro_batch": 1, "micro_batches": 4, "zero": 0, "recompute": 0},
)


@QUICK
@given(run=runs(TRANSFORMERS), pp=st.sampled_from([1, 2, 4]), zero=st.sampled_from([0, 1, 2]))
@example(run=KEEPS, pp=1, zero=0)
def test_memory_never_rises_with_a_deeper_pipeline(
    run: tuple[Any, dict[str, float]], pp: int, zero: int
) -> None:
    # Below ZeRO-3, whose weights stay gathered under a pipeline; ZeRO-2 shards no gradients there, as ZeRO-1.
    job, given_layout = run
    shallow = {**given_layout, "pp": pp, "zero": min(zero, 1) if pp == 1 else zero}
    deep = {**shallow, "pp": 2 * pp}
    most = need(job, **shallow)
    stack = MEMORY_STACKS[int(job.stack[0])]
    if (
        stack != "tuned"
    ):  # all but Megatron-LM keep outputs of micro-batches in flight, and waste more in pipelines
        c = load_constants()
        piped = c["memory.fragmentation_ratio.piped"]
        sent = float(job.work.seq[0] * job.input_bytes[0]) * deep["micro_batch"]
        held = sent * min(deep["pp"], deep["micro_batches"]) / 2**30
        most = most * (1.0 + piped) + held * (1.0 + piped + c.of_stack("memory.fragmentation_ratio", stack))
    assert need(job, **deep) <= most * SOME


# found by seed 101475191: 8-bit weights on the host save less by a second rank than its flat gradients take
ON_HOST = (
    footprint(
        GPT3,
        "bf16",
        stack="eager",
        attention="flash",
        options=MemoryOptions(fp8_weights=True, offload_optimizer=True, offload_weights=True),
    ),
    {"pp": 1, "dp": 1, "micro_batch": 1, "micro_batches": 1, "zero": 3, "recompute": 0},
)


@QUICK
@given(run=runs(), factor=st.sampled_from([2, 4]))
@example(run=ON_HOST, factor=2)
def test_more_data_parallel_ranks_never_need_more(run: tuple[Any, dict[str, float]], factor: int) -> None:
    # Equal global batch: more ranks mean fewer micro-batches each.
    job, given_layout = run
    fewer = max(1, given_layout["micro_batches"] // factor)
    wide = {**given_layout, "dp": given_layout["dp"] * factor, "micro_batches": fewer, "nodes": factor}
    most = need(job, **given_layout)
    if given_layout["dp"] == 1 and given_layout["zero"] >= 3 and job.offload_weights[0]:
        # One rank scatters no gradients, so it keeps none of a layer flat; weights on the host save nothing beside.
        c, stack = load_constants(), MEMORY_STACKS[int(job.stack[0])]
        flat = c["memory.flat_layers"] * float(job.work.layer_params[0] * job.grad_bytes[0]) / 2**30
        most += flat * (1.0 + c.of_stack("memory.fragmentation_ratio", stack))
    assert need(job, **wide) <= most * SOME


@QUICK
@given(run=runs(TRANSFORMERS), cp=st.sampled_from([1, 2, 4]))
def test_memory_never_rises_with_context_parallelism(run: tuple[Any, dict[str, float]], cp: int) -> None:
    job, given_layout = run
    assert need(job, cp=2 * cp, **given_layout) <= need(job, cp=cp, **given_layout) * SOME


@QUICK
@given(run=runs())
def test_recompute_saves_and_a_larger_micro_batch_costs(run: tuple[Any, dict[str, float]]) -> None:
    job, given_layout = run
    levels = [need(job, **{**given_layout, "recompute": level}) for level in (0, 1, 2)]
    assert levels[0] >= levels[1] / SOME and levels[1] >= levels[2] / SOME
    larger = {**given_layout, "micro_batch": 2 * given_layout["micro_batch"]}
    assert need(job, **larger) >= need(job, **given_layout)
    # The optimizer's step may keep more than the activations of both batches, which are gone by then.
    before = replace(job, step_bytes=np.zeros_like(job.step_bytes))
    assert need(before, **larger) > need(before, **given_layout)


@QUICK
@given(
    model=TRANSFORMERS, zero=st.sampled_from([0, 1, 2, 3]), stack=STACKS,
    moved=st.sampled_from([
        MemoryOptions(offload_optimizer=True), MemoryOptions(offload_weights=True),
        MemoryOptions(offload_activations=True),
    ]),
)  # fmt: skip
def test_offload_never_needs_more_on_the_device(
    model: ModelSpec, zero: int, stack: str, moved: MemoryOptions
) -> None:
    same = {"dp": 8, "zero": zero, "recompute": 2}
    offloaded = need(footprint(model, stack=stack, options=moved), **same)
    assert offloaded <= need(footprint(model, stack=stack), **same) * SOME


@QUICK
@given(model=MODELS, order=st.permutations(range(4)))
def test_equal_rows_give_equal_output_whatever_the_batch(model: ModelSpec, order: list[int]) -> None:
    job = footprint(model)
    rows = [layout(dp=2**k, zero=k % 4, recompute=k % 3) for k in range(4)]
    together = needed_gib(job, Layouts.concat([rows[k] for k in order]), load_constants())
    for position, k in enumerate(order):
        assert together[position] == needed_gib(job, rows[k], load_constants())[0]


@QUICK
@given(need_gib=st.floats(0.1, 1000.0), more=st.floats(1.0, 3.0), available=st.floats(1.0, 300.0))
def test_risk_rises_with_need_and_falls_with_room(need_gib: float, more: float, available: float) -> None:
    c = load_constants()
    base = oom_probability(need_gib, available, c)
    assert 0.0 <= base <= 1.0
    assert oom_probability(need_gib * more, available, c) >= base
    assert oom_probability(need_gib, available * more, c) <= base
    assert np.isfinite(base)
