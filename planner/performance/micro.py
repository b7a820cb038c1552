"""Time of one micro-batch through one layer on one device: the roofline part of the model.

A layer's forward pass is matmul (roofline with a shape efficiency), attention, memory-bound element-wise work and the
tensor-parallel traffic that does not overlap, never faster than a launch floor: the host queues kernels and transfers
alike, so whichever of host and device is slower sets the pace. The backward pass does twice the matmul work
(Megatron-LM SC'21, arXiv 2104.04473) and 2.5 x the attention work of a fused kernel (FlashAttention, arXiv 2205.14135).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catalogs.tables.rows import pick
from catalogs.tables.table import Bools, Floats, Ints
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.layouts import Layouts, expert_shards
from planner.performance.work import Work, padded_tokens
from planner.records import record

# Reached FLOP per byte of an A100-80 in 16 bit, for which the half sizes of matrices are given.
REFERENCE_INTENSITY = 121.0
REFERENCE_RATE = 250e12
REFERENCE_PEAK = 312e12
# Elements: what a tile is wide, and what 16 bytes hold in 16 bit.
TILE, ALIGNED = 64.0, 8.0
# Attention matrices that the fused softmax kernel of hand-fused code takes at once.
SOFTMAX_BLOCK = 4.0
# Software that rounds the vocabulary up to a multiple of at least 64 by itself (Megatron-LM: 128 x tensor degree).
PADS_VOCABULARY = frozenset({"fused", "tuned"})


@record(frozen=True)
class Micro:
    """Seconds per layer and micro-batch on one device (sampled models: the whole model is one layer).

    Attributes:
        gemm: forward matmul time; `gemm_backward` that of the backward pass; `attention` forward; `memory` forward
            element-wise time.
        floor: least forward time of a layer (kernel launches).
        forward, backward: totals, floor and exposed traffic included.
        head: forward and backward of the output projection and loss, per micro-batch.
        tokens: tokens per device and micro-batch.
    """

    gemm: Floats
    gemm_backward: Floats
    attention: Floats
    memory: Floats
    floor: Floats
    forward: Floats
    backward: Floats
    head: Floats
    tokens: Floats

    def take(self, index: Ints) -> Micro:
        """Return rows `index`."""
        picked: dict[str, Any] = {
            name: pick(getattr(self, name), index) for name in self.__dataclass_fields__
        }
        return Micro(**picked)


def at_least(value: Floats, floor: Floats) -> Floats:
    """Smooth maximum (4-norm): two limits that meet both cost a little."""
    squared, limit = value * value, floor * floor
    total: Floats = np.sqrt(np.sqrt(squared * squared + limit * limit))
    return total


@record(frozen=True)
class Matmul:
    """How fast a device multiplies matrices.

    The product of (m, k) and (k, n) takes 2 m n k / rate times
    1 + hunger x (outer x (1 / m + 1 / n) + inner / k) + block / (m n):
    operand and result traffic that arithmetic does not hide, and the partly filled last round of tiles.

    Attributes:
        rate: FLOP/s of a large matmul.
        hunger: rate over memory rate relative to the reference device, to a power below 1 (larger caches).
        block: output elements that one round of tiles covers.
        outer, inner: half sizes of an output and of the reduced dimension at the reference, in elements.
    """

    rate: Floats
    hunger: Floats
    block: Floats
    outer: float
    inner: float

    def both_s(
        self,
        weights: Floats,
        rows: Floats,
        inputs: Floats,
        outputs: Floats,
        copies: Floats | float,
        number: Floats | float,
    ) -> tuple[Floats, Floats]:
        """Forward and backward time of a set of weight matrices, summed in closed form.

        Args:
            weights: elements of all matrices of the set (with copies).
            rows: tokens that pass each of them, summed over copies.
            inputs: sum of the input widths of one copy, in elements.
            outputs: sum of the output widths of one copy, in elements.
            copies: how many equal sets there are (experts on the device).
            number: matrices in one copy.
        """
        flops = weights * rows / copies
        into, out = rows * inputs, rows * outputs
        forward = (
            flops
            + self.hunger * (self.outer * (weights + into) + self.inner * out)
            + self.block * copies * inputs
        )
        data = (
            flops
            + self.hunger * (self.outer * (weights + out) + self.inner * into)
            + self.block * copies * outputs
        )
        weight = (
            flops
            + self.hunger * (self.outer * (into + out) + self.inner * weights)
            + self.block * rows * number
        )
        scale = 2.0 / self.rate
        return forward * scale, (data + weight) * scale


def filled(width: Floats, work: Work, c: Constants) -> Floats:
    """Share of a matmul's rate that a width leaves, in 16 and 8 bit; 1 where it is a multiple of `TILE`.

    Tiles of 64 elements are computed in full; widths that are no multiple of 8 elements (16 bytes) leave the matrix
    units' fast path (NVIDIA, Matrix Multiplication Background User's Guide, section 4).
    """
    share = width / (np.ceil(width / TILE) * TILE)
    odd = np.mod(width, ALIGNED) != 0
    share = np.where(odd, np.minimum(share, c["gemm.unaligned_ratio"]), share)
    result: Floats = np.where((work.element_bytes < 4.0) & (width >= 1.0), share, 1.0)
    return result


def matmul_of(work: Work, devices: Devices, reached: Floats, c: Constants) -> Matmul:
    """The device's matmul at what large ones reach of one peak, FLOP/s."""
    rate = reached * c["gemm.max_ratio"]
    intensity = rate / devices.memory_rate / REFERENCE_INTENSITY
    hunger = np.minimum(intensity, intensity ** c["gemm.hunger_power"]) * work.element_bytes / 2.0
    block = c["gemm.round_elements"] * rate / REFERENCE_RATE
    return Matmul(rate, hunger, block, c["gemm.half_outer"], c["gemm.half_inner"])


