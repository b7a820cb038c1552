"""How much of a model learns: parameters, and passes over it."""

from __future__ import annotations

from planner.performance.post_training.adapters import adapter_params
from planner.performance.spec import ModelSpec, TrainingSpec


def adapted(training: TrainingSpec) -> bool:
    """Whether the weights are frozen: adapters learn, or little else, or nothing."""
    return training.lora_rank is not None or training.trains != "all"


def forward_passes(training: TrainingSpec) -> float:
    """FLOPs of forward and backward over those of the forward pass: gradients of activations, then of weights."""
    if training.trains == "none":
        return 1.0
    return 2.0 if adapted(training) else 3.0


def learned_params(model: ModelSpec, training: TrainingSpec) -> float:
    """Parameters that learn."""
    if training.trains != "all":
        return training.learned_params
    return lora_params(model, training) if training.lora_rank else model.params


def lora_params(model: ModelSpec, training: TrainingSpec) -> float:
    """Parameters of the adapters, 0 where all weights learn; by default low-rank ones on the attention projections."""
    if training.lora_rank is None:
        return 0.0
    tuning = training.tuning
    return adapter_params(model, training.lora_rank, tuning.adapter or "lora", tuning.targets)
