"""LitGPT: the YAML file of a command (https://github.com/Lightning-AI/litgpt/tree/main/config_hub), or the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.inputs.model_config import model_of_config
from planner.trainer_files.formats.common import ACCELERATORS, MICRO_BATCH, NODES, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

# name of a class of feed-forward network in LitGPT -> a model type with such layers
_KINDS = {"LLaMAMLP": "llama", "GptNeoxMLP": "gpt_neox", "GemmaMLP": "gemma", "LLaMAMoE": "mixtral"}
_USUAL_KIND = "GptNeoxMLP"
_SIZES = ("n_layer", "n_head", "n_embd")
_ADAPTED = {
    "lora_query": "q_proj", "lora_key": "k_proj", "lora_value": "v_proj", "lora_projection": "o_proj",
    "lora_head": "lm_head",
}  # fmt: skip
_MLP = ("gate_proj", "up_proj", "down_proj")
_PRECISIONS = {"bf16": "bf16", "16": "fp16", "32": "fp32"}
_WITHOUT_EFFECT = (
    r"out_dir|data|eval|logger_name|seed|lora_(alpha|dropout)|resume|tokenizer_dir|checkpoint_dir|access_token|optimizer|train",
    r"log|initial_checkpoint_dir|num_nodes|devices",
)


# What its commands take where an argument is left out (litgpt 0.5.13, read on 2026-11-30).
# LLaMA-Adapter is PEFT's adaption_prompt; its second version also trains biases and norms, which are as few.
_PROMPTED = ("finetune_adapter", "finetune_adapter_v2")
_COMMANDS = ("pretrain", "finetune", "finetune_lora", "finetune_full", *_PROMPTED)
_BATCH, _EPOCHS, _RANK = 16, 5.0, 8
_BATCH_OF_PRETRAINING, _TOKENS_OF_PRETRAINING = 512, 3_000_000_000_000


def _command(document: Document) -> str:
    """The command that a script starts, empty for a file."""
    started = "litgpt" in document.programs
    return next((word for word in document.programs if started and word in _COMMANDS), "")


def recognises(document: Document) -> bool:
    """Whether the keys are those of a LitGPT command, or a script starts one."""
    if _command(document):
        return True
    data, train = document.data, document.data.get("train")
    named = any(key in data for key in ("checkpoint_dir", "model_name", "model_config", "out_dir"))
    return (
        isinstance(train, Mapping) and named and ("micro_batch_size" in train or "global_batch_size" in train)
    )


def read(document: Document) -> Reading:
    """Read a run."""
    reader = Reader(document, "LitGPT")
    command = _command(document)
    _model(reader)
    usual = _BATCH_OF_PRETRAINING if command == "pretrain" else _BATCH
    reader.add_whole("training.global_batch", "train.global_batch_size", default=usual if command else None)
    if "training.global_batch" not in reader.facts:
        reader.add_whole(MICRO_BATCH, "train.micro_batch_size")
    reader.add_whole(
        "training.sequence_length", "train.max_seq_length", "model_config.block_size", "model.block_size"
    )
    _length(reader, command)
    _precision(reader)
    reader.add_optimizer("optimizer" if reader.text("optimizer") else "optimizer.class_path")
    _adapters(reader, command)
    _accelerators(reader)
    tunes = reader.has("checkpoint_dir")
    text = "LitGPT compiles the model in pre-training alone"
    reader.add("training.stack", "eager" if tunes else "compiled", text, assumed=True)
    if tunes:
        reader.add("training.objective", "sft", "checkpoint_dir", assumed=True)
        reader.add("training.packing", False, "LitGPT pads the samples of fine-tuning", assumed=True)
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _model(reader: Reader) -> None:
    reader.hub_key = reader.first(
        "checkpoint_dir", "initial_checkpoint_dir", "model_name", "model_config.name", "model.name"
    )
    reader.hub_name = reader.text(reader.hub_key) if reader.hub_key else ""
    for section in ("model_config.", "model."):
        sizes = {name: reader.whole(section + name) for name in _SIZES}
        if all(sizes.values()) and not reader.text("checkpoint_dir"):
            model = model_of_config(_sizes(reader, section, sizes), str(reader.path))
            sources = {
                "layers": f"{section}n_layer",
                "hidden": f"{section}n_embd",
                "heads": f"{section}n_head",
            }
            reader.model = replace(model, model_type="own sizes", sources=sources)
            return


def _sizes(keys: Lookup, section: str, sizes: Mapping[str, int | None]) -> dict[str, Any]:
    """The sizes under the names of a `config.json`, with what LitGPT takes where one is absent."""
    hidden = sizes["n_embd"] or 0
    vocab = keys.whole(f"{section}vocab_size") or 50254
    multiple = keys.whole(f"{section}padding_multiple") or 512
    padded = keys.whole(f"{section}padded_vocab_size") or -(-vocab // multiple) * multiple
    kind = _KINDS.get(keys.text(f"{section}mlp_class_name") or _USUAL_KIND, "llama")
    data: dict[str, Any] = {
        "model_type": kind, "num_hidden_layers": sizes["n_layer"], "hidden_size": hidden, "vocab_size": padded,
        "num_attention_heads": sizes["n_head"], "tie_word_embeddings": False,
        "num_key_value_heads": keys.whole(f"{section}n_query_groups") or sizes["n_head"],
        "intermediate_size": keys.whole(f"{section}intermediate_size") or 4 * hidden,
    }  # fmt: skip
    for name, key in (("head_dim", "head_size"), ("max_position_embeddings", "block_size")):
        value = keys.whole(section + key)
        data |= {} if value is None else {name: value}
    experts, chosen = keys.whole(f"{section}n_expert"), keys.whole(f"{section}n_expert_per_token")
    return data | (
        {"num_local_experts": experts, "num_experts_per_tok": chosen} if experts and chosen else {}
    )


def _length(reader: Reader, command: str) -> None:
    """The shortest of the limits ends a run; which that is follows from the data, so the first in this order counts."""
    tokens, steps = reader.number("train.max_tokens"), reader.whole("train.max_steps")
    if steps is not None:
        reader.add("training.steps", steps, "train.max_steps")
    elif tokens is not None and tokens > 0:
        reader.add("training.tokens", int(tokens), "train.max_tokens")
    elif command == "pretrain":
        where = "the default of train.max_tokens"
        reader.add("training.tokens", _TOKENS_OF_PRETRAINING, where, assumed=True)
    elif command and not reader.has("train.epochs"):
        where = "the default of train.epochs"
        reader.add("training.epochs", _EPOCHS, where, assumed=True)
    else:
        reader.add_whole("training.epochs", "train.epochs")


def _precision(reader: Reader) -> None:
    word = reader.text("precision") or str(reader.get("precision") or "")
    precision = next((name for part, name in _PRECISIONS.items() if word.startswith(part)), "bf16")
    reader.add(
        "training.precision", precision, "precision" if word else "the default of precision", assumed=not word
    )
    if word.endswith("-true") and precision != "fp32":
        reader.add("training.memory.master", "none", f"precision {word}")


def _adapters(reader: Reader, command: str) -> None:
    rank = reader.whole("lora_r") or (_RANK if command in ("finetune", "finetune_lora") else None)
    if command in _PROMPTED:
        reader.add_adapter("adaption_prompt", command, None, "")
        _quantised(reader)
        return
    if rank is None:
        reader.add("training.method", "full", command or "no lora_r")
        return
    reader.add_adapter(
        "lora", command or "lora_r", rank, "lora_r" if reader.has("lora_r") else "the default of lora_r"
    )
    defaults = ("lora_query", "lora_value")
    targets = [
        name
        for key, name in _ADAPTED.items()
        if reader.flag(key) or (reader.flag(key) is None and key in defaults)
    ]
    targets += _MLP if reader.flag("lora_mlp") else ()
    if targets:
        reader.add("training.lora_targets", targets, "lora_query, lora_key, ...")
    _quantised(reader)


def _quantised(reader: Reader) -> None:
    """Note how the frozen weights are stored."""
    quantised = reader.text("quantize")
    if quantised:
        reader.add("training.frozen_bits", 8 if "int8" in quantised else 4, f"quantize {quantised}")
        if "nf4" in quantised:
            kind = "nf4_double" if quantised.endswith("-dq") else "nf4"
            reader.add("training.quantization", kind, f"quantize {quantised}")


def _accelerators(reader: Reader) -> None:
    nodes = reader.whole("num_nodes") or 1
    each = None if reader.text("devices") == "auto" else reader.whole("devices")
    if each is None:
        return
    reader.add(ACCELERATORS, each * nodes, "devices x num_nodes" if nodes > 1 else "devices")
    reader.add(NODES, nodes, "num_nodes")
    if each * nodes > 1:
        reader.add_fsdp2(None, "more than one device: FSDP")
