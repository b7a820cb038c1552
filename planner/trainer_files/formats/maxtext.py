"""MaxText: a YAML file over its `base.yml`, or the overrides behind one in a script (maxtext/configs).

The batch counts samples per device, whatever the devices share; absent keys have the values of `base.yml`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config import model_of_config
from planner.inputs.presets import find_preset
from planner.trainer_files.arguments import CONFIGURATION
from planner.trainer_files.formats.common import ACCELERATORS, ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.hub import preset_of_hub_name
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_MARKS = ("base_config", "per_device_batch_size", "base_emb_dim", "max_target_length", "remat_policy")
_OWN = ("base_emb_dim", "max_target_length", "remat_policy", "ici_fsdp_parallelism", "dcn_data_parallelism")
# model_name of MaxText -> preset, where the spelling alone does not tell
_PRESETS = {
    "deepseek3-671b": "deepseek-v3", "deepseek2-16b": "deepseek-v2-lite", "deepseek2-236b": "deepseek-v2",
    "llama4-17b-16e": "llama-4-scout", "llama4-17b-128e": "llama-4-maverick", "gpt3-175b": "gpt-3-175b",
}  # fmt: skip
# beginnings of its names -> of a preset's
_FAMILIES = (("llama", "llama-"), ("gemma", "gemma-"), ("olmo", "olmo-"))
# decoder_block -> model_type whose layers are the same
_BLOCKS = {
    "default": "llama", "llama2": "llama", "mistral": "mistral", "mixtral": "mixtral", "qwen2": "qwen2",
    "qwen3": "qwen3", "qwen3_moe": "qwen3_moe", "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3",
    "deepseek": "deepseek_v3", "gpt_oss": "gpt_oss", "gpt3": "gpt2", "olmo3": "olmo3", "llama4": "llama4_text",
    "qwen3_next": "qwen3_next", "qwen3_5": "qwen3_5_moe_text",
}  # fmt: skip
_SIZES_OF_PRESET = {
    "num_hidden_layers": "layers", "hidden_size": "hidden", "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads", "intermediate_size": "ffn", "head_dim": "head_dim", "vocab_size": "vocab",
}  # fmt: skip
# of linear attention: key of config.json -> name in MaxText
_LINEAR = {
    "linear_conv_kernel_dim": "gdn_conv_kernel_dim", "linear_key_head_dim": "gdn_key_head_dim",
    "linear_value_head_dim": "gdn_value_head_dim", "linear_num_key_heads": "gdn_num_key_heads",
    "linear_num_value_heads": "gdn_num_value_heads", "full_attention_interval": "inhomogeneous_layer_cycle_interval",
}  # fmt: skip
_SIZES = {
    "num_hidden_layers": ("base_num_decoder_layers", 16), "hidden_size": ("base_emb_dim", 2048),
    "num_attention_heads": ("base_num_query_heads", 16), "num_key_value_heads": ("base_num_kv_heads", 16),
    "intermediate_size": ("base_mlp_dim", 7168), "head_dim": ("head_dim", 128), "vocab_size": ("vocab_size", 32000),
}  # fmt: skip
_LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_DEGREES = {
    "tensor_parallel": ("tensor", "tensor_sequence", "tensor_transpose"), "pipeline_parallel": ("pipeline",),
    "context_parallel": ("context", "sequence", "context_autoregressive"), "expert_parallel": ("expert",),
}  # fmt: skip
_SHARING = ("data", "fsdp", "fsdp_transpose", *(word for words in _DEGREES.values() for word in words))
# These are -1 where they are left out: they take the rest of the devices, across slices and within one.
_REST = ("dcn_data_parallelism", "ici_fsdp_parallelism")
# What base.yml says.
_BATCH, _LENGTH, _STEPS, _REMAT = 12.0, 2048, 150_001, "full"
# Layers that the file of Gemma 2 counts as one: local and global attention.
_MERGED = {"gemma2": 2}


def recognises(document: Document) -> bool:
    """Whether the keys are MaxText's."""
    data = document.data
    if "base_config" in data and not isinstance(data["base_config"], dict):
        return True
    if CONFIGURATION in data and any(name in data for name in _OWN):
        return True
    return (any(name in data for name in _OWN) and sum(mark in data for mark in _MARKS) > 1) or (
        "base_emb_dim" in data and "base_num_decoder_layers" in data
    )


