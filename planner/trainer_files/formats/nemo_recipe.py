"""NeMo 2 and Megatron Bridge: a Python script that takes a recipe and changes it, or states one, read as text.

`llm.llama3_8b.pretrain_recipe(...)`, `llama3_8b_pretrain_config()`, or `AutoBridge.from_hf_pretrained(name)` with the
fields of a configuration. What a recipe sets by itself lies in the package and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.trainer_files.formats.common import ACCELERATORS, MEGATRON_DEGREES, MICRO_BATCH, NODES, Reader
from planner.trainer_files.model import Document, Reading
from planner.trainer_files.python_values import Call, Imported

# names of models have a figure (`llama3_8b_pretrain_config`); `get_peft_config` is TRL's
_RECIPE = re.compile(
    r"(?:.*\.)?(\w+)\.(pretrain|finetune)_recipe|(?:.*\.)?(?=\w*\d)(\w+?)_(pretrain|finetune|sft|peft)_config"
)
_BRIDGE = "from_hf_pretrained"
_OBJECTIVES = {"pretrain": "pretrain", "finetune": "sft", "sft": "sft", "peft": "sft"}
# `llama31_8b`: the version without its dot; `1p7b`, `500m`: a size as names of functions have it
_VERSION = re.compile(r"^(llama|qwen|glm)(\d)(\d)(?=_)")
_VARIANT = re.compile(r"_(16k|64k|128k|low_precision)$")

# recipes of Megatron Bridge that train all weights unless the script says otherwise; the others train adapters
_ALL_LEARNS = re.compile(r"(_vl_|_next_|45v|ministral3).*finetune_config")


def recognises(document: Document) -> bool:
    """Whether the script takes a recipe, or states a configuration of Megatron Bridge."""
    return document.syntax == "python" and bool(_recipes(document) or _bridges(document))


def _recipes(document: Document) -> list[Call]:
    return [call for call in document.data["calls"] if _RECIPE.fullmatch(call.name)]


def _bridges(document: Document) -> list[Call]:
    fields = {name.rpartition(".")[2] for name in document.data["assigned"]}
    stated = bool(fields & {"global_batch_size", "train_iters", *MEGATRON_DEGREES.values()})
    return [call for call in document.data["calls"] if call.last == _BRIDGE and stated]


def read(document: Document) -> Reading:
    """Read a script; of several recipes the first."""
    recipes = _recipes(document)
    call = (recipes or _bridges(document))[0]
    reader = Reader(replace(document, data=_fields(document, call)), "NeMo 2 / Megatron Bridge")
    named = {call.name for call in recipes}
    if len(named) > 1:
        reader.warn(f"{len(named)} recipes: {call.name}, the first, is read")
    match = _RECIPE.fullmatch(call.name)
    kind = (match[2] or match[4]) if match is not None else "pretrain"
    reader.hub_key = call.name
    first = next(iter(call.positional), "")
    reader.hub_name = _model_of(match[1] or match[3]) if match is not None else str(first)
    reader.add("training.objective", _OBJECTIVES[kind], call.name)
    reader.add_whole("training.global_batch", "global_batch_size")
    reader.add_whole(MICRO_BATCH, "micro_batch_size")
    reader.add_whole("training.sequence_length", "seq_length", "seq_len")
    reader.add_whole("training.steps", "train_iters", "max_steps")
    for degree, name in MEGATRON_DEGREES.items():
        if (reader.whole(name) or 1) > 1:
            reader.add_whole(f"training.layout.{degree}", name)
    _accelerators(reader)
    fp8 = any("fp8" in call.last for call in document.data["calls"]) or "fp8" in reader.text(
        "mixed_precision"
    )
    text = "a precision with fp8" if fp8 else "recipes train in bf16"
    reader.add("training.precision", "fp8" if fp8 else "bf16", text, assumed=not fp8)
    scheme_key = next((name for name in ("peft_scheme", "peft") if name in reader.document.data), "")
    scheme = reader.text(scheme_key) or ("" if scheme_key or _ALL_LEARNS.search(call.name) else "lora")
    if kind == "peft" or (kind == "finetune" and scheme in ("lora", "dora")):
        where = scheme_key if reader.has(scheme_key) else f"the default of {call.name}"
        reader.add_adapter(scheme or "lora", where, None, "")
    else:
        _frozen(reader)
    if kind in ("finetune", "sft", "peft") and reader.has("packed_sequence"):
        reader.add("training.packing", reader.flag("packed_sequence") is True, "packed_sequence")
    reader.add("training.stack", "fused", "Megatron's kernels", assumed=True)
    if match is not None:
        missing = [name for name in ("global_batch_size", "seq_length") if not reader.has(name)]
        if missing:
            reader.warn(f"{', '.join(missing)}: what {call.name} sets is in its package and is not read")
    return reader


def _frozen(reader: Reader) -> None:
    """What stays frozen although the rest learns: flags of Megatron Bridge's models of images and sound."""
    images, sound = "freeze_vision_model", "freeze_sound_encoder"
    if reader.flag("freeze_language_model"):
        reader.add_projector("freeze_language_model")
        if not reader.flag(images):
            reader.warn_of_encoder(images)
    elif reader.flag(images):
        reader.freeze_encoder(images)
    elif reader.flag(sound):
        reader.warn(f"{sound}: what is frozen counts as trained")


def _accelerators(reader: Reader) -> None:
    each, nodes = reader.whole("devices") or reader.whole("num_gpus_per_node"), reader.whole("num_nodes")
    if each is not None:
        reader.add(ACCELERATORS, each * (nodes or 1), "num_gpus_per_node x num_nodes")
        reader.add(NODES, nodes or 1, "num_nodes")


def _fields(document: Document, call: Call) -> Mapping[str, Any]:
    """Arguments of the recipe, and fields that are set behind it, by their last name."""
    fields = {**call.named}
    for name, value in document.data["assigned"].items():
        if not isinstance(value, Call | Imported):
            fields[name.rpartition(".")[2]] = value
    return fields


def _model_of(name: str) -> str:
    """The model's usual name: `llama31_8b` is `llama3.1-8b`, `qwen3_1p7b` is `qwen3-1.7b`."""
    plain = _VERSION.sub(r"\1\2.\3", _VARIANT.sub("", name))
    plain = re.sub(r"(\d)p(\d+b)", r"\1.\2", plain)
    return re.sub(r"_(\d)00m$", r"_0.\1b", plain).replace("_", "-")
