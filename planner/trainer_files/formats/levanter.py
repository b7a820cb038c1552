"""Levanter: one YAML file of a run with sections `model`, `trainer`, `data` and `optimizer` (levanter/config)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config import model_of_config
from planner.trainer_files.formats.common import ACCELERATORS, Reader
from planner.trainer_files.hub import preset_of_hub_name
from planner.trainer_files.model import Document, Reading

# type of a model -> keys of a `config.json` that it stands for, and what its class takes where a size is left out
_TYPES: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", "hidden": 768, "layers": 12, "heads": 12, "length": 512, "tied": True},
    "llama": {"model_type": "llama", "hidden": 4096, "layers": 32, "heads": 32, "length": 2048, "ffn": 11008},
    "mistral": {
        "model_type": "llama",
        "hidden": 4096,
        "layers": 32,
        "heads": 32,
        "length": 8192,
        "ffn": 14336,
    },
    "qwen": {"model_type": "qwen2", "hidden": 4096, "layers": 32, "heads": 32, "length": 2048, "ffn": 11008},
    "mpt": {"model_type": "gpt_neox", "hidden": 768, "layers": 12, "heads": 12, "length": 2048, "tied": True},
}
_GPT2_VOCAB, _RATIO = 50257, 4
_BATCH, _STEPS = 512, 400_000


def recognises(document: Document) -> bool:
    """Whether the sections are Levanter's: its trainer counts the batch and names the precision by `mp`."""
    trainer, model = document.data.get("trainer"), document.data.get("model")
    own = isinstance(trainer, Mapping) and any(
        name in trainer for name in ("mp", "num_train_steps", "per_device_parallelism", "model_axis_size")
    )
    return (
        document.syntax in ("yaml", "json")
        and own
        and (isinstance(model, Mapping) or "initialize_from_hf" in document.data)
    )


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: a model whose layers are none that are known here.
    """
    reader = Reader(document, "Levanter")
    length = _model(reader)
    reader.add("training.global_batch", reader.whole("trainer.train_batch_size") or _BATCH, "trainer.train_batch_size",
               assumed=not reader.has("trainer.train_batch_size"))  # fmt: skip
    reader.add_whole("training.steps", "trainer.num_train_steps")
    if "training.steps" not in reader.facts and not reader.has("epoch"):
        reader.add("training.steps", _STEPS, "the default of trainer.num_train_steps", assumed=True)
    reader.add_whole("training.sequence_length", "model.seq_len", "max_seq_len")
    if "training.sequence_length" not in reader.facts:
        reader.add("training.sequence_length", length, "the default of model.seq_len", assumed=True)
    _precision(reader, reader.text("trainer.mp"))
    reader.add_whole("training.layout.tensor_parallel", "trainer.model_axis_size")
    reader.add_whole(ACCELERATORS, "trainer.num_devices")
    reader.add("training.layout.zero_stage", 3, "parameters are shared out over the data axis", assumed=True)
    off = reader.flag("model.gradient_checkpointing") is False
    stated = reader.has("model.gradient_checkpointing")
    source = "model.gradient_checkpointing" if stated else "model.gradient_checkpointing is on by default"
    reader.add("training.layout.recompute", "none" if off else "full", source, assumed=not stated)
    reader.add("training.stack", "compiled", "XLA compiles it")
    reader.add("training.optimizer", "adamw", "optimizer" if reader.has("optimizer.type") else "AdamW by default",
               assumed=True)  # fmt: skip
    if reader.has("lora"):
        reader.add_adapter("lora", "lora", reader.whole("lora.r") or 8, "lora.r")
    return reader


def _model(reader: Reader) -> int:
    """The model, and the sequence length that its class takes by default."""
    kind = reader.text("model.type") or ("" if reader.has("initialize_from_hf") else "gpt2")
    usual = _TYPES.get(kind)
    hub = reader.text("initialize_from_hf")
    if hub and reader.flag("initialize_from_hf") is None:
        reader.hub_name, reader.hub_key = hub.partition("@")[0], "initialize_from_hf"
    elif reader.flag("use_hf_model_config"):
        tokenizer = reader.text("data.tokenizer")
        reader.hub_name, reader.hub_key = (
            tokenizer or f"the checkpoint of type {kind}",
            "use_hf_model_config",
        )
    elif usual is None:
        raise InputError(
            f"{reader.path}: model.type {kind or 'not stated'}: its layers are not known here: give --model-config "
            "config.json or --model PRESET"
        )
    else:
        reader.model = _sized(reader, usual)
    return int((usual or _TYPES["llama"])["length"])


def _sized(reader: Reader, usual: dict[str, Any]) -> Any:
    hidden = reader.whole("model.hidden_dim") or reader.whole("model.d_model") or usual["hidden"]
    heads = reader.whole("model.num_heads") or reader.whole("model.n_heads") or usual["heads"]
    ratio = reader.whole("model.mlp_scale") or reader.whole("model.expansion_ratio") or _RATIO
    tokenizer = reader.text("data.tokenizer")
    preset = preset_of_hub_name(tokenizer) if tokenizer else None
    vocab = int(preset.values["vocab"]) if preset is not None and "vocab" in preset.values else 0
    data = {
        "model_type": usual["model_type"], "hidden_size": hidden, "num_attention_heads": heads,
        "num_hidden_layers": reader.whole("model.num_layers") or reader.whole("model.n_layers") or usual["layers"],
        "num_key_value_heads": reader.whole("model.num_kv_heads") or heads,
        "intermediate_size": reader.whole("model.intermediate_dim") or usual.get("ffn") or ratio * hidden,
        "tie_word_embeddings": usual.get("tied", False) or reader.flag("model.tie_word_embeddings") is True,
        "max_position_embeddings": reader.whole("model.seq_len") or usual["length"],
        "vocab_size": vocab or _GPT2_VOCAB,
    }  # fmt: skip
    model = model_of_config(data, str(reader.path))
    note = (
        f"the vocabulary is that of {tokenizer}, by data.tokenizer" if vocab
        else f"assumed: the vocabulary has {_GPT2_VOCAB:,} tokens; the tokenizer is not known"
    )  # fmt: skip
    sources = {"layers": "model.num_layers", "hidden": "model.hidden_dim", "heads": "model.num_heads"}
    notes, doubts = ((note,), ()) if vocab else ((), (note,))
    return replace(
        model, model_type="own sizes", sources=sources, notes=(*model.notes, *notes),
        doubts=(*model.doubts, *doubts),
    )  # fmt: skip


def _precision(reading: Reading, policy: str) -> None:
    """`p=f32,c=bfloat16`: weights in 32 bits, arithmetic in 16; one word is both."""
    parts = dict(part.partition("=")[::2] for part in policy.split(",") if "=" in part)
    word = (parts.get("c") or parts.get("compute") or parts.get("p") or policy or "f32").lower()
    precision = {"bfloat16": "bf16", "bf16": "bf16", "f16": "fp16", "float16": "fp16", "half": "fp16"}.get(
        word, "fp32"
    )
    reading.add("training.precision", precision, f"trainer.mp {policy}" if policy else "trainer.mp is f32 by default",
                assumed=not policy)  # fmt: skip
    if (parts.get("p") or parts.get("params") or "f32") in ("bfloat16", "bf16"):
        reading.add("training.memory.master", "none", f"trainer.mp {policy}")
