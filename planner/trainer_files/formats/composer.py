"""Composer's way to write a run, in YAML: LLM Foundry (scripts/train/yamls) and OLMo (configs)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config import model_of_config
from planner.trainer_files.formats.common import MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

# `63900ba`, `2e12T`, `134e9tok`, `2ep`, `1e6sp`; a number alone is steps
_DURATION = re.compile(r"([0-9][0-9_.]*(?:e[+-]?[0-9]+)?)(ba|ep|tok|T|sp)?", re.IGNORECASE)
_UNITS = {"": "steps", "ba": "steps", "ep": "epochs", "tok": "tokens", "t": "tokens", "sp": "samples"}
_PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp32": "fp32"}
_USUAL_RATIO, _USUAL_VOCAB = 4, 50368
_FSDP = ("fsdp_config", "parallelism_config.fsdp", "fsdp")
_HUB = ("model.pretrained_model_name_or_path", "model.pretrained_model_name")
# activation_checkpointing of OLMo -> that of a workload
_RECOMPUTE = {"whole_layer": "full", "fine_grained": "selective"}
_WITHOUT_EFFECT = (
    r"run_name|.*seed|dry_run|.*wandb.*|loggers?|callbacks|algorithms|scheduler|tokenizer|.*loader|eval.*|icl_.*|data.*",
    r"save.*|load.*|.*save_folder|max_grad.*|speed_monitor|progress_bar|.*log.*|device_eval.*|dist_timeout|autoresume",
    r"variables|metadata|code_paths|compute|image|command|cluster|gpu_.*|integrations|name|only_.*|time_limit|.*_loss.*",
    r"fused_loss|gen1_gc.*|sharded_.*|remote_.*|no_pre.*|force_save.*|reset_.*|stop_.*|extra_.*|expandable_segments|.*_on_tokens",
)


def recognises(document: Document) -> bool:
    """Whether the keys are those of LLM Foundry or OLMo."""
    data = _opened(document).data
    named = "max_duration" in data and "global_train_batch_size" in data
    return named and isinstance(data.get("model"), Mapping) and document.syntax in ("yaml", "json")


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: a model whose sizes are not those of a decoder, or a length that is none.
    """
    reader = Reader(_opened(document), "LLM Foundry / OLMo")
    _model(reader)
    reader.add_whole("training.global_batch", "global_train_batch_size")
    reader.add_whole(MICRO_BATCH, "device_train_microbatch_size")
    reader.add_whole("training.sequence_length", "max_seq_len", "model.max_seq_len",
                     "model.max_sequence_length")  # fmt: skip
    _length(reader)
    word = str(reader.get("precision")).lower()
    precision = next((name for part, name in _PRECISIONS.items() if part in word), None)
    reader.add("training.precision", precision, "precision")
    reader.add_optimizer("optimizer.name")
    _adapters(reader)
    _objective(reader)
    _sharding(reader)
    compiled = isinstance(reader.get("compile"), Mapping) or reader.has("compile_config")
    reader.add_stack(compiled, "compile", "compile is not set")
    reader.seen |= {"model", "optimizer", "fsdp", "fsdp_config"}
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _opened(document: Document) -> Document:
    """The run inside the section `parameters` of a file that submits it."""
    inner = document.data.get("parameters")
    inside = isinstance(inner, Mapping) and isinstance(inner.get("model"), Mapping)
    return replace(document, data=inner) if inside and isinstance(inner, Mapping) else document


def _model(reader: Reader) -> None:
    hub = reader.first(*_HUB)
    if hub:
        reader.hub_key, reader.hub_name = hub, reader.text(hub)
        return
    sizes = {name: reader.whole(f"model.{name}") for name in ("d_model", "n_heads", "n_layers")}
    missing = [f"model.{name}" for name, value in sizes.items() if value is None]
    if missing:
        named = reader.text("model.name") or "the model"
        raise InputError(
            f"{reader.path}: {' and '.join(missing)} must be given: the sizes of {named} are read from them, or give "
            "--model-config config.json"
        )
    data = _olmo(reader) if reader.has("model.max_sequence_length") else _mpt(reader)
    data |= {"num_hidden_layers": sizes["n_layers"], "hidden_size": sizes["d_model"],
             "num_attention_heads": sizes["n_heads"]}  # fmt: skip
    data["intermediate_size"] = data.get("intermediate_size") or _USUAL_RATIO * (sizes["d_model"] or 0)
    model = model_of_config(data, str(reader.path))
    sources = {"layers": "model.n_layers", "hidden": "model.d_model", "heads": "model.n_heads"}
    reader.model = replace(model, model_type="own sizes", sources=sources)


