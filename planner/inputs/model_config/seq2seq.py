"""Sizes of encoder-decoders of text."""

from __future__ import annotations

from typing import Any

from planner.inputs.model_config.model import ConfigModel, Keys, ModelType


def read_t5(keys: Keys, kind: ModelType) -> ConfigModel:
    """Read T5 and its kin: heads of their own width, relative positions, one or two tables of the vocabulary."""
    hidden, heads = keys.need("d_model"), keys.need("num_heads")
    encoder = keys.need("num_layers")
    decoder = keys.size("num_decoder_layers") or encoder
    head_dim = keys.size("d_kv") or hidden // heads
    gated = keys.text("feed_forward_proj").startswith("gated")
    tied = keys.flag("tie_word_embeddings", kind.tied)
    return _encoder_decoder(
        keys, kind, layers=(encoder, decoder), hidden=hidden, heads=heads, head_dim=head_dim,
        ffn=keys.need("d_ff"), gated=gated, tied=tied, positions=0,
    )  # fmt: skip


def read_bart(keys: Keys, kind: ModelType) -> ConfigModel:
    """Read BART and its kin: both halves with sizes of their own, of which the encoder's stand for both."""
    hidden = keys.need("d_model", "hidden_size")
    heads = keys.need("encoder_attention_heads", "num_attention_heads")
    encoder = keys.need("encoder_layers", "num_hidden_layers")
    decoder = keys.size("decoder_layers") or encoder
    positions = 2 * (keys.count("max_position_embeddings") or 0) if kind.positions else 0
    return _encoder_decoder(
        keys, kind, layers=(encoder, decoder), hidden=hidden, heads=heads, head_dim=hidden // heads,
        ffn=keys.need("encoder_ffn_dim", "decoder_ffn_dim", "intermediate_size"), gated=False,
        tied=keys.flag("tie_word_embeddings", kind.tied), positions=positions,
    )  # fmt: skip


def _encoder_decoder(
    keys: Keys, kind: ModelType, *, layers: tuple[int, int], hidden: int, heads: int, head_dim: int, ffn: int,
    gated: bool, tied: bool, positions: int,
) -> ConfigModel:  # fmt: skip
    vocab = keys.need("vocab_size")
    encoder, decoder = layers
    attention = 4 * hidden * heads * head_dim
    mlp = (3 if gated else 2) * hidden * ffn
    params = encoder * (attention + mlp + 2 * hidden) + decoder * (2 * attention + mlp + 3 * hidden)
    params += (vocab * (1 if tied else 2) + positions + 2) * hidden
    values: dict[str, Any] = {
        "family": "transformer", "architecture": "encoder_decoder", "layers": encoder + decoder, "hidden": hidden,
        "heads": heads, "kv_heads": heads, "head_dim": head_dim, "ffn": ffn, "gated_mlp": gated, "vocab": vocab,
        "tied_embeddings": tied, "params": params,
    }  # fmt: skip
    notes = [kind.note] if kind.note else []
    notes.append("one sequence_length is used for the encoder and the decoder")
    context = keys.count("max_position_embeddings", "n_positions")
    sources = {"layers": "num_layers", "hidden": "d_model", "ffn": "d_ff"} if "d_ff" in keys else {}
    return ConfigModel(kind.name, values, sources, context, tuple(notes))
