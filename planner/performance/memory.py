"""Memory per device on the worst pipeline stage, in GiB.

Weights, gradients and optimizer states by ZeRO stage (Megatron-LM README; Rajbhandari et al. 2020, arXiv 1910.02054),
activations by Korthikanti et al. 2022 (arXiv 2205.05198) with 1F1B keeping min(pp, micro-batches) in flight, logits,
and a runtime constant (CUDA context, NCCL buffers, allocator slack).
"""

from __future__ import annotations

import numpy as np

from planner.performance.constants import Constants
from planner.performance.layouts import Layouts
from planner.performance.work import Floats, Work

GIB = 1024.0**3
NONE, SELECTIVE, FULL = 0, 1, 2


def state_bytes(work: Work, layout: Layouts, c: Constants) -> Floats:
    """Bytes of weights, gradients and optimizer states on the stage that holds most parameters."""
    stage_layers = np.ceil(work.layers / layout.pp)
    dense = (work.layer_params - work.expert_params) / layout.tp
    experts = work.expert_params / (layout.tp * layout.ep)
    # Both ends of the model sit on one device without a pipeline; with one, each end stage holds its own copy.
    ends = (
        np.where(layout.pp > 1, np.minimum(work.embed_params, work.head_params), work.embed_params)
        / layout.tp
    )
    ranks = layout.dp * layout.cp
    frozen = work.lora > 0
    adapters = work.trainable_params / (layout.tp * layout.pp)
    held = stage_layers * dense + ends
    held_experts = stage_layers * experts

    def shared(per_param: Floats, stage: float, trained: bool) -> Floats:
        """Bytes of one kind of state, sharded over the ranks that hold copies from ZeRO `stage` on."""
        split = layout.zero >= stage
        dense_part = np.where(frozen, adapters, held) if trained else held
        expert_part = np.where(frozen, 0.0, held_experts) if trained else held_experts
        over_experts = np.maximum(ranks / layout.ep, 1.0)
        total: Floats = per_param * (
            dense_part / np.where(split, ranks, 1.0) + expert_part / np.where(split, over_experts, 1.0)
        )
        return total

    state = (
        shared(work.weight_bytes, 3, False)
        + shared(work.grad_bytes, 2, True)
        + shared(work.opt_bytes, 1, True)
    )
    # ZeRO-3 gathers whole layers: the running one and the prefetched one; under a pipeline the whole stage stays
    # gathered with its gradients, else every micro-batch would gather it anew.
    gathered = c["memory.gathered_layers"] * (dense + experts) * work.element_bytes
    stage_held = (held + held_experts) * (work.element_bytes + work.grad_bytes)
    return state + np.where(layout.zero >= 3, np.where(layout.pp > 1, stage_held, gathered), 0.0)


def activation_bytes(work: Work, layout: Layouts, recompute: int, c: Constants) -> Floats:
    """Bytes of saved activations on the first stage, one of `NONE`, `SELECTIVE`, `FULL` recompute."""
    tokens = layout.micro_batch * work.seq / layout.cp
    stage_layers = np.ceil(work.layers / layout.pp)
    in_flight = np.minimum(layout.pp, layout.micro_batches)
    scale = work.element_bytes / 2.0
    replicated = work.act_replicated_bytes / np.where(layout.sequence_parallel > 0, layout.tp, 1.0)
    scores = 5.0 * work.heads * work.seq * scale * (work.materialised > 0) / layout.tp
    layer = tokens * (replicated + work.act_split_bytes / layout.tp + (scores if recompute == NONE else 0.0))
    if recompute != FULL:
        # Without score matrices to drop, selective recompute keeps about every second activation.
        kept = (
            np.where(work.materialised > 0, 1.0, c["memory.selective_ratio"])
            if recompute == SELECTIVE
            else 1.0
        )
        selected: Floats = c["memory.activation_ratio"] * layer * kept * stage_layers * in_flight
        return selected
    whole = layer + tokens * scores
    saved = tokens * 2.0 * scale * work.hidden / np.where(layout.sequence_parallel > 0, layout.tp, 1.0)
    return c["memory.activation_ratio"] * (saved * stage_layers * in_flight + whole)


def sampled_activation_bytes(work: Work, layout: Layouts, recompute: int, c: Constants) -> Floats:
    """Bytes of saved activations of a model counted per sample; full recompute keeps about the square root."""
    kept = layout.micro_batch * work.activations * work.element_bytes * c["memory.sampled_ratio"]
    if recompute == NONE:
        return kept
    return kept * (c["memory.sampled_recompute_ratio"] if recompute == FULL else 0.7)


def head_bytes(work: Work, layout: Layouts, c: Constants) -> Floats:
    """Logits and their gradient on the last stage (16-bit logits and a 32-bit softmax)."""
    tokens = layout.micro_batch * work.seq / layout.cp
    return c["memory.logit_bytes"] * work.head_share * tokens * work.vocab / layout.tp


def memory_gib(work: Work, layout: Layouts, recompute: int, sampled: bool, c: Constants) -> Floats:
    """Needed memory per device at one recompute level, GiB, shape of the layouts."""
    state = state_bytes(work, layout, c)
    if sampled:
        activations = sampled_activation_bytes(work, layout, recompute, c)
        return (state + activations) / GIB + c["memory.runtime_gib"]
    activations = activation_bytes(work, layout, recompute, c)
    head = head_bytes(work, layout, c)
    # The first stage holds most activations, the last one micro-batch of them and the logits.
    in_flight = np.minimum(layout.pp, layout.micro_batches)
    worst = np.maximum(activations, activations / in_flight + head)
    total = (state + worst) * c["memory.fragmentation"]
    result: Floats = total / GIB + c["memory.runtime_gib"]
    return result
