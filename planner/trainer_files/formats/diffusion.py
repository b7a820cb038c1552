"""Trainers of image models.

SimpleTuner (config.json), kohya's sd-scripts (TOML or arguments), the scripts of diffusers (arguments), AI Toolkit
(YAML), and those of planner.trainer_files.formats.video_trainers. They count batches alike (`train_batch_size` samples
per accelerator) under names that differ little.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.inputs.presets import find_preset
from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.formats.image_sets import add_dataset, of_dataset
from planner.trainer_files.formats.video_trainers import (
    in_their_words,
    name_keys,
    renamed,
    title_of,
    tokens_of,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_MODEL = "pretrained_model_name_or_path"
# what only these trainers ask, beside a model and a batch
_MARKS = (
    "resolution", "network_module", "network_dim", "model_family", "data_backend_config", "max_train_steps",
    "max_train_epochs", "cache_latents", "instance_data_dir", "instance_prompt", "validation_prompt", "dataset_config",
    "max_bucket_reso", "prior_loss_weight",
)  # fmt: skip
# names of models, or parts of them -> preset with the same denoiser; the first that fits counts
_PRESETS: tuple[tuple[str, str], ...] = (
    (r"flux\.?1?-?schnell|flux_schnell", "flux.1-schnell"),
    (r"flux[._-]?(1[-_]?)?(dev|krea|fill|kontext)|flux$|flux1", "flux.1-dev"),
    (
        r"sd_?xl|stable-diffusion-xl|xl-base|(animagine|illustrious|juggernaut|noobai|pony).*xl",
        "stable-diffusion-xl",
    ),
    (r"stable-diffusion-3\.5-large|sd3\.?5[-_]large", "stable-diffusion-3.5-large"),
    (r"stable-diffusion-3\.5-medium|sd3\.?5[-_]medium", "stable-diffusion-3.5-medium"),
    (r"stable-diffusion-3-medium|sd3[-_]medium", "stable-diffusion-3-medium"),
    (r"stable-diffusion-2|sd[-_]?2|768-v-ema", "stable-diffusion-2"),
    (r"stable-diffusion-v?1|^v1-5-pruned|sd-?v?1[-_.]?[45x]|sd15|dreamshaper-8", "stable-diffusion-1.5"),
    (r"pixart-(sigma|alpha|xl)", "pixart-alpha"),
    (r"wan2\.1-t2v-1\.3b", "wan2.1-1.3b"),
    (r"wan2\.1-t2v-14b|wan2\.2-t2v-a14b", "wan2.1-14b"),
    (r"wan2\.2-ti2v-5b", "wan2.2-ti2v-5b"),
    (r"hunyuan-?video(?!-?1\.5)", "hunyuan-video-13b"),
    (r"cogvideox(-1\.5)?-5b", "cogvideox-5b"),
    (r"cogvideox-2b", "cogvideox-2b"),
    (r"sana[-_](1600m|1\.6b)", "sana-1.6b"),
    (r"qwen-image(-edit)?(-2[0-9]{3})?$", "qwen-image-20b"),
)
# SimpleTuner's model_family -> its flavours with that denoiser, an empty one for the default
_FAMILIES: dict[str, dict[str, str]] = {
    "flux": dict.fromkeys(("", "dev", "krea", "kontext"), "flux.1-dev") | {"schnell": "flux.1-schnell"},
    "sdxl": dict.fromkeys(("", "base-1.0"), "stable-diffusion-xl"),
    "sd1x": dict.fromkeys(("", "dreamshaper"), "stable-diffusion-1.5"),
    "sd3": {"large": "stable-diffusion-3.5-large"},
    "pixart_sigma": dict.fromkeys(("600m-512", "600m-1024"), "pixart-alpha"),
    "wan": dict.fromkeys(("", "t2v-480p-1.3b-2.1"), "wan2.1-1.3b"),
    "qwen_image": dict.fromkeys(
        ("v1.0", "v2.0", "edit-v1", "edit-v2", "edit-v2+", "edit-v3"), "qwen-image-20b"
    ),
}
_LEAST, _MOST = 64, 16_384  # sides of images in pixels
# kohya's programs say what the path of a checkpoint does not: the first part of the name; FLUX.2 has several sizes
_PROGRAMS = (
    ("sdxl_", "stable-diffusion-xl"),
    ("flux_2_", ""),
    ("flux_", "flux.1-dev"),
    ("sd3_", "stable-diffusion-3-medium"),
)
_SCRIPTS = {
    "train_network": "stable-diffusion-1.5",
    "train_db": "stable-diffusion-1.5",
    "fine_tune": "stable-diffusion-1.5",
}


def recognises(document: Document) -> bool:
    """Whether the keys are those of a trainer of image models."""
    if title_of(document):
        return True
    data = _opened(document).data
    if "model_family" in data and ("data_backend_config" in data or "train_batch_size" in data):
        return True
    unnamed = document.syntax == "arguments" and "train_batch_size" in data and "resolution" in data
    trains = _MODEL in data and any(mark in data for mark in _MARKS)
    return (trains or unnamed) and "per_device_train_batch_size" not in data


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: the file trains nothing, or a value cannot be; names file and key.
    """
    try:
        return _read(document)
    except InputError as error:
        place = f"{document.path}: "
        raise InputError(place + in_their_words(str(error).removeprefix(place), document)) from error