def _olmo(reader: Reader) -> dict[str, Any]:
    """Sizes of OLMo, where the width of a gated network counts both of its halves."""
    hidden = reader.whole("model.d_model") or 0
    gated = reader.text("model.activation_type") in ("", "swiglu")
    width = reader.whole("model.mlp_hidden_size") or int(
        (reader.number("model.mlp_ratio") or _USUAL_RATIO) * hidden
    )
    heads = reader.whole("model.n_kv_heads") or (1 if reader.flag("model.multi_query_attention") else None)
    data: dict[str, Any] = {
        "model_type": "olmo" if gated else "gpt_neox", "intermediate_size": width // 2 if gated else width,
        "num_key_value_heads": heads or reader.whole("model.n_heads"),
        "vocab_size": reader.whole("model.embedding_size") or reader.whole("model.vocab_size") or _USUAL_VOCAB,
        "tie_word_embeddings": reader.flag("model.weight_tying") is not False,
    }  # fmt: skip
    experts = reader.whole("model.moe_num_experts")
    if reader.text("model.block_type") == "moe" and experts:
        data |= {"model_type": "olmoe", "num_experts": experts,
                 "num_experts_per_tok": reader.whole("model.moe_top_k") or 2}  # fmt: skip
    if reader.text("model.block_type") not in ("", "sequential", "llama", "moe", "parallel"):
        raise InputError(
            f"{reader.path}: model.block_type {reader.text('model.block_type')}: is not modelled: write the workload, "
            "or give --model-config config.json"
        )
    return data


def _mpt(reader: Reader) -> dict[str, Any]:
    """Sizes of LLM Foundry's own decoder (MPT), and of MosaicGPT before it."""
    hidden = reader.whole("model.d_model") or 0
    kind = reader.text("model.ffn_config.ffn_type")
    if "moe" in kind:
        raise InputError(
            f"{reader.path}: model.ffn_config.ffn_type {kind}: its experts are not read: write the workload, or give "
            "--model-config config.json"
        )
    ratio = reader.number("model.expansion_ratio") or reader.number("model.mlp_ratio") or _USUAL_RATIO
    gated = "glu" in kind
    groups = reader.whole("model.attn_config.kv_n_heads")
    if reader.text("model.attn_config.attn_type") == "multiquery_attention":
        groups = 1
    placed = (
        reader.flag("model.attn_config.alibi")
        or reader.flag("model.attn_config.rope")
        or reader.flag("model.alibi")
    )
    learned = not gated and not placed and reader.flag("model.learned_pos_emb") is not False
    return {
        "model_type": "llama" if gated else "gpt2" if learned else "gpt_neox",
        "intermediate_size": reader.whole("model.ffn_config.ffn_hidden_size") or int(ratio * hidden),
        "num_key_value_heads": groups, "vocab_size": reader.whole("model.vocab_size") or _USUAL_VOCAB,
        "tie_word_embeddings": reader.flag("model.tie_word_embeddings") is not False,
        "max_position_embeddings": reader.whole("model.max_seq_len") or reader.whole("max_seq_len"),
    }  # fmt: skip


def _length(reader: Reader) -> None:
    text = str(reader.get("max_duration")).strip()
    match = _DURATION.fullmatch(text)
    unit = _UNITS.get((match[2] or "").lower()) if match is not None else None
    if match is None or unit is None:
        raise reader.wrong(
            "max_duration", "must be a number of steps (ba), tokens (T, tok), samples (sp) or epochs (ep)"
        )
    number = float(match[1].replace("_", ""))
    if number > 0:
        reader.add(f"training.{unit}", number if unit == "epochs" else int(number), f"max_duration {text}")


def _adapters(reader: Reader) -> None:
    kind = reader.text("model.peft_config.peft_type").lower()
    if not kind:
        return
    reader.add_adapter(kind, "model.peft_config", reader.whole("model.peft_config.r"), "model.peft_config.r")
    reader.add_targets("model.peft_config.target_modules")


def _objective(reader: Reader) -> None:
    loader = reader.text("train_loader.name")
    if loader == "finetuning":
        reader.add("training.objective", "sft", "train_loader.name finetuning")
        ratio = reader.get("train_loader.dataset.packing_ratio")
        packed = reader.text("train_loader.dataset.packing_ratio") == "auto" or (
            isinstance(ratio, int | float) and ratio > 1
        )
        reader.add("training.packing", packed, "train_loader.dataset.packing_ratio", assumed=ratio is None)


def _sharding(reader: Reader) -> None:
    config = reader.first(*_FSDP)
    strategy = reader.text(f"{config}.sharding_strategy") if config else ""
    if strategy:
        reader.add_shard(strategy, f"{config}.sharding_strategy")
    elif config:
        reader.add("training.layout.zero_stage", 3, f"{config}, sharding fully by default", assumed=True)
    own = reader.get("activation_checkpointing")
    if isinstance(own, str):
        recompute = _RECOMPUTE.get(own)
        reader.add("training.layout.recompute", recompute, f"activation_checkpointing {own}")
        if recompute is None:
            reader.warn(f"activation_checkpointing {own}: a share of the layers: left to the planner")
        return
    flag = f"{config}.activation_checkpointing"
    stated = reader.flag(flag) if config else None
    source = flag if stated is not None else "activation_checkpointing is not set"
    reader.add("training.layout.recompute", "full" if stated else "none", source, assumed=stated is None)
    if config and reader.flag(f"{config}.activation_cpu_offload"):
        reader.add_offload(f"{config}.activation_cpu_offload", "activations")
