"""Parameters of what mixes the tokens of a layer: attention, latent attention, state spaces, linear attention."""

from __future__ import annotations

import math

from planner.errors import InputError
from planner.inputs.model_config.model import Keys
from planner.records import record

_LINEAR = ("linear_attention", "gated_delta_net", "linear", "kda")
_GLOBAL_HEAD = 512  # the default of `global_head_dim`
_STATE_SPACE = ("mamba", "mamba2", "ssm")


@record(frozen=True)
class Attention:
    """Widths of attention: hidden, query heads, key/value heads, width of one head."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int


def pattern_of(keys: Keys) -> str:
    """Layers that are one thing each, a letter for each: `M` state space, `*` attention, `-` dense, `E` experts.

    Raises:
        InputError: another letter, such as those of Megatron-LM's sparse attention; names them.
    """
    pattern = keys.text("hybrid_override_pattern")
    others = sorted(set(pattern) - set("M*-E"))
    if others:
        raise InputError(
            f"{keys.place}: layers {', '.join(map(repr, others))} of the hybrid pattern are not known, so the size of "
            "the model is not known; give the sizes under 'model' yourself"
        )
    names = [str(name) for name in keys.items("layers_block_type")]
    if pattern or not {"moe", "mlp"} & set(names):
        return pattern
    letters = {"moe": "E", "mlp": "-", "attention": "*", "full_attention": "*"}
    return "".join(letters.get(name, "M") for name in names)


def mixers_of(keys: Keys, layers: int) -> tuple[str, ...]:
    """The mixer of each layer: `attention`, `global`, `linear`, `kda`, `lightning`, `mamba`, `conv`, `both`, `none`."""
    pattern = pattern_of(keys)
    if pattern:
        return tuple({"M": "mamba", "*": "attention"}.get(letter, "none") for letter in pattern)
    full = keys.section("linear_attn_config").get("full_attn_layers")
    if isinstance(full, list):  # Kimi Linear counts its layers from one
        return tuple("attention" if layer in full else "kda" for layer in range(1, layers + 1))
    names = [str(name) for name in (*keys.items("layer_types"), *keys.items("layers_block_type"))][:layers]
    if len(names) == layers:
        return tuple(_mixer(name, keys) for name in names)
    if keys.items("attn_layer_indices"):
        chosen = set(keys.items("attn_layer_indices"))
        return tuple("attention" if layer in chosen else "mamba" for layer in range(layers))
    period, offset = keys.size("attn_layer_period"), keys.count("attn_layer_offset") or 0
    if period:
        return tuple("attention" if layer % period == offset else "mamba" for layer in range(layers))
    interval = keys.size("full_attention_interval")
    if interval:
        return tuple("linear" if (layer + 1) % interval else "attention" for layer in range(layers))
    kind = keys.text("model_type")
    if kind in ("mamba", "mamba2", "falcon_mamba", "bamba"):
        return ("mamba",) * layers
    return ("both" if kind == "falcon_h1" else "attention",) * layers


def _mixer(name: str, keys: Keys) -> str:
    """The mixer by its name; Transformers 5 calls state spaces and lightning attention `linear_attention` too."""
    if name in _LINEAR:
        if any(size in keys for size in ("mamba_d_state", "ssm_state_size")):
            return "mamba"
        return "lightning" if keys.text("model_type").startswith("minimax") else "linear"
    if name == "full_attention" and keys.text("model_type").startswith("gemma4"):
        return "global"
    if name in _STATE_SPACE:
        return "mamba"
    return "conv" if name == "conv" else "attention"


def mixer_params(kind: str, keys: Keys, attention: Attention) -> int:
    """Parameters of one layer's mixer."""
    if kind == "attention":
        return attention_params(keys, attention)
    if kind == "global":
        return _global_params(keys, attention)
    if kind == "linear":
        return _delta_net_params(keys, attention.hidden)
    if kind == "kda":
        return _kimi_delta_params(Keys(keys.section("linear_attn_config"), keys.place), attention.hidden)
    if kind == "lightning":  # queries, keys, values, gate and output of all heads (arXiv:2501.08313)
        return 5 * attention.hidden * attention.heads * attention.head_dim
    if kind == "mamba":
        return _state_space_params(keys, attention.hidden)
    if kind == "conv":
        return 4 * attention.hidden**2 + attention.hidden * (keys.size("conv_L_cache") or 3)
    if kind == "both":
        return attention_params(keys, attention) + _state_space_params(keys, attention.hidden)
    return 0


