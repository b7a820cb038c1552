"""LLaMA-Factory's new engine (USE_V1): sections `peft_config`, `dist_config`, ... (its src/llamafactory/v1/config)."""

from __future__ import annotations

from planner.errors import InputError
from planner.trainer_files.formats.common import MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

_MARKS = (
    "dist_config", "train_dataset", "peft_config", "kernel_config", "quant_config", "model_class", "sample_backend",
)  # fmt: skip
_WITHOUT_EFFECT = (
    r"template|trust_remote_code|output_dir|learning_rate|lr_.*|seed|full_determinism|save_.*|logging_.*|resume_.*|max_.*",
    r"train_dataset|eval_dataset|batching_workers|init_config|kernel_config|model_class|flash_attn|report_to|run_name",
    r"sample_.*|export_.*",
)


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
    reader = Reader(document, "LLaMA-Factory v1")
    if not reader.has("train_dataset"):
        raise InputError(f"{document.path}: names no train_dataset: is it for chat, export or inference?")
    reader.hub_name, reader.hub_key = reader.text("model"), "model"
    reader.add(MICRO_BATCH, reader.whole("micro_batch_size") or 1, "micro_batch_size")
    reader.add_whole("training.global_batch", "global_batch_size")
    reader.add_length(steps="max_steps", epochs="num_train_epochs", default_epochs=3.0)
    cutoff = reader.whole("cutoff_len")
    reader.add("training.sequence_length", cutoff or 2048, "cutoff_len", assumed=cutoff is None)
    reader.add("training.precision", "fp32" if reader.flag("bf16") is False else "bf16", "bf16",
               assumed=not reader.has("bf16"))  # fmt: skip
    reader.add_optimizer("optim_config.name")
    reader.add("training.objective", "sft", "the engine trains on examples", assumed=True)
    reader.add("training.stack", "eager", "the framework without a compiler", assumed=True)
    off = reader.flag("enable_activation_checkpointing") is False
    reader.add("training.layout.recompute", "none" if off else "full", "enable_activation_checkpointing",
               assumed=not reader.has("enable_activation_checkpointing"))  # fmt: skip
    _method(reader)
    _distribution(reader)
    strategy = reader.text("batching_strategy")
    source = "batching_strategy" if strategy else "the default of batching_strategy"
    reader.add("training.packing", "padding_free" in strategy, source, assumed=not strategy)
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _method(reader: Reader) -> None:
    kind = reader.text("peft_config.name")
    if kind == "freeze":
        layers = reader.whole("peft_config.freeze_trainable_layers")
        reader.add("training.method", "full", "peft_config.name freeze")
        reader.warn(f"peft_config.name freeze: {layers or 'some'} layers are trained, all are counted")
    elif kind:
        reader.add_adapter(kind, f"peft_config.name {kind}", reader.whole("peft_config.r"), "peft_config.r")
        targets = reader.get("peft_config.target_modules")
        reader.add("training.lora_targets", targets, "peft_config.target_modules")
        bits = reader.whole("quant_config.quantization_bit")
        reader.add("training.frozen_bits", bits, "quant_config.quantization_bit")


def _distribution(reader: Reader) -> None:
    kind = reader.text("dist_config.name")
    if kind == "fsdp2":
        reader.add_fsdp2(None, "dist_config.name fsdp2")
    elif kind == "deepspeed" and reader.text("dist_config.config_file"):
        reader.files["deepspeed"] = reader.text("dist_config.config_file")
    reader.add_whole("training.layout.context_parallel", "dist_config.cp_size")
