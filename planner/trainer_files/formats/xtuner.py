"""XTuner 0.1 and 0.2: a Python configuration of MMEngine, read as text (xtuner/configs).

Files that build on others (`_base_`, `with read_base()`) state what they change alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    add_adapter,
    add_optimizer,
    add_targets,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

# class of the model -> objective
_OBJECTIVES = {
    "SupervisedFinetune": "sft",
    "DPO": "dpo",
    "ORPO": "orpo",
    "RewardModel": "reward",
    "LLaVAModel": "sft",
}
_PRECISIONS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
_ARGUMENTS = "training_args"  # of configurations that start the Trainer of Transformers
_MARKS = (_ARGUMENTS, "accumulative_counts", "optim_wrapper", "train_cfg", "max_length")


def recognises(document: Document) -> bool:
    """Whether the names that the file sets are XTuner's."""
    values = document.data.get("values") if document.syntax == "python" else None
    if not isinstance(values, Mapping) or not isinstance(values.get("model"), Mapping):
        return False
    inner = values["model"].get("llm")
    named = (
        "pretrained_model_name_or_path" in values
        or isinstance(inner, Mapping)
        or "model_path" in values["model"]
    )
    return named and any(mark in values for mark in _MARKS)


def read(document: Document) -> Reading:
    """Read a run."""
    keys = Lookup(replace(document, data=document.data["values"]))
    reading = Reading(document.path, "XTuner")
    reading.hub_key = keys.first(
        "model.llm.pretrained_model_name_or_path",
        "pretrained_model_name_or_path",
        "llm_name_or_path",
        "model.model_path",
    )
    reading.hub_name = keys.text(reading.hub_key)
    add_whole(
        reading,
        keys,
        MICRO_BATCH,
        "batch_size",
        "train_dataloader.batch_size",
        f"{_ARGUMENTS}.per_device_train_batch_size",
    )
    add_whole(reading, keys, ACCUMULATION, "accumulative_counts", "optim_wrapper.accumulative_counts",
              f"{_ARGUMENTS}.gradient_accumulation_steps")  # fmt: skip
    _length(reading, keys)
    add_whole(reading, keys, "training.sequence_length", "max_packed_length", "max_length")
    if (keys.whole("sequence_parallel_size") or 1) > 1:
        add_whole(reading, keys, "training.layout.context_parallel", "sequence_parallel_size")
    word = keys.text("optim_wrapper.dtype")
    reading.add("training.precision", _PRECISIONS.get(word), "optim_wrapper.dtype")
    if keys.flag(f"{_ARGUMENTS}.fp16"):
        reading.add("training.precision", "fp16", f"{_ARGUMENTS}.fp16")
    if "training.precision" not in reading.facts:
        text = (
            "AmpOptimWrapper, on accelerators that have bf16"
            if keys.get("optim_wrapper")
            else "mixed precision"
        )
        reading.add("training.precision", "bf16", text, assumed=True)
    add_optimizer(reading, keys, "optim_wrapper.optimizer.type")
    _method(reading, keys)
    packing = keys.flag("pack_to_max_length")
    reading.add("training.packing", packing, "pack_to_max_length")
    reading.add("training.layout.recompute", "full", "XTuner's models recompute by default", assumed=True)
    reading.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    return reading


def _length(reading: Reading, keys: Lookup) -> None:
    """Epochs, or iterations: one for each micro-batch."""
    iterations = keys.whole("train_cfg.max_iters") or keys.whole("max_iters")
    times = reading.facts[ACCUMULATION].value if ACCUMULATION in reading.facts else 1
    if iterations is not None:
        reading.add("training.steps", max(1, iterations // times), "max_iters / accumulative_counts")
        return
    for name in ("train_cfg.max_epochs", "max_epochs", f"{_ARGUMENTS}.num_train_epochs"):
        passes = keys.number(name)
        if passes:
            reading.add("training.epochs", float(passes), name)
            return


def _method(reading: Reading, keys: Lookup) -> None:
    kind = keys.text("model.type").rpartition(".")[2]
    alike = "sft" if kind == "from_pretrained" or kind.startswith("InternVL") else _OBJECTIVES.get(kind)
    reading.add("training.objective", alike, f"model.type {kind}")
    if kind and alike is None:
        reading.warn(f"model.type {kind}: is not known; training on the sequences alone is counted")
    section = next(
        (name for name in ("model.lora", "model.llm_lora", "lora") if isinstance(keys.get(name), Mapping)), ""
    )
    if section:
        rank = keys.whole(f"{section}.r")
        add_adapter(reading, "lora", section, rank, f"{section}.r")
        add_targets(reading, keys, f"{section}.target_modules")
    stored: Any = keys.get("model.llm.quantization_config") or keys.get("model")
    for bits in (4, 8):
        if isinstance(stored, Mapping) and stored.get(f"load_in_{bits}bit") is True:
            reading.add("training.frozen_bits", bits, f"load_in_{bits}bit")
    if keys.flag("model.freeze_llm"):
        reading.warn(
            "model.freeze_llm: the language model is frozen and the rest of the network is not counted"
        )
    if keys.get("model.visual_encoder") is not None:
        reading.warn("model.visual_encoder: the work for images is not counted")
