"""torchtune: the YAML file of a recipe (https://docs.pytorch.org/torchtune/stable/deep_dives/configs.html)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.trainer_files.arguments import CONFIGURATION
from planner.trainer_files.formats.common import (
    ACCELERATORS,
    ACCUMULATION,
    GENERATED,
    MICRO_BATCH,
    PASSES,
    Reader,
)
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
)

_ENCODER = "encoder_trainable"
_PARTS = ("decoder_trainable", _ENCODER, "fusion_trainable")  # of models of images and text


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
    reader = Reader(document, "torchtune")
    if not reader.has("optimizer"):
        raise InputError(
            f"{document.path}: states no optimizer: the file generates or evaluates, it trains nothing"
        )
    section = _trained(document.data)
    _model(reader, section)
    reader.add_whole(MICRO_BATCH, "batch_size")
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps")
    reader.add_length(steps="num_steps", epochs="epochs", default_epochs=None)
    steps, epochs = reader.whole("max_steps_per_epoch"), reader.facts.get("training.epochs")
    if steps is not None and epochs is not None and "training.steps" not in reader.facts:
        del reader.facts["training.epochs"]
        count = round(steps * epochs.value)
        reader.add("training.steps", count, f"max_steps_per_epoch {steps} x epochs {epochs.value:g}, at most")
    reader.add_whole("training.sequence_length", "tokenizer.max_seq_len", "dataset.max_seq_len")
    dtype = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}.get(reader.text("dtype"))
    reader.add("training.precision", dtype, "dtype")
    if dtype == "bf16":
        reader.add("training.memory.master", "none", "dtype bf16: weights and states are kept in it")
    reader.add_optimizer(f"optimizer.{_BUILDER}")
    _adapters(reader, section)
    _objective(reader)
    _memory(reader)
    _sharding(reader)
    for name, text in _NOT_COUNTED.items():
        if reader.has(name):
            reader.warn(f"{name}: {text}")
    frozen = [
        name
        for name in _PARTS
        if reader.text(f"{section}.{name}") == "frozen" or reader.flag(f"{section}.{name}") is False
    ]
    method = reader.facts.get("training.method")
    adapted = method is not None and method.value != "full"
    others = [name for name in frozen if name != _ENCODER]
    if _ENCODER in frozen and (adapted or not others):
        reader.freeze_encoder(f"{section}.{_ENCODER}")
    elif adapted and reader.has(f"{section}.{_ENCODER}"):
        reader.adapt_encoder(f"{section}.{_ENCODER}")
    if others:
        parts = others if adapted else frozen
        reader.warn(f"{', '.join(parts)}: frozen parts are counted as {'adapted' if adapted else 'trained'}")
    reader.seen |= {section, "optimizer", "tokenizer", "dataset"}
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _model(reader: Reader, section: str) -> None:
    """The model by the name of its builder."""
    reader.hub_key = f"{section}.{_BUILDER}"
    reader.hub_name = hub_name(reader.text(reader.hub_key))


def hub_name(builder: str) -> str:
    """The name under which a builder's model is published: `torchtune.models.qwen2_5.lora_qwen2_5_7b_instruct`."""
    match = _NAME.fullmatch(builder.rpartition(".")[2])
    name = match["name"] if match is not None else ""
    family = max((family for family in _FAMILIES if name.startswith(f"{family}_")), key=len, default="")
    size = name[len(family) :].strip("_").replace("_base", "").replace("_instruct", "")
    size = re.sub(r"(\d)_(\d)", r"\1.\2", size).replace("_", "-")
    word = f"{_FAMILIES[family]}-{size}" if family else size
    return _SAME.get(word, word)


def _adapters(reader: Reader, section: str) -> None:
    builder = reader.text(f"{section}.{_BUILDER}").rpartition(".")[2]
    match = _NAME.fullmatch(builder)
    word = (match["adapter"] or "") if match is not None else ""
    if not word:
        reader.add("training.method", "full", f"{section}.{_BUILDER} {builder}")
        return
    kind = "dora" if reader.flag(f"{section}.use_dora") or "dora" in word else "lora"
    reader.add_adapter(
        kind, f"{section}.{_BUILDER} {builder}", reader.whole(f"{section}.lora_rank"), "lora_rank"
    )
    targets = reader.get(f"{section}.lora_attn_modules")
    if isinstance(targets, list):
        names = [{"output_proj": "o_proj"}.get(str(name), str(name)) for name in targets]
        for key, modules in _MODULES.items():
            names += modules if reader.flag(f"{section}.{key}") else ()
        reader.add("training.lora_targets", names, "lora_attn_modules and apply_lora_to_*")
    if word.startswith("q") or reader.flag(f"{section}.quantize_base"):
        source = "quantize_base" if not word.startswith("q") else f"{section}.{_BUILDER} {builder}"
        reader.add("training.frozen_bits", 4, source)


