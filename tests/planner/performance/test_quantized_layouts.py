"""Layouts of quantised frozen weights: what public trainers run, unless the workload pins more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.performance.constants import load_constants
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import build_bounds, grid
from planner.performance.memory import GIB, needed_parts
from planner.performance.memory_work import build_footprint
from planner.performance.post_training.quantized import pinned_note
from planner.performance.post_training.spec import BaseWeights, Tuning
from planner.performance.search import estimate_shapes
from planner.performance.spec import LayoutPin, ModelSpec, StackClass, TrainingSpec
from tests.draws import draws
from tests.planner.performance.layout_cases import machine_rows, models, trainings
from tests.planner.performance.memory_cases import LLAMA_8B, layout
from tests.planner.performance.test_performance import A100, LLAMA_70B, SMALL, machines
from tests.planner.performance.test_performance_laws import MOE

QUANTIZED = st.sampled_from(["int8", "nf4", "nf4_double"])


def tuned(training: TrainingSpec, base: BaseWeights, pin: LayoutPin) -> TrainingSpec:
    return replace(
        training, lora_rank=16, layout=pin, tuning=Tuning(objective="sft", adapter="lora", base=base)
    )


def listed(
    model: ModelSpec, training: TrainingSpec, count: int, nodes: tuple[int, ...] = (1, 2, 8)
) -> Layouts:
    return grid((count,), nodes, build_bounds(model, training, False)).layout


def rows_of(layout: Layouts) -> set[tuple[float, ...]]:
    columns = [np.asarray(getattr(layout, name), dtype=float) for name in layout.__dataclass_fields__]
    return set(zip(*(column.tolist() for column in columns), strict=True))


@draws(60)
@given(model=models(), training=trainings(), row=machine_rows(), base=QUANTIZED)
def test_the_search_divides_quantized_weights_by_data_and_experts_alone(
    model: ModelSpec, training: TrainingSpec, row: dict[str, Any], base: BaseWeights
) -> None:
    """Exactly the layouts of 16-bit weights without tensor and pipeline, and experts or a split sequence."""
    count = int(row["accelerator_count"])
    whole = listed(model, tuned(training, base, LayoutPin()), count)
    half = listed(model, tuned(training, "half", LayoutPin()), count)
    keeps = (half.tp == 1) & (half.pp == 1) & ((half.ep == 1) | (half.cp == 1))
    assert rows_of(whole) == rows_of(half.take(np.nonzero(keeps)[0]))


@draws(20)
@given(row=machine_rows(), base=QUANTIZED, model=st.sampled_from([SMALL, MOE]))
def test_chosen_layouts_divide_neither_tensors_nor_layers(
    row: dict[str, Any], base: BaseWeights, model: ModelSpec
) -> None:
    shapes = estimate_shapes(
        model, tuned(TrainingSpec(64, 4096, "bf16"), base, LayoutPin()), machines(row), [1, 2, 4]
    )
    fits = shapes["reason"] == ""
    assume(fits.any())
    assert (shapes["tp"][fits] == 1).all() and (shapes["pp"][fits] == 1).all()


@pytest.mark.parametrize(
    ("pin", "name", "degree"),
    [
        (LayoutPin(tensor_parallel=2), "tp", 2), (LayoutPin(pipeline_parallel=4), "pp", 4),
        (LayoutPin(expert_parallel=2, context_parallel=2), "ep", 2),
    ],
)  # fmt: skip
def test_pinned_degrees_are_kept(pin: LayoutPin, name: str, degree: int) -> None:
    made = listed(MOE, tuned(TrainingSpec(64, 8192, "bf16"), "nf4", pin), 8)
    assert made.n_rows
    assert (getattr(made, name) == degree).all()


def test_pinned_interleaving_keeps_its_stages() -> None:
    training = TrainingSpec(64, 2048, "bf16", stack="tuned")
    made = listed(SMALL, tuned(training, "nf4", LayoutPin(interleave=2)), 8)
    assert made.n_rows
    assert (made.pp > 1).all()


@pytest.mark.parametrize(
    ("base", "pin", "said"),
    [
        ("nf4", LayoutPin(tensor_parallel=2), ("tensor parallelism of 2", "PaddleFormers")),
        ("int8", LayoutPin(pipeline_parallel=4), ("pipeline parallelism of 4", "qlora-pipe")),
        ("nf4", LayoutPin(tensor_parallel=1, context_parallel=4), ()), ("half", LayoutPin(tensor_parallel=8), ()),
        ("nf4", LayoutPin(), ()),
    ],
)  # fmt: skip
def test_pins_that_trainers_lack_are_named(base: BaseWeights, pin: LayoutPin, said: tuple[str, ...]) -> None:
    note = pinned_note(tuned(TrainingSpec(64, 8192, "bf16"), base, pin))
    assert bool(note) is bool(said)
    assert all(words in note for words in said)


def test_on_one_machine_the_layout_is_sharded_data_parallelism() -> None:
    shapes = estimate_shapes(
        SMALL, tuned(TrainingSpec(64, 2048, "bf16"), "nf4_double", LayoutPin()), machines(A100), [1]
    )
    assert (shapes["tp"][0], shapes["pp"][0], shapes["dp"][0] * shapes["cp"][0]) == (1, 1, 8)


@pytest.mark.parametrize(("base", "share"), [("nf4_double", 0.27), ("int8", 0.51)])
def test_sharded_weights_are_gathered_as_they_are_packed(base: BaseWeights, share: float) -> None:
    """Over slow links, where nothing hides it, gathering takes as many times less as the weights have fewer bits."""
    pin = LayoutPin(zero_stage=3, tensor_parallel=1, pipeline_parallel=1, micro_batch=1)
    slow = machines({**A100, "intra_node": "pcie", "intra_node_gb_per_s": 0.05})
    part = {}
    for kept in ("half", base):
        training = tuned(TrainingSpec(8, 512, "bf16"), kept, pin)
        part[kept] = estimate_shapes(LLAMA_70B, training, slow, [1]).row(0)["dp_comm_s"]
    assert part[base] / part["half"] == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize("base", ["int8", "nf4", "nf4_double"])
def test_gathered_tables_of_the_vocabulary_have_16_bits(base: BaseWeights) -> None:
    """A larger vocabulary needs as many bytes more in buffers as beside 16-bit weights; layers need fewer."""
    place, job = layout(dp=8.0, zero=3.0), TrainingSpec(64, 512, "bf16")
    buffers: dict[tuple[str, int], float] = {}
    for kept in ("half", base):
        for vocab in (64_000, 128_000):
            model = replace(LLAMA_8B, vocab=vocab, params=7e9 + 2.0 * 4096 * vocab)
            need = build_footprint(model, tuned(job, kept, LayoutPin()))
            buffers[kept, vocab] = float(needed_parts(need, place, load_constants())["buffers_gib"][0])
    more = {kept: buffers[kept, 128_000] - buffers[kept, 64_000] for kept in ("half", base)}
    assert more[base] == pytest.approx(more["half"], rel=1e-6)
    assert more[base] > 64_000 * 4096 * 2.0 / GIB
    assert buffers[base, 64_000] < buffers["half", 64_000]


@pytest.mark.parametrize("stack", ["eager", "compiled", "fused", "tuned"])
@pytest.mark.parametrize("left_open", [False, True])
@pytest.mark.parametrize("tuning", [Tuning(objective="sft"), Tuning(objective="sft", adapter="lora")])
def test_post_training_has_stages_only_where_the_stated_software_has_them(
    stack: StackClass, left_open: bool, tuning: Tuning
) -> None:
    rank = 16 if tuning.adapter else None
    job = TrainingSpec(64, 4096, "bf16", stack=stack, tuning=tuning, lora_rank=rank)
    job = replace(job, open_choices=("stack",) if left_open else ())
    has = bool((listed(LLAMA_8B, job, 8).pp > 1).any())
    assert has == (stack != "eager" and not left_open)
    assert (listed(LLAMA_8B, job, 8).tp > 1).any()
    pinned = replace(job, layout=LayoutPin(pipeline_parallel=4))
    assert set(listed(LLAMA_8B, pinned, 8).pp) == {4.0}
    # Pre-training is left as it is.
    scratch = replace(job, tuning=Tuning(), lora_rank=None)
    assert (listed(LLAMA_8B, scratch, 8).pp > 1).any()
