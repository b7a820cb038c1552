"""Unsloth: the YAML file of its command `unsloth train`, with sections `data`, `training` and `lora`.

Keys and defaults: unsloth, studio/backend/assets/configs. Its notebooks are read as Python around TRL.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    add_adapter,
    add_length,
    add_optimizer,
    add_targets,
    add_whole,
)
from planner.trainer_files.keys import Lookup
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
    keys, reading = Lookup(document), Reading(document.path, "Unsloth")
    reading.hub_name, reading.hub_key = keys.text("model"), "model"
    add_whole(reading, keys, MICRO_BATCH, f"{_RUN}batch_size")
    add_whole(reading, keys, ACCUMULATION, f"{_RUN}gradient_accumulation_steps")
    add_length(reading, keys, steps=f"{_RUN}max_steps", epochs=f"{_RUN}num_epochs", default_epochs=None)
    add_whole(reading, keys, "training.sequence_length", f"{_RUN}max_seq_length")
    reading.add("training.precision", "bf16", "Unsloth takes bf16 where the accelerator has it", assumed=True)
    reading.add("training.stack", "eager", "Unsloth's own kernels are not counted", assumed=True)
    add_optimizer(reading, keys, f"{_RUN}optim")
    _method(reading, keys)
    reading.add("training.objective", "sft", _KIND, assumed=True)
    packed = f"{_RUN}packing"
    if keys.flag(packed) is not None:
        reading.add("training.packing", keys.flag(packed), packed)
    checkpointing = f"{_RUN}gradient_checkpointing"
    if keys.has(checkpointing):
        off = keys.flag(checkpointing) is False or keys.text(checkpointing).lower() == "none"
        reading.add("training.layout.recompute", "none" if off else "full", checkpointing)
    keys.seen |= {"data", "logging"}
    reading.unknown = keys.unknown(())
    return reading


def _method(reading: Reading, keys: Lookup) -> None:
    """Adapters, unless all weights are trained; `lora_r` stays in files of full training."""
    kind = keys.text(_KIND).lower()
    keys.seen.add("lora")
    if kind.startswith("full"):
        reading.add("training.method", "full", f"{_KIND} {kind}")
        return
    add_adapter(reading, "lora", f"{_KIND} {kind}", keys.whole("lora.lora_r"), "lora.lora_r")
    if keys.flag(f"{_RUN}load_in_4bit"):
        reading.add("training.frozen_bits", 4, f"{_RUN}load_in_4bit")
    add_targets(reading, keys, "lora.target_modules")
