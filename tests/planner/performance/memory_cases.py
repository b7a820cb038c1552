"""Jobs and layouts for the tests of the memory model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.performance.constants import load_constants
from planner.performance.layouts import Layouts
from planner.performance.memory import needed_gib, needed_parts
from planner.performance.memory_options import MemoryOptions
from planner.performance.memory_work import Footprint, build_footprint
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec

GPT3 = ModelSpec(
    "gpt3", ModelFamily.TRANSFORMER, 174.6e9, layers=96, hidden=12288, heads=96, ffn=49152, vocab=51200,
    tied_embeddings=True,
)  # fmt: skip
LLAMA_8B = ModelSpec(
    "llama-8b", ModelFamily.TRANSFORMER, 8.03e9, layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256,
    gated_mlp=True,
)  # fmt: skip
MIXTRAL = ModelSpec(
    "mixtral", ModelFamily.TRANSFORMER, 46.7e9, active_params=12.9e9, layers=32, hidden=4096, heads=32, kv_heads=8,
    vocab=32000, gated_mlp=True, experts=8, experts_per_token=2, moe_ffn=14336,
)  # fmt: skip
BERT = ModelSpec(
    "bert", ModelFamily.TRANSFORMER, 3.4e8, layers=24, hidden=1024, heads=16, ffn=4096, vocab=30522,
    tied_embeddings=True, architecture="encoder",
)  # fmt: skip
RESNET = ModelSpec(
    "resnet-50", ModelFamily.CNN, 25.6e6, forward_flops_per_sample=8.22e9, activations_per_sample=11.11e6
)


def training(
    model: ModelSpec, precision: str = "bf16", *, options: MemoryOptions | None = None, **more: Any
) -> TrainingSpec:
    """A training of `model` with 2,048 tokens (or one sample) each."""
    sequence = 1 if model.family is not ModelFamily.TRANSFORMER else 2048
    spec = TrainingSpec(1024, sequence, precision, **more)  # type: ignore[arg-type]
    return replace(spec, memory=options) if options else spec


def layout(**given: float) -> Layouts:
    """One layout; what is not given is 1 (no ZeRO, no recompute); tensor parallelism brings sequence parallelism."""
    plain = dict.fromkeys(("nodes", "tp", "pp", "cp", "ep", "dp", "micro_batch", "interleave"), 1.0)
    values = {**plain, "zero": 0.0, "micro_batches": 64.0, "recompute": 0.0, **given}
    values.setdefault("sequence_parallel", float(values["tp"] > 1))
    return Layouts(
        hardware=np.zeros(1, dtype=np.int64), **{name: np.asarray([float(v)]) for name, v in values.items()}
    )


def footprint(model: ModelSpec, precision: str = "bf16", **more: Any) -> Footprint:
    """What one job keeps."""
    return build_footprint(model, training(model, precision, **more))


def need(job: Footprint, **given: float) -> float:
    """GiB per device of one layout."""
    return float(needed_gib(job, layout(**given), load_constants())[0])


def parts(job: Footprint, **given: float) -> dict[str, float]:
    """GiB per device of one layout by part."""
    made = needed_parts(job, layout(**given), load_constants())
    return {name: float(values[0]) for name, values in made.items()}
