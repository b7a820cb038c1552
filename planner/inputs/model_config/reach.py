"""How far the layers of a model attend: sliding windows, and layers that keep a state in place of scores."""

from __future__ import annotations

from typing import Any

from planner.inputs.model_config.mixers import Attention, state_elements
from planner.inputs.model_config.model import Keys

_ATTEND = ("attention", "global", "both")
# State spaces work in chunks of so many tokens (arXiv:2405.21060); their work is that of a window as wide, and their
# state is counted as its keys and values.
_CHUNK = 256
# Where a configuration does not say which layers have the window (Transformers' defaults): one in so many has none.
_PATTERNS = {
    "gemma2": 2,
    "gemma3_text": 6,
    "gemma3": 6,
    "cohere2": 4,
    "gpt_oss": 2,
    "llama4": 4,
    "llama4_text": 4,
}
# Models all of whose layers have the window where it is set; those that use it only where asked (Transformers 5.24).
_ALL_WINDOWED = (
    *(
        "mistral", "ministral3", "mixtral", "starcoder2", "phi3", "phi4mm", "phi4_multimodal", "phimoe", "qwen3_moe",
    ),
)  # fmt: skip
_WHERE_ASKED = ("qwen2", "qwen3", "smollm3")


def window_of(keys: Keys) -> int | None:
    """Tokens of the sliding window, None where there is none or it is switched off.

    Attention within chunks (Llama 4) reaches half a chunk in the mean.
    """
    chunk = keys.data.get("attention_chunk_size")
    stated = keys.data.get("sliding_window") or keys.data.get("local_attention")
    value = chunk // 2 if type(chunk) is int else stated
    used = keys.flag("use_sliding_window", not keys.text("model_type").startswith(_WHERE_ASKED))
    return value if type(value) is int and value > 0 and used else None


def windowed_layers(keys: Keys, layers: int) -> int | None:
    """Layers that have the window; None where the configuration leaves it open."""
    names = [str(name) for name in keys.items("layer_types")][:layers]
    if len(names) == layers:
        return sum("sliding" in name or "chunked" in name for name in names)
    turned = keys.items("no_rope_layers")[
        :layers
    ]  # Llama 4: layers with rotary positions are those in chunks
    if len(turned) == layers:
        return sum(map(bool, turned))
    if every := keys.size("global_attn_every_n_layers"):  # ModernBERT: the first of so many sees all
        return layers - -(-layers // every)
    if (first := keys.count("max_window_layers")) is not None:  # Qwen: the layers after so many
        return max(0, layers - first)
    kind = keys.text("model_type")
    pattern = _pattern(keys) or _PATTERNS.get(kind)
    if pattern:
        return layers - layers // pattern
    return layers if kind in _ALL_WINDOWED else None


def _pattern(keys: Keys) -> int | None:
    """One in so many layers has no window; EXAONE writes them as letters, the last of which is such a layer."""
    letters = keys.text("sliding_window_pattern")
    return len(letters) or keys.count("sliding_window_pattern", "_sliding_window_pattern") or None


def reach_of(keys: Keys, mixers: tuple[str, ...], attention: Attention) -> dict[str, Any]:
    """Fields of the model that say how much of full attention its layers do."""
    layers = len(mixers)
    attend = sum(mixer in _ATTEND for mixer in mixers)
    if attend == layers:
        window, windowed = window_of(keys), windowed_layers(keys, layers)
        reach = {"attention_window": window, "windowed_layers": windowed} if window and windowed else {}
        return reach | _latent(keys)
    if not attend:
        chunk = keys.size("chunk_size") or _CHUNK
        state_width = state_elements(keys, attention.hidden) if "mamba" in mixers else chunk
        return {"attention_window": chunk, "kv_width": max(1, round(state_width / chunk))}
    share = attend / layers
    whole = _latent(keys).get("kv_width", 2 * attention.kv_heads * attention.head_dim)
    return {"attention_ratio": round(share, 4), "kv_width": max(1, round(whole * share))}


def _latent(keys: Keys) -> dict[str, Any]:
    """What latent attention caches per token and layer (arXiv:2405.04434): its latent and the rotary part of keys."""
    rank = keys.size("kv_lora_rank")
    return {} if rank is None else {"kv_width": rank + keys.need("qk_rope_head_dim")}
