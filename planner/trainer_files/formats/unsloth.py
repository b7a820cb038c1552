"""Unsloth: the YAML file of its command `unsloth train`, with sections `data`, `training` and `lora`.

Keys and defaults: unsloth, studio/backend/assets/configs. Its notebooks are read as Python around TRL.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

_RUN, _KIND = "training.", "training.training_type"


def recognises(document: Document) -> bool:
    """Whether the sections are Unsloth's: a model by its name beside a kind of training."""
    training = document.data.get("training")
    return (
        isinstance(document.data.get("model"), str)
        and isinstance(training, Mapping)
        and "training_type" in training
    )


def read(document: Document) -> Reading:
    """Read a run."""
    reader = Reader(document, "Unsloth")
    reader.hub_name, reader.hub_key = reader.text("model"), "model"
    reader.add_whole(MICRO_BATCH, f"{_RUN}batch_size")
    reader.add_whole(ACCUMULATION, f"{_RUN}gradient_accumulation_steps")
    reader.add_length(steps=f"{_RUN}max_steps", epochs=f"{_RUN}num_epochs", default_epochs=None)
    reader.add_whole("training.sequence_length", f"{_RUN}max_seq_length")
    reader.add("training.precision", "bf16", "Unsloth takes bf16 where the accelerator has it", assumed=True)
    reader.add("training.stack", "eager", "Unsloth's own kernels are not counted", assumed=True)
    reader.add_optimizer(f"{_RUN}optim")
    _method(reader)
    reader.add("training.objective", "sft", _KIND, assumed=True)
    packed = f"{_RUN}packing"
    if reader.flag(packed) is not None:
        reader.add("training.packing", reader.flag(packed), packed)
    checkpointing = f"{_RUN}gradient_checkpointing"
    if reader.has(checkpointing):
        off = reader.flag(checkpointing) is False or reader.text(checkpointing).lower() == "none"
        reader.add("training.layout.recompute", "none" if off else "full", checkpointing)
    reader.seen |= {"data", "logging"}
    reader.name_unknown(())
    return reader


def _method(reader: Reader) -> None:
    """Adapters, unless all weights are trained; `lora_r` stays in files of full training."""
    kind = reader.text(_KIND).lower()
    reader.seen.add("lora")
    if kind.startswith("full"):
        reader.add("training.method", "full", f"{_KIND} {kind}")
        return
    reader.add_adapter("lora", f"{_KIND} {kind}", reader.whole("lora.lora_r"), "lora.lora_r")
    if reader.flag(f"{_RUN}load_in_4bit"):
        reader.add("training.frozen_bits", 4, f"{_RUN}load_in_4bit")
    reader.add_targets("lora.target_modules")
