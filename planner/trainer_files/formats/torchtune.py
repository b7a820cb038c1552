"""torchtune: the YAML file of a recipe (https://docs.pytorch.org/torchtune/stable/deep_dives/configs.html)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.trainer_files.formats.common import (
    ACCELERATORS,
    ACCUMULATION,
    GENERATED,
    MICRO_BATCH,
    PASSES,
    add_adapter,
    add_flag,
    add_fsdp2,
    add_length,
    add_offload,
    add_optimizer,
    add_recompute,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_BUILDER = "_component_"
_MODELS = "torchtune.models."
# sections that hold the trained model: reinforcement learning has several
_TRAINED = ("model", "policy_model", "base_model")
# family in the name of a builder -> how presets and hubs write it
_FAMILIES = {
    "qwen2": "qwen2", "gemma": "gemma", "mistral": "mistral", "qwen3": "qwen3", "llama2": "llama-2",
    "llama3": "llama-3", "code_llama2": "codellama", "qwen2_5": "qwen2.5", "gemma2": "gemma-2",
    "llama3_1": "llama-3.1", "llama3_2": "llama-3.2", "llama3_3": "llama-3.3", "phi3": "phi-3", "phi4": "phi-4",
    "falcon3": "falcon-3",
}  # fmt: skip
_NAME = re.compile(r"(?P<adapter>q?lora_|q?dora_)?(?P<name>.+)")
# one model under two names: Phi-4 is of one size
_SAME = {"phi-4-14b": "phi-4"}
_OBJECTIVES = {
    "dpoloss": "dpo", "rsoloss": "dpo", "ipoloss": "ipo", "simpoloss": "simpo", "ppoloss": "ppo", "grpo": "grpo",
}  # fmt: skip
_MODULES = {"apply_lora_to_mlp": ("gate_proj", "up_proj", "down_proj"), "apply_lora_to_output": ("lm_head",)}
_NOT_COUNTED = {
    "quantizer": "quantisation-aware training is counted as plain training",
    "tensor_parallel_plan": "which layers are split is not counted",
}
_WITHOUT_EFFECT = (
    r"output_dir|tokenizer|.*checkpointer.*|checkpoint.*|resume_.*|save_.*|seed|shuffle|lr_scheduler|clip_grad.*|metric_.*",
    r"log_.*|device|profiler|max_steps_per_epoch|kd_ratio|clip_grad_norm|low_cpu_ram|custom_sharded_layers|dataset_val",
    r"run_val.*|.*eval.*|temperature|top_k|min_response_.*|penalise_.*|reward_.*|stop_token.*|whiten_.*|gamma|lmbda|kl_coeff",
    r"enable_kv_cache|forward_batch_size|collate_fn|loss|kd_loss|enable_async.*|cudnn.*|fsdp_reshard.*|data_parallel_.*|.*_parallel_.*",
)  # fmt: skip

_PARTS = ("decoder_trainable", "encoder_trainable", "fusion_trainable")  # of models of images and text


def recognises(document: Document) -> bool:
    """Whether a section builds one of torchtune's models."""
    return bool(_trained(document.data))


def _trained(data: Mapping[str, Any]) -> str:
    """The section that holds the trained model, empty where there is none."""
    for section in _TRAINED:
        inner = data.get(section)
        if isinstance(inner, Mapping) and str(inner.get(_BUILDER, "")).startswith(_MODELS):
            return section
    return ""


def read(document: Document) -> Reading:
    """Read a run of a recipe.

    The file names neither the recipe nor the accelerators: both are arguments of `tune run`.

    Raises:
        InputError: the file trains nothing.
    """
    keys, reading = Lookup(document), Reading(document.path, "torchtune")
    if not keys.has("optimizer"):
        raise InputError(
            f"{document.path}: states no optimizer: the file generates or evaluates, it trains nothing"
        )
    section = _trained(document.data)
    _model(reading, keys, section)
    add_whole(reading, keys, MICRO_BATCH, "batch_size")
    add_whole(reading, keys, ACCUMULATION, "gradient_accumulation_steps")
    add_length(reading, keys, steps="num_steps", epochs="epochs", default_epochs=None)
    steps, epochs = keys.whole("max_steps_per_epoch"), reading.facts.get("training.epochs")
    if steps is not None and epochs is not None and "training.steps" not in reading.facts:
        del reading.facts["training.epochs"]
        count = round(steps * epochs.value)
        reading.add(
            "training.steps", count, f"max_steps_per_epoch {steps} x epochs {epochs.value:g}, at most"
        )
    add_whole(reading, keys, "training.sequence_length", "tokenizer.max_seq_len", "dataset.max_seq_len")
    dtype = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}.get(keys.text("dtype"))
    reading.add("training.precision", dtype, "dtype")
    if dtype == "bf16":
        reading.add("training.memory.master", "none", "dtype bf16: weights and states are kept in it")
    add_optimizer(reading, keys, f"optimizer.{_BUILDER}")
    _adapters(reading, keys, section)
    _objective(reading, keys)
    _memory(reading, keys)
    _sharding(reading, keys)
    for name, text in _NOT_COUNTED.items():
        if keys.has(name):
            reading.warn(f"{name}: {text}")
    frozen = [
        name
        for name in _PARTS
        if keys.text(f"{section}.{name}") == "frozen" or keys.flag(f"{section}.{name}") is False
    ]
    if frozen:
        reading.warn(f"{', '.join(frozen)}: frozen parts are counted as trained")
    keys.seen |= {section, "optimizer", "tokenizer", "dataset"}
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _model(reading: Reading, keys: Lookup, section: str) -> None:
    """The model by the name of its builder."""
    reading.hub_key = f"{section}.{_BUILDER}"
    reading.hub_name = hub_name(keys.text(reading.hub_key))