def read(document: Document) -> Reading:
    """Read a run, or a model's sizes.

    Raises:
        InputError: the file trains nothing, or its layers are none that are known here.
    """
    reader = Reader(document, "MaxText")
    if reader.has("teacher_overrides"):
        raise InputError(
            f"{document.path}: teacher_overrides: distillation by MaxText is not read: write the workload with "
            "'objective: distill' and a section teacher"
        )
    if "inference" in reader.text("base_config") or reader.text("sharding_strategy") == "experimental":
        raise InputError(
            f"{document.path}: base_config {reader.text('base_config')}: it answers, it trains nothing"
        )
    _model(reader)
    configuration = reader.text(CONFIGURATION)
    if configuration not in ("", "base.yml"):
        reader.warn(
            f"{configuration}: what it sets beside these arguments is read where you add it to --from"
        )
    split = _layout(reader)
    _batch(reader, split)
    _amount(reader)
    _objective(reader)
    _precision(reader)
    reader.add_optimizer("opt_type")
    policy = reader.text("remat_policy")
    level = "none" if policy == "minimal" else "full" if policy in ("full", "") else "selective"
    source = f"remat_policy {policy}" if policy else "base.yml: remat_policy full"
    reader.add("training.layout.recompute", level, source, assumed=policy not in ("full", "minimal"))
    reader.add("training.stack", "compiled", "XLA compiles it")
    if reader.flag("optimizer_memory_host_offload"):
        reader.add_offload("optimizer_memory_host_offload", "optimizer")
    if reader.flag("parameter_memory_host_offload"):
        reader.add_offload("parameter_memory_host_offload", "weights")
    return reader


def _model(reader: Reader) -> None:
    name = reader.text("model_name")
    named = name or reader.text(CONFIGURATION).rpartition("/")[2].rpartition(".")[0].replace("_", "-")
    preset = _preset(named) if named not in ("", "default", "base") else None
    if preset is not None and any(reader.has(size) for size, _ in _SIZES.values()):
        reader.model = _sized(reader, preset)
    elif preset is not None:
        reader.hub_name, reader.hub_key = preset, "model_name" if name else "the configuration's name"
    elif name not in ("", "default"):
        reader.hub_name, reader.hub_key = name, "model_name"
    elif reader.has("base_emb_dim") or reader.has("global_parameter_scale"):
        reader.model = _sized(reader)
    elif named not in ("", "default", "base"):
        reader.hub_name, reader.hub_key = named, "the configuration's name"


def _preset(name: str) -> str | None:
    """The preset that a name of MaxText stands for, None where none does."""
    word = name.lower()
    if word in _PRESETS:
        return _PRESETS[word] if find_preset(_PRESETS[word]) is not None else None
    for start, own in _FAMILIES:
        if word.startswith(start) and not word.startswith(own):
            word = own + word.removeprefix(start)
    found = preset_of_hub_name(word)
    return None if found is None else found.name


def _sized(reader: Reader, preset: str = "") -> Any:
    """The model whose sizes the file states, as a `config.json` would; those of a preset that it replaces in part."""
    found = find_preset(preset) if preset else None
    values = {} if found is None else found.values
    block = reader.text("decoder_block") or ("mixtral" if values.get("experts") else "llama2")
    if values.get("kv_width") or values.get("shared_experts"):
        raise InputError(
            f"{reader.path}: sizes beside model_name {preset} are not read: give --model-config config.json"
        )
    if block not in _BLOCKS:
        raise InputError(
            f"{reader.path}: decoder_block {block}: its layers are not known here: give --model-config config.json "
            "or --model PRESET"
        )
    data: dict[str, Any] = {
        own: reader.whole(name) or values.get(_SIZES_OF_PRESET[own], usual)
        for own, (name, usual) in _SIZES.items()
    }
    data["num_hidden_layers"] *= _MERGED.get(block, 1)
    _scale(reader, data)
    data |= {"model_type": _BLOCKS[block], "tie_word_embeddings": reader.flag("logits_via_embedding") is True}
    if positions := reader.whole("trainable_position_size"):
        data["max_position_embeddings"] = positions
    experts = reader.whole("num_experts") or int(values.get("experts") or 1)
    if experts > 1:
        data |= {
            "num_experts": experts, "num_local_experts": experts, "n_routed_experts": experts,
            "num_experts_per_tok": reader.whole("num_experts_per_tok") or values.get("experts_per_token") or 1,
            "moe_intermediate_size": reader.whole("base_moe_mlp_dim") or values.get("moe_ffn")
            or data["intermediate_size"],
            "n_shared_experts": reader.whole("shared_experts") or 0,
            "first_k_dense_replace": reader.whole("first_num_dense_layers") or 0,
        }  # fmt: skip
    if block == "llama4":  # its experts have the width that others call by another name
        data |= {"intermediate_size_mlp": data["intermediate_size"], "intermediate_size": data["moe_intermediate_size"],
                 "interleave_moe_layer_step": reader.whole("interleave_moe_layer_step") or 1}  # fmt: skip
    if block in ("qwen3_next", "qwen3_5"):
        data |= {own: reader.whole(name) for own, name in _LINEAR.items()}
        data["shared_expert_intermediate_size"] = data["moe_intermediate_size"] * data["n_shared_experts"]
    if reader.text("attention_type") == "mla":
        data |= {name: reader.whole(name) for name in _LATENT}
        data.pop("head_dim")
    if window := reader.whole("sliding_window_size"):
        data["sliding_window"] = window
    if reader.has("vision_encoder_block"):
        reader.warn("vision_encoder_block: the image encoder beside the text is not counted")
    model = model_of_config(data, str(reader.path))
    sources = {key: _SIZES[source][0] for key, source in model.sources.items() if source in _SIZES}
    return replace(model, model_type="own sizes", sources=sources)


