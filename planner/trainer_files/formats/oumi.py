"""Oumi: one YAML file of a run with sections `model`, `data`, `training`, `peft`, `fsdp`, `deepspeed`.

Keys and defaults: oumi/core/configs/params. Batches count as in the Trainer of Hugging Face; GRPO by verl has its
own keys under `training.verl_config_overrides`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.trainer_files.formats import verl
from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    add_adapter,
    add_generations,
    add_length,
    add_offload,
    add_optimizer,
    add_recompute,
    add_shard,
    add_stack,
    add_targets,
    add_whole,
)
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
    keys = Lookup(document)
    trainer = keys.text("training.trainer_type").upper() or "TRL_SFT"
    if keys.has("training.trainer_type") and keys.text("training.trainer_type").upper() not in _TRAINERS:
        raise keys.wrong("training.trainer_type", f"must be one of {', '.join(_TRAINERS)}")
    reading = _by_verl(document, keys) if trainer == "VERL_GRPO" else _by_trainer(document, keys, trainer)
    reading.hub_name, reading.hub_key = keys.text("model.model_name"), "model.model_name"
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


def _by_trainer(document: Document, keys: Lookup, trainer: str) -> Reading:
    reading = Reading(document.path, "Oumi")
    stated = keys.has("training.trainer_type")
    source = f"training.trainer_type {trainer}" if stated else "the default of training.trainer_type"
    reading.add("training.objective", _TRAINERS[trainer], source, assumed=not stated)
    add_whole(reading, keys, MICRO_BATCH, "training.per_device_train_batch_size", default=_MICRO_BATCH)
    add_whole(reading, keys, ACCUMULATION, "training.gradient_accumulation_steps", default=1)
    add_length(
        reading, keys, steps="training.max_steps", epochs="training.num_train_epochs", default_epochs=_EPOCHS
    )
    add_whole(reading, keys, "training.sequence_length", "model.model_max_length")
    prompt, response = (keys.whole(f"training.grpo.max_{kind}_length") for kind in ("prompt", "completion"))
    add_whole(reading, keys, "rollouts.prompt_max", "training.grpo.max_prompt_length")
    if prompt and response and "training.sequence_length" not in reading.facts:
        reading.add(
            "training.sequence_length", prompt + response, "max_prompt_length + max_completion_length"
        )
    add_generations(reading, keys, "training.grpo.")
    teacher = keys.first(*_TEACHERS)
    if teacher:
        reading.add("training.teacher", keys.text(teacher), teacher)
    add_optimizer(reading, keys, "training.optimizer")
    _precision(reading, keys)
    _adapters(reading, keys)
    _sharding(reading, keys)
    _memory(reading, keys)
    return reading


def _precision(reading: Reading, keys: Lookup) -> None:
    """Weights of 16 bits have no copy in 32 unless the arithmetic is mixed."""
    mixed, stored = (
        keys.text("training.mixed_precision_dtype").lower(),
        keys.text("model.torch_dtype_str").lower(),
    )
    if mixed in _TYPES and mixed not in ("none", ""):
        reading.add("training.precision", _TYPES[mixed], "training.mixed_precision_dtype")
    elif stored in _TYPES:
        reading.add("training.precision", _TYPES[stored], "model.torch_dtype_str")
        if _TYPES[stored] != "fp32" and not keys.flag("training.use_peft"):
            reading.add("training.memory.master", "none", f"model.torch_dtype_str {stored}")


def _adapters(reading: Reading, keys: Lookup) -> None:
    if not keys.flag("training.use_peft"):
        if keys.has("model.freeze_layers"):
            reading.warn("model.freeze_layers: training a part of the weights is counted as training all")
        return
    kind = "dora" if keys.flag("peft.use_dora") else "lora"
    add_adapter(reading, kind, "training.use_peft", keys.whole("peft.lora_r") or _RANK, "peft.lora_r")
    add_targets(reading, keys, "peft.lora_target_modules")
    if keys.flag("peft.q_lora"):
        reading.add("training.frozen_bits", keys.whole("peft.q_lora_bits") or _BITS, "peft.q_lora")


def _sharding(reading: Reading, keys: Lookup) -> None:
    if keys.flag("fsdp.enable_fsdp"):
        strategy = keys.text("fsdp.sharding_strategy") or "FULL_SHARD"
        add_shard(reading, strategy, "fsdp.sharding_strategy")
        if keys.flag("fsdp.cpu_offload"):
            add_offload(reading, "fsdp.cpu_offload", "optimizer", "weights")
    elif keys.flag("deepspeed.enable_deepspeed"):
        stage = keys.text("deepspeed.zero_stage").upper().removeprefix("ZERO_")
        if stage in ("0", "1", "2", "3"):
            reading.add("training.layout.zero_stage", int(stage), f"deepspeed.zero_stage ZERO_{stage}")
        for name, what in (("offload_optimizer", "optimizer"), ("offload_param", "weights")):
            if keys.has(f"deepspeed.{name}"):
                add_offload(reading, f"deepspeed.{name}", what)


def _memory(reading: Reading, keys: Lookup) -> None:
    source = "training.enable_gradient_checkpointing"
    add_recompute(reading, keys, source, f"{source} is off by default")
    compiled = bool(keys.flag("training.compile"))
    text = "training.compile is not set: the framework without a compiler"
    add_stack(reading, compiled, "training.compile", text)
    if keys.flag("model.enable_liger_kernel"):
        reading.add("training.memory.loss", "tiled", "model.enable_liger_kernel")
    if "training.sequence_length" in reading.facts and reading.facts["training.objective"].value == "sft":
        packed = keys.flag("data.train.pack")
        if packed is None:
            packed = keys.flag("training.trainer_kwargs.packing")
        source = "data.train.pack" if packed is not None else "the default of data.train.pack"
        reading.add("training.packing", bool(packed), source, assumed=packed is None)
