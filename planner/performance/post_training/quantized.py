"""Layouts of quantised frozen weights: those that public trainers run (sources: docs/post-training.md#qlora-layouts).

DDP, ZeRO and FSDP hold or gather whole quantised matrices, context parallelism divides tokens, and experts are whole
too, wherever they lie. Tensor and pipeline parallelism over bitsandbytes weights are in none of the trainers that
`planner export` writes for, so they are searched only where the workload pins them.
"""

from __future__ import annotations

from dataclasses import replace

from planner.performance.spec import LayoutPin, TrainingSpec

_ELSEWHERE = {"tensor_parallel": "PaddleFormers", "pipeline_parallel": "qlora-pipe"}


def is_quantized(training: TrainingSpec) -> bool:
    """Whether frozen weights are kept in 4 or 8 bits."""
    return training.tuning.base != "half"


def searched_pin(training: TrainingSpec) -> LayoutPin:
    """The parts of the layout that the search keeps: the user's, and whole matrices where these are quantised."""
    pin = training.layout
    if not is_quantized(training):
        return pin
    staged = pin.pipeline_parallel or (None if (pin.interleave or 1) > 1 else 1)  # interleaving needs stages
    return replace(pin, tensor_parallel=pin.tensor_parallel or 1, pipeline_parallel=staged)


def splits_experts_and_tokens(training: TrainingSpec) -> bool:
    """Whether expert goes with context parallelism: of quantised experts, only where the workload pins both."""
    pin = training.layout
    return not is_quantized(training) or None not in (pin.expert_parallel, pin.context_parallel)


def pinned_note(training: TrainingSpec) -> str:
    """That pinned degrees divide quantised weights, and what can; "" of other layouts."""
    degrees = {name: getattr(training.layout, name) or 1 for name in _ELSEWHERE}
    said = [
        f"{name.partition('_')[0]} parallelism of {degree} (public software: {_ELSEWHERE[name]})"
        for name, degree in degrees.items()
        if degree > 1
    ]
    if not said or not is_quantized(training):
        return ""
    return (
        f"the layout divides quantised weights by {' and '.join(said)}: PEFT, TRL, axolotl, LLaMA-Factory and "
        "torchtune do not; leave it out of the layout for one that they run"
    )
