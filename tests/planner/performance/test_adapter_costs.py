"""What adapters cost: updates as large as the matrix by its weights, the rest by the tokens; less than all weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.performance.constants import load_constants
from planner.performance.layouts import explicit
from planner.performance.post_training.adapters import load_adapters
from planner.performance.post_training.spec import Tuning
from planner.performance.search import estimate_layouts
from planner.performance.spec import ModelFamily, ModelSpec, StackClass, TrainingSpec
from planner.performance.work import build_work
from tests.draws import draws
from tests.planner.performance.test_performance import A100, machines

# They have LoRA's parameters and build an update as large as the matrix.
BUILDING = sorted(kind for kind, cost in load_adapters().items() if cost.family == "weight_product")
STACKS = st.sampled_from(["eager", "compiled", "tuned"])
WIDTHS = (384, 768, 1024, 2048, 4096, 8192)
CHECKS = draws(40)
# Without the host's pace, parts of a layer add up exactly.
ADDS_UP = {f"floor.layer_s.{stack}": 0.0 for stack in ("eager", "compiled", "tuned")}


def model(width: int, layers: int = 16) -> ModelSpec:
    params = 12.0 * layers * width * width + 2.0 * 32000 * width
    return ModelSpec(
        "m", ModelFamily.TRANSFORMER, params, layers=layers, hidden=width, heads=width // 64, vocab=32000
    )


def step_s(
    width: int,
    kind: str | None,
    *,
    micro: int = 4,
    stack: StackClass = "eager",
    targets: tuple[str, ...] = ("all_linear",),
    recompute: int = 0,
    changed: dict[str, float] | None = None,
) -> float:
    """Step of one micro-batch on one A100 that has memory for everything; without a kind all weights learn."""
    tuning = Tuning(objective="sft", adapter=kind, targets=targets)
    training = TrainingSpec(micro, 512, "bf16", stack=stack, tuning=tuning, lora_rank=16 if kind else None)
    machine = machines({**A100, "accelerator_count": 1.0, "accelerator_memory_gib": 1e5})
    layout: dict[str, Any] = {"nodes": 1, "micro_batch": micro, "recompute": recompute}
    which = model(width)
    found = estimate_layouts(
        which, training, machine, explicit(1.0, training, which.layers or 1, 1, [layout]),
        constants=load_constants().replace(changed or {}),
    )  # fmt: skip
    return float(found["step_time_s"][0])


def building_s(width: int, kind: str, **more: Any) -> float:
    return step_s(width, kind, changed=ADDS_UP, **more) - step_s(width, "lora", changed=ADDS_UP, **more)


@CHECKS
@given(
    width=st.sampled_from(WIDTHS), kind=st.sampled_from(BUILDING), stack=STACKS, micro=st.sampled_from([1, 8])
)
def test_building_an_update_takes_as_long_for_any_number_of_tokens(
    width: int, kind: str, stack: StackClass, micro: int
) -> None:
    once = building_s(width, kind, stack=stack, micro=micro)
    assert once > 0.0
    assert building_s(width, kind, stack=stack, micro=4 * micro) == pytest.approx(once, rel=1e-6)
    # forward and backward pass; full recompute builds it once more
    assert building_s(width, kind, stack=stack, micro=micro, recompute=2) == pytest.approx(
        1.5 * once, rel=1e-6
    )


@CHECKS
@given(width=st.sampled_from(WIDTHS[:-1]), kind=st.sampled_from(BUILDING), stack=STACKS)
def test_building_an_update_grows_with_the_adapted_weights_and_the_bytes_of_its_kind(
    width: int, kind: str, stack: StackClass
) -> None:
    once = building_s(width, kind, stack=stack)
    assert building_s(2 * width, kind, stack=stack) == pytest.approx(4.0 * once, rel=1e-6)
    # 4 h h of attention out of 12 h h
    attention = building_s(width, kind, stack=stack, targets=("attention",))
    assert attention == pytest.approx(once / 3.0, rel=1e-6)
    table = load_adapters()
    other = BUILDING[0]
    expected = once * table[other].weight_bytes / table[kind].weight_bytes
    assert building_s(width, other, stack=stack) == pytest.approx(expected, rel=1e-6)


@CHECKS
@given(
    width=st.sampled_from(WIDTHS), stack=STACKS, micro=st.sampled_from([1, 4, 32]),
    recompute=st.sampled_from([0, 1, 2]), targets=st.sampled_from([("attention",), ("all_linear",)]),
)  # fmt: skip
@example(width=2048, stack="eager", micro=32, recompute=2, targets=("all_linear",))
@example(width=768, stack="fused", micro=32, recompute=2, targets=("all_linear",))
def test_frozen_weights_never_cost_more_than_their_gradients_but_for_what_adapters_move_and_launch(
    width: int, stack: StackClass, micro: int, recompute: int, targets: tuple[str, ...]
) -> None:
    same: dict[str, Any] = {"stack": stack, "micro": micro, "recompute": recompute, "targets": targets}
    queued = {f"floor.adapter_ratio.{stack}": 0.0}
    free = {f"adapter.passes.{stack}": 0.0, f"lora.extra_ratio.{stack}": 0.0, **queued}
    full, bare, moved, lora = (
        step_s(width, kind, changed=changed, **same)
        for kind, changed in ((None, None), ("lora", free), ("lora", queued), ("lora", None))
    )
    assert bare < full
    assert bare <= moved <= lora
    # wide enough, gradients of weights compute longer than adapters read and write, which recompute repeats
    if width >= (4096 if recompute == 2 else 2048):
        assert moved < full
    if stack in ("compiled", "tuned"):
        assert lora < full
    assert moved < 1.25 * full
    # launches are a share of the layer's own for each adapted matrix, and hide behind anything longer
    launched = load_constants().of_stack("floor.adapter_ratio", stack) * (
        6 if targets == ("all_linear",) else 4
    )
    assert lora <= (1.0 + launched) * moved


@pytest.mark.parametrize("micro", [4, 32])
@pytest.mark.parametrize("stack", ["eager", "compiled"])
def test_adapters_gain_more_the_wider_the_model(stack: StackClass, micro: int) -> None:
    gains = [
        step_s(width, "lora", stack=stack, micro=micro) / step_s(width, None, stack=stack, micro=micro)
        for width in WIDTHS[1:]
    ]
    assert all(wider < narrower for narrower, wider in pairwise(gains))


@pytest.mark.parametrize("experts_share", [2, 4, 8])
def test_devices_write_out_the_quantised_experts_that_they_hold(experts_share: int) -> None:
    experts = ModelSpec(
        "moe", ModelFamily.TRANSFORMER, 5.8e9, active_params=1.5e9, gated_mlp=True, layers=16, hidden=1024, heads=16,
        vocab=32000, experts=8, experts_per_token=2, moe_ffn=14336,
    )  # fmt: skip
    tuning = Tuning(objective="sft", base="nf4")
    training = TrainingSpec(8, 512, "bf16", stack="compiled", tuning=tuning, lora_rank=16)
    machine = machines({**A100, "accelerator_count": 8.0, "accelerator_memory_gib": 1e5})

    def written_s(ep: int) -> float:
        layout = explicit(8.0, training, 16, 8, [{"nodes": 1, "micro_batch": 1, "recompute": 0, "zero": 1}])
        layout = replace(layout, ep=np.full(1, float(ep)))
        on, off = (
            estimate_layouts(
                experts, training, machine, layout,
                constants=load_constants().replace({**ADDS_UP, "adapter.dequantise_passes.compiled": passes}),
            )["step_time_s"][0]
            for passes in (3.0, 0.0)
        )  # fmt: skip
        return float(on - off)

    work = build_work(experts, training)
    routed = float(work.expert_params[0] / work.layer_params[0])
    assert routed > 0.9
    left = (1.0 - routed) + routed / experts_share
    assert written_s(experts_share) == pytest.approx(left * written_s(1), rel=1e-6)


@pytest.mark.parametrize("stack", ["eager", "compiled"])
def test_weights_in_four_bits_are_written_out_at_the_pace_of_their_software(stack: StackClass) -> None:
    """What nf4 adds to a step grows with the passes of its own class of software alone."""

    def added_s(factor: float, of: str) -> float:
        name = f"adapter.dequantise_passes.{of}"
        constants = load_constants().replace({**ADDS_UP, name: factor * load_constants()[name]})
        times = []
        for base in ("nf4", "half"):
            tuning = Tuning(objective="sft", base=base, adapter="lora")
            training = TrainingSpec(4, 512, "bf16", stack=stack, tuning=tuning, lora_rank=16)
            machine = machines({**A100, "accelerator_count": 1.0, "accelerator_memory_gib": 1e5})
            layout = explicit(1.0, training, 16, 1, [{"nodes": 1, "micro_batch": 4, "recompute": 0}])
            found = estimate_layouts(model(2048), training, machine, layout, constants=constants)
            times.append(float(found["step_time_s"][0]))
        return times[0] - times[1]

    other = "compiled" if stack == "eager" else "eager"
    assert added_s(2.0, stack) == pytest.approx(2.0 * added_s(1.0, stack), rel=1e-6)
    assert added_s(2.0, other) == added_s(1.0, other)
    assert added_s(1.0, stack) > 0.0


def test_eager_code_writes_quantised_weights_out_more_slowly_than_compiled_code() -> None:
    """bitsandbytes under PEFT against a compiled kernel, as measured of both."""
    constants = load_constants()
    eager, compiled = (constants[f"adapter.dequantise_passes.{stack}"] for stack in ("eager", "compiled"))
    assert eager > compiled
