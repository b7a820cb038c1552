"""Sizes of CNN, ViT and diffusion models in measured rows: FLOPs and activations per sample."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.rows import Skip, number, read_csv, whole
from planner.performance.spec import ModelFamily, ModelSpec

MODELS = Path(__file__).resolve().parent / "data" / "vision_models.csv"


@lru_cache(maxsize=1)
def _models() -> list[dict[str, str]]:
    return read_csv(MODELS)


def sampled_model(row: dict[str, str], kind: ModelFamily, params: float) -> ModelSpec:
    """The model of a row, with what it leaves out from `data/vision_models.csv`.

    Raises:
        Skip: when neither states the FLOPs.
    """
    known = next((m for m in _models() if row["model_name"].startswith(m["model_prefix"])), {})
    flops = number(row, "flops_per_sample")
    forward = flops / 3.0 if flops else (number(known, "forward_gflops") or 0.0) * 1e9
    if not forward:
        raise Skip(f"FLOPs per sample not stated ({kind.value})")
    activations = number(row, "macts") or number(known, "activations_m")
    return ModelSpec(
        row["model_name"], kind, params, layers=whole(number(row, "layers")), forward_flops_per_sample=forward,
        activations_per_sample=activations * 1e6 if activations else None,
    )  # fmt: skip
