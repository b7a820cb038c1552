"""Parameters of what stands between an encoder and a language model, and of encoders of speech: Q-Former, Conformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


# Defaults of Blip2QFormerConfig and GraniteSpeechEncoderConfig (Transformers 5.24), which files leave out.
_QFORMER = {
    "hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072, "vocab_size": 30522,
    "max_position_embeddings": 512, "cross_attention_frequency": 2, "encoder_hidden_size": 1408,
}  # fmt: skip
_CONFORMER = {
    "hidden_dim": 1024, "num_layers": 10, "num_heads": 8, "dim_head": 128, "feedforward_mult": 4,
    "conv_kernel_size": 15, "conv_expansion_factor": 2, "input_dim": 160, "max_pos_emb": 512,
}  # fmt: skip
_BRIDGES: dict[str, tuple[Callable[[Keys], int], Mapping[str, int]]] = {
    "blip_2_qformer": (qformer_params, _QFORMER),
    "instructblip_qformer": (qformer_params, _QFORMER),
    "instructblipvideo_qformer": (qformer_params, _QFORMER),
    "granite_speech_encoder": (conformer_params, _CONFORMER),
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
