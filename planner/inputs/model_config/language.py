"""Sizes of decoders and encoders of text, layer by layer: mixers, dense and expert feed-forward networks, tables."""

from __future__ import annotations

from typing import Any

from planner.errors import InputError
from planner.inputs.model_config.mixers import Attention, mixer_params, mixers_of, pattern_of
from planner.inputs.model_config.model import ConfigModel, Keys, ModelType
from planner.inputs.model_config.reach import reach_of, window_of, windowed_layers
from planner.records import record

HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "model_dim")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "n_kv_heads",
            "num_key_value_heads_per_layer")  # fmt: skip
FFN = (
    "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "ff_intermediate_size", "hidden_dim", "d_ff",
    "dff", "block_ff_dim", "dim_ff",
)  # fmt: skip
VOCAB = ("vocab_size", "padded_vocab_size", "n_vocab")
CONTEXT = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx",
)  # fmt: skip
LATENT = ("moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size")  # width in which experts work
_HEADS_OF_ENCODERS = ("ForMaskedLM", "ForPreTraining", "ForCausalLM", "LMHeadModel")
_GATED_ACTIVATIONS = ("silu", "swiglu", "swish", "geglu", "reglu")
_STEPWISE = ("gelu_new", "gelu_fast")


@record(frozen=True)
class Experts:
    """Experts of a model: how many, how many a token passes, width of one; layers that have them.

    `latent` is the width in which routed experts work; None: that of the model.
    """

    routed: int
    per_token: int
    shared: int
    ffn: int
    shared_ffn: int
    layers: tuple[bool, ...]
    latent: int | None = None


def read_text(keys: Keys, kind: ModelType, architecture: str = "decoder") -> ConfigModel:
    """Read a decoder, or an encoder of text.

    Raises:
        InputError: a size is missing or odd; names the key.
    """
    layers = len(pattern_of(keys)) or keys.need(*LAYERS)
    attention = _attention(keys)
    gated = _gated(keys, kind)
    ffn = _ffn(keys, attention.hidden)
    experts = _experts(keys, layers, ffn)
    predicts = architecture == "decoder" or _has_head(keys)
    tied = keys.flag("tie_word_embeddings", kind.tied) if predicts else True
    vocab = keys.need(*VOCAB)
    values: dict[str, Any] = {
        "family": "transformer", "architecture": architecture, "layers": layers, "hidden": attention.hidden,
        "heads": attention.heads, "kv_heads": attention.kv_heads, "head_dim": attention.head_dim,
        "ffn": _dense_ffn(keys, ffn, experts), "gated_mlp": gated, "vocab": vocab, "tied_embeddings": tied,
    }  # fmt: skip
    if not gated and _activation(keys) in _STEPWISE:
        values["stepwise_gelu"] = True
    if experts is not None:
        width = experts.ffn  # of an expert as wide as the model that has as many weights
        if experts.latent is not None:
            width = max(1, round(width * experts.latent / attention.hidden))
        values |= {
            "experts": experts.routed, "experts_per_token": experts.per_token,
            "shared_experts": round(experts.shared * experts.shared_ffn / width), "moe_ffn": width,
            "dense_layers": experts.layers.count(False),
        }  # fmt: skip
    mixers = mixers_of(keys, layers)
    values |= reach_of(keys, mixers, attention)
    total, active = _count(keys, kind, values, mixers, attention, experts)
    values["params"] = total
    if active < total:
        values["active_params"] = active
    return ConfigModel(
        kind.name, values, _sources(keys), keys.count(*CONTEXT), tuple(_notes(keys, kind, mixers)),
        () if kind.is_known else (kind.note,),
    )  # fmt: skip


_NAMES = {
    "layers": LAYERS,
    "hidden": HIDDEN,
    "heads": HEADS,
    "kv_heads": KV_HEADS,
    "ffn": FFN,
    "vocab": VOCAB,
}


def _sources(keys: Keys) -> dict[str, str]:
    """The configuration's key behind each size."""
    sources = {name: keys.used[names[0]] for name, names in _NAMES.items() if names[0] in keys.used}
    return sources | ({"tied_embeddings": "tie_word_embeddings"} if "tie_word_embeddings" in keys else {})


