"""Laws between precisions and between software classes: 8 bit against 16, compiled code against eager."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables.accelerators import load_accelerators
from planner.performance.constants import load_constants
from planner.performance.layouts import explicit
from planner.performance.post_training.spec import Tuning
from planner.performance.search import estimate_layouts, estimate_shapes
from planner.performance.spec import Precision, StackClass, TrainingSpec
from tests.draws import draws
from tests.planner.performance.test_adapter_costs import model
from tests.planner.performance.test_performance import A100, machines

EIGHT_BIT = sorted(
    row["accelerator"] for row in load_accelerators().rows() if row["fp8_tflops"] > 0 and row["trainable"]
)
STACKS = st.sampled_from(["eager", "compiled", "tuned"])
CHECKS = draws(60)


def chip(name: str) -> dict[str, Any]:
    row = next(row for row in load_accelerators().rows() if row["accelerator"] == name)
    known = {column: row[column] for column in A100 if column in row}
    return {**A100, **known, "accelerator": name, "accelerator_count": 1.0, "accelerator_memory_gib": 1e5}


def step_s(name: str, precision: Precision, width: int, micro: int, stack: StackClass, casts: bool) -> float:
    """Step without learned factors, which differ between precisions as their residuals do."""
    training = TrainingSpec(micro, 2048, precision, stack=stack)
    layout = explicit(1.0, training, 16, 1, [{"nodes": 1, "micro_batch": micro, "recompute": 0}])
    constants = load_constants()
    changed = {key: 1.0 for key in constants.values if key.startswith("multiplier.")}
    if not casts:
        changed["memory.cast_ratio"] = 0.0
    table = machines(chip(name))
    found = estimate_layouts(model(width), training, table, layout, constants=constants.replace(changed))
    return float(found["step_time_s"][0])


@CHECKS
@given(
    name=st.sampled_from(EIGHT_BIT), width=st.sampled_from([512, 1024, 2048, 4096]),
    micro=st.sampled_from([1, 4, 16]), stack=STACKS,
)  # fmt: skip
def test_eight_bit_is_never_slower_than_sixteen_but_for_its_casts(
    name: str, width: int, micro: int, stack: StackClass
) -> None:
    half, bare, eight = (
        step_s(name, precision, width, micro, stack, casts)
        for precision, casts in (("bf16", True), ("fp8", False), ("fp8", True))
    )
    assert bare <= half * (1.0 + 1e-12)
    # casts are a share of the element-wise traffic
    assert bare <= eight <= bare * (1.0 + load_constants()["memory.cast_ratio"])


@pytest.mark.parametrize("name", ["tpu-v6e-32gb", "gaudi3-128gb-oam"])
def test_chips_with_one_peak_for_both_gain_nothing_by_eight_bit(name: str) -> None:
    assert step_s(name, "fp8", 4096, 4, "compiled", casts=False) == pytest.approx(
        step_s(name, "bf16", 4096, 4, "compiled", casts=False), rel=1e-12
    )


@CHECKS
@given(
    width=st.sampled_from([1024, 2048, 4096]), layers=st.sampled_from([12, 24, 48]),
    count=st.sampled_from([1.0, 2.0, 8.0]),
    seq=st.sampled_from([1024, 4096]), room=st.floats(1.0, 2.0), adapter=st.sampled_from([None, "lora"]),
)  # fmt: skip
def test_where_eager_code_fits_compiled_code_does_with_a_tenth_more_and_is_as_fast(
    width: int, layers: int, count: float, seq: int, room: float, adapter: str | None
) -> None:
    def estimate(stack: StackClass, memory: float) -> dict[str, Any]:
        tuning = Tuning(objective="sft", adapter=adapter) if adapter else Tuning()
        training = TrainingSpec(
            32, seq, "bf16", stack=stack, tuning=tuning, lora_rank=16 if adapter else None
        )
        machine = {**A100, "accelerator_count": count, "accelerator_memory_gib": memory}
        return estimate_shapes(model(width, layers), training, machines(machine), [1]).row(0)

    least = estimate("eager", 1e5)["memory_needed_gib"] / 4.0
    eager = estimate("eager", least * room)
    if eager["fits"]:
        compiled = estimate("compiled", 1.1 * least * room)
        assert compiled["fits"]
        assert compiled["step_time_s"] <= eager["step_time_s"] * 1.02
