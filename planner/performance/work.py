"""What one training step asks of a device: sizes, FLOPs and bytes derived from the model and training specs.

All counts are arrays that broadcast, so that one model (search) and many models (benchmark rows) take the same path.
Formulas: Megatron-LM SC'21 (arXiv 2104.04473) for FLOPs, Korthikanti et al. 2022 (arXiv 2205.05198) for activations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.performance.kernels import score_ratio_of
from planner.performance.post_training.adapters import adapted, forward_passes, learned_params
from planner.performance.post_training.counts import COUNTS, post_training_counts
from planner.performance.post_training.lengths import longest_of
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec
from planner.performance.work_sampled import NO_OPERATORS, operator_counts, sampled_activations
from planner.records import record

# NVFP4 and MXFP4 training casts, keeps and learns like fp8: only the matmuls differ.
PRECISION_GROUP = {
    "fp32": "fp32", "tf32": "tf32", "fp16": "half", "bf16": "half", "fp8": "fp8", "fp4": "fp8",
}  # fmt: skip
# Bytes of optimizer state per trainable parameter in fp32; unknown optimizers count as two moments.
OPTIMIZER_STATE_BYTES = {
    "sgd": 4.0, "momentum": 4.0, "lion": 4.0, "adafactor": 0.1, "adamw8bit": 2.0, "adamw_8bit": 2.0,
    "paged_adamw_8bit": 2.0,
}  # fmt: skip
# Masked language models predict 15 % of the tokens (BERT, arXiv 1810.04805).
MASKED_SHARE = 0.15
_SAMPLED = (ModelFamily.CNN, ModelFamily.VIT, ModelFamily.DIFFUSION)


@record(frozen=True)
class Work:
    """One training job in numbers, each of shape `(1,)` or `(n,)`.

    Lengths in tokens, widths in elements, `*_params` in parameters. `sampled` jobs (CNN, ViT, diffusion) carry
    `forward_flops` and `activations` per sample; transformers carry dimensions.

    Attributes:
        layer_params: matmul parameters of one layer, all experts.
        layer_active_params: those that one token passes.
        expert_params: the routed experts' share of `layer_params`.
        head_share: share of the tokens that reach the output projection (masked language models: the masked ones).
        head_params: parameters of the output projection (FLOPs); `embed_params` of all embedding copies (memory).
        act_replicated_bytes, act_split_bytes: saved activation bytes per token and layer, not split / split by tp.
        experts: routed experts of a layer, 1 for dense models; `routed` of them see each token, 0 for dense models.
        ffn: width of the feed-forward network (of one expert); `mlp_inputs` matrices lead into it (2 when gated).
        shape_ratio: `layer_active_params` over what the widths alone give.
        flops_per_sample: model FLOPs of forward and backward, without recompute.
        causal: share of the score matrix that is computed (0.5 causal, 1 full).
        score_ratio: score work relative to plain attention.
        operators: counts per sample by kind of operator, shape `(n, len(operators.FIELDS))`, no columns otherwise.
        inferred: 1 where those counts are not published but inferred from FLOPs and activations.
        channels_last: 1 when convolutions keep the channel innermost in memory.
        materialised: 1 when attention scores go through memory, 0 for flash attention; `fused_softmax`: 1 where one
            kernel scales, masks and normalises them.
        vector_units: 1 where plain 32-bit arithmetic keeps matrix units idle; `casts`: 1 where matmul inputs are
            rewritten in 8 bit.
        weight_bytes, grad_bytes, opt_bytes: memory per parameter; `opt_bytes` is what ZeRO-1 shards.
        lora: 1 where weights are frozen and gradients pass through; `backward`: 1 where there is a backward pass.
        evaluated: samples evaluated for each one trained on.
        unsure: log of the factor within which the FLOPs are believed to be right.
        sequences and the rest: what post-training adds (`planner.performance.post_training.counts`).
    """

    layers: Floats
    hidden: Floats
    heads: Floats
    attn_width: Floats
    kv_width: Floats
    seq: Floats
    vocab: Floats
    head_share: Floats
    params: Floats
    trainable_params: Floats
    layer_params: Floats
    layer_active_params: Floats
    expert_params: Floats
    experts: Floats
    ffn: Floats
    mlp_inputs: Floats
    shared_experts: Floats
    routed: Floats
    head_dim: Floats
    shape_ratio: Floats
    flops_per_sample: Floats
    head_params: Floats
    embed_params: Floats
    act_replicated_bytes: Floats
    act_split_bytes: Floats
    causal: Floats
    score_ratio: Floats
    materialised: Floats
    fused_softmax: Floats
    lora: Floats
    backward: Floats
    evaluated: Floats
    unsure: Floats
    element_bytes: Floats
    vector_units: Floats
    casts: Floats
    weight_bytes: Floats
    grad_bytes: Floats
    opt_bytes: Floats
    sync_bytes: Floats
    forward_flops: Floats
    activations: Floats
    operators: Floats
    inferred: Floats
    channels_last: Floats
    is_vit: Floats
    global_batch: Floats
    bytes_per_sample: Floats
    decode_rate: Floats
    sequences: Floats
    length_width: Floats
    longest: Floats
    adapter_bytes: Floats
    adapter_saved_bytes: Floats
    adapter_built_bytes: Floats
    adapted: Floats
    adapter_ratio: Floats
    frozen_bytes: Floats
    dequantised: Floats
    forward_passes: Floats
    other_params: Floats
    learners: Floats
    tuned: Floats
    reinforced: Floats
    updates: Floats
    epochs: Floats
    pair_width: Floats
    pair_logits: Floats

    def take(self, index: Ints) -> Work:
        """Rows `index` of arrays with more than one row; single values stay as they are."""
        picked: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            picked[field.name] = value if value.shape[0] == 1 else value[index]
        return Work(**picked)


def content_length(training: TrainingSpec) -> float:
    """Mean tokens of a sequence that carry content."""
    lengths = training.tuning.spread
    return float(training.sequence_length) if lengths is None else lengths.mean


def padded_tokens(work: Work, samples: Floats) -> Floats:
    """Tokens that a micro-batch of samples computes: every sequence is as long as the longest of them."""
    if not (work.length_width > 0).any():
        return samples * work.sequences * work.seq
    number = samples * work.sequences
    padded = np.minimum(work.seq * longest_of(number, work.length_width), work.longest)
    return number * np.where(work.length_width > 0, padded, work.seq)


def is_sampled(model: ModelSpec) -> bool:
    """True when the model is counted by FLOPs and activations per sample instead of transformer dimensions."""
    return model.family in _SAMPLED


def build_work(model: ModelSpec, training: TrainingSpec) -> Work:
    """Turn one model and training spec into a `Work` of one row.

    Raises:
        ValueError: when a size that the family needs is missing; the message names it.
    """
    return stack_work([(model, training)])


def stack_work(jobs: Sequence[tuple[ModelSpec, TrainingSpec]]) -> Work:
    """Stack many jobs, shape `(n_jobs,)` per field."""
    rows: list[dict[str, Any]] = [
        {
            **_state(model, training),
            **_sizes(model, training),
            **(operator_counts(model, training) if is_sampled(model) else NO_OPERATORS),
            **post_training_counts(model, training),
        }
        for model, training in jobs
    ]
    return Work(**{f.name: np.asarray([row[f.name] for row in rows], dtype=np.float64) for f in fields(Work)})


def _sizes(model: ModelSpec, training: TrainingSpec) -> dict[str, float]:
    return _sampled_sizes(model, training) if is_sampled(model) else _transformer_sizes(model, training)


def _require(model: ModelSpec, **sizes: float | None) -> None:
    missing = [name for name, value in sizes.items() if not value]
    if missing:
        raise ValueError(
            f"model {model.name!r}: {', '.join(missing)} must be given for family {model.family.value!r}"
        )


def _state(model: ModelSpec, training: TrainingSpec) -> dict[str, float]:
    """Bytes per parameter as Megatron-LM's README table counts them; LoRA trains only its adapters."""
    half = PRECISION_GROUP[training.precision] in ("half", "fp8")
    states = OPTIMIZER_STATE_BYTES.get(training.optimizer.lower(), 8.0)
    if not half:
        weight, grad, opt = 4.0, 4.0, states
    elif training.precision == "fp16":
        weight, grad, opt = 2.0, 2.0, 8.0 + states
    else:
        weight, grad, opt = 2.0, 4.0, 4.0 + states
    return {
        "params": model.params,
        "trainable_params": learned_params(model, training),
        "lora": float(adapted(training)),
        "backward": 0.0 if training.trains == "none" else 1.0,
        "evaluated": training.evaluated,
        "unsure": math.log(model.flops_within),
        "element_bytes": 2.0 if half else 4.0,
        "vector_units": 1.0 if training.precision == "fp32" else 0.0,
        "casts": 1.0 if PRECISION_GROUP[training.precision] == "fp8" else 0.0,
        "weight_bytes": weight,
        "grad_bytes": grad,
        "opt_bytes": opt,
        "sync_bytes": 2.0 if half else 4.0,
        "global_batch": float(training.global_batch),
        "seq": content_length(training),
        "bytes_per_sample": training.bytes_per_sample or 0.0,
        "decode_rate": training.decode_samples_per_s_per_core or 0.0,
        "is_vit": 1.0 if model.family is ModelFamily.VIT else 0.0,
        "materialised": 1.0 if training.attention in ("materialised", "fused") else 0.0,
        "fused_softmax": 1.0 if training.attention == "fused" else 0.0,
    }