def layer_matmul_s(
    work: Work, tokens: Floats, tp: Floats, ep: Floats, matmul: Matmul, faster: Floats, c: Constants
) -> tuple[Floats, Floats]:
    """Forward and backward time of a layer's matrices: qkv, output, feed-forward in and out, of all experts.

    Tensor parallelism splits the outputs of the first of each pair and the inputs of the second. `faster` is what
    `expert_speed` gives.
    """
    routed = work.routed > 0
    ffns = np.where(routed, work.shared_experts, 1.0)
    narrow = np.minimum(filled(work.attn_width / tp, work, c), filled(work.ffn / tp, work, c))
    share = np.minimum(narrow, filled(work.hidden, work, c))
    split_out = (work.attn_width + 2.0 * work.kv_width + ffns * work.mlp_inputs * work.ffn) / tp
    split_in = (work.attn_width + ffns * work.ffn) / tp
    whole = work.hidden * (1.0 + ffns)
    weights = work.hidden * (split_out + split_in)
    forward, backward = matmul.both_s(
        weights, tokens, whole + split_in, split_out + whole, 1.0, 2.0 + 2.0 * ffns
    )
    if routed.any():
        copies = np.maximum(work.experts / ep, 1.0)
        # The busiest device waits for none; grouped products of many small matrices reach less of the rate.
        slower = c["moe.imbalance"] / c["moe.grouped_ratio"] / faster
        out, into = work.mlp_inputs * work.ffn / tp, work.ffn / tp
        more = matmul.both_s(
            copies * work.hidden * (out + into),
            tokens * work.routed,
            work.hidden + into,
            out + work.hidden,
            copies,
            2.0,
        )
        forward, backward = (
            total + np.where(routed, extra * slower, 0.0)
            for total, extra in zip((forward, backward), more, strict=True)
        )
    return forward * work.shape_ratio / share, backward * work.shape_ratio / share


def expert_speed(devices: Devices, c: Constants) -> Floats:
    """Speed of an expert's products and copies against the grouped kernels of older software."""
    result: Floats = np.where(devices.native_experts > 0, c["moe.native_ratio"], 1.0)
    return result