def _read(document: Document) -> Reading:
    opened = _opened(document)
    reader = Reader(opened, _title(document))
    _model(reader, opened)
    reader.add_whole(MICRO_BATCH, "train_batch_size", default=1)
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps", default=1)
    if document.syntax == "arguments" or reader.has("num_processes"):
        reader.add_launcher()
    passes = reader.number("max_train_epochs")
    if passes is not None and passes > 0:  # of kohya, whose epochs count before its steps
        reader.seen.add("max_train_steps")
        reader.add("training.epochs", float(passes), "max_train_epochs")
    else:
        reader.add_length(steps="max_train_steps", epochs="num_train_epochs", default_epochs=None)
    add_dataset(reader, document)
    _precision(reader)
    optimizer = reader.first("optimizer", "optimizer_type")
    if reader.flag("use_8bit_adam"):
        reader.add("training.optimizer", "adamw_8bit", "use_8bit_adam")
    elif optimizer:
        reader.add_optimizer(optimizer)
    _adapters(reader, opened)
    reader.add_recompute("gradient_checkpointing", "gradient_checkpointing is off by default")
    compiled = reader.text("dynamo_backend").lower() not in ("", "no") or bool(reader.flag("torch_compile"))
    reader.add_stack(
        compiled, reader.first("dynamo_backend", "torch_compile"), "the framework without a compiler"
    )
    _remarks(reader)
    reader.add_whole("training.layout.pipeline_parallel", "pipeline_stages")
    name_keys(reader, document)
    return reader


def _opened(document: Document) -> Document:
    """The keys of AI Toolkit's first process, and of SimpleTuner with dashes, under the names of the others."""
    data, ours = document.data, renamed(document)
    if ours is not None:
        return replace(document, data={**ours, **of_dataset(data)})
    process = _walk(data, "config", "process")
    if isinstance(process, list) and process and isinstance(process[0], Mapping) and "model" in process[0]:
        return replace(document, data=_process(process[0]))
    if any(str(key).startswith("--") for key in data):
        return replace(document, data={str(key).removeprefix("--"): value for key, value in data.items()})
    sections = [value for value in data.values() if isinstance(value, Mapping)]
    if document.syntax == "toml" and _MODEL not in data and any(_MODEL in section for section in sections):
        flat = {key: value for section in sections for key, value in section.items()}
        return replace(document, data={**flat, **of_dataset(data)})
    return replace(document, data={**data, **of_dataset(data)})


def _process(process: Mapping[str, Any]) -> dict[str, Any]:
    train, model, network = (
        part if isinstance(part, Mapping) else {}
        for part in (process.get(name) for name in ("train", "model", "network"))
    )
    found: dict[str, Any] = {
        _MODEL: model.get("name_or_path"), "train_batch_size": train.get("batch_size"),
        "max_train_steps": train.get("steps"), "mixed_precision": train.get("dtype"),
        "base_model_precision": "int8" if model.get("quantize") else None,
        "train_text_encoder": train.get("train_text_encoder"),
    }  # fmt: skip
    for name in ("gradient_accumulation_steps", "gradient_checkpointing", "optimizer"):
        found[name] = train.get(name)
    found["gradient_accumulation_steps"] = found["gradient_accumulation_steps"] or train.get(
        "gradient_accumulation"
    )
    if network:
        found |= {
            "lora_type": network.get("type") or "lora",
            "network_dim": network.get("linear") or network.get("rank"),
        }
    sets = process.get("datasets")
    first = sets[0] if isinstance(sets, list) and sets and isinstance(sets[0], Mapping) else {}
    sizes = first.get("resolution")
    found["resolutions" if isinstance(sizes, list) else "resolution"] = sizes
    return {key: value for key, value in found.items() if value is not None} | {"kind": process.get("type")}


def _walk(data: Mapping[str, Any], *names: str) -> Any:
    node: Any = data
    for name in names:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _title(document: Document) -> str:
    if title := title_of(document):
        return title
    if _walk(document.data, "config", "process"):
        return "AI Toolkit"
    if any("model_family" in str(key) for key in document.data):
        return "SimpleTuner"
    kohya = any(
        name in document.data
        for name in ("network_module", "optimizer_type", "dataset_config", "cache_latents")
    )
    return "kohya sd-scripts" if kohya or document.syntax == "toml" else "diffusers"