def hub_name(builder: str) -> str:
    """The name under which a builder's model is published: `torchtune.models.qwen2_5.lora_qwen2_5_7b_instruct`."""
    match = _NAME.fullmatch(builder.rpartition(".")[2])
    name = match["name"] if match is not None else ""
    family = max((family for family in _FAMILIES if name.startswith(f"{family}_")), key=len, default="")
    size = name[len(family) :].strip("_").replace("_base", "").replace("_instruct", "")
    size = re.sub(r"(\d)_(\d)", r"\1.\2", size).replace("_", "-")
    word = f"{_FAMILIES[family]}-{size}" if family else size
    return _SAME.get(word, word)


def _adapters(reading: Reading, keys: Lookup, section: str) -> None:
    builder = keys.text(f"{section}.{_BUILDER}").rpartition(".")[2]
    match = _NAME.fullmatch(builder)
    word = (match["adapter"] or "") if match is not None else ""
    if not word:
        reading.add("training.method", "full", f"{section}.{_BUILDER} {builder}")
        return
    kind = "dora" if keys.flag(f"{section}.use_dora") or "dora" in word else "lora"
    add_adapter(
        reading, kind, f"{section}.{_BUILDER} {builder}", keys.whole(f"{section}.lora_rank"), "lora_rank"
    )
    targets = keys.get(f"{section}.lora_attn_modules")
    if isinstance(targets, list):
        names = [{"output_proj": "o_proj"}.get(str(name), str(name)) for name in targets]
        for key, modules in _MODULES.items():
            names += modules if keys.flag(f"{section}.{key}") else ()
        reading.add("training.lora_targets", names, "lora_attn_modules and apply_lora_to_*")
    if word.startswith("q") or keys.flag(f"{section}.quantize_base"):
        source = "quantize_base" if not word.startswith("q") else f"{section}.{_BUILDER} {builder}"
        reading.add("training.frozen_bits", 4, source)


def _objective(reading: Reading, keys: Lookup) -> None:
    loss = keys.text(f"loss.{_BUILDER}").rpartition(".")[2].lower()
    teacher = keys.text(f"teacher_model.{_BUILDER}")
    objective = next((name for part, name in _OBJECTIVES.items() if part in loss), "")
    if teacher:
        reading.add("training.objective", "distill", "teacher_model")
        reading.add("training.teacher", hub_name(teacher), f"teacher_model.{_BUILDER}")
    elif objective:
        reading.add("training.objective", objective, f"loss.{_BUILDER}")
    elif "completion" not in keys.text(f"dataset.{_BUILDER}"):
        reading.add("training.objective", "sft", f"dataset.{_BUILDER}", assumed=True)
    add_whole(reading, keys, "rollouts.response_max", "max_generated_tokens")
    add_whole(reading, keys, "rollouts.samples_per_prompt", "grpo_samples", "grpo_size")
    if objective == "ppo":  # batch_size is that of generation, ppo_batch_size that of one update
        add_whole(reading, keys, GENERATED, "batch_size")
        add_whole(reading, keys, "training.global_batch", "ppo_batch_size")
        reading.facts.pop(MICRO_BATCH, None)
        steps = reading.facts.pop("training.steps", None)
        if steps is not None:
            reading.add("training.samples", steps.value, "num_steps, which counts responses")
    prompts, samples = reading.facts.get(MICRO_BATCH), reading.facts.get("rollouts.samples_per_prompt")
    if prompts is not None and samples is not None:
        reading.add(
            MICRO_BATCH,
            prompts.value * samples.value,
            f"batch_size {prompts.value} x {samples.value} samples",
        )
    add_whole(reading, keys, PASSES, "ppo_epochs")
    if "chunked" in loss or "linearcrossentropy" in loss:
        reading.add("training.memory.loss", "tiled", f"loss.{_BUILDER}")


def _memory(reading: Reading, keys: Lookup) -> None:
    add_recompute(reading, keys, "enable_activation_checkpointing", "no enable_activation_checkpointing")
    if keys.flag("enable_activation_offloading"):
        add_offload(reading, "enable_activation_offloading", "activations")
    if keys.flag("optimizer_in_bwd"):
        reading.add("training.memory.optimizer_in_backward", True, "optimizer_in_bwd")
    compiled = keys.flag("compile")
    if isinstance(keys.get("compile"), Mapping):
        compiled = keys.flag("compile.model") is not False
    reading.add("training.stack", "compiled" if compiled else "eager",
                "compile" if compiled is not None else "compile is not set", assumed=compiled is None)  # fmt: skip
    add_flag(reading, keys, "training.packing", "dataset.packed", True, False, "the default of packed")


def _sharding(reading: Reading, keys: Lookup) -> None:
    """One accelerator by the name of the file, else FSDP2 as the distributed recipes have it."""
    if "single_device" in reading.path.stem:
        reading.add(
            ACCELERATORS, 1, "by the name of the file, for the recipe of one accelerator", assumed=True
        )
        return
    add_fsdp2(reading, keys.flag("fsdp_reshard_after_forward"), "fsdp_reshard_after_forward"
              if keys.has("fsdp_reshard_after_forward") else "the distributed recipes")  # fmt: skip
    for degree in ("tensor_parallel", "context_parallel"):
        add_whole(reading, keys, f"training.layout.{degree}", f"{degree}_dim")
    if keys.flag("fsdp_cpu_offload") or keys.flag("fsdp.cpu_offload"):
        add_offload(reading, "fsdp_cpu_offload", "optimizer", "weights")
