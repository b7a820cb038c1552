"""OpenCLIP, and the training scripts of timm and torchvision: their arguments in a script.

Keys and defaults: open_clip_train/params.py, train.py of pytorch-image-models, references/classification/train.py.
"""

from __future__ import annotations

from planner.inputs.presets import find_preset
from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    add_launcher,
    add_length,
    add_optimizer,
    add_stack,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_OPENCLIP = (
    "dataset_type",
    "zeroshot_frequency",
    "local_loss",
    "gather_with_grad",
    "imagenet_val",
    "siglip",
    "precision",
)
_CLASSIFIERS = (
    "sched", "aa", "reprob", "remode", "mixup", "cutmix", "drop_path", "aug_splits", "model_ema",  # timm
    "mixup_alpha", "cutmix_alpha", "ra_sampler", "lr_scheduler", "lr_step_size", "lr_steps", "random_erase",
    "auto_augment", "train_crop_size", "weights_backbone",
)  # fmt: skip
_OF_OTHERS = (
    "train_type",
    "tuner_type",
    "rlhf_type",
    "model_type",
    "resolution",
    "max_length",
    "num_layers",
    "task",
)
# of models of OpenCLIP, width of the embeddings (embed_dim of open_clip/model_configs)
_WIDTHS = {
    "clip-vit-b-32": 512,
    "clip-vit-b-16": 512,
    "clip-vit-l-14": 768,
    "siglip-base": 768,
    "siglip-so400m": 1152,
}
_PRECISIONS = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "amp": "fp16", "amp_bf16": "bf16",
               "amp_bfloat16": "bf16", "pure_bf16": "bf16", "pure_fp16": "fp16"}  # fmt: skip
_EPOCHS = {"OpenCLIP": 32.0, "timm": 300.0, "torchvision": 90.0}
_BATCHES = {"OpenCLIP": 64, "timm": 128, "torchvision": 32}


def recognises(document: Document) -> bool:
    """Whether the arguments are those of one of the scripts."""
    data = document.data
    if document.syntax != "arguments" or not isinstance(data.get("model"), str):
        return False
    return _is_openclip(document) or (
        any(mark in data for mark in _CLASSIFIERS) and not any(mark in data for mark in _OF_OTHERS)
    )


def _is_openclip(document: Document) -> bool:
    return "train_data" in document.data and any(mark in document.data for mark in _OPENCLIP)


def read(document: Document) -> Reading:
    """Read a script."""
    keys = Lookup(document)
    tool = "OpenCLIP" if _is_openclip(document) else "torchvision"
    if tool == "torchvision" and any(
        key in document.data for key in ("sched", "aa", "img_size", "data_dir", "opt_eps")
    ):
        tool = "timm"
    reading = Reading(document.path, tool)
    add_whole(reading, keys, MICRO_BATCH, "batch_size")
    if MICRO_BATCH not in reading.facts:
        reading.add(MICRO_BATCH, _BATCHES[tool], f"the default of batch_size in {tool}", assumed=True)
    add_whole(reading, keys, ACCUMULATION, "accum_freq", "grad_accum_steps")
    add_launcher(reading, keys)
    add_length(reading, keys, steps="max_steps", epochs="epochs", default_epochs=_EPOCHS[tool])
    add_optimizer(reading, keys, "opt")
    if tool == "OpenCLIP":
        _pairs(reading, keys)
    else:
        _classifier(reading, keys, tool)
    again = keys.flag("grad_checkpointing")
    text = "grad_checkpointing" + ("" if again else " is not set")
    reading.add("training.layout.recompute", "full" if again else "none", text, assumed=not again)
    add_stack(reading, keys.has("torchcompile"), "torchcompile", "torchcompile is not set")
    return reading


def _pairs(reading: Reading, keys: Lookup) -> None:
    """Images and texts that are compared: two towers."""
    reading.hub_key, name = "model", keys.text("model")
    known = "siglip" in name.lower()
    bare = name.removesuffix("-quickgelu").removesuffix("-SigLIP")
    preset = find_preset(f"siglip-{bare.removeprefix('ViT-')}" if known else f"openclip-{bare}")
    reading.hub_name = preset.name if preset is not None else name
    reading.add("training.objective", "contrastive", "OpenCLIP")
    if preset is not None and preset.name in _WIDTHS:
        reading.add("training.contrastive.width", _WIDTHS[preset.name], "embed_dim of the model")
    if keys.flag("siglip") or known:
        reading.add("training.contrastive.logits", "chunks", "siglip")
    else:
        local = bool(keys.flag("local_loss"))
        text = "local_loss" if local else "local_loss is not set"
        reading.add("training.contrastive.logits", "rows" if local else "full", text, assumed=not local)
    word = keys.text("precision") or "amp"
    reading.add("training.precision", _PRECISIONS.get(word), "precision", assumed=not keys.has("precision"))
    add_whole(reading, keys, "model.image_size", "force_image_size")
    count = keys.number("train_num_samples")
    if count:
        reading.add("data.samples", int(count), "train_num_samples")
    for name in ("lock_image", "lock_text"):
        if keys.flag(name):
            reading.warn(f"{name}: the frozen tower is counted as if it were trained")
    if "coca" in keys.text("model").lower() or keys.has("distill_model"):
        reading.warn("the decoder of captions, or the teacher, is not counted")


def _classifier(reading: Reading, keys: Lookup, tool: str) -> None:
    reading.hub_key = "model"
    reading.hub_name = keys.text("model").partition(".")[
        0
    ]  # timm writes how the weights were made behind a dot
    word = {"bfloat16": "bf16", "float16": "fp16"}.get(keys.text("amp_dtype"), "fp16")
    amp = bool(keys.flag("amp"))
    reading.add(
        "training.precision", word if amp else "fp32", "amp" if amp else "amp is not set", assumed=not amp
    )
    add_whole(reading, keys, "model.image_size", "img_size", "train_crop_size")
    if keys.has("model_ema"):
        reading.warn("model_ema: the averaged copy of the weights is not counted")
    repeats = keys.whole("aug_splits")
    if repeats is not None and repeats > 1:
        reading.warn(
            f"aug_splits {repeats}: each sample is seen {repeats} times a step, which is not counted"
        )
    if tool == "torchvision" and keys.has("weights_backbone"):
        reading.warn(f"model {keys.text('model')}: a detector is more than its backbone")