def _attention(keys: Keys) -> Attention:
    hidden = keys.need(*HIDDEN)
    heads = keys.size(*HEADS) or max(1, hidden // 64)
    nested = Keys(keys.section("attn_config"), keys.place)
    kv_heads = keys.size(*KV_HEADS) or nested.size("kv_n_heads") or heads
    if keys.flag("multi_query", False) and not keys.flag("new_decoder_architecture", False):
        kv_heads = 1
    head_dim = keys.size("head_dim", "attention_head_dim", "kv_channels") or max(1, hidden // heads)
    if "kv_lora_rank" in keys:
        head_dim = keys.need("qk_nope_head_dim") + keys.need("qk_rope_head_dim")
        kv_heads = heads
    if kv_heads < heads and heads % kv_heads:
        raise InputError(
            f"{keys.place}: {kv_heads} key/value heads do not divide the {heads} attention heads"
        )
    return Attention(hidden, heads, min(kv_heads, heads), head_dim)


def _gated(keys: Keys, kind: ModelType) -> bool:
    if kind.gated is not None:
        return kind.gated
    name = _activation(keys)
    return name in _GATED_ACTIVATIONS if name else True


def _activation(keys: Keys) -> str:
    """The activation function as the configuration calls it, empty where it does not."""
    names = (keys.text(name).lower() for name in ("hidden_act", "hidden_activation", "activation_function"))
    return next((name for name in names if name), "")


def _ffn(keys: Keys, hidden: int) -> int:
    nested = Keys(keys.section("ffn_config"), keys.place)
    width = keys.size(*FFN) or nested.size("ffn_hidden_size")
    if width is not None and keys.text("model_type") == "qwen":
        width //= 2  # the first Qwen states the gate and the projection beside it as one
    if width is not None and keys.flag("block_auto_adjust_ff_dim", False):
        width = int((keys.ratio("block_ffn_dim_multiplier") or 1.0) * int(2 * width / 3))
        multiple = keys.size("block_multiple_of") or 1
        width = multiple * -(-width // multiple)
    return (
        width
        or keys.size("shared_intermediate_size")
        or round((keys.ratio("expansion_ratio") or 4.0) * hidden)
    )


def _dense_ffn(keys: Keys, ffn: int, experts: Experts | None) -> int:
    """Width of the network of layers without experts."""
    if experts is None:
        return keys.size("shared_intermediate_size") or ffn
    return (
        keys.size("intermediate_size_mlp", "dense_intermediate_size", "prefix_dense_intermediate_size") or ffn
    )


def _experts(keys: Keys, layers: int, ffn: int) -> Experts | None:
    nested = Keys(keys.section("ffn_config"), keys.place)
    routed = keys.count(
        "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"
    ) or nested.count("moe_num_experts")
    if not routed or routed < 2:
        return None
    per_token = (
        keys.size("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "experts_per_token",
                  "top_k_experts", "num_selected_experts")
        or nested.size("moe_top_k")
        or 1
    )  # fmt: skip
    width = keys.size("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size") or ffn
    shared = keys.count(
        "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"
    )
    shared_width = width
    wide = keys.count(
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "share_expert_dim",
    )
    if wide:
        shared, shared_width = 1, wide
    if keys.text("model_type").startswith("llama4"):
        shared, shared_width = 1, width
    if keys.flag("parallel_attn_mlp_res", False):  # Arctic: a network as wide as the layer beside the experts
        shared, shared_width = 1, keys.need(*HIDDEN)
    if keys.flag("enable_moe_block", False):  # Gemma 4: the plain network works beside the experts
        shared, shared_width = 1, ffn
    latent = keys.size(*LATENT)
    return Experts(routed, per_token, shared or 0, width, shared_width, _expert_layers(keys, layers), latent)


def _expert_layers(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Which layers have experts: all but the leading, the listed dense ones, or every n-th."""
    pattern = pattern_of(keys)
    if pattern:
        return tuple(letter == "E" for letter in pattern)
    kinds = keys.items("mlp_layer_types")  # of Transformers 5: `dense`, or what experts are called there
    if len(kinds) == layers and "dense" in kinds:
        return tuple(kind != "dense" for kind in kinds)
    listed = keys.items("moe_layers")
    if listed:
        return tuple(layer in listed for layer in range(layers))
    dense = keys.items("mlp_only_layers")
    first = keys.count("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers") or 0
    step = (
        keys.size("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq") if _steps(keys) else 1
    )
    period, offset = keys.size("expert_layer_period"), keys.count("expert_layer_offset") or 0
    if period:
        return tuple(layer % period == offset for layer in range(layers))
    frequency = keys.items("moe_layer_freq")
    if len(frequency) == layers:
        return tuple(bool(each) for each in frequency)
    every = step or 1
    return tuple(
        layer >= first and layer not in dense and (layer + 1) % every == 0 for layer in range(layers)
    )


def _steps(keys: Keys) -> bool:
    return not isinstance(keys.data.get("moe_layer_freq"), list)


def _count(
    keys: Keys, kind: ModelType, values: dict[str, Any], mixers: tuple[str, ...], attention: Attention,
    experts: Experts | None,
) -> tuple[int, int]:  # fmt: skip
    """Parameters in all, and those each token uses; biases are left out."""
    hidden, matrices = attention.hidden, 3 if values["gated_mlp"] else 2
    total = 2 * hidden * len(mixers)
    for layer, mixer in enumerate(mixers):
        layer_keys = keys.of_layer(layer)
        total += mixer_params(mixer, layer_keys, attention if layer_keys is keys else _attention(layer_keys))
    active = total
    latent = experts.latent if experts else None  # and the two matrices to it and back
    expert_params = matrices * (latent or hidden) * experts.ffn if experts else 0
    always = (
        matrices * hidden * experts.shared_ffn * experts.shared + 2 * hidden * (latent or 0) if experts else 0
    )
    doubled = (keys.count("num_kv_shared_layers") or 0) if keys.flag("use_double_wide_mlp", False) else 0
    for layer, has_mlp in enumerate(_has_mlp(keys, len(mixers))):
        if experts is not None and experts.layers[layer]:
            router = hidden * experts.routed
            total += router + always + experts.routed * expert_params
            active += router + always + experts.per_token * expert_params
        elif has_mlp:
            times = 2 if layer >= len(mixers) - doubled else 1
            layer_keys = keys.of_layer(layer)
            width = (
                values["ffn"]
                if layer_keys is keys
                else _dense_ffn(layer_keys, _ffn(layer_keys, hidden), experts)
            )
            total += matrices * hidden * width * times
            active += matrices * hidden * width * times
    tables = values["vocab"] * hidden * (1 if values["tied_embeddings"] else 2) + hidden
    narrow = keys.size("embedding_size")
    if narrow is not None and narrow != hidden:  # ELECTRA: a narrow table, widened before the first layer
        tables = values["vocab"] * narrow + narrow * hidden
    if values["architecture"] == "encoder" and _has_head(keys):
        tables += hidden**2  # a layer between the encoder and the words that it predicts
    if kind.positions:
        tables += (keys.count(*CONTEXT) or 0) * hidden
    boxes = keys.count("max_2d_position_embeddings") or 0  # LayoutLM: corners, width and height of a word
    tables += 4 * boxes * (keys.size("coordinate_size") or hidden)
    per_layer = (keys.count("hidden_size_per_layer_input") or 0) * len(mixers)
    tables += per_layer * 3 * hidden
    looked_up = per_layer * (keys.count("vocab_size_per_layer_input") or 0)  # a token uses a row of them
    return total + tables + looked_up, active + tables


def _has_head(keys: Keys) -> bool:
    """Whether an encoder's class predicts words."""
    return any(str(name).endswith(_HEADS_OF_ENCODERS) for name in keys.items("architectures"))


def _has_mlp(keys: Keys, layers: int) -> tuple[bool, ...]:
    pattern = pattern_of(keys)
    if pattern:
        return tuple(letter == "-" for letter in pattern)
    bare = keys.text("model_type") in ("mamba", "mamba2", "falcon_mamba")
    return (not bare,) * layers


def _notes(keys: Keys, kind: ModelType, mixers: tuple[str, ...]) -> list[str]:
    notes = [kind.note] if kind.note and kind.is_known else []
    others = [mixer for mixer in mixers if mixer not in ("attention", "global", "none")]
    if others:
        notes.append(
            f"{len(others)} of {len(mixers)} layers mix tokens without full attention: their parameters count, "
            "the state that they keep does not"
        )
    latent = keys.size(*LATENT)
    if latent is not None:
        notes.append(
            f"experts work on {latent:,} values of a token: they are counted as narrower ones that work on all, "
            "and so is what they exchange"
        )
    if "kv_lora_rank" in keys:
        notes.append("latent attention: parameters are counted from its ranks, its time as plain attention")
    window = window_of(keys)
    if window and windowed_layers(keys, len(mixers)) is None:
        notes.append(
            f"a sliding window of {window:,} tokens is not counted, as its layers are not named: longer sequences are "
            "predicted too slow (model.attention_window, windowed_layers)"
        )
    if keys.section("quantization_config"):
        method = keys.section("quantization_config").get("quant_method", "unnamed")
        notes.append(f"the weights are stored quantised ({method}); parameters are counted, not bytes")
    if keys.count("num_nextn_predict_layers"):
        notes.append("layers that predict further tokens are left out")
    if "hidden_size_per_layer_input" in keys:
        notes.append("embeddings of each layer are counted as parameters, not as work")
    return notes