def _attention_widths(model: ModelSpec) -> tuple[float, float]:
    assert model.hidden is not None
    heads = model.heads or max(1, model.hidden // 64)
    head_dim = model.head_dim or model.hidden / heads
    return float(heads * head_dim), float((model.kv_heads or heads) * head_dim)


def _sampled_sizes(model: ModelSpec, training: TrainingSpec) -> dict[str, float]:
    flops = model.forward_flops_per_sample
    _require(model, params=model.params, forward_flops_per_sample=flops)
    assert flops is not None
    zero = dict.fromkeys(
        (f.name for f in fields(Work) if f.name not in {*_STATE_FIELDS, *COUNTS, "operators", "inferred"}),
        0.0,
    )
    return {
        **zero,
        "layers": 1.0,
        "hidden": 1024.0,
        "heads": 1.0,
        "causal": 1.0,
        "score_ratio": 1.0,
        "layer_params": model.params,
        "experts": 1.0,
        "shape_ratio": 1.0,
        "flops_per_sample": forward_passes(training) * flops,
        "forward_flops": flops,
        "activations": sampled_activations(model, flops),
    }


_FEWER = 1.1  # of the stated parameters: what layers by their dimensions may have and be believed


def _split_params(model: ModelSpec, table: float, by_dimensions: float) -> tuple[float, float]:
    """Parameters of one layer and of all embedding copies.

    The total less the vocabulary tables gives the layers; where that contradicts the dimensions (adaptive softmax,
    cross attention not counted), the dimensions win within a band. They do not where all parameters together are fewer
    by a tenth than such layers have: state spaces, or layers that are one of attention and feed-forward network. Where
    a token uses a stated part of them, layers have weights that these dimensions do not tell of: the total rules.

    Args:
        model: sizes.
        table: vocabulary x hidden.
        by_dimensions: parameters of a decoder layer from its widths (one expert).
    """
    assert model.layers is not None
    embed = table * (1.0 if model.tied_embeddings or model.architecture != "decoder" else 2.0)
    layer = (model.params - min(embed, 0.95 * model.params)) / model.layers
    if not model.experts and not model.active_params:
        least = 0.9 * by_dimensions
        if least * model.layers > _FEWER * model.params:
            least = 0.0
        layer = min(max(layer, least), 1.5 * by_dimensions)
    return layer, max(model.params - layer * model.layers, 0.0)


def layer_params(model: ModelSpec) -> tuple[float, float, float]:
    """Parameters of one transformer layer, of these what one token uses, and those of all embedding copies."""
    assert model.layers is not None and model.hidden is not None
    q_width, kv_width = _attention_widths(model)
    ffn = float((model.moe_ffn if model.experts else None) or model.ffn or 4 * model.hidden)
    widths = (
        2.0 * model.hidden * (q_width + kv_width) + (3.0 if model.gated_mlp else 2.0) * model.hidden * ffn
    )
    layer, embed = _split_params(model, float((model.vocab or 0) * model.hidden), widths)
    sparse = model.experts or model.active_params
    active = ((model.active_params or model.params) - embed) / model.layers if sparse else layer
    return layer, active, embed


def _head_share(model: ModelSpec, training: TrainingSpec) -> float:
    """Share of the tokens that reach the output layer of the vocabulary.

    Scores and embeddings have a layer of their own in its place; encoders that are fine-tuned classify or mark spans.
    """
    if model.predicted_share is not None:
        return model.predicted_share
    objective, encodes = training.tuning.objective, model.architecture == "encoder"
    if objective in ("reward", "contrastive") or (encodes and objective == "sft"):
        return 0.0
    return MASKED_SHARE if encodes else 1.0


def _transformer_sizes(model: ModelSpec, training: TrainingSpec) -> dict[str, float]:
    _require(model, params=model.params, layers=model.layers, hidden=model.hidden)
    assert model.layers is not None and model.hidden is not None
    layers, hidden, vocab = float(model.layers), float(model.hidden), float(model.vocab or 0)
    q_width, kv_width = _attention_widths(model)
    experts, per_token = float(model.experts or 1), float(model.experts_per_token or 1)
    dense_ffn = float(model.ffn or 4 * hidden)
    ffn = float(model.moe_ffn or dense_ffn) if model.experts else dense_ffn
    matrices = 3.0 if model.gated_mlp else 2.0
    projections = 2.0 * hidden * (q_width + kv_width)
    layer, layer_active, embed = layer_params(model)
    used = (per_token + model.shared_experts) if model.experts else 1.0
    by_dimensions = projections + matrices * hidden * ffn * used
    expert_params = min(layer * 0.98, matrices * hidden * ffn * experts) if model.experts else 0.0
    # Tokens are copied to and from their experts.
    routed_acts = 8.0 * hidden * per_token if model.experts else 0.0
    mlp_acts = (6.0 if model.gated_mlp else 4.0) * ffn * used
    scale = 1.0 if PRECISION_GROUP[training.precision] in ("half", "fp8") else 2.0
    causal = 0.5 if model.architecture == "decoder" else 1.0
    passes = 2.0 * forward_passes(training)
    seq = content_length(training)
    head_share = _head_share(model, training)
    matmuls = layers * max(layer_active, 1.0) + head_share * min(vocab * hidden, embed)
    ratio = score_ratio_of(model, training, seq)
    scores = (4.0 if training.trains == "none" else 12.0) * causal * ratio * layers * q_width * seq
    flops = training.tuning.sequences * seq * (passes * matmuls + scores)
    return {
        "layers": layers,
        "hidden": hidden,
        "heads": float(model.heads or max(1, model.hidden // 64)),
        "attn_width": q_width,
        "kv_width": kv_width,
        "vocab": vocab,
        "head_share": head_share,
        "layer_params": layer,
        "layer_active_params": max(layer_active, 1.0),
        "expert_params": expert_params,
        "experts": experts,
        "ffn": ffn,
        "mlp_inputs": matrices - 1.0,
        "shared_experts": float(model.shared_experts) if model.experts else 0.0,
        "routed": per_token if model.experts else 0.0,
        "head_dim": q_width / float(model.heads or max(1, model.hidden // 64)),
        "shape_ratio": max(layer_active, 1.0) / by_dimensions,
        "flops_per_sample": flops,
        "head_params": min(vocab * hidden, embed) if embed else 0.0,
        "embed_params": embed,
        "act_replicated_bytes": scale * 10.0 * hidden,
        "act_split_bytes": scale * (4.0 * q_width + 4.0 * kv_width + mlp_acts + routed_acts),
        "causal": causal,
        "score_ratio": ratio,
        "forward_flops": 0.0,
        "activations": 0.0,
    }


_STATE_FIELDS = frozenset(
    {
        "params", "trainable_params", "lora", "backward", "evaluated", "unsure", "element_bytes", "weight_bytes",
        "grad_bytes", "opt_bytes", "sync_bytes", "global_batch", "seq", "bytes_per_sample", "decode_rate", "is_vit",
        "materialised", "fused_softmax", "vector_units", "casts", "channels_last",
    }
)  # fmt: skip
