"""diffusion-pipe (TOML), OneTrainer (JSON), musubi-tuner and DiffSynth-Studio (arguments).

Their keys are put under the names that other trainers of images have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.trainer_files.model import Document, Fact, Reading

_MODEL = "pretrained_model_name_or_path"
_BATCH = "micro_batch_size_per_gpu"  # of diffusion-pipe alone
# what only these ask: musubi-tuner beside a network, DiffSynth-Studio beside a batch of one
_MUSUBI = ("network_module", "dataset_config")
_DIFFSYNTH = "model_id_with_origin_paths"
# types of diffusion-pipe whose path names the model
_BY_PATH = ("wan", "flux", "sd3", "cogvideo")
_PATHS = ("diffusers_path", "ckpt_path", "transformer_path", "checkpoint_path")
# --task of musubi-tuner, or the begin of its program -> a name that tells the denoiser
_TASKS = {
    "t2v-14B": "wan2.1-t2v-14b", "t2v-A14B": "wan2.2-t2v-a14b", "i2v-14B": "wan2.1-i2v-14b",
    "i2v-A14B": "wan2.2-t2v-a14b", "t2v-1.3B": "wan2.1-t2v-1.3b",
}  # fmt: skip
_PROGRAMS = {
    "hv_1_5": "hunyuanvideo-1.5", "hv": "hunyuan-video", "qwen_image": "qwen-image", "flux_kontext": "flux.1-kontext",
    "fpack": "framepack", "zimage": "z-image", "flux_2": "flux.2",
}  # fmt: skip
_ONE = ("training_method", "base_model_name", "model_type")  # of OneTrainer
# denoisers that are presets by their sequence: pixels of a token's side, frames of one but for the first, tokens of the
# text (the notes of the presets; each gives their length at the size that is named there)
_TOKENS = {
    "wan2.1-1.3b": (16, 4, 0), "wan2.1-fun-1.3b-inp": (16, 4, 0), "wan2.1-14b": (16, 4, 0),
    "wan2.1-i2v-14b": (16, 4, 0), "wan2.2-ti2v-5b": (32, 4, 0), "hunyuan-video-13b": (16, 4, 256),
    "cogvideox-2b": (16, 4, 226), "cogvideox-5b": (16, 4, 226),
    "qwen-image-20b": (16, 0, 512), "flux.2-klein-4b": (16, 0, 512),
}  # fmt: skip
# what DiffSynth-Studio takes where an argument is left out (modelscope/DiffSynth-Studio@04da82cd
# diffsynth/diffusion/parsers.py, read on 2026-11-30)
_DIFFSYNTH_DEFAULTS = {"num_frames": 81, "lora_rank": 32}
_DEFAULT = "the default of "
# our name of a key -> that of the file, for the comments of a workload
_THEIRS = {
    "diffusion-pipe": {
        "train_batch_size": _BATCH, "max_train_steps": "max_steps", "num_train_epochs": "epochs",
        "gradient_checkpointing": "activation_checkpointing", "optimizer": "optimizer.type",
        "lora_type": "adapter.type", "lora_rank": "adapter.rank", "mixed_precision": "model.dtype",
        "base_model_precision": "model.transformer_dtype", _MODEL: "model",
    },
    "OneTrainer": {
        _MODEL: "base_model_name", "train_batch_size": "batch_size", "num_train_epochs": "epochs", "lora_type":
        "training_method", "mixed_precision": "train_dtype", "base_model_precision": "weight_dtype",
    },
    "musubi-tuner": {_MODEL: "task, program or dit"},
    "DiffSynth-Studio": {
        _MODEL: _DIFFSYNTH, "num_train_epochs": "num_epochs x dataset_repeat", "lora_type": "lora_base_model",
        "resolution": "width x height", "gradient_checkpointing": "use_gradient_checkpointing",
        "train_batch_size": "the batch of DiffSynth-Studio,",
    },
}  # fmt: skip


def title_of(document: Document) -> str:
    """The trainer whose file it is; empty: none of these."""
    data = document.data
    if document.syntax == "toml" and _BATCH in data and isinstance(data.get("model"), Mapping):
        return "diffusion-pipe"
    if document.syntax == "json" and all(name in data for name in _ONE):
        return "OneTrainer"
    if document.syntax != "arguments":
        return ""
    if any(name in data for name in _MUSUBI) and _MODEL not in data and _musubi(document):
        return "musubi-tuner"
    return "DiffSynth-Studio" if _DIFFSYNTH in data else ""


def renamed(document: Document) -> dict[str, Any] | None:
    """The keys under the names of kohya's and diffusers' scripts; None: of another trainer.

    Raises:
        InputError: what is trained is not modelled.
    """
    title = title_of(document)
    if title == "diffusion-pipe":
        return _pipe(document.data)
    if title == "OneTrainer":
        return _one(document)
    if title == "musubi-tuner":
        return {**document.data, _MODEL: _musubi(document)}
    if title == "DiffSynth-Studio":
        return _diffsynth(document.data)
    return None


def name_keys(reading: Reading, document: Document) -> None:
    """Have the comments name the keys as the file does, and say where the size of a sample is."""
    title = title_of(document)
    defaults = tuple(_DEFAULT + name for name in _DIFFSYNTH_DEFAULTS)
    for key, fact in reading.facts.items():
        where = in_their_words(fact.where, document)
        reading.facts[key] = Fact(key, fact.value, where, fact.assumed or where.endswith(defaults))
    reading.hub_key = in_their_words(reading.hub_key, document)
    named = {"diffusion-pipe": "dataset", "musubi-tuner": "dataset_config"}.get(title, "")
    if named and "datasets" not in document.data and document.data.get(named):
        text = f"{named} {str(document.data[named])[:80]}"
        reading.warn(
            f"{text}: the size of its samples is not read: work is counted at the size of the preset"
        )


def in_their_words(text: str, document: Document) -> str:
    """A text with our names of keys, with those of the file instead."""
    title = title_of(document)
    theirs = dict(_THEIRS.get(title, {}))
    if title == "DiffSynth-Studio":
        theirs |= {name: _DEFAULT + name for name in _DIFFSYNTH_DEFAULTS if name not in document.data}
    return re.sub(r"[A-Za-z_]+", lambda word: theirs.get(word[0], word[0]), text) if theirs else text


def tokens_of(preset: str, side: int, frames: int | None) -> int | None:
    """Tokens of an image or a clip with its text; None: not known, as of a clip without its number of frames.

    Args:
        preset: the denoiser.
        side: of a square of as many pixels.
        frames: of a clip.
    """
    sizes = _TOKENS.get(preset)
    if sizes is None or (sizes[1] and frames is None):
        return None
    pixels, step, text = sizes
    latent = 1 + (frames - 1) // step if step and frames else 1
    return round(side * side / pixels**2) * latent + text


def _pipe(data: Mapping[str, Any]) -> dict[str, Any]:
    parts = (data.get(name) for name in ("model", "adapter", "optimizer"))
    model, adapter, optimizer = (part if isinstance(part, Mapping) else {} for part in parts)
    kind, batch = str(model.get("type") or ""), data.get(_BATCH)
    path = next((str(model[name]).rstrip("/") for name in _PATHS if model.get(name)), "")
    pairs = batch if isinstance(batch, list) else []
    sizes = [pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2]
    numbers = all(isinstance(size, int | float) for size in sizes)
    found = {
        _MODEL: (path if kind in _BY_PATH and path else kind).replace("_", "-"),
        "train_batch_size": max(sizes) if sizes and numbers else batch,
        "max_train_steps": data.get("max_steps"), "num_train_epochs": data.get("epochs"),
        "gradient_accumulation_steps": data.get("gradient_accumulation_steps"),
        "gradient_checkpointing": bool(data.get("activation_checkpointing")),
        "pipeline_stages": data.get("pipeline_stages"), "optimizer": optimizer.get("type"),
        "mixed_precision": model.get("dtype"),
    }  # fmt: skip
    if adapter:
        found |= {"lora_type": adapter.get("type"), "lora_rank": adapter.get("rank")}
        found["base_model_precision"] = str(model.get("transformer_dtype") or "").replace("float8", "fp8")
    return {key: value for key, value in found.items() if value not in (None, "")}


def _one(document: Document) -> dict[str, Any]:
    """Of OneTrainer, with what it takes where a key is absent (modules/util/config/TrainConfig.py)."""
    data = document.data
    method, optimizer = str(data["training_method"]), data.get("optimizer")
    if method not in ("LORA", "FINE_TUNE"):
        raise InputError(
            f"{document.path}: training_method {method[:40]}: only LORA and FINE_TUNE are modelled"
        )
    found = {
        _MODEL: data["base_model_name"], "train_batch_size": data.get("batch_size", 1), "gradient_checkpointing":
        data.get("gradient_checkpointing") not in ("OFF", False), "num_train_epochs": data.get("epochs", 100),
        "gradient_accumulation_steps": data.get("gradient_accumulation_steps", 1),
        "mixed_precision": str(data.get("train_dtype") or "FLOAT_16").lower().replace("_", ""),
        "optimizer": optimizer.get("optimizer") if isinstance(optimizer, Mapping) else optimizer,
        "resolution": data.get("resolution"), "train_text_encoder": data.get("train_text_encoder"),
    }  # fmt: skip
    if method == "LORA":
        parts = [data.get(name) for name in ("transformer", "unet")]
        stored = [
            str(part["weight_dtype"])
            for part in parts
            if isinstance(part, Mapping) and part.get("weight_dtype")
        ]
        bits = "int4" if "NFLOAT_4" in stored else "int8" if {"INT_8", "FLOAT_8"} & set(stored) else None
        found |= {"lora_type": "lora", "lora_rank": data.get("lora_rank", 16), "base_model_precision": bits}
    return {key: value for key, value in found.items() if value is not None}


def _musubi(document: Document) -> str:
    """A name that tells the denoiser: by the task, by the program, or of its file."""
    data, programs = document.data, " ".join(document.programs)
    task = _TASKS.get(str(data.get("task")), "")
    return task or next(
        (name for start, name in _PROGRAMS.items() if programs.startswith(start)), str(data.get("dit", ""))
    )


def _diffsynth(data: Mapping[str, Any]) -> dict[str, Any]:
    """Of DiffSynth-Studio, whose batch is one sample, or several accumulated."""
    first = str(data[_DIFFSYNTH]).partition(":")[0]
    found = {
        **_DIFFSYNTH_DEFAULTS,
        **data,
        _MODEL: first,
        "train_batch_size": 1,
        "mixed_precision": data.get("mixed_precision", "bf16"),
    }
    found["num_train_epochs"] = _number(data.get("num_epochs")) * _number(data.get("dataset_repeat"))
    if "use_gradient_checkpointing" not in data or data["use_gradient_checkpointing"]:
        found["gradient_checkpointing"] = True
    if "lora_base_model" in data:
        found["lora_type"] = "lora"
    if "height" in data and "width" in data:
        found["resolution"] = f"{data['width']},{data['height']}"
    return {key: value for key, value in found.items() if value is not None}


def _number(value: Any) -> int:
    return int(value) if str(value).isdecimal() and len(str(value)) < 12 else 1
