"""A model stated by the arguments of Megatron-LM and NeMo, put under the keys of a `config.json` and counted there."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config import ConfigModel, model_of_config
from planner.trainer_files.hub import preset_of_hub_name
from planner.trainer_files.keys import Lookup

# key of config.json -> name in Megatron-LM and NeMo
NUMBERS = {
    "num_hidden_layers": "num_layers", "hidden_size": "hidden_size", "intermediate_size": "ffn_hidden_size",
    "num_attention_heads": "num_attention_heads", "head_dim": "kv_channels",
    "max_position_embeddings": "max_position_embeddings", "num_experts_per_tok": "moe_router_topk",
    "moe_intermediate_size": "moe_ffn_hidden_size", "kv_lora_rank": "kv_lora_rank", "q_lora_rank": "q_lora_rank",
    "shared_expert_intermediate_size": "moe_shared_expert_intermediate_size", "v_head_dim": "v_head_dim",
    "qk_nope_head_dim": "qk_head_dim", "qk_rope_head_dim": "qk_pos_emb_head_dim", "mamba_num_heads": "mamba_num_heads",
    "mamba_head_dim": "mamba_head_dim", "ssm_state_size": "mamba_state_dim", "n_groups": "mamba_num_groups",
}  # fmt: skip
# Values that Megatron-LM takes where an argument is absent (megatron/training/arguments.py).
_LATENT = {"kv_lora_rank": 32, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
_STATE_SPACE = {"mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8}
_TOKENIZERS = {
    "GPT2BPETokenizer": 50257, "BertWordPieceLowerCase": 30522, "BertWordPieceCase": 28996, "Llama2Tokenizer": 32000,
}  # fmt: skip
_USUAL_VOCAB = 50257
_INTERVAL = 2
_VOCAB_STEP = 128


def stated_model(
    keys: Lookup, prefix: str, *, gated: bool, tied: bool, learned_positions: bool, vocab: int | None, split: int,
    kv_heads: int | None, latent: bool, kind: str = "",
) -> ConfigModel:  # fmt: skip
    """Count the model whose sizes are given under `prefix`.

    Args:
        keys: the file.
        prefix: before each name, such as `model.`; empty for arguments.
        gated: the feed-forward network has a gate.
        tied: input and output embeddings are one.
        learned_positions: positions have a table.
        vocab: size of the vocabulary where it is stated.
        split: accelerators over which the vocabulary is padded (tensor parallelism).
        kv_heads: groups of queries; None: as many as heads.
        latent: latent attention.
        kind: `bert` or `t5` where the model is no decoder.

    Raises:
        InputError: a size is missing; names the argument.
    """
    data: dict[str, Any] = {"tie_word_embeddings": tied}
    for name, size_key in NUMBERS.items():
        value = keys.whole(prefix + size_key)
        if value is not None:
            data[name] = value
    _complete(data, gated, kv_heads, latent)
    _experts(keys, prefix, data)
    pattern = _pattern(keys, prefix, data.get("num_hidden_layers") or 0)
    if pattern:
        data = {**_STATE_SPACE, **data, "hybrid_override_pattern": pattern}
        hidden = data.get("hidden_size") or 0
        data.setdefault("mamba_num_heads", 2 * hidden // data["mamba_head_dim"])
    notes: list[str] = []
    doubts: list[str] = []
    whole = prefix.removesuffix("encoder.")  # where the model's other keys are
    if vocab is None:
        vocab, note, stated = _vocabulary(keys, whole, "BertWordPieceLowerCase" if kind else "")
        (notes if stated else doubts).append(note)
    padded = keys.whole(f"{whole}padded_vocab_size") or keys.whole(f"{whole}pad_vocab_size_to")
    data["vocab_size"] = padded or _padded(keys, whole, vocab, split)
    if padded is not None:  # whatever the vocabulary is
        notes, doubts = [], []
    data["model_type"] = (
        ("llama" if gated else "gpt2" if learned_positions else "gpt_neox") if not pattern else "nemotron_h"
    )
    if kind:
        data |= _HALVES[kind](keys, data, gated)
    place = str(keys.document.path)
    if not pattern:
        _check(keys, prefix, data)
    if gated and learned_positions and kind != "t5":
        notes.append("learned positions are not counted")
    model = model_of_config(data, place)
    sources = {key: f"{prefix}{NUMBERS.get(source, source)}" for key, source in model.sources.items()}
    sources.pop("vocab", None)
    return replace(
        model, model_type="own sizes", sources=sources, notes=(*model.notes, *notes),
        doubts=(*model.doubts, *doubts),
    )  # fmt: skip


def _check(keys: Lookup, prefix: str, data: dict[str, Any]) -> None:
    needed = ("num_hidden_layers", "hidden_size", "num_attention_heads")
    missing = [prefix + NUMBERS[name] for name in needed if name not in data]
    if missing:
        unset = "; ".join(keys.document.remarks[:4])
        why = f" ({unset})" if unset else ""
        raise InputError(f"{keys.document.path}: {' and '.join(missing)} must be given{why}")


def _padded(keys: Lookup, prefix: str, vocab: int, split: int) -> int:
    """The vocabulary in whole steps on each of the accelerators that divide it."""
    step = (keys.whole(f"{prefix}make_vocab_size_divisible_by") or _VOCAB_STEP) * max(1, split)
    return step * -(-vocab // step)


def _bert(_keys: Lookup, _data: dict[str, Any], _gated: bool) -> dict[str, Any]:
    return {"model_type": "bert"}


def _t5(keys: Lookup, data: dict[str, Any], gated: bool) -> dict[str, Any]:
    """The keys of an encoder-decoder; both halves have the same layers where one number is given."""
    layers = keys.whole("encoder_num_layers") or data.get("num_hidden_layers")
    decoder = keys.whole("decoder_num_layers") or keys.whole("model.decoder.num_layers")
    heads, hidden = data.get("num_attention_heads"), data.get("hidden_size")
    return {
        "model_type": "t5", "d_model": hidden, "num_heads": heads, "num_layers": layers, "num_hidden_layers": layers,
        "num_decoder_layers": decoder or layers, "d_kv": data.get("head_dim"), "d_ff": data.get("intermediate_size"),
        "feed_forward_proj": "gated-gelu" if gated else "relu",
    }  # fmt: skip


_HALVES = {"bert": _bert, "t5": _t5}


def _pattern(keys: Lookup, prefix: str, layers: int) -> str:
    """A letter for each layer of a hybrid, as Megatron-LM allots its shares; empty for a transformer.

    Shares of attention and of feed-forward layers leave the others to state spaces
    (megatron/core/ssm/mamba_hybrid_layer_allocation.py).
    """
    stated = keys.text(f"{prefix}hybrid_override_pattern") or keys.text(f"{prefix}hybrid_layer_pattern")
    shares = [keys.number(f"{prefix}hybrid_{kind}_ratio") or 0.0 for kind in ("attention", "mlp")]
    module = keys.document.data.get("spec")
    state_spaces = "mamba" in " ".join(map(str, module if isinstance(module, list) else [module]))
    state_spaces = state_spaces or keys.has(f"{prefix}ngroups_mamba")  # NeMo's
    if stated or not (any(shares) or state_spaces):
        # after a slash are the layers that predict further tokens; bars and brackets part stages and groups
        return re.sub(r"[|\[\]]", "", re.split("[/:]", stated)[0])
    attention, dense = (min(layers, max(0, round(layers * share))) for share in shares)
    return ("*" * attention + "-" * dense + "M" * layers)[:layers]


def _complete(data: dict[str, Any], gated: bool, kv_heads: int | None, latent: bool) -> None:
    hidden = data.get("hidden_size")
    if hidden and "intermediate_size" not in data:
        data["intermediate_size"] = int(4 * hidden * 2 / 3 / 64) * 64 if gated else 4 * hidden
    if kv_heads is not None:
        data["num_key_value_heads"] = kv_heads
    if latent:
        for name, value in _LATENT.items():
            data.setdefault(name, value)
    else:
        data.pop("kv_lora_rank", None)


def _experts(keys: Lookup, prefix: str, data: dict[str, Any]) -> None:
    names = (f"{prefix}num_experts", f"{prefix}num_moe_experts", "moe_num_experts")
    experts = next((keys.whole(name) for name in names if keys.has(name)), None)
    if experts in (None, 1):  # Megatron-DeepSpeed says 1 of a dense model
        for name in ("num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size"):
            data.pop(name, None)
        return
    data["num_experts"] = experts
    frequency = keys.get(f"{prefix}moe_layer_freq")
    layers = data.get("num_hidden_layers") or 0
    if keys.has("moe_expert_parallel_size") or keys.has("deepspeed") or keys.has("zero_optimization"):
        # DeepSpeed's experts (Megatron-DeepSpeed, GPT-NeoX): in every other layer, one for a token
        frequency = keys.whole("expert_interval") or keys.whole("moe_expert_interval") or _INTERVAL
        data.setdefault("num_experts_per_tok", keys.whole("topk") or keys.whole("moe_top_k") or 1)
    data.setdefault("num_experts_per_tok", 2)
    if isinstance(frequency, str) and not frequency.isdigit():
        frequency = _frequency(frequency)
    if isinstance(frequency, list) and len(frequency) == layers:
        data["moe_layer_freq"] = frequency
    elif frequency is not None and str(frequency).isdigit() and int(frequency) > 1:
        data["moe_layer_freq"] = [int(layer % int(frequency) == 0) for layer in range(layers)]


def _frequency(text: str) -> list[int] | None:
    """The list that an expression like `([0]*3+[1]*58)` stands for; nothing is evaluated."""
    out: list[int] = []
    for part in text.replace(" ", "").strip("()").split("+"):
        match = re.fullmatch(r"\(?\[([01](?:,[01])*)\]\)?(?:\*([0-9]{1,3}))?", part)
        if match is None:
            return None
        out += [int(digit) for digit in match[1].split(",")] * int(match[2] or 1)
        if len(out) > 1000:
            return None
    return out


def _vocabulary(keys: Lookup, prefix: str, usual: str) -> tuple[int, str, bool]:
    """The vocabulary by the tokenizer, else by `usual`; how it was taken; whether the file states it."""
    kind = keys.text(f"{prefix}tokenizer_type") or keys.text(f"{prefix}tokenizer.type") or usual
    if kind in _TOKENIZERS:
        return _TOKENIZERS[kind], f"the vocabulary is that of {kind}", True
    for name in ("tokenizer_model", "tokenizer_name_or_path", "tokenizer.type", "tokenizer.model"):
        text = keys.text(prefix + name)
        preset = preset_of_hub_name(text) if text else None
        if preset is not None and "vocab" in preset.values:
            return int(preset.values["vocab"]), f"the vocabulary is that of {preset.name}, by {name}", True
    if "sentencepiece" in f"{kind} {keys.text(f'{prefix}tokenizer.library')}".lower():
        size = _TOKENIZERS["Llama2Tokenizer"]
        return (
            size,
            f"assumed: the vocabulary of a sentencepiece model has {size:,} tokens, as Llama 2's",
            False,
        )
    return (
        _USUAL_VOCAB, f"assumed: the vocabulary has {_USUAL_VOCAB:,} tokens; the file does not state it", False,
    )  # fmt: skip