def expert_wait_s(work: Work, devices: Devices, c: Constants) -> Floats:
    """Time per layer and pass in which the device is idle while the host learns how many tokens each expert gets.

    The host needs the counts to launch dispatch, products and combination (NVIDIA/Megatron-LM#2368, pytorch/ao#4066);
    kernels that read them on the device do without.
    """
    waits = (work.routed > 0) & (devices.native_experts == 0)
    result: Floats = np.where(waits, c["moe.sync_s"] * devices.host_pace, 0.0)
    return result


def one_kernel_softmax(work: Work, layout: Layouts, stack: str) -> Bools:
    """Whether one kernel scales, masks and normalises the scores of a micro-batch.

    That of hand-fused code takes heads of a rank times samples in fours (Megatron-LM, `FusedScaleMaskSoftmax`); other
    numbers run operator by operator.
    """
    scores = np.floor(work.heads / layout.tp) * layout.micro_batch * work.sequences
    taken = (np.mod(scores, SOFTMAX_BLOCK) == 0) | (stack != "fused")
    result: Bools = (work.fused_softmax > 0) & taken
    return result


def attention_s(
    work: Work,
    devices: Devices,
    tokens: Floats,
    tp: Floats,
    fused_softmax: Bools,
    stack: str,
    c: Constants,
) -> Floats:
    """Forward time of the attention core: fused kernels, or scores that pass through memory."""
    # Kernels written for an older generation leave more of a faster one idle; vendors tune theirs for each.
    newer = np.maximum(devices.attn_peak / REFERENCE_PEAK, 1.0)
    lag = np.where(devices.native > 0, c["attention.lag.tuned"], c.of_stack("attention.lag", stack))
    best = c["attention.fused_ratio.tuned"]
    share = np.where(devices.native > 0, best, c.of_stack("attention.fused_ratio", stack))
    rate = devices.attn_peak * devices.attn_achievable * newer**-lag
    scores = 4.0 * work.score_ratio * work.seq * work.attn_width * tokens / tp
    # Narrow heads leave part of a tile's reduction idle; normalised to heads of 128.
    width = (1.0 + c["attention.half_head"] / 128.0) / (
        1.0 + c["attention.half_head"] / np.maximum(work.head_dim, 1.0)
    )
    # Kernels compute heads in blocks of 32 (FlashAttention-2 has instances for multiples of 32 only).
    padded = np.ceil(work.head_dim / 32.0) * 32.0 / np.maximum(work.head_dim, 1.0)
    fused = work.causal * scores * padded / (rate * share * width)
    elements = work.score_ratio * work.heads * work.seq * tokens / tp
    passes = np.where(
        fused_softmax, c["attention.score_passes.fused"], c["attention.score_passes.materialised"]
    )
    moved = passes * elements * work.element_bytes
    # Small products per head keep matrix units waiting; vector units are busy as ever.
    ratio = np.where(work.vector_units > 0, c["attention.vector_ratio"], c["attention.plain_ratio"])
    odd = (np.mod(work.head_dim, ALIGNED) != 0) & (work.element_bytes < 4.0)
    ratio = ratio * np.where(odd, c["attention.unaligned_ratio"], 1.0)
    plain = scores / (rate * ratio) + moved / devices.memory_rate
    result: Floats = np.where(work.materialised > 0, plain, fused)
    return result


def head_s(work: Work, devices: Devices, tokens: Floats, tp: Floats, stack: str, c: Constants) -> Floats:
    """Forward and backward of the output projection, softmax and loss for one micro-batch."""
    predicted = work.head_share * tokens
    matmul = matmul_of(work, devices, devices.attn_peak * devices.attn_achievable, c)
    wide = np.maximum(work.vocab / tp, 1.0)
    forward, backward = matmul.both_s(work.head_params / tp, predicted, work.hidden, wide, 1.0, 1.0)
    if stack not in PADS_VOCABULARY:
        odd = (np.mod(work.vocab, ALIGNED) != 0) & (work.element_bytes < 4.0) & (work.causal < 1.0)
        share = np.where(odd, c["head.unaligned_ratio"], 1.0)
        forward, backward = forward / share, backward / share
    moved = c.of_stack("head.passes", stack) * predicted * work.vocab / tp * work.element_bytes
    # A frozen projection needs no gradient of its weights.
    backward = np.where(work.lora > 0, 0.5 * backward, backward) * work.backward
    result: Floats = np.where(work.head_params > 0, forward + backward, 0.0) + moved / devices.memory_rate
    return result


