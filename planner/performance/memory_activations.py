"""Activations, logits and passing tensors of forward and backward, bytes per device.

Saved activations: Korthikanti et al. 2022 (arXiv 2205.05198); layers in flight of one-forward-one-backward and of the
interleaved schedule: Narayanan et al. 2021 (arXiv 2104.04473), L (1 + (pp - 1) / (pp v)) on the first stage.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.layouts import Layouts
from planner.performance.memory_work import LOGITS, SAMPLED_FAMILIES, STACKS, Footprint
from planner.records import record

NONE, SELECTIVE, FULL = 0, 1, 2
# Multiply-accumulates per output below which a network is built of depthwise convolutions.
LIGHT_MACS = 150.0
# Share of the stored outputs that a forward pass alone holds at once: the two largest of ResNet-50, 1.6 of 11.1 M
# elements at 224 x 224 pixels (output sizes of He et al. 2015, arXiv 1512.03385, table 1).
FORWARD_SHARE = 0.15


@record(frozen=True)
class Passing:
    """Bytes at the fuller of the first and the last stage."""

    activations: Floats
    logits: Floats


def passing(job: Footprint, layout: Layouts, level: int, c: Constants) -> Passing:
    """Saved activations, what the layer at work needs on top, and the logits, at one recompute level.

    The first stage holds most micro-batches; the last holds one (with interleaving more) and the logits. A layer's
    passing tensors and the logits do not live at once, yet the blocks that the allocator cached for the first are too
    small for the second, so both count.
    """
    if job.sampled:
        return _sampled(job, layout, level, c)
    tokens = longest_tokens(job, layout) * c["memory.activation_ratio"]
    live, kept = _layer(job, layout, level, c)
    kept = kept * job.work.backward
    first, last = layers_in_flight(job, layout)
    saved = tokens * (kept * (1.0 - job.offload_activations) if level == FULL else kept)
    extra = tokens * np.maximum(live - kept, 0.0)
    logits = logit_bytes(job, layout, c) * job.work.backward
    piped = layout.pp > 1
    at_first = saved * first + extra + _stage_outputs(job, layout)
    at_last = saved * last + extra
    ends = piped & (at_first >= at_last + logits)
    return Passing(np.where(ends, at_first, at_last), np.where(ends, 0.0, logits))


def longest_tokens(job: Footprint, layout: Layouts) -> Floats:
    """Tokens per device of the fullest micro-batch: every sequence as long as any."""
    result: Floats = layout.micro_batch * job.work.sequences * job.work.longest / layout.cp
    return result


def layers_in_flight(job: Footprint, layout: Layouts) -> tuple[Floats, Floats]:
    """Layers whose activations the first and the last stage keep at once, times micro-batches."""
    pp, v, m = layout.pp, layout.interleave, layout.micro_batches
    layers = job.work.layers
    own = np.ceil(layers / pp)
    chunk = own / v
    first = np.minimum((v + 1.0) * pp - 1.0, m * v)
    last = np.minimum((v - 1.0) * pp + 1.0, m * v)
    plain = np.minimum(own * np.minimum(pp, m), layers)
    interleaved = v > 1
    return np.where(interleaved, chunk * first, plain), np.where(interleaved, chunk * last, own)


def _stage_outputs(job: Footprint, layout: Layouts) -> Floats:
    """Outputs that a stage sent on and holds until their backward pass, bytes at the first stage.

    DeepSpeed's pipeline engine (`pipe_buffers["outputs"]`) and PyTorch's (`fwd_cache`) keep them; Megatron-LM frees
    them (`deallocate_output_tensor`).
    """
    held = (layout.pp > 1) & (job.stack != STACKS.index("tuned"))
    shards = np.where(layout.sequence_parallel > 0, layout.tp, 1.0)
    in_flight = layers_in_flight(job, layout)[0] / np.ceil(job.work.layers / layout.pp)
    chunks = np.where(layout.interleave > 1, in_flight * layout.interleave, in_flight)
    sent = longest_tokens(job, layout) * job.input_bytes / shards * chunks * job.work.backward
    return np.where(held, sent, 0.0)


def _layer(job: Footprint, layout: Layouts, level: int, c: Constants) -> tuple[Floats, Floats]:
    """Bytes per token of one layer: (at work, kept until its backward pass at this level)."""
    tp = layout.tp
    shards = np.where(layout.sequence_parallel > 0, tp, 1.0)
    scores = job.score_bytes / tp
    split = job.act_split_bytes + c["memory.expert_imbalance"] * job.act_routed_bytes
    layer = job.act_shared_bytes / shards + split / tp
    if level == NONE:
        kept = layer + scores
    elif level == SELECTIVE:
        # Without score matrices to drop, selective recompute keeps about every second activation.
        kept = layer * np.where(job.score_bytes > 0, 1.0, c["memory.selective_ratio"])
    else:
        kept = job.input_bytes / shards
    # Sequence parallelism gathers a block's whole input and its gradient.
    whole = np.where((layout.sequence_parallel > 0) & (tp > 1), 2.0 * job.input_bytes * (1.0 - 1.0 / tp), 0.0)
    live = c["memory.live_ratio"] * layer + scores + whole
    return live, kept


def logit_bytes(job: Footprint, layout: Layouts, c: Constants) -> Floats:
    """Logits, softmax and their gradients on the last stage (vocabulary split by tp).

    An adaptive softmax makes as many logits per token as its tables have rows of full width.
    """
    work = job.work
    tokens = longest_tokens(job, layout)
    per_logit = np.asarray([c[f"memory.logit_bytes.{word}"] for word in LOGITS])[job.loss.astype(np.int64)]
    rows = np.minimum(work.vocab, work.head_params / work.hidden)
    result: Floats = per_logit * work.head_share * tokens * rows / layout.tp
    return result


def _sampled(job: Footprint, layout: Layouts, level: int, c: Constants) -> Passing:
    """Models counted per sample: each convolution's output is kept, and again after normalisation.

    Networks of depthwise convolutions (few multiplications per output) keep a third copy for their smooth activation.
    """
    work = job.work
    ratios = np.asarray([c[f"memory.sampled_ratio.{word}"] for word in SAMPLED_FAMILIES])
    ratio = ratios[job.family.astype(np.int64)]
    light = (job.family == 0) & (work.forward_flops < 2.0 * LIGHT_MACS * work.activations)
    ratio = np.where(light, c["memory.sampled_ratio.light"], ratio)
    # Blocks of attention are recomputed one by one: their inputs stay, and what one block keeps.
    whole = c["memory.sampled_recompute_ratio"]
    each = np.minimum(c["memory.sampled_input_ratio"] + 1.0 / job.blocks, whole)
    full = np.where(job.blocks > 1.0, each, whole)
    saved = (1.0, c["memory.sampled_selective_ratio"], full)[level]
    # A forward pass alone keeps the inputs and outputs of the operators at work.
    share = np.where(work.backward > 0, saved, FORWARD_SHARE)
    kept = layout.micro_batch * work.activations * work.element_bytes * ratio * share
    return Passing(kept, np.zeros(1))
