"""Sizes of models of images and of speech: transformers over as many positions as one sample has."""

from __future__ import annotations

import math
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config.blocks import Work, block, linear
from planner.inputs.model_config.model import ConfigModel, Keys, ModelType

# wav2vec 2.0 crops its training samples to 250,000 values at 16 kHz (arXiv:2006.11477, section 4.2).
_SPEECH_SAMPLES = 250_000
# Whisper looks at 30 s of sound: 3,000 frames, halved by its second convolution (arXiv:2212.04356, section 2.2).
_WHISPER_FRAMES = 1500


def read_vision(keys: Keys, kind: ModelType) -> ConfigModel:
    """Read a vision transformer, also where it masks patches or distils itself."""
    work = vision_work(keys)
    values = _values(keys, work, layers=keys.need("num_hidden_layers"))
    image = image_side(keys, 224)
    notes = [f"one sample is one image of {image} x {image} pixels"]
    if kind.note:
        notes.append(kind.note)
    return ConfigModel(
        kind.name, {**values, "image_size": image}, {"image_size": "image_size"}, None, tuple(notes)
    )


def read_towers(keys: Keys, kind: ModelType) -> ConfigModel:
    """Read a model with a tower of images and one of texts; a sample is a pair."""
    vision = Keys(keys.section("vision_config"), f"{keys.place}: vision_config", _CLIP_VISION)
    text = Keys(keys.section("text_config"), f"{keys.place}: text_config", _CLIP_TEXT)
    hidden, positions = text.need("hidden_size"), text.need("max_position_embeddings")
    text_block = block(hidden, text.need("num_attention_heads"), text.need("intermediate_size"), positions)
    texts = text_block * text.need("num_hidden_layers")
    texts += Work(params=(text.need("vocab_size") + positions) * hidden)
    joint = keys.size("projection_dim") or hidden
    work = (
        vision_work(vision) + texts + linear(hidden, joint, 1) + linear(vision.need("hidden_size"), joint, 1)
    )
    if kind.name.startswith("siglip"):  # pools its patches by attention, with a network of its own
        width = vision.need("hidden_size")
        work += Work(params=4 * width**2 + 2 * width * vision.need("intermediate_size"))
    values = _values(vision, work, layers=vision.need("num_hidden_layers") + text.need("num_hidden_layers"))
    image = image_side(vision, 224)
    notes = (
        f"one sample is a pair of an image of {image} x {image} pixels and a text of {positions} tokens",
        "the loss over all pairs of the global batch is not counted",
        *((kind.note,) if kind.note else ()),
    )
    return ConfigModel(
        kind.name, {**values, "image_size": image}, {"image_size": "vision_config.image_size"}, None, notes
    )


def read_whisper(keys: Keys, kind: ModelType) -> ConfigModel:
    """Read a speech recogniser of an encoder over 30 s of sound and a decoder of text."""
    hidden = keys.need("d_model")
    encoder, decoder = keys.need("encoder_layers"), keys.need("decoder_layers")
    frames = keys.size("max_source_positions") or _WHISPER_FRAMES
    tokens = keys.size("max_target_positions") or 448
    bins, vocab = keys.size("num_mel_bins") or 80, keys.need("vocab_size")
    work = linear(3 * bins, hidden, 2 * frames) + linear(3 * hidden, hidden, frames)
    work += block(hidden, 0, keys.need("encoder_ffn_dim"), frames) * encoder
    work += block(hidden, 0, keys.need("decoder_ffn_dim"), tokens, memory=frames) * decoder
    work += Work((vocab + tokens + frames) * hidden, 2 * vocab * hidden * tokens, vocab * tokens)
    values = _values(keys, work, layers=encoder + decoder, heads="encoder_attention_heads", hidden="d_model")
    notes = (
        f"one sample is 30 s of sound ({frames:,} positions) and {tokens} tokens of text; read as a network over a "
        "fixed number of positions (family vit)",
        *((kind.note,) if kind.note else ()),
    )
    return ConfigModel(kind.name, values, {"params": "d_model, encoder_layers, decoder_layers"}, None, notes)


