"""What an accelerator that trains by itself gains, and that no name of the training does."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.performance.constants import load_constants
from planner.performance.layouts import explicit
from planner.performance.post_training.spec import Tuning
from planner.performance.search import estimate_layouts, estimate_shapes
from planner.performance.spec import ModelSpec, StackClass, TrainingSpec
from tests.draws import draws
from tests.planner.performance.test_performance import A100, RESNET, SMALL, machines

ONE = {**A100, "accelerator_count": 1.0}
STACKS = st.sampled_from(get_args(StackClass))


def step_s(
    machine: dict[str, Any], stack: StackClass, gain: float, nodes: int = 1, model: ModelSpec = SMALL
) -> float:
    constants = load_constants().replace({f"alone.ratio.{stack}": gain})
    training = TrainingSpec(64, 1024, "fp16", stack=stack)
    table = estimate_shapes(model, training, machines(machine), [nodes], constants=constants)
    return float(table["step_time_s"][0])


@draws(40)
@given(stack=STACKS, gain=st.floats(0.8, 1.0))
def test_the_step_of_one_accelerator_is_shorter_by_its_ratio_and_of_several_not(
    stack: StackClass, gain: float
) -> None:
    assert step_s(ONE, stack, gain) == pytest.approx(gain * step_s(ONE, stack, 1.0), rel=1e-9)
    assert step_s(A100, stack, gain) == step_s(A100, stack, 1.0)
    assert step_s(ONE, stack, gain, nodes=2) == step_s(ONE, stack, 1.0, nodes=2)


@pytest.mark.parametrize("stack", get_args(StackClass))
def test_a_second_accelerator_is_worth_more_than_the_gain_of_the_first_alone(stack: StackClass) -> None:
    bundled = load_constants().get(f"alone.ratio.{stack}", 1.0)
    assert step_s({**A100, "accelerator_count": 2.0}, stack, bundled) < step_s(ONE, stack, bundled)


def test_it_was_measured_of_transformers_on_cards_that_a_host_drives() -> None:
    assert step_s(ONE, "compiled", 0.8, model=RESNET) == step_s(ONE, "compiled", 1.0, model=RESNET)
    chip = {**ONE, "vendor": "google", "generation": "tpu-v5p"}
    assert step_s(chip, "compiled", 0.8) == step_s(chip, "compiled", 1.0)


@draws(30)
@given(stack=STACKS, count=st.sampled_from([1.0, 8.0]), nodes=st.sampled_from([1, 4]))
def test_a_layout_takes_as_long_whether_or_not_it_is_called_fine_tuning(
    stack: StackClass, count: float, nodes: int
) -> None:
    machine = machines({**A100, "accelerator_count": count})
    layout = explicit(count, TrainingSpec(64, 1024, "fp16"), 24, 1, [{"nodes": nodes, "micro_batch": 1}])
    pretrain, sft = (
        estimate_layouts(
            SMALL, TrainingSpec(64, 1024, "fp16", stack=stack, tuning=Tuning(objective=objective)), machine, layout
        )["step_time_s"][0]
        for objective in ("pretrain", "sft")
    )  # fmt: skip
    assert pretrain == sft
