"""Sizes of diffusion transformers as the diffusers library writes them (`_class_name`)."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import InputError
from planner.inputs.model_config.blocks import Work, block, linear, scores
from planner.inputs.model_config.model import ConfigModel, Keys
from planner.inputs.model_config.video import DENOISERS, read_video

# Pixels along one side of what the latent's grid stands for: the autoencoders shrink by 8.
_LATENT_SCALE = 8


def read_diffusion(keys: Keys) -> ConfigModel:
    """Read a denoiser by the class that diffusers would make of it.

    Raises:
        InputError: the class is not one that is counted; names those that are, and the presets.
    """
    name = keys.text("_class_name")
    if name in DENOISERS:
        return read_video(keys, name)
    reader = _READERS.get(name)
    if reader is None:
        classes = ", ".join((*_READERS, *DENOISERS))
        raise InputError(
            f"{keys.place}: _class_name {name!r} is not counted (known: {classes}); for the U-Nets of Stable Diffusion "
            "name the preset stable-diffusion-1.5, stable-diffusion-2 or stable-diffusion-xl, else give params, "
            "forward_flops_per_sample and activations_per_sample under 'model'"
        )
    return reader(keys)


def _flux(keys: Keys) -> ConfigModel:
    """Blocks with a stream for image and one for text, then blocks of one stream (black-forest-labs/flux)."""
    heads, head_dim = keys.size("num_attention_heads") or 24, keys.size("attention_head_dim") or 128
    hidden = heads * head_dim
    double, single = keys.count("num_layers") or 0, keys.count("num_single_layers") or 0
    usual_text = 3584 if keys.text("_class_name").startswith("QwenImage") else 4096
    channels, text_width = keys.size("in_channels") or 64, keys.size("joint_attention_dim") or usual_text
    image, texts = _tokens(1024, 2), 512
    joined = image + texts
    modulation = linear(hidden, 6 * hidden, 1) * 2
    both = block(hidden, 0, 4 * hidden, image) + block(hidden, 0, 4 * hidden, texts)
    apart = scores(hidden, 0, image, image) + scores(hidden, 0, texts, texts)
    together = scores(hidden, 0, joined, joined)
    both = both + modulation + Work(0, together.flops - apart.flops, together.activations - apart.activations)
    single_block = linear(hidden, 3 * hidden + 4 * hidden, joined) + linear(5 * hidden, hidden, joined)
    single_block = single_block + together + linear(hidden, 3 * hidden, 1)
    work = both * double + single_block * single
    work += (
        linear(channels, hidden, image) + linear(text_width, hidden, texts) + linear(hidden, channels, image)
    )
    pooled = keys.size("pooled_projection_dim") or 768
    guidance = 2 if keys.flag("guidance_embeds", False) else 1
    work += (linear(256, hidden, 1) + linear(hidden, hidden, 1)) * guidance
    work += linear(pooled, hidden, 1) + linear(hidden, hidden, 1) + linear(hidden, 2 * hidden, 1)
    return _model(keys, work, hidden, heads, double + single, 1024)


def _dit(keys: Keys) -> ConfigModel:
    """Blocks with adaptive norms (arXiv:2212.09748); cross attention to a text where its width is given."""
    heads, head_dim = keys.need("num_attention_heads"), keys.need("attention_head_dim")
    hidden, layers = heads * head_dim, keys.need("num_layers")
    sample, patch = keys.size("sample_size") or 32, keys.size("patch_size") or 2
    channels, out = keys.size("in_channels") or 4, keys.size("out_channels") or 8
    positions = (sample // patch) ** 2
    text = keys.count("cross_attention_dim") or 0
    single_block = block(hidden, 0, 4 * hidden, positions, memory=120 if text else 0)
    shared = keys.text("norm_type") == "ada_norm_single"
    work = single_block * layers + linear(hidden, 6 * hidden, 1) * (1 if shared else layers)
    work += linear(channels * patch * patch, hidden, positions) + linear(
        hidden, out * patch * patch, positions
    )
    if keys.count("caption_channels"):
        work += linear(keys.need("caption_channels"), hidden, 120) + linear(hidden, hidden, 120)
    work += (linear(256, hidden, 1) + linear(hidden, hidden, 1)) * (1 if shared else layers)
    if "num_embeds_ada_norm" in keys and not shared:
        work += Work(params=layers * (keys.need("num_embeds_ada_norm") + 1) * hidden)
    return _model(keys, work, hidden, heads, layers, sample * _LATENT_SCALE)


def _sd3(keys: Keys) -> ConfigModel:
    """Blocks with a stream for image and one for text throughout (arXiv:2403.03206)."""
    heads, head_dim = keys.need("num_attention_heads"), keys.need("attention_head_dim")
    hidden, layers = heads * head_dim, keys.need("num_layers")
    sample, patch = keys.size("sample_size") or 128, keys.size("patch_size") or 2
    image, texts = (sample // patch) ** 2, 333
    apart = scores(hidden, 0, image, image) + scores(hidden, 0, texts, texts)
    together = scores(hidden, 0, image + texts, image + texts)
    single_block = block(hidden, 0, 4 * hidden, image) + block(hidden, 0, 4 * hidden, texts)
    single_block = single_block + linear(hidden, 6 * hidden, 1) * 2
    single_block = single_block + Work(
        0, together.flops - apart.flops, together.activations - apart.activations
    )
    second = len(keys.items("dual_attention_layers"))
    more = linear(hidden, hidden, image) * 4 + scores(hidden, 0, image, image) + linear(hidden, 3 * hidden, 1)
    channels = keys.size("in_channels") or 16
    work = single_block * layers + more * second
    work += linear(channels * patch * patch, hidden, image) + linear(hidden, channels * patch * patch, image)
    work += linear(keys.size("joint_attention_dim") or 4096, hidden, texts)
    pooled = keys.size("pooled_projection_dim") or 2048
    work += linear(256, hidden, 1) + linear(pooled, hidden, 1) + linear(hidden, hidden, 1) * 2
    # the last block drops the text's own output and network
    work += Work(params=-(9 * hidden * hidden + 4 * hidden * hidden))
    return _model(keys, work, hidden, heads, layers, sample * _LATENT_SCALE)


def _tokens(pixels: int, patch: int) -> int:
    return (pixels // _LATENT_SCALE // patch) ** 2


def _model(keys: Keys, work: Work, hidden: int, heads: int, layers: int, image: int) -> ConfigModel:
    if layers < 1 or work.params < 1:
        raise InputError(f"{keys.place}: num_layers: does not describe a network")
    values = {
        "family": "diffusion", "params": work.params, "layers": layers, "hidden": hidden, "heads": heads,
        "image_size": image, "forward_flops_per_sample": work.flops, "activations_per_sample": work.activations,
    }  # fmt: skip
    notes = (
        f"one sample is one image of {image} x {image} pixels; the denoiser alone: encode images and texts beforehand",
    )
    return ConfigModel(
        keys.text("_class_name"), values, {"params": "num_layers, num_attention_heads"}, None, notes
    )


_READERS: dict[str, Callable[[Keys], ConfigModel]] = {
    "FluxTransformer2DModel": _flux,
    "QwenImageTransformer2DModel": _flux,  # blocks of two streams throughout
    "SD3Transformer2DModel": _sd3,
    "DiTTransformer2DModel": _dit,
    "PixArtTransformer2DModel": _dit,
}
