"""Ultralytics YOLO: `args.yaml` of a run, its command line (`yolo detect train model=...`), or `YOLO(...).train(...)`.

https://docs.ultralytics.com/usage/cfg: `batch` counts the samples of a step on all accelerators together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config import ConfigModel
from planner.inputs.presets import published_detector
from planner.trainer_files.formats.common import ACCELERATORS, Reader
from planner.trainer_files.model import Document, Reading
from planner.trainer_files.python_values import Call

_MODELS = ("YOLO", "RTDETR", "YOLOE", "YOLOWorld")
_BATCH, _EPOCHS, _SIZE = 16, 100.0, 640
_DEVICES = re.compile(r"[0-9]+(,[0-9]+)*")


def recognises(document: Document) -> bool:
    """Whether the keys are those of a run."""
    if document.syntax == "python":
        return any(_trains(call) for call in document.data["calls"])
    data = document.data
    return isinstance(data.get("model"), str) and "mode" in data and ("imgsz" in data or "task" in data)


def _trains(call: Call) -> bool:
    receiver = call.positional[0] if call.positional else None
    return call.last == "train" and isinstance(receiver, Call) and receiver.last in _MODELS


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: it trains nothing.
    """
    if document.syntax == "python":
        document = replace(document, data=_of_script(document.data["calls"]))
    reader = Reader(document, "Ultralytics")
    mode = reader.text("mode") or "train"
    if mode != "train":
        raise InputError(f"{document.path}: mode {mode}: it trains nothing")
    _model(reader)
    count = reader.number("batch")
    if count is not None and count >= 1:
        reader.add("training.global_batch", int(count), "batch, of all accelerators together")
    else:
        reader.add("training.global_batch", _BATCH, "the default of batch", assumed=True)
    if count is not None and count < 1:
        reader.warn(
            f"batch {count:g}: Ultralytics chooses it by the memory, so its default of {_BATCH} is taken"
        )
    passes = reader.number("epochs")
    reader.add("training.epochs", float(passes or _EPOCHS), "epochs" if passes else "the default of epochs",
               assumed=not passes)  # fmt: skip
    devices = reader.get("device")
    listed = devices if isinstance(devices, list) else [devices]
    text = ",".join(str(one) if isinstance(one, int | str) else "" for one in listed)
    if _DEVICES.fullmatch(text):
        reader.add(ACCELERATORS, text.count(",") + 1, "device")
    reader.add_flag("training.precision", "amp", "fp16", "fp32", "the default of amp", usual=True)
    reader.add_optimizer("optimizer")
    reader.add("training.stack", "eager", "no compile", assumed=True)
    fraction = reader.number("fraction")
    if fraction is not None and 0 < fraction < 1:
        reader.warn(f"fraction {fraction:g}: that share of data.samples is trained on")
    if reader.has("patience"):
        reader.warn("patience: the run may end early (training.early_stop)")
    return reader


def _of_script(calls: list[Call]) -> Mapping[str, Any]:
    call = [call for call in calls if _trains(call)][-1]
    model = call.positional[0]
    named = model.named.get("model", next(iter(model.positional), ""))
    return {"mode": "train", "model": named if isinstance(named, str) else "", **call.named}


def _model(reader: Reader) -> None:
    """The published sizes of a detector at the images' size; another model by its name."""
    word = reader.text("model").replace("\\", "/").rpartition("/")[2]
    word = re.sub(r"\.(pt|yaml)$", "", word).lower().replace("yolov11", "yolo11")
    values = published_detector(word, reader.whole("imgsz") or _SIZE)
    reader.hub_key, reader.hub_name = "model", word
    if values:
        sources = dict.fromkeys(values, f"{word}, as published")
        sources["activations_per_sample"] = "in proportion to those of resnet-50"
        reader.model = ConfigModel("detector", values, sources)
