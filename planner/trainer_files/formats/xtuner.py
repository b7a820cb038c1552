"""XTuner 0.1 and 0.2: a Python configuration of MMEngine, read as text (xtuner/configs).

Files that build on others (`_base_`, `with read_base()`) state what they change alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
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
    reader = Reader(replace(document, data=document.data["values"]), "XTuner")
    reader.hub_key = reader.first(
        "model.llm.pretrained_model_name_or_path",
        "pretrained_model_name_or_path",
        "llm_name_or_path",
        "model.model_path",
    )
    reader.hub_name = reader.text(reader.hub_key)
    reader.add_whole(
        MICRO_BATCH, "batch_size", "train_dataloader.batch_size", f"{_ARGUMENTS}.per_device_train_batch_size"
    )
    reader.add_whole(ACCUMULATION, "accumulative_counts", "optim_wrapper.accumulative_counts",
                     f"{_ARGUMENTS}.gradient_accumulation_steps")  # fmt: skip
    _length(reader)
    reader.add_whole("training.sequence_length", "max_packed_length", "max_length")
    if (reader.whole("sequence_parallel_size") or 1) > 1:
        reader.add_whole("training.layout.context_parallel", "sequence_parallel_size")
    word = reader.text("optim_wrapper.dtype")
    reader.add("training.precision", _PRECISIONS.get(word), "optim_wrapper.dtype")
    if reader.flag(f"{_ARGUMENTS}.fp16"):
        reader.add("training.precision", "fp16", f"{_ARGUMENTS}.fp16")
    if "training.precision" not in reader.facts:
        text = (
            "AmpOptimWrapper, on accelerators that have bf16"
            if reader.get("optim_wrapper")
            else "mixed precision"
        )
        reader.add("training.precision", "bf16", text, assumed=True)
    reader.add_optimizer("optim_wrapper.optimizer.type")
    _method(reader)
    packing = reader.flag("pack_to_max_length")
    reader.add("training.packing", packing, "pack_to_max_length")
    reader.add("training.layout.recompute", "full", "XTuner's models recompute by default", assumed=True)
    reader.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    return reader


def _length(reader: Reader) -> None:
    """Epochs, or iterations: one for each micro-batch."""
    iterations = reader.whole("train_cfg.max_iters") or reader.whole("max_iters")
    times = reader.facts[ACCUMULATION].value if ACCUMULATION in reader.facts else 1
    if iterations is not None:
        reader.add("training.steps", max(1, iterations // times), "max_iters / accumulative_counts")
        return
    for name in ("train_cfg.max_epochs", "max_epochs", f"{_ARGUMENTS}.num_train_epochs"):
        passes = reader.number(name)
        if passes:
            reader.add("training.epochs", float(passes), name)
            return


def _method(reader: Reader) -> None:
    kind = reader.text("model.type").rpartition(".")[2]
    alike = "sft" if kind == "from_pretrained" or kind.startswith("InternVL") else _OBJECTIVES.get(kind)
    reader.add("training.objective", alike, f"model.type {kind}")
    if kind and alike is None:
        reader.warn(f"model.type {kind}: is not known; training on the sequences alone is counted")
    section = next(
        (name for name in ("model.lora", "model.llm_lora", "lora") if isinstance(reader.get(name), Mapping)),
        "",
    )
    if section:
        rank = reader.whole(f"{section}.r")
        reader.add_adapter("lora", section, rank, f"{section}.r")
        reader.add_targets(f"{section}.target_modules")
    stored: Any = reader.get("model.llm.quantization_config") or reader.get("model")
    for bits in (4, 8):
        if isinstance(stored, Mapping) and stored.get(f"load_in_{bits}bit") is True:
            reader.add("training.frozen_bits", bits, f"load_in_{bits}bit")
    if reader.flag("model.freeze_llm"):
        reader.warn(
            "model.freeze_llm: the language model is frozen and the rest of the network is not counted"
        )
    if reader.get("model.visual_encoder") is not None:
        reader.warn("model.visual_encoder: the work for images is not counted")
