"""LLaMA-Factory's new engine (USE_V1): sections `peft_config`, `dist_config`, ... (its src/llamafactory/v1/config)."""

from __future__ import annotations

from planner.errors import InputError
from planner.trainer_files.formats.common import (
    MICRO_BATCH,
    add_adapter,
    add_fsdp2,
    add_length,
    add_optimizer,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_MARKS = (
    "dist_config",
    "train_dataset",
    "peft_config",
    "kernel_config",
    "quant_config",
    "model_class",
    "sample_backend",
)
_WITHOUT_EFFECT = (
    r"template|trust_remote_code|output_dir|learning_rate|lr_.*|seed|full_determinism|save_.*|logging_.*|resume_.*|max_.*",
    r"train_dataset|eval_dataset|batching_workers|init_config|kernel_config|model_class|flash_attn|report_to|run_name",
    r"sample_.*|export_.*",
)  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether the keys are those of the new engine."""
    data = document.data
    has_model = isinstance(data.get("model"), str) and document.syntax in ("yaml", "json")
    return has_model and sum(mark in data for mark in _MARKS) >= 2


def read(document: Document) -> Reading:
    """Read a run; absent keys have the engine's defaults.

    Raises:
        InputError: the file trains nothing.
    """
    keys, reading = Lookup(document), Reading(document.path, "LLaMA-Factory v1")
    if not keys.has("train_dataset"):
        raise InputError(f"{document.path}: names no train_dataset: is it for chat, export or inference?")
    reading.hub_name, reading.hub_key = keys.text("model"), "model"
    reading.add(MICRO_BATCH, keys.whole("micro_batch_size") or 1, "micro_batch_size")
    add_whole(reading, keys, "training.global_batch", "global_batch_size")
    add_length(reading, keys, steps="max_steps", epochs="num_train_epochs", default_epochs=3.0)
    cutoff = keys.whole("cutoff_len")
    reading.add("training.sequence_length", cutoff or 2048, "cutoff_len", assumed=cutoff is None)
    reading.add("training.precision", "fp32" if keys.flag("bf16") is False else "bf16", "bf16",
                assumed=not keys.has("bf16"))  # fmt: skip
    add_optimizer(reading, keys, "optim_config.name")
    reading.add("training.objective", "sft", "the engine trains on examples", assumed=True)
    reading.add("training.stack", "eager", "the framework without a compiler", assumed=True)
    off = keys.flag("enable_activation_checkpointing") is False
    reading.add("training.layout.recompute", "none" if off else "full", "enable_activation_checkpointing",
                assumed=not keys.has("enable_activation_checkpointing"))  # fmt: skip
    _method(reading, keys)
    _distribution(reading, keys)
    strategy = keys.text("batching_strategy")
    source = "batching_strategy" if strategy else "the default of batching_strategy"
    reading.add("training.packing", "padding_free" in strategy, source, assumed=not strategy)
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _method(reading: Reading, keys: Lookup) -> None:
    kind = keys.text("peft_config.name")
    if kind == "freeze":
        layers = keys.whole("peft_config.freeze_trainable_layers")
        reading.add("training.method", "full", "peft_config.name freeze")
        reading.warn(f"peft_config.name freeze: {layers or 'some'} layers are trained, all are counted")
    elif kind:
        add_adapter(reading, kind, f"peft_config.name {kind}", keys.whole("peft_config.r"), "peft_config.r")
        targets = keys.get("peft_config.target_modules")
        reading.add("training.lora_targets", targets, "peft_config.target_modules")
        bits = keys.whole("quant_config.quantization_bit")
        reading.add("training.frozen_bits", bits, "quant_config.quantization_bit")


def _distribution(reading: Reading, keys: Lookup) -> None:
    kind = keys.text("dist_config.name")
    if kind == "fsdp2":
        add_fsdp2(reading, None, "dist_config.name fsdp2")
    elif kind == "deepspeed" and keys.text("dist_config.config_file"):
        reading.files["deepspeed"] = keys.text("dist_config.config_file")
    add_whole(reading, keys, "training.layout.context_parallel", "dist_config.cp_size")