def read_speech(keys: Keys, kind: ModelType) -> ConfigModel:
    """Read wav2vec 2.0 and its kin: convolutions over the wave, then a transformer."""
    hidden, layers = keys.need("hidden_size"), keys.need("num_hidden_layers")
    channels = keys.items("conv_dim") or (512,) * 7
    kernels = keys.items("conv_kernel") or (10, 3, 3, 3, 3, 2, 2)
    strides = keys.items("conv_stride") or (5, 2, 2, 2, 2, 2, 2)
    work, length, before = Work(), _SPEECH_SAMPLES, 1
    for width, kernel, stride in zip(channels, kernels, strides, strict=False):
        if not all(type(number) is int and number > 0 for number in (width, kernel, stride)):
            raise _odd(keys, "conv_dim")
        length = max(1, (length - kernel) // stride + 1)
        work += linear(before * kernel, width, length)
        before = width
    groups = keys.size("num_conv_pos_embedding_groups") or 16
    kernel = keys.size("num_conv_pos_embeddings") or 128
    work += linear(before, hidden, length)
    work += Work(
        hidden * hidden * kernel // groups, 2 * hidden * hidden * kernel // groups * length, hidden * length
    )
    work += block(hidden, 0, keys.need("intermediate_size"), length) * layers
    values = _values(keys, work, layers=layers)
    notes = (
        f"one sample is {_SPEECH_SAMPLES / 16_000:.1f} s of sound at 16 kHz ({length} positions): scale samples to "
        "your clips; read as a network over a fixed number of positions (family vit)",
        *((kind.note,) if kind.note else ()),
    )
    return ConfigModel(kind.name, values, {"params": "hidden_size, num_hidden_layers, conv_dim"}, None, notes)


def vision_work(keys: Keys) -> Work:
    """A vision transformer over one image."""
    hidden = keys.need("embed_dim", "hidden_size")
    layers = keys.need("num_hidden_layers", "depth")
    heads = keys.size("num_attention_heads", "num_heads") or max(1, hidden // 64)
    ffn = ffn_width(keys, hidden)
    patch = keys.size("patch_size", "spatial_patch_size") or 16
    image = image_side(keys, 224)
    channels = keys.size("num_channels", "in_channels", "in_chans") or 3
    patches = (image // patch) ** 2
    if not patches:
        raise _odd(keys, "patch_size")
    gated = is_gated(keys)
    work = linear(channels * patch * patch * (keys.size("temporal_patch_size") or 1), hidden, patches)
    work += block(hidden, heads, ffn, patches + 1, gated=gated) * layers
    work += Work(params=-2 * hidden * (hidden - _kept_width(keys, hidden, heads)) * layers)
    table = 0 if keys.section("rope_parameters", "rope_scaling") or "rope_theta" in keys else patches
    return work + Work(params=(table + 4) * hidden)


def _kept_width(keys: Keys, hidden: int, heads: int) -> int:
    """Width of an encoder's keys, and of its values: less than its own where heads share them."""
    return hidden * min(keys.size("num_key_value_heads") or heads, heads) // heads


def ffn_width(keys: Keys, hidden: int) -> int:
    """Width of the feed-forward networks of a vision transformer."""
    ffn = keys.size("intermediate_size", "mlp_dim") or round(hidden * (keys.ratio("mlp_ratio") or 4.0))
    # DINOv2 keeps the parameters of the plain network
    return 8 * math.ceil(2 * ffn / 3 / 8) if keys.flag("use_swiglu_ffn", False) else ffn


def is_gated(keys: Keys) -> bool:
    """Whether the feed-forward networks of a vision transformer have a gate."""
    stated = any(keys.flag(name, False) for name in ("use_swiglu_ffn", "use_gated_mlp"))
    return (
        stated
        or keys.text("hidden_act") == "silu"
        or keys.text("model_type") in ("pixtral", "glm4v_vision", "glm4v_moe_vision")
    )


def image_side(keys: Keys, usual: int) -> int:
    """Side in pixels of a square image of the stated area; `usual` where none is stated."""
    value = keys.data.get("image_size")
    if isinstance(value, list) and value and all(type(side) is int and side > 0 for side in value):
        return round(math.sqrt(value[0] * value[-1]))
    return keys.size("image_size") or usual


def _values(
    keys: Keys, work: Work, *, layers: int, heads: str = "num_attention_heads", hidden: str = "hidden_size"
) -> dict[str, Any]:
    width, number = keys.need(hidden), keys.need(heads)
    if width % number:
        raise InputError(f"{keys.place}: {heads} {number} does not divide {hidden} {width}")
    return {
        "family": "vit", "params": work.params, "layers": layers, "hidden": width, "heads": number,
        "forward_flops_per_sample": work.flops, "activations_per_sample": work.activations,
    }  # fmt: skip


def _odd(keys: Keys, name: str) -> InputError:
    return InputError(f"{keys.place}: {name}: does not describe a network")


_CLIP_VISION = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "image_size": 224, "patch_size": 16,
}  # fmt: skip
_CLIP_TEXT = {
    "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8,
    "max_position_embeddings": 77, "vocab_size": 49408,
}  # fmt: skip
