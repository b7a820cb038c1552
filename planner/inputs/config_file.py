"""`model: {config: ./config.json}`: the sizes of the file stand for those that the workload leaves out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.inputs.faults import Fault
from planner.inputs.models import changes_size
from planner.records import record


@record(frozen=True)
class Expanded:
    """A workload's data with the model's sizes filled in.

    Attributes:
        data: the data; the same object where no file is named.
        content: bytes of the named file, empty where none is.
        faults: what was wrong with it.
    """

    data: dict[str, Any]
    content: bytes = b""
    faults: tuple[Fault, ...] = ()


def names_config(data: dict[str, Any]) -> bool:
    """Whether a workload's data name a model's configuration."""
    model = data.get("model")
    return isinstance(model, dict) and isinstance(model.get("config"), str)


def expand_config(data: dict[str, Any], folder: Path, read_text: Callable[[Path], str]) -> Expanded:
    """Fill in the sizes of the configuration that a workload names.

    Args:
        data: what YAML gives.
        folder: the workload's own, from which a relative path counts.
        read_text: reads a file of the user within limits.
    """
    if not names_config(data):
        return Expanded(data)
    from planner.inputs.model_config import model_of_config, parse_json, stored_precision

    model = data["model"]
    if model.get("preset") is not None:
        return Expanded(
            data, faults=(Fault(("model", "config"), "the preset states the sizes: remove one of the two"),)
        )
    path = folder / model["config"]
    try:
        text = read_text(path)
        config = parse_json(text, str(path))
        counted = model_of_config(config, str(path))
    except InputError as error:
        return Expanded(data, faults=(Fault(("model", "config"), str(error)),))
    stated = {key: value for key, value in model.items() if value is not None}
    sizes = {**counted.values, "stored_precision": stored_precision(config)}
    if changes_size(stated):
        sizes.pop("params", None)
        sizes.pop("active_params", None)
    return Expanded({**data, "model": {**sizes, **stated}}, text.encode())


def sha256_with(sha256: str, content: bytes) -> str:
    """The hash of a workload and of the configuration that it names."""
    return hashlib.sha256(sha256.encode() + content).hexdigest() if content else sha256
