"""Oumi: one YAML file of a run with sections `model`, `data`, `training`, `peft`, `fsdp`, `deepspeed`.

Keys and defaults: oumi/core/configs/params. Batches count as in the Trainer of Hugging Face; GRPO by verl has its
own keys under `training.verl_config_overrides`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.trainer_files.formats import verl
from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_TRAINERS = {
    "TRL_SFT": "sft", "TRL_DPO": "dpo", "TRL_KTO": "kto", "TRL_GRPO": "grpo", "TRL_GKD": "distill",
    "TRL_GOLD": "distill", "VERL_GRPO": "grpo", "OUMI": "sft", "HF": "pretrain",
}  # fmt: skip
# precision of the weights, and of the arithmetic where mixed precision is off, by the name of a type
_TYPES = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "float32": "fp32",
    "fp32": "fp32",
}
# What it takes where a key is left out.
_MICRO_BATCH, _EPOCHS, _RANK, _BITS = 8, 3.0, 8, 4
_TEACHERS = ("training.gkd.teacher_model_name_or_path", "training.gold.teacher_model_name_or_path")


def recognises(document: Document) -> bool:
    """Whether the sections are Oumi's: a model by `model_name` beside training or what it is asked."""
    model = document.data.get("model")
    others = any(
        isinstance(document.data.get(name), Mapping) for name in ("training", "generation", "tuning")
    )
    return (
        document.syntax in ("yaml", "json")
        and isinstance(model, Mapping)
        and "model_name" in model
        and others
    )


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: the file trains nothing, or tries several trainings.
    """
    if isinstance(document.data.get("tuning"), Mapping):
        raise InputError(
            f"{document.path}: tuning: tries many values of a training: write the workload of one of them"
        )
    if not isinstance(document.data.get("training"), Mapping):
        raise InputError(
            f"{document.path}: has no section training: the file answers or evaluates, it trains nothing"
        )
    reader = Reader(document, "Oumi")
    trainer = reader.text("training.trainer_type").upper() or "TRL_SFT"
    if reader.has("training.trainer_type") and reader.text("training.trainer_type").upper() not in _TRAINERS:
        raise reader.wrong("training.trainer_type", f"must be one of {', '.join(_TRAINERS)}")
    reading = _by_verl(document, reader) if trainer == "VERL_GRPO" else _by_trainer(reader, trainer)
    reading.hub_name, reading.hub_key = reader.text("model.model_name"), "model.model_name"
    return reading


def _by_verl(document: Document, keys: Lookup) -> Reading:
    """A run whose trainer is verl, under its own keys."""
    data = _section(keys.get("training.verl_config_overrides"))
    limits, steps = _section(data.get("data")), _section(data.get("trainer"))
    data["actor_rollout_ref"] = _section(data.get("actor_rollout_ref"))
    data["algorithm"] = {"adv_estimator": "grpo"} | _section(data.get("algorithm"))
    for key, own in (
        ("max_completion_length", "max_response_length"),
        ("max_prompt_length", "max_prompt_length"),
    ):
        value = keys.whole(f"training.grpo.{key}")
        if value is not None:
            limits.setdefault(own, value)
    for key, own in (
        ("training.max_steps", "total_training_steps"),
        ("training.num_train_epochs", "total_epochs"),
    ):
        value = keys.whole(key)
        if value is not None:
            steps.setdefault(own, value)
    data |= {"data": limits, "trainer": steps}
    reading = verl.read(Document(document.path, document.syntax, data, document.remarks))
    reading.tool = "Oumi"
    return reading


def _section(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _by_trainer(reader: Reader, trainer: str) -> Reading:
    stated = reader.has("training.trainer_type")
    source = f"training.trainer_type {trainer}" if stated else "the default of training.trainer_type"
    reader.add("training.objective", _TRAINERS[trainer], source, assumed=not stated)
    reader.add_whole(MICRO_BATCH, "training.per_device_train_batch_size", default=_MICRO_BATCH)
    reader.add_whole(ACCUMULATION, "training.gradient_accumulation_steps", default=1)
    reader.add_length(steps="training.max_steps", epochs="training.num_train_epochs", default_epochs=_EPOCHS)
    reader.add_whole("training.sequence_length", "model.model_max_length")
    prompt, response = (reader.whole(f"training.grpo.max_{kind}_length") for kind in ("prompt", "completion"))
    reader.add_whole("rollouts.prompt_max", "training.grpo.max_prompt_length")
    if prompt and response and "training.sequence_length" not in reader.facts:
        reader.add("training.sequence_length", prompt + response, "max_prompt_length + max_completion_length")
    reader.add_generations("training.grpo.")
    teacher = reader.first(*_TEACHERS)
    if teacher:
        reader.add("training.teacher", reader.text(teacher), teacher)
    reader.add_optimizer("training.optimizer")
    _precision(reader)
    _adapters(reader)
    _sharding(reader)
    _memory(reader)
    return reader


def _precision(reader: Reader) -> None:
    """Weights of 16 bits have no copy in 32 unless the arithmetic is mixed."""
    mixed, stored = (
        reader.text("training.mixed_precision_dtype").lower(),
        reader.text("model.torch_dtype_str").lower(),
    )
    if mixed in _TYPES and mixed not in ("none", ""):
        reader.add("training.precision", _TYPES[mixed], "training.mixed_precision_dtype")
    elif stored in _TYPES:
        reader.add("training.precision", _TYPES[stored], "model.torch_dtype_str")
        if _TYPES[stored] != "fp32" and not reader.flag("training.use_peft"):
            reader.add("training.memory.master", "none", f"model.torch_dtype_str {stored}")


# modules of Transformers that hold an encoder of images
_ENCODERS = ("visual", "vision_tower", "vision_model")


def _adapters(reader: Reader) -> None:
    if not reader.flag("training.use_peft"):
        if reader.has("model.freeze_layers"):
            stated = reader.get("model.freeze_layers")
            names = [str(name) for name in stated] if isinstance(stated, list) else []
            if names and all(name.rpartition(".")[2] in _ENCODERS for name in names):
                reader.freeze_encoder(f"model.freeze_layers {', '.join(names)}")
            else:
                reader.warn("model.freeze_layers: training a part of the weights is counted as training all")
        return
    kind = "dora" if reader.flag("peft.use_dora") else "lora"
    reader.add_adapter(kind, "training.use_peft", reader.whole("peft.lora_r") or _RANK, "peft.lora_r")
    reader.add_targets("peft.lora_target_modules")
    if reader.flag("peft.q_lora"):
        reader.add("training.frozen_bits", reader.whole("peft.q_lora_bits") or _BITS, "peft.q_lora")


def _sharding(reader: Reader) -> None:
    if reader.flag("fsdp.enable_fsdp"):
        strategy = reader.text("fsdp.sharding_strategy") or "FULL_SHARD"
        reader.add_shard(strategy, "fsdp.sharding_strategy")
        if reader.flag("fsdp.cpu_offload"):
            reader.add_offload("fsdp.cpu_offload", "optimizer", "weights")
    elif reader.flag("deepspeed.enable_deepspeed"):
        stage = reader.text("deepspeed.zero_stage").upper().removeprefix("ZERO_")
        if stage in ("0", "1", "2", "3"):
            reader.add("training.layout.zero_stage", int(stage), f"deepspeed.zero_stage ZERO_{stage}")
        for name, what in (("offload_optimizer", "optimizer"), ("offload_param", "weights")):
            if reader.has(f"deepspeed.{name}"):
                reader.add_offload(f"deepspeed.{name}", what)


def _memory(reader: Reader) -> None:
    source = "training.enable_gradient_checkpointing"
    reader.add_recompute(source, f"{source} is off by default")
    compiled = bool(reader.flag("training.compile"))
    text = "training.compile is not set: the framework without a compiler"
    reader.add_stack(compiled, "training.compile", text)
    if reader.flag("model.enable_liger_kernel"):
        reader.add("training.memory.loss", "tiled", "model.enable_liger_kernel")
    if "training.sequence_length" in reader.facts and reader.facts["training.objective"].value == "sft":
        packed = reader.flag("data.train.pack")
        if packed is None:
            packed = reader.flag("training.trainer_kwargs.packing")
        source = "data.train.pack" if packed is not None else "the default of data.train.pack"
        reader.add("training.packing", bool(packed), source, assumed=packed is None)
