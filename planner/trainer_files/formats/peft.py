"""PEFT: `adapter_config.json` beside an adapter's weights."""

from __future__ import annotations

from planner.trainer_files.formats.common import Reader
from planner.trainer_files.model import Document, Reading

# rank of kinds that name it otherwise
_RANKS = ("r", "init_r", "rank", "oft_block_size", "num_virtual_tokens")


def recognises(document: Document) -> bool:
    """Whether the file describes an adapter."""
    return "peft_type" in document.data


def read(document: Document) -> Reading:
    """Read an adapter."""
    reader = Reader(document, "PEFT")
    kind = reader.text("peft_type").lower()
    if reader.flag("use_dora"):
        kind = "dora"
    reader.hub_name, reader.hub_key = reader.text("base_model_name_or_path"), "base_model_name_or_path"
    rank_key = reader.first(*_RANKS)
    rank = reader.whole(rank_key)
    reader.add_adapter(kind, f"peft_type {reader.text('peft_type')}", rank, rank_key)
    reader.add_targets("target_modules")
    if reader.has("modules_to_save"):
        reader.warn("modules_to_save: whole modules trained beside the adapters are not counted")
    if reader.has("layers_to_transform"):
        reader.warn("layers_to_transform: adapters are counted in every layer")
    if reader.has("rank_pattern"):
        reader.warn("rank_pattern: ranks of single modules are not counted")
    return reader
