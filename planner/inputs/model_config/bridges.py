"""Parameters of what stands between an encoder and a language model, and of encoders of speech: Q-Former, Conformer."""

from __future__ import annotations

from collections.abc import Callable

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
    ):  # reads the instruction too, with a network of its own
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


BRIDGES: dict[str, Callable[[Keys], int]] = {
    "blip_2_qformer": qformer_params,
    "instructblip_qformer": qformer_params,
    "instructblipvideo_qformer": qformer_params,
    "granite_speech_encoder": conformer_params,
}
