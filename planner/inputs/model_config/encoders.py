"""Encoders of images and sound before a language model: their sizes, by a configuration or by a preset."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from planner.bundled import bundled_rows
from planner.inputs.model_config.model import Keys
from planner.inputs.model_config.perception import ffn_width, image_side, is_gated, vision_work

# Side in pixels of an image where an encoder takes any: 48 patches of 14, as many positions after merging as LLaVA has.
_ANY_SIZE = 672
# Whisper's encoder, which most encoders of sound are, has 1,500 positions for 30 s (arXiv:2212.04356, section 2.2).
_POSITIONS_OF_SOUND = 1500


def tower_params(keys: Keys) -> int:
    """Parameters of an encoder, with what joins neighbouring positions before the language model."""
    if "encoder_layers" in keys:
        return _sound_params(keys)
    extended = _all_layers(keys)
    if keys.text("model_type").startswith("glm4v"):  # its blocks are as wide as what it puts out
        out, wide = keys.need("out_hidden_size"), keys.need("intermediate_size")
        work = vision_work(Keys({**extended, "intermediate_size": out}, keys.place))
        joined = (keys.size("spatial_merge_size") or 2) ** 2 * keys.need("hidden_size") * out
        return work.params + joined + out * out + 3 * out * wide
    return vision_work(Keys(extended, keys.place)).params + _merger_params(keys)


def encoder_of(keys: Keys) -> dict[str, Any]:
    """An encoder as a network of a workload: a transformer over the positions of one image or recording.

    What joins positions before the language model is not part of it.

    Raises:
        InputError: a size is absent or odd; names the key.
    """
    if "encoder_layers" in keys:
        hidden = keys.need("d_model")
        sizes = {
            "params": _sound_params(keys), "layers": keys.need("encoder_layers"), "hidden": hidden,
            "heads": keys.size("encoder_attention_heads") or max(1, hidden // 64),
            "ffn": keys.need("encoder_ffn_dim"), "gated_mlp": False,
            "tokens": keys.size("max_source_positions") or _POSITIONS_OF_SOUND,
        }  # fmt: skip
        return {"family": "transformer", "architecture": "encoder", **sizes}
    extended = Keys(_all_layers(keys), keys.place)
    if keys.text("model_type").startswith("glm4v"):
        extended = Keys({**extended.data, "intermediate_size": keys.need("out_hidden_size")}, keys.place)
    hidden = keys.need("embed_dim", "hidden_size")
    patch = keys.size("patch_size", "spatial_patch_size") or 16
    return {
        "family": "transformer", "architecture": "encoder", "params": vision_work(extended).params,
        "layers": extended.need("num_hidden_layers"), "hidden": hidden,
        "heads": keys.size("num_attention_heads", "num_heads") or max(1, hidden // 64),
        "ffn": ffn_width(extended, hidden), "gated_mlp": is_gated(keys),
        "tokens": max(1, image_side(keys, _ANY_SIZE) // patch) ** 2, **_windows(extended, patch),
    }  # fmt: skip


def _windows(keys: Keys, patch: int) -> dict[str, int]:
    """Positions in a window, a square of pixels, and the layers that have one (Qwen2.5-VL, arXiv:2502.13923, 2.1.1)."""
    whole = keys.items("fullatt_block_indexes")
    side = keys.size("window_size")
    if not whole or side is None:
        return {}
    return {
        "attention_window": max(1, side // patch) ** 2,
        "windowed_layers": keys.need("num_hidden_layers") - len(whole),
    }


def preset_encoder(preset: str) -> dict[str, Any] | None:
    """The encoder of a preset, as `encoder_of` gives it, whether params contain it or not; None where none is known."""
    sizes = _of_presets().get(preset)
    return None if sizes is None else encoder_of(Keys(sizes, f"preset_encoders.csv: {preset}"))


@cache
def _of_presets() -> dict[str, Mapping[str, Any]]:
    return {
        preset: dict(_value(pair) for pair in row["sizes"].split(";"))
        for row in bundled_rows("preset_encoders.csv")
        for preset in row["presets"].split(";")
    }


def _value(pair: str) -> tuple[str, Any]:
    key, _, value = pair.partition("=")
    if " " in value:
        return key, [int(number) for number in value.split()]
    return key, int(value) if value.isdigit() else value


def _all_layers(keys: Keys) -> dict[str, Any]:
    more = keys.count("num_global_layers") or 0
    return {**keys.data, "num_hidden_layers": keys.need("num_hidden_layers", "depth") + more}


def _sound_params(keys: Keys) -> int:
    hidden, ffn = keys.need("d_model"), keys.need("encoder_ffn_dim")
    return keys.need("encoder_layers") * (4 * hidden * hidden + 2 * hidden * ffn)


def _merger_params(keys: Keys) -> int:
    """What joins neighbouring positions of an image before the language model, also after inner layers."""
    # Qwen2-VL calls its own width embed_dim, and hidden_size that of the language model
    merged = keys.size("spatial_merge_size")
    out = keys.size("out_hidden_size", *(("hidden_size",) if "embed_dim" in keys else ()))
    if merged is None or out is None:
        return 0
    width = keys.need("embed_dim", "hidden_size") * merged**2
    return (1 + len(keys.items("deepstack_visual_indexes"))) * width * (width + out)
