"""Time of one micro-batch through one layer on one device: the roofline part of the model.

A layer's forward pass is matmul (roofline with a shape efficiency), attention and memory-bound element-wise work, never
faster than a launch floor. The backward pass does twice the matmul work (Megatron-LM SC'21, arXiv 2104.04473) and 2.5 x
the attention work of a fused kernel (FlashAttention, arXiv 2205.14135).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.work import Floats, Work

# Reached FLOP per byte of an A100-80 in 16 bit, for which the half sizes of matrices are given.
REFERENCE_INTENSITY = 121.0


@dataclass(frozen=True)
class Micro:
    """Seconds per layer and micro-batch on one device (sampled models: the whole model is one layer).

    Attributes:
        gemm: forward matmul time; `attention` forward; `memory` forward element-wise time.
        floor: least forward time of a layer (kernel launches).
        forward, backward: totals, floor applied.
        head: forward and backward of the output projection and loss, per micro-batch.
        flops: forward FLOPs of a layer per device (for the roofline and MFU).
        tokens: tokens per device and micro-batch.
    """

    gemm: Floats
    attention: Floats
    memory: Floats
    floor: Floats
    forward: Floats
    backward: Floats
    head: Floats
    tokens: Floats

    def take(self, index: npt.NDArray[np.int64]) -> Micro:
        """Return rows `index`."""
        picked: dict[str, Any] = {field.name: getattr(self, field.name)[index] for field in fields(self)}
        return Micro(**picked)


def at_least(value: Floats, floor: Floats) -> Floats:
    """Smooth maximum (4-norm): two limits that meet both cost a little."""
    squared, limit = value * value, floor * floor
    total: Floats = np.sqrt(np.sqrt(squared * squared + limit * limit))
    return total


def transformer_micro(
    work: Work, devices: Devices, tp: Floats, cp: Floats, micro_batch: Floats, stack: str, c: Constants
) -> Micro:
    """Cost of one transformer layer; all arguments broadcast to one shape."""
    tokens = micro_batch * work.seq / cp
    rate = devices.gemm_peak * devices.achievable * c["gemm.max_ratio"]
    width = np.minimum(work.hidden, work.moe_width)
    tokens_per_matrix = tokens / np.maximum(work.expert_ratio, 1.0)
    # Faster matmul units (relative to memory) need larger matrices to fill; slow ones lose little.
    hunger = rate / devices.memory_rate / REFERENCE_INTENSITY
    narrow = c["gemm.half_width"] * tp / width + c["gemm.half_tokens"] / tokens_per_matrix
    shape = 1.0 / (1.0 + hunger * narrow)
    gemm_flops = 2.0 * work.layer_active_params * tokens / tp
    weight_read_s = work.element_bytes * work.layer_params / tp / devices.memory_rate
    gemm = np.maximum(gemm_flops / (rate * shape), weight_read_s)
    score_flops = 4.0 * work.causal * work.score_ratio * work.seq * work.attn_width * tokens / tp
    full_score_flops = 4.0 * work.score_ratio * work.seq * work.attn_width * tokens / tp
    attn_rate = devices.attn_peak * devices.achievable
    fused_s = score_flops / (attn_rate * c["attention.fused_ratio"])
    score_bytes = (
        c[f"attention.score_passes.{stack}"]
        * work.score_ratio
        * work.heads
        * work.seq
        * tokens
        / tp
        * work.element_bytes
    )
    plain_s = full_score_flops / (attn_rate * c["attention.plain_ratio"]) + score_bytes / devices.memory_rate
    attention = np.where(work.materialised > 0, plain_s, fused_s)
    moved = tokens * (
        work.act_replicated_bytes / np.where(tp > 1, tp ** c["memory.tp_split"], 1.0)
        + work.act_split_bytes / tp
    )
    memory = c[f"memory.passes.{stack}"] * moved / (devices.memory_rate * c["memory.bandwidth_ratio"])
    floor = np.broadcast_to(c[f"floor.layer_s.{stack}"], gemm.shape)
    gemm_factor = np.where(work.lora > 0, 1.0 + c["lora.extra_ratio"], 2.0)
    attn_factor = np.where(work.materialised > 0, 2.0, 2.5)
    forward = at_least(gemm + attention + memory, floor)
    backward = at_least(
        gemm_factor * gemm + attn_factor * attention + 2.0 * memory, floor * c["floor.backward"]
    )
    predicted = work.head_share * tokens / tp
    head_rate = devices.attn_peak * devices.achievable * c["gemm.max_ratio"]
    head_bytes = c["head.passes"] * predicted * work.vocab * work.element_bytes
    head = 6.0 * work.head_params * predicted / head_rate + head_bytes / devices.memory_rate
    return Micro(gemm, attention, memory, floor, forward, backward, head, tokens)
