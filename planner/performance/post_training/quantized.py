"""Layouts of post-training: those that public trainers run (sources: docs/post-training.md#qlora-layouts).

DDP, ZeRO and FSDP hold or gather whole quantised matrices, context parallelism divides tokens, and experts are whole
too, wherever they lie. Tensor and pipeline parallelism over bitsandbytes weights are in none of the trainers that
`planner export` writes for, so they are searched only where the workload pins them. Pipelines are in none of the eager
trainers either, whatever the weights: where the software is eager or left open, they are searched where pinned.
"""

from __future__ import annotations

from dataclasses import replace

from planner.performance.spec import LayoutPin, TrainingSpec

_ELSEWHERE = {"tensor_parallel": "PaddleFormers", "pipeline_parallel": "qlora-pipe"}


def is_quantized(training: TrainingSpec) -> bool:
    """Whether frozen weights are kept in 4 or 8 bits."""
    return training.tuning.base != "half"


def searched_pin(training: TrainingSpec) -> LayoutPin:
    """The parts of the layout that the search keeps: the user's, and what no trainer of this software divides."""
    pin = training.layout
    if not (is_quantized(training) or _without_stages(training)):
        return pin
    staged = pin.pipeline_parallel or (None if (pin.interleave or 1) > 1 else 1)  # interleaving needs stages
    whole = 1 if is_quantized(training) else None
    return replace(pin, tensor_parallel=pin.tensor_parallel or whole, pipeline_parallel=staged)


def _without_stages(training: TrainingSpec) -> bool:
    """Post-training in eager code, or in software that the workload leaves open: Accelerate, TRL, axolotl and kin."""
    plain = training.stack == "eager" or "stack" in training.open_choices
    return training.tuning.is_tuning and plain


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
