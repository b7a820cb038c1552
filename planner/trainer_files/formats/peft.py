"""PEFT: `adapter_config.json` beside an adapter's weights."""

from __future__ import annotations

from planner.trainer_files.formats.common import add_adapter, add_targets
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

# rank of kinds that name it otherwise
_RANKS = ("r", "init_r", "rank", "oft_block_size", "num_virtual_tokens")


def recognises(document: Document) -> bool:
    """Whether the file describes an adapter."""
    return "peft_type" in document.data


def read(document: Document) -> Reading:
    """Read an adapter."""
    keys, reading = Lookup(document), Reading(document.path, "PEFT")
    kind = keys.text("peft_type").lower()
    if keys.flag("use_dora"):
        kind = "dora"
    reading.hub_name, reading.hub_key = keys.text("base_model_name_or_path"), "base_model_name_or_path"
    rank_key = keys.first(*_RANKS)
    rank = keys.whole(rank_key) if rank_key else None
    add_adapter(reading, kind, f"peft_type {keys.text('peft_type')}", rank, rank_key)
    add_targets(reading, keys, "target_modules")
    if keys.has("modules_to_save"):
        reading.warn("modules_to_save: whole modules trained beside the adapters are not counted")
    if keys.has("layers_to_transform"):
        reading.warn("layers_to_transform: adapters are counted in every layer")
    if keys.has("rank_pattern"):
        reading.warn("rank_pattern: ranks of single modules are not counted")
    return reading
