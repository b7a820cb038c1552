"""Weights, gradients, optimizer states and the buffers that sharded weights pass through, bytes per device.

ZeRO stages: Rajbhandari et al. 2020 (arXiv 1910.02054, section 5). Under a pipeline gradients add up over micro-batches
unsharded, so ZeRO-2 keeps what ZeRO-1 keeps, and ZeRO-3 keeps the gathered stage until the step ends.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Floats
from planner.performance.constants import Constants
from planner.performance.layouts import Layouts, expert_shards
from planner.performance.memory_work import STACKS, Footprint
from planner.records import record

# Parameters whose gradients DeepSpeed's pipeline engine sums at once (MEMORY_OPT_ALLREDUCE_SIZE, `reduce_bucket_size`).
REDUCE_BUCKET = 5e8


@record(frozen=True)
class States:
    """Bytes on the stage that holds most parameters, by kind; `gathered` are passing copies of ZeRO-3.

    `stepping`: what the optimizer's step alone keeps beside them.
    """

    weights: Floats
    gradients: Floats
    optimizer: Floats
    gathered: Floats
    stepping: Floats


def held_params(job: Footprint, layout: Layouts) -> tuple[Floats, Floats, Floats]:
    """Parameters on the fullest stage: (dense with one embedding table, routed experts, the end tables alone).

    A model without a pipeline holds both tables on one device; with one, each end stage holds its own (a tied table
    twice). Uneven stages: the fullest has ceil(L / pp) layers.
    """
    work = job.work
    layers = np.ceil(work.layers / layout.pp)
    table = np.minimum(work.embed_params, work.head_params)
    ends = np.where(layout.pp > 1, table, work.embed_params) / layout.tp
    dense = layers * (work.layer_params - work.expert_params) / layout.tp + ends
    experts = layers * work.expert_params / expert_shards(layout)
    return dense, experts, ends


def sharing_ranks(job: Footprint, layout: Layouts) -> tuple[Floats, Floats]:
    """Ranks over which ZeRO shards: (dense parameters, routed experts); hybrid sharding stops at its group."""
    ranks = np.minimum(layout.dp * layout.cp, job.shard_ranks)
    return ranks, np.maximum(ranks / layout.ep, 1.0)


def states(job: Footprint, layout: Layouts, c: Constants) -> States:
    """Bytes per device of everything that lives through the step."""
    work = job.work
    dense, experts, ends = held_params(job, layout)
    frozen = work.lora > 0
    adapters = work.trainable_params / (layout.tp * layout.pp)
    trained, trained_experts = np.where(frozen, adapters, dense), np.where(frozen, 0.0, experts)
    ranks, over_experts = sharing_ranks(job, layout)
    zero3 = layout.zero >= 3
    grads_split = np.where(layout.pp > 1, zero3, layout.zero >= 2)
    opt_split = layout.zero >= 1

    def spread(split: Bools, a: Floats, b: Floats) -> Floats:
        total: Floats = np.where(split, a / ranks + b / over_experts, a + b)
        return total

    resident = np.where(zero3 & ~frozen, job.shard_bytes, job.weight_bytes)
    offload_weights = (job.offload_weights > 0) & zero3
    offload_states = job.offload_optimizer > 0
    # With states on the host the 32-bit weights live there as well; 16-bit ones stay.
    resident = np.where(offload_states, np.minimum(resident, job.weight_bytes), resident)
    weights = resident * spread(zero3, dense, experts)
    # Quantised layers have fewer bits; embedding tables keep theirs.
    saved = (job.weight_bytes - work.frozen_bytes) * spread(zero3, dense - ends, experts)
    weights = np.where(work.dequantised > 0, weights - saved, weights)
    eager = job.stack == STACKS.index("eager")
    # PEFT prepares a quantised model by keeping all that is not quantised in 32 bit (prepare_model_for_kbit_training).
    wider = np.maximum(4.0 - job.weight_bytes, 0.0) * spread(zero3, ends, np.zeros(1))
    weights = np.where((work.dequantised > 0) & eager, weights + wider, weights)
    weights = np.where(offload_weights, 0.0, weights) * work.learners
    weights = weights + work.other_params * job.weight_bytes * spread(zero3, dense, experts)
    # Sharded gradients go to the host as they are made (ZeRO-Offload, arXiv 2101.06840), without a pipeline.
    gone = offload_states & grads_split & (layout.pp <= 1)
    gradients = job.grad_bytes * spread(grads_split, trained, trained_experts)
    # One layer's, or one table's, gradients live at a time.
    table = np.minimum(work.embed_params, work.head_params) / layout.tp
    passing = job.grad_bytes * np.maximum((dense - ends + experts) / np.ceil(work.layers / layout.pp), table)
    gradients = np.where(job.in_backward > 0, np.minimum(gradients, passing), gradients)
    gradients = np.where(gone, 0.0, gradients) * work.learners
    optimizer = np.where(zero3, job.shard_opt_bytes, job.opt_bytes) * spread(
        opt_split, trained, trained_experts
    )
    optimizer = np.where(offload_states, 0.0, optimizer) * work.learners
    missing = dense * (1.0 - 1.0 / ranks) + experts * (1.0 - 1.0 / over_experts)
    absent = np.where(offload_weights, dense + experts, missing)
    absent_ends = np.where(offload_weights, ends, ends * (1.0 - 1.0 / ranks))
    gathered = _gathered(job, layout, c, dense + experts - ends, missing, absent, absent_ends)
    gathered = gathered + _reduced(job, layout, np.where(frozen, adapters, dense + experts))
    gathered = gathered + np.where(frozen, 0.0, _indexed(job, layout, experts))
    whole = np.where(layout.zero >= 1, 0.0, job.step_bytes * (trained + trained_experts))
    stepping = np.where(offload_states | (job.in_backward > 0), 0.0, whole) * work.learners * work.backward
    return States(weights, gradients, optimizer, gathered, stepping)


def _indexed(job: Footprint, layout: Layouts, experts: Floats) -> Floats:
    """The gradient of one expert's matrix, as large as that of all: eager code loops over experts that are one tensor.

    Transformers indexes `gate_up_proj[expert]` (GptOssExperts and others); autograd fills a tensor of the whole weight
    per expert and adds it to the last. Gated experts hold two thirds of their parameters in it.
    """
    eager = (job.stack == STACKS.index("eager")) & (job.work.backward > 0)
    layer = experts / np.ceil(job.work.layers / layout.pp)
    return np.where(eager, 2.0 / 3.0 * layer * job.weight_bytes, 0.0)


def _reduced(job: Footprint, layout: Layouts, trained: Floats) -> Floats:
    """The bucket that Megatron-DeepSpeed's pipelines copy gradients into to sum them over replicas."""
    fused, replicas = job.stack == STACKS.index("fused"), layout.dp * layout.cp
    used = fused & (layout.pp > 1) & (layout.zero < 3) & (replicas > 1)
    bytes_each = np.where(job.grad_bytes > 2.0, 4.0, job.grad_bytes)
    return np.where(used, np.minimum(trained, REDUCE_BUCKET) * bytes_each, 0.0)