def attention_params(keys: Keys, attention: Attention) -> int:
    """Projections of attention; with `kv_lora_rank` those of latent attention (arXiv:2405.04434, appendix C)."""
    hidden, heads = attention.hidden, attention.heads
    latent = keys.size("kv_lora_rank")
    groups, narrow = keys.size("o_groups"), keys.size("o_lora_rank")
    if groups and narrow:  # DeepSeek V4: one key, which is the value too, and an output by groups of low rank
        width, query = heads * attention.head_dim, keys.need("q_lora_rank")
        return query * (hidden + width) + hidden * attention.head_dim + narrow * (width + groups * hidden)
    if latent is None:
        gated = keys.text("model_type").startswith(("qwen3_next", "qwen3_5", "muse_glimmer"))
        queries = 2 if keys.flag("attn_output_gate", gated) else 1
        width = heads * (queries + 1) + 2 * attention.kv_heads
        return hidden * attention.head_dim * width
    rope = keys.need("qk_rope_head_dim")
    plain = keys.need("qk_nope_head_dim")
    value = keys.need("v_head_dim")
    rank = keys.size("q_lora_rank")
    width = heads * (plain + rope)
    queries_params = hidden * width if rank is None else rank * (hidden + width)
    keys_values = hidden * (latent + rope) + latent * heads * (plain + value)
    outputs = (
        2 if keys.text("model_type").startswith("hy_v4") else 1
    )  # with a gate as wide as what it lets through
    return queries_params + keys_values + outputs * heads * value * hidden


def _global_params(keys: Keys, attention: Attention) -> int:
    """Gemma 4's layers over the whole sequence: wider heads, fewer of keys, which may serve as values too."""
    width = keys.size("global_head_dim") or _GLOBAL_HEAD
    kv_heads = keys.size("num_global_key_value_heads") or attention.kv_heads
    kinds = 1 if keys.flag("attention_k_eq_v", False) else 2
    return attention.hidden * width * (2 * attention.heads + kinds * kv_heads)


def _delta_net_params(keys: Keys, hidden: int) -> int:
    """Gated delta network (arXiv:2412.06464): queries, keys, values and gate, a short convolution, the output."""
    key = keys.need("linear_num_key_heads") * keys.need("linear_key_head_dim")
    heads = keys.need("linear_num_value_heads")
    value = heads * keys.need("linear_value_head_dim")
    convolution = (2 * key + value) * (keys.size("linear_conv_kernel_dim") or 4)
    return hidden * (2 * key + 2 * value + 2 * heads) + convolution + value * hidden


def _kimi_delta_params(keys: Keys, hidden: int) -> int:
    """Kimi delta attention (arXiv:2510.26692): a delta network whose two gates have the rank of a head."""
    heads, head_dim = keys.need("num_heads"), keys.need("head_dim")
    width = heads * head_dim
    convolution = 3 * width * (keys.size("short_conv_kernel_size") or 4)
    return 4 * hidden * width + 2 * head_dim * (hidden + width) + hidden * heads + convolution


def _state_space_params(keys: Keys, hidden: int) -> int:
    """Mamba (arXiv:2312.00752), or Mamba-2 (arXiv:2405.21060) where the state has heads."""
    width, state, heads = _state_sizes(keys, hidden)
    kernel = keys.size("mamba_d_conv", "conv_kernel") or 4
    if heads is None:
        rank = keys.size("mamba_dt_rank", "time_step_rank") if _is_number(keys) else None
        rank = rank or math.ceil(hidden / 16)
        return hidden * 3 * width + width * (kernel + rank + 2 * state + rank + state + 3)
    groups = keys.size("mamba_n_groups", "n_groups", "mamba_ngroups") or 1
    mixed = width + 2 * groups * state
    return hidden * (width + mixed + heads) + mixed * (kernel + 1) + 3 * heads + width + width * hidden


def state_elements(keys: Keys, hidden: int) -> int:
    """Elements of the state that a layer of Mamba keeps of a sequence, however long it is."""
    width, state, _ = _state_sizes(keys, hidden)
    return width * state


def _state_sizes(keys: Keys, hidden: int) -> tuple[int, int, int | None]:
    """Inner width of a state space, elements of the state for each of it, and heads (None: Mamba of the first kind)."""
    expand = keys.ratio("mamba_expand") or keys.ratio("expand") or 2.0
    state = keys.size("mamba_d_state", "ssm_state_size", "state_size") or 16
    heads = keys.size("mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    if heads is None and keys.text("model_type") == "mamba2":
        heads = keys.size("num_heads")
    width = keys.size("mamba_d_ssm", "mamba_intermediate_size", "d_inner") or round(expand * hidden)
    head_dim = keys.size("mamba_d_head", "mamba_head_dim")
    if head_dim is None and keys.text("model_type") == "mamba2":
        head_dim = keys.size("head_dim")
    return (heads * head_dim if heads and head_dim else width), state, heads


def _is_number(keys: Keys) -> bool:
    """Whether the rank is given; `auto` means hidden / 16."""
    return not any(isinstance(keys.data.get(name), str) for name in ("mamba_dt_rank", "time_step_rank"))