def _scale(keys: Lookup, data: dict[str, Any]) -> None:
    """Double sizes in turn: heads and feed-forward, then the width, then layers (maxtext/configs/types.py).

    Raises:
        InputError: the scale is no power of two.
    """
    scale = keys.whole("global_parameter_scale") or 1
    doublings = scale.bit_length() - 1
    if scale != 1 << doublings:
        raise keys.wrong("global_parameter_scale", "must be a power of two")
    rounds, rest = divmod(doublings, 3)
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        data[name] <<= rounds + (rest > 0)
    data["hidden_size"] <<= rounds + (rest > 1)
    data["num_hidden_layers"] <<= rounds


def _layout(reader: Reader) -> int:
    """Parallel degrees, and the devices that share samples; a degree of -1 takes what is left."""
    split = 1
    for degree, words in _DEGREES.items():
        names = [f"{level}_{word}_parallelism" for level in ("ici", "dcn") for word in words]
        value = prod(reader.whole(name) or 1 for name in names)
        if value > 1:
            stated = [name for name in names if (reader.whole(name) or 1) > 1]
            reader.add(f"training.layout.{degree}", value, " x ".join(stated))
            split *= value
    every = [f"{level}_{word}_parallelism" for level in ("ici", "dcn") for word in _SHARING]
    stated = [name for name in every if reader.has(name)]
    open_end = [name for name in stated if (reader.number(name) or 0) < 0]
    if all(name in stated for name in _REST) and not open_end:
        count = prod(reader.whole(name) or 1 for name in stated)
        reader.add(ACCELERATORS, count, " x ".join(name for name in stated if (reader.whole(name) or 1) > 1))
    reader.add(
        "training.layout.zero_stage", 3, "ici_fsdp_parallelism takes the devices that are left", assumed=True
    )
    return split


def _batch(reader: Reader, split: int) -> None:
    """Samples per device; devices that share one see as many more between them."""
    stated = reader.number("per_device_batch_size")
    each = _BATCH if stated is None else stated
    times = reader.whole("gradient_accumulation_steps")
    source = "per_device_batch_size" if stated is not None else "base.yml: per_device_batch_size"
    accelerators = reader.facts.get(ACCELERATORS)
    if accelerators is not None:
        whole = each * accelerators.value * (times or 1)
        text = f"{source} {each:g} x {times or 1} accumulated x {accelerators.value} devices"
        reader.add("training.global_batch", max(1, round(whole)), text, assumed=stated is None)
        return
    micro = each * split
    if micro < 1:
        reader.warn(f"{source} {each:g}: less than one sample per device: taken as one")
    reader.add(MICRO_BATCH, max(1, round(micro)), source, assumed=stated is None)
    reader.add(ACCUMULATION, times, "gradient_accumulation_steps")


def _amount(reader: Reader) -> None:
    reader.add_whole("training.steps", "steps")
    reader.add_whole("training.sequence_length", "max_target_length")
    for target, default, name in (
        ("training.steps", _STEPS, "steps"), ("training.sequence_length", _LENGTH, "max_target_length"),
    ):  # fmt: skip
        if target not in reader.facts and reader.has("base_config"):
            reader.add(target, default, f"base.yml: {name}", assumed=True)


def _objective(reader: Reader) -> None:
    if reader.has("rl"):
        samples, prompts = reader.whole("rl.num_generations") or 2, reader.whole("batch_size") or 1
        reader.add("training.objective", "grpo", "rl")
        reader.facts.pop(MICRO_BATCH, None)
        reader.add("training.global_batch", samples * prompts, "batch_size x rl.num_generations")
        reader.add("rollouts.samples_per_prompt", samples, "rl.num_generations")
        reader.add_whole("rollouts.prompt_max", "max_prefill_predict_length")
    elif reader.flag("use_dpo"):
        reader.add("training.objective", reader.text("dpo.algo") or "dpo", "use_dpo")
    elif reader.flag("use_sft"):
        reader.add("training.objective", "sft", "use_sft")
        reader.add("training.packing", reader.flag("packing") is not False, "packing")
    if reader.flag("lora.enable_lora"):
        reader.add_adapter("lora", "lora.enable_lora", reader.whole("lora.lora_rank"), "lora.lora_rank")


def _precision(reader: Reader) -> None:
    kind = reader.text("quantization").lower()
    if kind.startswith(("fp8", "nanoo_fp8", "te_fp8")):
        reader.add("training.precision", "fp8", f"quantization {kind}")
        return
    if kind:
        reader.warn(f"quantization {kind}: its products are counted in the run's precision")
    word = reader.text("dtype")
    precision = {"float32": "fp32", "float16": "fp16"}.get(word, "bf16")
    reader.add(
        "training.precision", precision, f"dtype {word}" if word else "base.yml: dtype", assumed=not word
    )
    if reader.text("weight_dtype") == "bfloat16":
        reader.add("training.memory.master", "none", "weight_dtype bfloat16")
