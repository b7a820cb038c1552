"""Counts of models that are given by FLOPs and activations of a sample: CNN, ViT and diffusion models."""

from __future__ import annotations

from typing import Any

from planner.performance.spec import ModelSpec, TrainingSpec

# Transformers have none.
NO_OPERATORS: dict[str, Any] = {"operators": (), "inferred": 0.0, "channels_last": 0.0}


def sampled_activations(model: ModelSpec, flops: float) -> float:
    """Activation elements; per forward FLOP those of ResNet-50 stand in when a model gives none."""
    return model.activations_per_sample or flops * 1.4e-3


def operator_counts(model: ModelSpec, training: TrainingSpec) -> dict[str, Any]:
    """Counts by kind of operator, whether they are inferred, and the memory layout of convolutions.

    Compilers keep the channel outermost where convolutions have groups without a direct kernel (RegNet): they would be
    several times slower (`GraphLowering.decide_layout_opt` of PyTorch's inductor).
    """
    flops = model.forward_flops_per_sample
    if not flops:
        return NO_OPERATORS
    from planner.performance.operators import COLUMN, operators_of  # transformers have none

    size = float(model.image_size) if model.image_size else None
    activations = sampled_activations(model, flops)
    operators = operators_of(model.name, model.family.value, size, flops, activations)
    last = training.channels_last
    if last is None:
        last = training.stack != "eager" and not operators.values[COLUMN["split_flops"]] > 0
    return {
        "operators": operators.values,
        "inferred": float(not operators.published),
        "channels_last": float(last),
    }
