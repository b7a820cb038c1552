"""Hugging Face `config.json`: the model's sizes; also diffusers and timm."""

from __future__ import annotations

from planner.inputs.model_config import is_model_config, model_of_config
from planner.trainer_files.model import Document, Reading


def recognises(document: Document) -> bool:
    """Whether the keys are those of a model, not of an adapter."""
    data = document.data
    trains = any(
        name in data
        for name in ("model_family", "train_batch_size", "per_device_train_batch_size", "training_method")
    )
    return document.syntax == "json" and is_model_config(data) and "peft_type" not in data and not trains


def read(document: Document) -> Reading:
    """Read a model.

    Raises:
        InputError: its sizes are not known; says why.
    """
    reading = Reading(document.path, "Hugging Face")
    reading.model = model_of_config(document.data, str(document.path))
    name = document.data.get("_name_or_path") or document.data.get("architecture")
    reading.hub_name = name if isinstance(name, str) else ""
    return reading
