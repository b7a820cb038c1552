"""CNN, ViT and diffusion models of measured rows: FLOPs and activations per sample, and the memory layout."""

from __future__ import annotations

from benchmarks.rows import Skip, number, whole
from planner.performance.operators import find_published
from planner.performance.spec import ModelFamily, ModelSpec


def sampled_model(row: dict[str, str], kind: ModelFamily, params: float) -> ModelSpec:
    """The model of a row; what the row leaves out comes from the published table of operators.

    Raises:
        Skip: when neither states the FLOPs.
    """
    size = number(row, "img_size")
    known = find_published(row["model_name"])
    known = known.at(size) if known else None
    flops = number(row, "flops_per_sample")
    forward = flops / 3.0 if flops else (known.flops if known else 0.0)
    if not forward:
        raise Skip(f"FLOPs per sample not stated ({kind.value})")
    stated = number(row, "macts")
    activations = stated * 1e6 if stated else (known.activations if known else None)
    return ModelSpec(
        row["model_name"], kind, params, layers=whole(number(row, "layers")), image_size=whole(size),
        forward_flops_per_sample=forward, activations_per_sample=activations,
    )  # fmt: skip


def channels_last(row: dict[str, str], rule: dict[str, str]) -> bool:
    """The memory layout of convolutions: as the framework column says, else by the source's rule."""
    return "nchw" not in row["framework"].lower() and rule.get("channels_last") != "0"
