"""nanotron: one YAML file of a run with sections `model`, `parallelism`, `tokens` and `optimizer` (nanotron/config)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.inputs.model_config import model_of_config
from planner.trainer_files.formats.common import ACCELERATORS, ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

_CONFIG = "model.model_config"
# mark of a model's class -> model_type of a `config.json` with the same keys
_CLASSES = {"is_llama_config": "llama", "is_qwen2_config": "qwen2", "is_starcoder2_config": "starcoder2"}
_DEGREES = {
    "tensor_parallel": "tp", "pipeline_parallel": "pp", "context_parallel": "context_parallel_size",
    "expert_parallel": "expert_parallel_size",
}  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether the sections are nanotron's."""
    data = document.data
    sections = all(isinstance(data.get(name), Mapping) for name in ("model", "parallelism", "tokens"))
    return document.syntax in ("yaml", "json") and sections and "micro_batch_size" in data["tokens"]


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: a size of the model is missing, or its class cannot be modelled.
    """
    reader = Reader(document, "nanotron")
    _model(reader)
    reader.add_whole(MICRO_BATCH, "tokens.micro_batch_size")
    reader.add_whole(ACCUMULATION, "tokens.batch_accumulation_per_replica")
    reader.add_whole("training.sequence_length", "tokens.sequence_length")
    reader.add_whole("training.steps", "tokens.train_steps")
    reader.add_whole("batch.shards", "parallelism.dp")
    devices = reader.whole("parallelism.dp") or 1
    for degree, name in _DEGREES.items():
        reader.add_whole(f"training.layout.{degree}", f"parallelism.{name}")
        devices *= (reader.whole(f"parallelism.{name}") or 1) if degree != "expert_parallel" else 1
    reader.add(ACCELERATORS, devices, "the product of parallelism")
    word = reader.text("model.dtype")
    precision = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(word)
    reader.add("training.precision", precision, "model.dtype")
    stage = reader.number("optimizer.zero_stage")
    reader.add("training.layout.zero_stage", None if stage is None else int(stage), "optimizer.zero_stage")
    reader.add_optimizer("optimizer.optimizer_factory.name")
    whole = reader.flag("parallelism.recompute_layer") is True
    reader.add("training.layout.recompute", "full" if whole else "none", "parallelism.recompute_layer",
               assumed=not reader.has("parallelism.recompute_layer"))  # fmt: skip
    reader.add("training.stack", "fused", "nanotron's own kernels", assumed=True)
    return reader


def _model(reader: Reader) -> None:
    config = reader.get(_CONFIG)
    if not isinstance(config, Mapping):
        return
    kind = next((own for mark, own in _CLASSES.items() if config.get(mark)), "llama")
    data: dict[str, Any] = {"model_type": kind, **config}
    experts = config.get("moe_config")
    if isinstance(experts, Mapping) and isinstance(experts.get("num_experts"), int):
        width = experts.get("moe_intermediate_size") or config.get("intermediate_size")
        shared = experts.get("shared_expert_intermediate_size") or width
        data |= {
            "model_type": "qwen2_moe", "num_experts": experts["num_experts"],
            "num_experts_per_tok": experts.get("top_k") or 1, "moe_intermediate_size": width,
            "shared_expert_intermediate_size": shared if experts.get("enable_shared_expert") else 0,
        }  # fmt: skip
    model = model_of_config(data, str(reader.path))
    reader.model = replace(model, model_type="own sizes")
