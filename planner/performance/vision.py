"""Time of one micro-batch of a CNN, ViT or diffusion model: matmul units and memory traffic by kind of operator.

Dense convolutions, linear layers and attention products run at a share of the matmul peak. Depthwise and split grouped
convolutions have direct kernels without matmul units, bound by the caches, which grow with the memory rate. All others
read and write their elements. The backward pass does twice the forward work (gradients of inputs and of weights).
Plain 32-bit arithmetic does 3 x 3 taps at stride 1 by minimal filtering (Lavin and Gray, arXiv 1509.09308), with fewer
multiplications than their FLOPs count.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.micro import Micro, at_least, matmul_of
from planner.performance.operators import COLUMN, ELEMENT_FIELDS
from planner.performance.post_training.counts import BLOCK_MATRICES
from planner.performance.work import Work

REFERENCE_MEMORY_RATE = 0.9e12
# A backward pass calls about twice the kernels of the forward pass: gradients of inputs and of weights.
BACKWARD_KERNELS = 2.0
# Operators that compilers and hand-written kernels fuse into their neighbours.
FUSIBLE = frozenset({
    "batch_norm_elements", "layer_norm_elements", "group_norm_elements", "pointwise_elements", "copied_elements",
    "reduced_elements",
})  # fmt: skip
# Operators that eager automatic precision runs in 32 bit, with casts and strided statistics; elsewhere they cost no
# more than their plain relatives.
LEAN = {"layer_norm": "batch_norm", "group_norm": "batch_norm", "linear": "convolution"}
# Counted once among the point-wise ones, in 16 bit.
SAME_KIND = {"promoted": "pointwise"}


def _avoided_flops(work: Work, devices: Devices) -> Floats:
    """Forward FLOPs per sample that minimal filtering does not compute."""
    result: Floats = work.operators[:, COLUMN["small_filter_flops"]] * (1.0 - 1.0 / devices.filtering)
    return result


def _matmul_s(work: Work, devices: Devices, c: Constants) -> Floats:
    """Forward time per sample of dense convolutions, linear layers and attention products, s."""

    def flops(name: str) -> Floats:
        return work.operators[:, COLUMN[name + "_flops"]]

    half = work.element_bytes < 4.0
    # Only the matmul units of 16 bit and below need whole tiles.
    padding = np.where(half, c["vision.padding_weight"] * flops("padding"), 0.0)
    # Convolution kernels of 32 bit are tuned less than those of 16.
    ratio = c["vision.convolution_ratio"] * np.where(half, 1.0, c["vision.full_precision_ratio"])
    dense = (flops("convolution") - _avoided_flops(work, devices) + padding) / ratio
    rate = devices.gemm_peak * devices.achievable
    rest = flops("linear") / c["vision.linear_ratio"] + flops("attention") / c["vision.attention_ratio"]
    result: Floats = (dense + rest) / rate + _narrow_s(work, devices, c)
    return result


def _narrow_s(work: Work, devices: Devices, c: Constants) -> Floats:
    """Forward time per sample that linear layers lose to narrow matrices, s: operand traffic as in transformers.

    Of the three products of a layer (forward, both gradients), two have one width outside and one inside, and one both
    outside; inputs and outputs are taken alike, as the counts hold their sum.
    """
    matmul = matmul_of(work, devices, devices.gemm_peak * devices.achievable, c)
    half = (2.0 * matmul.outer + matmul.inner) / 3.0
    result: Floats = 2.0 / matmul.rate * matmul.hunger * half * work.operators[:, COLUMN["linear_elements"]]
    return result


def _moved_bytes(work: Work, stack: str, c: Constants) -> Floats:
    """Bytes per sample that the forward pass moves through memory, and what direct kernels move through caches."""

    def column(name: str) -> Floats:
        return work.operators[:, COLUMN[name]]

    # Hand-written convolutions with fused normalisation exist in 16 bit only; 32 bit keeps what a compiler fuses.
    fused = np.where(
        work.element_bytes < 4.0, c.of_stack("vision.fused_ratio", stack),
        max(c.of_stack("vision.fused_ratio", stack), c["vision.fused_ratio.compiled"]),
    )  # fmt: skip
    last = work.channels_last > 0
    plain = c["vision.passes.layer_norm" if stack == "eager" else "vision.passes.batch_norm"]
    # Channels are aligned for the matmul units of 16 bit only; fused attention never writes its scores.
    reach: dict[str, Floats] = {
        "unaligned_elements": np.where(work.element_bytes < 4.0, 1.0, 0.0),
        "attention_elements": np.where(work.materialised > 0, 1.0, c["vision.fused_attention_ratio"]),
        # InPlaceABN reads with strides where channels are innermost, else as other norms in 32 bit.
        "in_place_norm_elements": np.where(last, 1.0, plain / c["vision.passes.in_place_norm"]),
        # Written in 32 bit by eager automatic precision: once more the bytes of 16.
        "promoted_elements": np.where((work.element_bytes < 4.0) & (stack == "eager"), 1.0, 0.0),
    }
    elements = np.zeros(work.operators.shape[0])
    for name in ELEMENT_FIELDS:
        kind = name.removesuffix("_elements")
        kind = SAME_KIND.get(kind, kind if stack == "eager" else LEAN.get(kind, kind))
        passes = c[f"vision.passes.{kind}"] * (fused if name in FUSIBLE else 1.0)
        elements = elements + passes * reach.get(name, 1.0) * column(name)
    # Direct kernels re-read their inputs; with channels outermost the depthwise ones have no contiguous channel.
    depthwise = np.where(last, c["vision.reread.depthwise"], c["vision.reread.depthwise_contiguous"])
    split = np.where(last, c["vision.reread.split"], c["vision.reread.grouped"])
    reread = (
        c["vision.reread.grouped"] * column("grouped_flops")
        + split * column("split_flops")
        + depthwise * column("depthwise_flops")
    )
    layout = np.where(last | (work.element_bytes >= 4.0), 1.0, c["vision.contiguous_ratio"])
    elements = elements + (layout - 1.0) * column("convolution_elements")
    # Adapters cast what a linear layer reads and add to what it writes, as in transformers.
    adapters = c.of_stack("memory.passes", stack) * c.of_stack("adapter.passes", stack)
    elements = elements + adapters * _adapted(work) * column("linear_elements")
    result: Floats = work.element_bytes * (elements + 0.5 * reread)
    return result


def _adapted(work: Work) -> Floats:
    """Share of the linear layers that have adapters."""
    result: Floats = np.minimum(work.adapted / BLOCK_MATRICES, 1.0)
    return result


def _kernels(work: Work, stack: str, c: Constants) -> Floats:
    """Launches of a forward pass; in eager code adapters cast their input, project down and up, scale and add."""
    own = work.operators[:, COLUMN["kernels"]]
    adapters = c["vision.adapter_launches"] * _adapted(work) * work.operators[:, COLUMN["tensors"]]
    return own + adapters if stack == "eager" else own


def sampled_micro(work: Work, devices: Devices, micro_batch: Floats, stack: str, c: Constants) -> Micro:
    """Cost of a whole CNN, ViT or diffusion model for one micro-batch.

    Args:
        work: `operators` per sample, columns as in `planner.performance.operators.FIELDS`.
        devices: device rows.
        micro_batch: samples per device.
        stack: software stack class.
        c: constants.
    """
    gemm = micro_batch * _matmul_s(work, devices, c) * (1.0 + c["vision.half_batch"] / micro_batch)
    # Above the reference memory (V100 class) unfused kernels gain less than the memory does.
    faster = np.maximum(devices.memory_rate / REFERENCE_MEMORY_RATE, 1.0)
    reached = devices.memory_rate * faster ** (c.of_stack("vision.memory_scaling", stack) - 1.0)
    memory = micro_batch * _moved_bytes(work, stack, c) / reached
    floor = _kernels(work, stack, c) * c.of_stack("vision.launch_us", stack) * 1e-6 * np.ones(gemm.shape)
    zero = np.zeros(gemm.shape)
    # Accelerators of a node share the host that reads, decodes and launches.
    shared = 1.0 + c.of_stack("vision.host_sharing", stack) * np.log2(devices.count)
    forward = shared * at_least(gemm + memory, floor)
    # Frozen weights need the gradients of inputs alone, half of the work.
    twice = np.where(work.lora > 0, 1.0, 2.0) * work.backward
    launches = floor * BACKWARD_KERNELS * 0.5 * twice
    backward = shared * at_least(twice * (gemm + memory), launches)
    samples = micro_batch * np.ones(gemm.shape)
    return Micro(gemm, twice * gemm, zero, memory, floor, forward, backward, zero, samples)
