"""The `config.json` of the package mamba_ssm, which names neither architecture nor sizes as Transformers does.

Keys and defaults: state-spaces/mamba, mamba_ssm/models/config_mamba.py and modules/mamba2.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config.model import Keys


def is_mamba_ssm(data: Mapping[str, Any]) -> bool:
    """Whether the keys are those of mamba_ssm."""
    return isinstance(data.get("ssm_cfg"), dict) and "d_model" in data and "model_type" not in data


def of_mamba_ssm(data: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The same sizes under the keys of Transformers.

    Raises:
        InputError: a size is missing or odd, or some layers are attention or have a network of their own.
    """
    keys, cell = Keys(data, place), Keys(data["ssm_cfg"], f"{place}: ssm_cfg")
    for name in ("attn_layer_idx", "d_intermediate"):
        if data.get(name):
            raise InputError(
                f"{place}: {name}: hybrids of mamba_ssm are not counted; give the sizes under 'model'"
            )
    second = cell.text("layer") == "Mamba2"
    hidden, vocab = keys.need("d_model"), keys.need("vocab_size")
    multiple = keys.size("pad_vocab_size_multiple") or 8
    expand = cell.size("expand") or 2
    sizes: dict[str, Any] = {
        "model_type": "mamba2" if second else "mamba", "hidden_size": hidden, "expand": expand,
        "num_hidden_layers": keys.need("n_layer"), "vocab_size": -(-vocab // multiple) * multiple,
        "state_size": cell.size("d_state") or (128 if second else 16), "conv_kernel": cell.size("d_conv") or 4,
        "tie_word_embeddings": keys.flag("tie_embeddings", True),
    }  # fmt: skip
    if second:
        head_dim = cell.size("headdim") or 64
        heads = max(1, expand * hidden // head_dim)
        sizes |= {"head_dim": head_dim, "num_heads": heads, "n_groups": cell.size("ngroups") or 1}
    return sizes