def _model(reader: Reader, document: Document) -> None:
    kind = str(document.data.get("kind") or "")
    if kind and not kind.endswith("trainer") and "train" not in kind:
        raise InputError(f"{reader.path}: config.process type {kind}: it trains nothing")
    name, family = reader.text(_MODEL), reader.text("model_family").lower()
    flavour = reader.text("model_flavour").lower()
    programs = " ".join(document.programs).lower()
    by_program = next((preset for start, preset in _PROGRAMS if start in programs), "")
    word = name.rpartition("/")[2].lower()
    found = next((preset for pattern, preset in _PRESETS if re.search(pattern, word)), "")
    if not name:
        found = _FAMILIES.get(family, {}).get(flavour, "")
    if not found and by_program:
        found = by_program
        reader.warn(f"{_MODEL} {name or 'not given'}: taken for {found}, by the name of the program")
    if not found:
        scripts = [preset for script, preset in _SCRIPTS.items() if script in document.programs]
        if scripts and (word.endswith((".safetensors", ".ckpt")) or not word):
            found = scripts[0]
            reader.warn(
                f"{_MODEL} {name}: taken for Stable Diffusion 1.5, which the program trains by default"
            )
    reader.hub_key = _MODEL if name else "model_family"
    reader.hub_name = found or name or f"{family} ({flavour or 'default flavour'})"


def _precision(reader: Reader) -> None:
    word = reader.text("mixed_precision").lower()
    precision = {
        "bf16": "bf16", "fp16": "fp16", "no": "fp32", "fp8": "fp8", "bfloat16": "bf16", "float16": "fp16",
        "fp32": "fp32", "float32": "fp32", "float": "fp32",
    }.get(word)  # fmt: skip
    reader.add("training.precision", precision or "fp32", "mixed_precision" if precision else "mixed_precision is no",
               assumed=precision is None)  # fmt: skip
    if reader.flag("full_bf16") or reader.flag("full_fp16"):
        reader.add("training.memory.master", "none", reader.first("full_bf16", "full_fp16"))


def _adapters(reader: Reader, document: Document) -> None:
    """LoRA and its kin, where the trainer, the program or the rank say so."""
    kind = reader.text("lora_type").lower() if reader.text("model_type").lower() in ("lora", "") else ""
    program = any("lora" in name.lower() for name in document.programs)
    rank_key = reader.first("lora_rank", "network_dim", "rank")
    lora = (
        reader.text("model_type").lower() == "lora"
        or bool(kind)
        or reader.has("network_module")
        or (program and rank_key)
    )
    if not lora and not program:
        return
    module = reader.text("network_module").rpartition(".")[2]
    named = "lokr" if kind in ("lycoris", "lokr") or "lycoris" in reader.text("network_module") else "lora"
    source = reader.first("lora_type", "network_module", "model_type") or "the program"
    reader.add_adapter(named, f"{source} {kind or module}".strip(), reader.whole(rank_key), rank_key)
    if named == "lokr":
        reader.warn(f"{source}: LyCORIS's own file says which adapter it is: LoKr is taken")
    stored = reader.text("base_model_precision").lower()
    bits = 8 if re.search(r"int8|fp8", stored) else 4 if re.search(r"int4|nf4|int2", stored) else None
    if bits:
        reader.add("training.frozen_bits", bits, f"base_model_precision {stored}")
    elif reader.flag("fp8_base"):
        reader.add("training.frozen_bits", 8, "fp8_base")


def _remarks(reader: Reader) -> None:
    if reader.flag("train_text_encoder") or reader.number("text_encoder_lr"):
        reader.warn("train_text_encoder: the text encoder beside the denoiser is not counted")
    if reader.flag("controlnet") or reader.has("controlnet_model_name_or_path"):
        reader.warn("controlnet: the copy of the denoiser that it trains is not counted")
    elif any("controlnet" in program.lower() for program in reader.document.programs):
        text = "a ControlNet learns beside a denoiser that stays frozen"
        reader.warn(f"{text}: counted as training all of the denoiser, which takes more memory")
    name = reader.first("resolution", "resolutions")
    if not name:
        return
    side, preset = _side(reader, name), find_preset(reader.hub_name)
    text = f"resolution {str(reader.get(name))[:80]}"
    if side is not None and preset is not None and preset.values["family"] == "transformer":
        frames = reader.whole("num_frames")
        tokens = tokens_of(preset.name, side, frames)
        if tokens is not None:
            is_clip = tokens_of(preset.name, side, None) is None
            also = f", num_frames {frames}" if is_clip else ""
            reader.add("training.sequence_length", tokens, f"{text}{also}: tokens of it and its text")
            return
        side = None
    if side is None:
        reader.warn(f"{text}: work is counted at the size of the preset")
    else:
        reader.add("model.image_size", side, text)
        if name == "resolutions" and len(reader.get(name)) > 1:
            reader.warn(
                f"{text}: each image is trained at all of them: work and memory are counted at the largest"
            )


def _side(keys: Lookup, name: str) -> int | None:
    """The side of a square of as many pixels: of `1024`, `768,1344`, or of megapixels (SimpleTuner's `area`).

    Of AI Toolkit's resolutions, which are sides of squares, the largest: it needs the most memory.
    """
    numbers = [float(word) for word in re.findall(r"\d+(?:\.\d+)?", str(keys.get(name)))]
    if len(numbers) == 1 and keys.text("resolution_type") == "area":
        numbers = [1024 * math.sqrt(numbers[0])]
    if not numbers or not all(_LEAST <= number <= _MOST for number in numbers):
        return None
    if name == "resolutions":
        return round(max(numbers))
    return round(math.sqrt(numbers[0] * numbers[-1])) if len(numbers) <= 2 else None