def prepared_s(work: Work, devices: Devices, layout: Layouts, stack: str, c: Constants) -> Floats:
    """Time to make a layer's weights ready before each pass that uses them, whatever its tokens.

    Quantised ones are written out in 16 bit, of the experts those that a device holds; adapters of some kinds build an
    update as large as the matrix.
    """
    held = (work.layer_params - work.expert_params) / layout.tp + work.expert_params / expert_shards(layout)
    quantised = work.dequantised * held * (work.frozen_bytes + 2.0)
    moved = c.of_stack("adapter.dequantise_passes", stack) * quantised + work.adapter_built_bytes / layout.tp
    result: Floats = moved / devices.memory_rate
    return result


def transformer_micro(
    work: Work, devices: Devices, layout: Layouts, comm: Floats, stack: str, c: Constants
) -> Micro:
    """Cost of one transformer layer; all arguments broadcast to one shape.

    Args:
        work: sizes.
        devices: rates, one row per layout.
        layout: parallel degrees and micro-batch.
        comm: exposed time of one forward pass's collectives of a layer, s.
        stack: software stack class.
        c: constants.
    """
    tp = layout.tp
    tokens = padded_tokens(work, layout.micro_batch) / layout.cp
    faster = expert_speed(devices, c)
    matmul = matmul_of(work, devices, devices.gemm_peak * devices.achievable, c)
    gemm, gemm_backward = layer_matmul_s(work, tokens, tp, layout.ep, matmul, faster, c)
    through = 0.5 * gemm_backward + c.of_stack("lora.extra_ratio", stack) * gemm
    gemm_backward = np.where(work.lora > 0, through, gemm_backward)
    fused_softmax = one_kernel_softmax(work, layout, stack)
    attention = attention_s(work, devices, tokens, tp, fused_softmax, stack, c)
    moved = tokens * (
        work.act_replicated_bytes / np.where(tp > 1, tp ** c["memory.tp_split"], 1.0)
        + work.act_split_bytes / tp
    )
    passes = c.of_stack("memory.passes", stack) * (1.0 + c["memory.cast_ratio"] * work.casts)
    moved = moved + c.of_stack("adapter.passes", stack) * tokens * work.adapter_bytes / tp
    copied = c["moe.copy_passes"] * tokens * work.routed * work.hidden * work.element_bytes / tp / faster
    memory = (passes * moved + copied) / (devices.memory_rate * c["memory.bandwidth_ratio"])
    prepared = prepared_s(work, devices, layout, stack, c)
    memory = memory + prepared
    # Routing, permuting tokens and back are kernels of their own.
    kernels = np.where(work.routed > 0, 1.0 + c["moe.launch_ratio"], 1.0)
    apart = (work.fused_softmax > 0) & ~fused_softmax
    kernels = kernels * np.where(apart, 1.0 + c["attention.softmax_launch_ratio"], 1.0)
    # Adapters cast their input, project it down and up, scale it and add it to the layer's.
    kernels = kernels + c.of_stack("floor.adapter_ratio", stack) * work.adapted
    floor = np.broadcast_to(c.of_stack("floor.layer_s", stack) * devices.host_pace * kernels, gemm.shape)
    gemm_backward = gemm_backward * work.backward
    attn_factor = np.where(work.materialised > 0, 2.0, 2.5)
    forward = at_least(gemm + attention + memory + comm, floor)
    backward = at_least(
        gemm_backward + attn_factor * attention + 2.0 * memory + comm - prepared,
        floor * c["floor.backward"],
    )
    wait = expert_wait_s(work, devices, c)
    forward, backward = forward + wait, (backward + wait) * work.backward
    head = head_s(work, devices, tokens, tp, stack, c)
    return Micro(gemm, gemm_backward, attention, memory, floor, forward, backward, head, tokens)
