"""Parameters of what stands between an encoder and a language model, and of encoders of speech: Q-Former, Conformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.inputs.model_config.encoders import tower_params
from planner.inputs.model_config.model import Keys


def qformer_params(keys: Keys) -> int:
    """Queries that attend to each other and, every few layers, to the encoder (BLIP-2, arXiv:2301.12597, section 3)."""
    hidden, layers = keys.need("hidden_size"), keys.need("num_hidden_layers")
    ffn = 2 * hidden * keys.need("intermediate_size")
    crossed = -(-layers // (keys.size("cross_attention_frequency") or 1))
    across = 2 * hidden * hidden + 2 * hidden * (keys.size("encoder_hidden_size") or hidden)
    texts = 0
    if keys.text("model_type").startswith(
        "instructblip"
    ):  # reads the instruction too, by networks of its own
        tables = keys.need("vocab_size") + (keys.size("max_position_embeddings") or 0)
        texts = layers * ffn + tables * hidden
    return layers * (4 * hidden * hidden + ffn) + crossed * across + texts


def conformer_params(keys: Keys) -> int:
    """Two half feed-forward networks around attention and a convolution (Conformer, arXiv:2005.08100, section 2)."""
    hidden, layers = keys.need("hidden_dim"), keys.need("num_layers")
    inner = keys.need("num_heads") * keys.need("dim_head")
    wide = hidden * (keys.size("conv_expansion_factor") or 2)
    ffns = 2 * 2 * hidden * hidden * (keys.size("feedforward_mult") or 4)
    attention = 4 * hidden * inner + (2 * (keys.size("max_pos_emb") or 512) + 1) * keys.need("dim_head")
    convolution = hidden * 2 * wide + wide * (keys.size("conv_kernel_size") or 15) + wide * hidden
    return layers * (ffns + attention + convolution) + (keys.size("input_dim") or 0) * hidden


def resampler_params(keys: Keys) -> int:
    """Latents that attend to the encoder and to themselves, before networks four times as wide (arXiv:2405.02246)."""
    hidden, head = keys.need("hidden_size"), keys.need("resampler_head_dim")
    width, kept = keys.need("resampler_n_heads") * head, keys.need("num_key_value_heads") * head
    layer = 2 * hidden * width + 2 * hidden * kept + 3 * hidden * 4 * hidden
    return keys.need("resampler_depth") * layer + keys.need("resampler_n_latents") * hidden


def pooling_params(keys: Keys) -> int:
    """Attention over neighbouring positions of two inner layers, then a gated projection (Molmo2Adapter)."""
    hidden, wide = keys.need("hidden_size"), keys.need("intermediate_size")
    width = keys.need("num_attention_heads") * keys.need("head_dim")
    return 3 * 2 * hidden * width + width * hidden + wide * (2 * hidden + keys.need("text_hidden_size"))


def joint_params(kind: str, vision: Keys, text: Keys) -> int:
    """What joins an encoder and a language model where the configuration has no section for it; 0 where unknown.

    As the classes of Transformers 5.24 build it.
    """
    if kind not in _JOINTS:
        return 0
    from_, to = vision.need("hidden_size"), text.need("hidden_size")
    return _JOINTS[kind](from_, to, vision, text)


# Defaults of Blip2QFormerConfig and GraniteSpeechEncoderConfig (Transformers 5.24), which files leave out.
_QFORMER = {
    "hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072, "vocab_size": 30522,
    "max_position_embeddings": 512, "cross_attention_frequency": 2, "encoder_hidden_size": 1408,
}  # fmt: skip
_CONFORMER = {
    "hidden_dim": 1024, "num_layers": 10, "num_heads": 8, "dim_head": 128, "feedforward_mult": 4,
    "conv_kernel_size": 15, "conv_expansion_factor": 2, "input_dim": 160, "max_pos_emb": 512,
}  # fmt: skip
# Defaults of Idefics2PerceiverConfig and Molmo2AdapterConfig.
_RESAMPLER = {
    "hidden_size": 4096, "resampler_n_latents": 64, "resampler_depth": 3, "resampler_n_heads": 16,
    "resampler_head_dim": 96, "num_key_value_heads": 4,
}  # fmt: skip
_POOLING = {
    "hidden_size": 1152, "num_attention_heads": 16, "head_dim": 72, "intermediate_size": 18944,
    "text_hidden_size": 3584,
}  # fmt: skip
_BRIDGES: dict[str, tuple[Callable[[Keys], int], Mapping[str, int]]] = {
    "blip_2_qformer": (qformer_params, _QFORMER),
    "instructblip_qformer": (qformer_params, _QFORMER),
    "instructblipvideo_qformer": (qformer_params, _QFORMER),
    "granite_speech_encoder": (conformer_params, _CONFORMER),
    "idefics2_perceiver": (resampler_params, _RESAMPLER),
    "molmo2_adapter": (pooling_params, _POOLING),
}


def _convolved(wide: int, to: int) -> int:
    """The neck of SAM's encoder (256 channels), two convolutions of 3 x 3 and a matrix."""
    return wide * 256 + 9 * 256 * (256 + 512) + 9 * 512 * 1024 + 1024 * to


_JOINTS: dict[str, Callable[[int, int, Keys, Keys], int]] = {
    # an encoder of clips like that of images, and two layers
    "video_llava": lambda wide, to, vision, _: tower_params(vision) + wide * to + to * to,
    "idefics2": lambda wide, to, _, text: text.need("intermediate_size") * (2 * wide + to),
    "paddleocr_vl": lambda wide, to, vision, _: (
        (merged := wide * (vision.size("spatial_merge_size") or 2) ** 2) * (merged + to)
    ),
    "got_ocr2": lambda wide, to, _, __: _convolved(wide, to),
    "pp_chart2table": lambda wide, to, _, __: _convolved(wide, to),
    "deepseek_vl_hybrid": lambda wide, to, _, __: to * to + to * (wide + 1024) // 2,
}


def bridge_params(part: object, place: str) -> int | None:
    """Parameters of a section of a configuration; None where it is no network that is counted here.

    Raises:
        InputError: a size is odd; names the key.
    """
    kind = part.get("model_type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str) or kind not in _BRIDGES:
        return None
    count, defaults = _BRIDGES[kind]
    return count(Keys(part, place, defaults))
