"""OpenCLIP, and the training scripts of timm and torchvision: their arguments in a script.

Keys and defaults: open_clip_train/params.py, train.py of pytorch-image-models, references/classification/train.py.
"""

from __future__ import annotations

from planner.inputs.presets import find_preset
from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

_OPENCLIP = (
    "dataset_type", "zeroshot_frequency", "local_loss", "gather_with_grad", "imagenet_val", "siglip", "precision",
)  # fmt: skip
_CLASSIFIERS = (
    "sched", "aa", "reprob", "remode", "mixup", "cutmix", "drop_path", "aug_splits", "model_ema",  # timm
    "mixup_alpha", "cutmix_alpha", "ra_sampler", "lr_scheduler", "lr_step_size", "lr_steps", "random_erase",
    "auto_augment", "train_crop_size", "weights_backbone",
)  # fmt: skip
_OF_OTHERS = (
    "train_type", "tuner_type", "rlhf_type", "model_type", "resolution", "max_length", "num_layers", "task",
)  # fmt: skip
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
    tool = "OpenCLIP" if _is_openclip(document) else "torchvision"
    if tool == "torchvision" and any(
        key in document.data for key in ("sched", "aa", "img_size", "data_dir", "opt_eps")
    ):
        tool = "timm"
    reader = Reader(document, tool)
    reader.add_whole(MICRO_BATCH, "batch_size")
    if MICRO_BATCH not in reader.facts:
        reader.add(MICRO_BATCH, _BATCHES[tool], f"the default of batch_size in {tool}", assumed=True)
    reader.add_whole(ACCUMULATION, "accum_freq", "grad_accum_steps")
    reader.add_launcher()
    reader.add_length(steps="max_steps", epochs="epochs", default_epochs=_EPOCHS[tool])
    reader.add_optimizer("opt")
    if tool == "OpenCLIP":
        _pairs(reader)
    else:
        _classifier(reader, tool)
    again = reader.flag("grad_checkpointing")
    text = "grad_checkpointing" + ("" if again else " is not set")
    reader.add("training.layout.recompute", "full" if again else "none", text, assumed=not again)
    reader.add_stack(reader.has("torchcompile"), "torchcompile", "torchcompile is not set")
    return reader


def _pairs(reader: Reader) -> None:
    """Images and texts that are compared: two towers."""
    reader.hub_key, name = "model", reader.text("model")
    known = "siglip" in name.lower()
    bare = name.removesuffix("-quickgelu").removesuffix("-SigLIP")
    preset = find_preset(f"siglip-{bare.removeprefix('ViT-')}" if known else f"openclip-{bare}")
    reader.hub_name = preset.name if preset is not None else name
    reader.add("training.objective", "contrastive", "OpenCLIP")
    if preset is not None and preset.name in _WIDTHS:
        reader.add("training.contrastive.width", _WIDTHS[preset.name], "embed_dim of the model")
    if reader.flag("siglip") or known:
        reader.add("training.contrastive.logits", "chunks", "siglip")
    else:
        local = bool(reader.flag("local_loss"))
        text = "local_loss" if local else "local_loss is not set"
        reader.add("training.contrastive.logits", "rows" if local else "full", text, assumed=not local)
    word = reader.text("precision") or "amp"
    reader.add("training.precision", _PRECISIONS.get(word), "precision", assumed=not reader.has("precision"))
    reader.add_whole("model.image_size", "force_image_size")
    count = reader.number("train_num_samples")
    if count:
        reader.add("data.samples", int(count), "train_num_samples")
    for name in ("lock_image", "lock_text"):
        if reader.flag(name):
            reader.warn(f"{name}: the frozen tower is counted as if it were trained")
    if "coca" in reader.text("model").lower() or reader.has("distill_model"):
        reader.warn("the decoder of captions, or the teacher, is not counted")


def _classifier(reader: Reader, tool: str) -> None:
    reader.hub_key = "model"
    reader.hub_name = reader.text("model").partition(".")[
        0
    ]  # timm writes how the weights were made behind a dot
    word = {"bfloat16": "bf16", "float16": "fp16"}.get(reader.text("amp_dtype"), "fp16")
    amp = bool(reader.flag("amp"))
    reader.add(
        "training.precision", word if amp else "fp32", "amp" if amp else "amp is not set", assumed=not amp
    )
    reader.add_whole("model.image_size", "img_size", "train_crop_size")
    if reader.has("model_ema"):
        reader.warn("model_ema: the averaged copy of the weights is not counted")
    repeats = reader.whole("aug_splits")
    if repeats is not None and repeats > 1:
        reader.warn(f"aug_splits {repeats}: each sample is seen {repeats} times a step, which is not counted")
    if tool == "torchvision" and reader.has("weights_backbone"):
        reader.warn(f"model {reader.text('model')}: a detector is more than its backbone")