def _objective(reader: Reader) -> None:
    loss = reader.text(f"loss.{_BUILDER}").rpartition(".")[2].lower()
    teacher = reader.text(f"teacher_model.{_BUILDER}")
    objective = next((name for part, name in _OBJECTIVES.items() if part in loss), "")
    if teacher:
        reader.add("training.objective", "distill", "teacher_model")
        reader.add("training.teacher", hub_name(teacher), f"teacher_model.{_BUILDER}")
    elif objective:
        reader.add("training.objective", objective, f"loss.{_BUILDER}")
    elif "completion" not in reader.text(f"dataset.{_BUILDER}"):
        reader.add("training.objective", "sft", f"dataset.{_BUILDER}", assumed=True)
    reader.add_whole("rollouts.response_max", "max_generated_tokens")
    reader.add_whole("rollouts.samples_per_prompt", "grpo_samples", "grpo_size")
    if objective == "ppo":  # batch_size is that of generation, ppo_batch_size that of one update
        reader.add_whole(GENERATED, "batch_size")
        reader.add_whole("training.global_batch", "ppo_batch_size")
        reader.facts.pop(MICRO_BATCH, None)
        steps = reader.facts.pop("training.steps", None)
        if steps is not None:
            reader.add("training.samples", steps.value, "num_steps, which counts responses")
    prompts, samples = reader.facts.get(MICRO_BATCH), reader.facts.get("rollouts.samples_per_prompt")
    if prompts is not None and samples is not None:
        reader.add(
            MICRO_BATCH,
            prompts.value * samples.value,
            f"batch_size {prompts.value} x {samples.value} samples",
        )
    reader.add_whole(PASSES, "ppo_epochs")
    if "chunked" in loss or "linearcrossentropy" in loss:
        reader.add("training.memory.loss", "tiled", f"loss.{_BUILDER}")


def _memory(reader: Reader) -> None:
    reader.add_recompute("enable_activation_checkpointing", "no enable_activation_checkpointing")
    if reader.flag("enable_activation_offloading"):
        reader.add_offload("enable_activation_offloading", "activations")
    if reader.flag("optimizer_in_bwd"):
        reader.add("training.memory.optimizer_in_backward", True, "optimizer_in_bwd")
    compiled = reader.flag("compile")
    if isinstance(reader.get("compile"), Mapping):
        compiled = reader.flag("compile.model") is not False
    reader.add("training.stack", "compiled" if compiled else "eager",
               "compile" if compiled is not None else "compile is not set", assumed=compiled is None)  # fmt: skip
    reader.add_flag("training.packing", "dataset.packed", True, False, "the default of packed")


def _sharding(reader: Reader) -> None:
    """One accelerator by the name of the file, else FSDP2 as the distributed recipes have it."""
    if reader.document.syntax == "arguments":  # `tune run`, with its launcher's arguments
        reader.seen.update(("config", CONFIGURATION))
        reader.add_launcher()
    if "single_device" in reader.path.stem:
        reader.add(
            ACCELERATORS, 1, "by the name of the file, for the recipe of one accelerator", assumed=True
        )
        return
    reader.add_fsdp2(reader.flag("fsdp_reshard_after_forward"), "fsdp_reshard_after_forward"
                     if reader.has("fsdp_reshard_after_forward") else "the distributed recipes")  # fmt: skip
    for degree in ("tensor_parallel", "context_parallel"):
        reader.add_whole(f"training.layout.{degree}", f"{degree}_dim")
    if reader.flag("fsdp_cpu_offload") or reader.flag("fsdp.cpu_offload"):
        reader.add_offload("fsdp_cpu_offload", "optimizer", "weights")