def _gathered(
    job: Footprint,
    layout: Layouts,
    c: Constants,
    in_layers: Floats,
    missing: Floats,
    absent: Floats,
    absent_ends: Floats,
) -> Floats:
    """Passing copies of ZeRO-3: running and prefetched layers, the output table, gradients on their way.

    Args:
        job: what the job keeps.
        layout: the layouts.
        c: constants.
        in_layers: parameters of the stage's layers.
        missing: parameters of the stage that other ranks hold.
        absent: parameters of the stage whose weights are not on the device; no more than these are gathered.
        absent_ends: those of them that tables of the vocabulary hold.
    """
    work = job.work
    layer = in_layers / np.ceil(work.layers / layout.pp)
    table = np.minimum(work.embed_params, work.head_params) / layout.tp
    trains = work.lora <= 0
    # Quantised weights are gathered as they are packed, tables of the vocabulary in 16 bit.
    each = np.where(work.dequantised > 0, work.frozen_bytes, job.weight_bytes)
    larger = np.where(trains, np.maximum(layer, table), 0.0) * each
    # Own parts of the running and the next layer come from the host.
    ranks = np.minimum(layout.dp * layout.cp, job.shard_ranks)
    arriving = np.where(job.offload_weights > 0, 2.0 * layer / ranks * each, 0.0)
    # FSDP2 keeps the gradients of one layer flat, in the type that they are summed in, until they are scattered.
    flat_layer = np.where(trains, np.minimum(c["memory.flat_layers"] * layer, missing), 0.0) * job.grad_bytes
    running = c["memory.gathered_layers"] * layer * each + larger + flat_layer + arriving
    eager = job.stack == STACKS.index("eager")
    # Eager trainers wrap layers alone: what is outside them, all tables, stays gathered with its gradients until the
    # step's end. DeepSpeed, the other of them, gathers and reduces in buckets of fixed size instead of whole layers.
    ends = work.embed_params / layout.tp
    # The stream that gathers keeps what a forward pass took (PyTorch's "inter-stream fragmentation"): one more layer.
    kept = np.where(trains, layer * each + ends * job.grad_bytes, 0.0)
    wrapped = running + kept + ends * job.weight_bytes
    buckets = c["memory.bucket_params"] * each + larger + table * job.weight_bytes + arriving
    gathers = np.where(eager, np.maximum(wrapped, buckets), running + table * job.weight_bytes)
    stage = absent * each + absent_ends * (job.weight_bytes - each)
    piped = stage + np.where(trains, missing * job.grad_bytes, 0.0)
    flat = np.minimum(gathers, stage)
    return np.where(layout.zero >= 3, np.where(layout.pp > 1, piped, flat), 0.0)
