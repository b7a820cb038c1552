"""Networks that run beside the model: towers, encoders, frozen helpers, the frozen layers of a model trained in part.

The layout is the model's. A network beside it has the same data-parallel replicas and ZeRO stage and takes part in
tensor parallelism as far as its heads divide; what is left of the tensor group repeats it. There is no pipeline and no
context parallelism where networks run beside the model (`planner.performance.layouts_grid`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from planner.performance.layouts import Layouts
from planner.performance.post_training.adapters import learned_params
from planner.performance.spec import ModelFamily, ModelSpec, PartSpec, TableSpec, TrainingSpec
from planner.performance.work import layer_params, stack_work


def model_of(resolved: Any) -> ModelSpec:
    """A resolved model of a workload, read by attribute, with its parts."""
    known = {field.name for field in fields(ModelSpec)} - {"family", "parts", "tables"}
    sizes = {name: getattr(resolved, name) for name in known if hasattr(resolved, name)}
    parts = tuple(
        PartSpec(model_of(part.model), part.trains, part.tokens, part.per_sample, part.learned_params)
        for part in resolved.parts
    )
    given = getattr(resolved, "tables", None)
    tables = given and TableSpec(**{field.name: getattr(given, field.name) for field in fields(TableSpec)})
    model = ModelSpec(**sizes, family=ModelFamily(resolved.family), parts=parts, tables=tables)
    return model if resolved.last_layers is None else split_layers(model, resolved.last_layers)


def model_from(values: Mapping[str, Any]) -> ModelSpec:
    """Rebuild a `ModelSpec` from the plain values of its fields."""
    parts = tuple(
        PartSpec(**{**part, "model": model_from(part["model"])}) for part in values.get("parts", ())
    )
    tables = values.get("tables") and TableSpec(**values["tables"])
    return ModelSpec(**{**values, "family": ModelFamily(values["family"]), "parts": parts, "tables": tables})


def training_of(part: PartSpec, training: TrainingSpec) -> TrainingSpec:
    """How a part is trained within a job: as the model, but for its batch, its lengths and what of it learns.

    A resident reference is a second copy of all networks; how often each runs for a sample, its part says.
    """
    reference: Literal["none", "copied"] = "copied" if training.tuning.reference == "resident" else "none"
    tuning = replace(
        training.tuning, adapter=None, reference=reference, critic=False, teacher_params=None,
        teacher_active_params=None,
    )  # fmt: skip
    if part.tokens is not None:
        tuning = replace(tuning, sequences=1, lengths=None)
    return replace(
        training, global_batch=max(1, round(training.global_batch * part.per_sample)),
        sequence_length=training.sequence_length if part.tokens is None else part.tokens,
        lora_rank=None, bytes_per_sample=None, decode_samples_per_s_per_core=None, tuning=tuning,
        trains=part.trains, learned_params=part.learned_params,
    )  # fmt: skip


def layout_of(part: PartSpec, layout: Layouts) -> Layouts:
    """The part of a layout that a network beside the model takes."""
    model, one = part.model, np.ones(layout.tp.shape)
    sampled = model.family is not ModelFamily.TRANSFORMER
    heads = 1 if sampled else model.kv_heads or model.heads or 1
    return replace(
        layout,
        tp=np.gcd(layout.tp.astype(np.int64), heads).astype(np.float64),
        pp=one,
        cp=one,
        ep=np.gcd(layout.ep.astype(np.int64), int(model.experts or 1)).astype(np.float64),
        micro_batch=layout.micro_batch * part.per_sample,
        interleave=one,
    )


def split_layers(model: ModelSpec, trained: int) -> ModelSpec:
    """A transformer of which the last layers learn: those with the output layer, and the frozen ones beside it."""
    assert model.layers is not None
    layer, active, _ = layer_params(model)
    frozen = model.layers - trained
    table = float((model.vocab or 0) * (model.hidden or 0))
    untied = not model.tied_embeddings and model.architecture == "decoder"
    input_table = table if untied else 0.0
    dense = min(model.dense_layers, frozen)
    before = replace(
        model,
        params=frozen * layer + input_table,
        active_params=None if model.active_params is None else frozen * active + input_table,
        layers=frozen,
        vocab=model.vocab if untied else None,
        tied_embeddings=True,
        predicted_share=0.0,
        dense_layers=dense,
        windowed_layers=_share(model.windowed_layers, frozen / model.layers),
        parts=(),
    )
    after = replace(
        model,
        params=model.params - before.params,
        active_params=None
        if model.active_params is None
        else model.active_params - (before.active_params or 0.0),
        layers=trained,
        tied_embeddings=True,
        dense_layers=model.dense_layers - dense,
        windowed_layers=_share(model.windowed_layers, trained / model.layers),
    )
    return replace(after, parts=(PartSpec(before, "none"), *model.parts))


def _share(layers: int | None, share: float) -> int | None:
    return None if layers is None else round(layers * share)


def all_params(model: ModelSpec) -> float:
    """Parameters of the model, its embedding tables and all networks beside it."""
    return model.params + table_params(model) + sum(part.model.params for part in model.parts)


def table_params(model: ModelSpec) -> float:
    """Parameters of the embedding tables, 0 without."""
    return 0.0 if model.tables is None else model.tables.params


def exported_params(model: ModelSpec, training: TrainingSpec) -> float:
    """Parameters that learn, in the model and in all networks beside it: what a finished run hands over."""
    beside = (learned_params(part.model, training_of(part, training)) for part in model.parts)
    return learned_params(model, training) + table_params(model) + sum(beside)


def flops_per_sample(model: ModelSpec, training: TrainingSpec) -> float:
    """FLOPs of forward and backward of one sample through the model and all networks beside it."""
    total = float(stack_work([(model, training)]).flops_per_sample[0])
    for part in model.parts:
        work = stack_work([(part.model, training_of(part, training))])
        total += part.per_sample * float(work.flops_per_sample[0])
    return total


__all__ = [
    "all_params", "exported_params", "flops_per_sample", "layout_of", "model_from", "model_of", "split_layers",
    "table_params", "training_of",
]  # fmt: skip
