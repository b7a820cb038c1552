"""How far the layers of a model attend: sliding windows, and layers that keep a state in place of scores."""

from __future__ import annotations

from typing import Any

from planner.inputs.model_config.mixers import Attention
from planner.inputs.model_config.model import Keys

_ATTEND = ("attention", "global", "both")
# State spaces work in chunks of so many tokens (arXiv:2405.21060); their work is that of a window as wide.
_CHUNK = 256
# Where a configuration does not say which layers have the window (Transformers' defaults): one in so many has none.
_PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "gpt_oss": 2}
_ALL_WINDOWED = ("mistral", "mixtral", "starcoder2")


def window_of(keys: Keys) -> int | None:
    """Tokens of the sliding window, None where there is none or it is switched off."""
    value = keys.data.get("sliding_window")
    used = keys.flag("use_sliding_window", True)
    return value if type(value) is int and value > 0 and used else None


def windowed_layers(keys: Keys, layers: int) -> int | None:
    """Layers that have the window; None where the configuration leaves it open."""
    names = [str(name) for name in keys.items("layer_types")][:layers]
    if len(names) == layers:
        return sum("sliding" in name for name in names)
    kind = keys.text("model_type")
    pattern = keys.size("sliding_window_pattern", "_sliding_window_pattern") or _PATTERNS.get(kind)
    if pattern:
        return layers - layers // pattern
    return layers if kind in _ALL_WINDOWED else None


def reach_of(keys: Keys, mixers: tuple[str, ...], attention: Attention) -> dict[str, Any]:
    """Fields of the model that say how much of full attention its layers do."""
    layers = len(mixers)
    attend = sum(mixer in _ATTEND for mixer in mixers)
    if attend == layers:
        window, windowed = window_of(keys), windowed_layers(keys, layers)
        return {"attention_window": window, "windowed_layers": windowed} if window and windowed else {}
    if not attend:
        return {"attention_window": keys.size("chunk_size") or _CHUNK}
    cached: dict[str, Any] = {}
    if "kv_lora_rank" not in keys:
        share = attend / layers
        cached = {"kv_width": max(1, round(2 * attention.kv_heads * attention.head_dim * share))}
    return {"attention_ratio": round(attend / layers, 4), **cached}
