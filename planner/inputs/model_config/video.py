"""Sizes of denoisers of videos, and of images of very small latents, as the diffusers library writes them.

Wan (`transformer_wan.py`), CogVideoX (`cogvideox_transformer_3d.py`) and Sana (`sana_transformer.py`). A sample of a
video model is the video that its authors train on: length and size are in the notes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from planner.inputs.model_config.blocks import Work, block, linear, scores
from planner.inputs.model_config.model import ConfigModel, Keys

Denoiser = tuple[Work, int, int, int, int, str]
# Frames of a second of 16, kept every fourth, and one more; pixels that stand for a place of the latent.
_FRAMES, _KEPT = 81, 4
_WIDE, _HIGH, _LATENT = 832, 480, 8
# Wan 2.2's smaller model has an autoencoder of its own, of 48 channels: 16 pixels to a place, 121 frames of 1280 x 704.
_DEEP_CHANNELS, _DEEP_LATENT = 48, 16
_TEXT = 512


def _wan(keys: Keys) -> Denoiser:
    heads, head_dim = keys.size("num_attention_heads") or 40, keys.size("attention_head_dim") or 128
    hidden, layers = heads * head_dim, keys.size("num_layers") or 40
    channels, out = keys.size("in_channels") or 16, keys.size("out_channels") or 16
    deep = channels == _DEEP_CHANNELS
    frames, wide, high = (121, 1280, 704) if deep else (_FRAMES, _WIDE, _HIGH)
    scale = _DEEP_LATENT if deep else _LATENT
    positions = ((frames - 1) // _KEPT + 1) * (wide // scale // 2) * (high // scale // 2)
    text = keys.size("text_dim") or 4096
    each = block(hidden, 0, keys.size("ffn_dim") or 13824, positions, memory=_TEXT) + Work(params=6 * hidden)
    image = keys.count("added_kv_proj_dim") or 0
    if image:  # keys and values of the first image, and their norm
        each += linear(image, hidden, 257) * 2 + Work(params=hidden)
    work = each * layers + linear(4 * channels, hidden, positions) + linear(hidden, 4 * out, positions)
    work += linear(text, hidden, _TEXT) + linear(hidden, hidden, _TEXT) + Work(params=2 * hidden)
    work += (
        linear(keys.size("freq_dim") or 256, hidden, 1)
        + linear(hidden, hidden, 1)
        + linear(hidden, 6 * hidden, 1)
    )
    if keys.count("image_dim"):
        width = keys.need("image_dim")
        work += linear(width, width, 257) + linear(width, hidden, 257) + Work(params=2 * (width + hidden))
    return (
        work,
        hidden,
        heads,
        layers,
        isqrt(wide * high),
        f"one sample is a video of {frames} frames at {wide} x {high}",
    )


def _cogvideox(keys: Keys) -> Denoiser:
    heads, head_dim = keys.size("num_attention_heads") or 30, keys.size("attention_head_dim") or 64
    hidden, layers, time = heads * head_dim, keys.size("num_layers") or 30, keys.size("time_embed_dim") or 512
    wide, high = keys.size("sample_width") or 90, keys.size("sample_height") or 60
    frames, patch = keys.size("sample_frames") or 49, keys.size("patch_size") or 2
    kept = (frames - 1) // (keys.size("temporal_compression_ratio") or _KEPT) + 1
    depth = keys.count("patch_size_t") or 1
    video = -(-kept // depth) * (wide // patch) * (high // patch)
    text = keys.size("max_text_seq_length") or 226
    channels, out = keys.size("in_channels") or 16, keys.size("out_channels") or 16
    each = block(hidden, 0, 4 * hidden, video + text) + linear(time, 6 * hidden, 1) * 2
    each += Work(params=4 * head_dim)  # norms of queries and keys
    work = each * layers + linear(depth * patch * patch * channels, hidden, video)
    work += (
        linear(keys.size("text_embed_dim") or 4096, hidden, text)
        + linear(hidden, time, 1)
        + linear(time, time, 1)
    )
    work += (
        linear(time, 2 * hidden, 1)
        + Work(params=4 * hidden)
        + linear(hidden, depth * patch * patch * out, video)
    )
    size = f"{wide * _LATENT} x {high * _LATENT}"
    image = isqrt(wide * high) * _LATENT
    return work, hidden, heads, layers, image, f"one sample is a video of {frames} frames at {size}"


def _sana(keys: Keys) -> Denoiser:
    """Linear attention and convolutional feed-forward networks over a latent of 32 pixels to a place."""
    heads, head_dim = keys.size("num_attention_heads") or 70, keys.size("attention_head_dim") or 32
    hidden, layers = heads * head_dim, keys.size("num_layers") or 20
    side, text = keys.size("sample_size") or 32, 300
    places = side * side
    memory, wide = keys.size("cross_attention_dim") or hidden, int(hidden * (keys.ratio("mlp_ratio") or 2.5))
    own = linear(hidden, hidden, places) * 4 + Work(0, 4 * places * hidden * head_dim, 0)
    cross = (
        linear(hidden, hidden, places) * 2
        + linear(memory, hidden, text) * 2
        + scores(hidden, 0, places, text)
    )
    depthwise = Work(2 * wide * 10, 2 * 9 * 2 * wide * places, 2 * wide * places)
    network = linear(hidden, 2 * wide, places) + depthwise + linear(wide, hidden, places)
    # queries, keys and values of the first attention and the network's end have no bias; a table of six shifts
    each = own + cross + network + Work(params=(6 - 4) * hidden)
    channels, out = keys.size("in_channels") or 32, keys.size("out_channels") or 32
    work = each * layers + linear(channels, hidden, places) + linear(hidden, out, places)
    work += linear(256, hidden, 1) + linear(hidden, hidden, 1) + linear(hidden, 6 * hidden, 1)
    work += linear(keys.size("caption_channels") or 2304, hidden, text) + linear(hidden, hidden, text)
    image = side * 32
    return work, hidden, heads, layers, image, f"one sample is one image of {image} x {image} pixels"


DENOISERS: dict[str, Callable[[Keys], Denoiser]] = {
    "WanTransformer3DModel": _wan,
    "CogVideoXTransformer3DModel": _cogvideox,
    "SanaTransformer2DModel": _sana,
}


def read_video(keys: Keys, name: str) -> ConfigModel:
    """Read one of `DENOISERS`."""
    work, hidden, heads, layers, image, sample = DENOISERS[name](keys)
    values = {
        "family": "diffusion", "params": work.params, "layers": layers, "hidden": hidden, "heads": heads,
        "image_size": image, "forward_flops_per_sample": work.flops, "activations_per_sample": work.activations,
    }  # fmt: skip
    notes = (f"{sample}; the denoiser alone: encode images and texts beforehand",)
    return ConfigModel(name, values, {"params": "num_layers, num_attention_heads"}, None, notes)
