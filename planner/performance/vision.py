"""Time of one micro-batch of a CNN, ViT or diffusion model: FLOPs at a matmul share plus activation traffic."""

from __future__ import annotations

import numpy as np

from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.micro import Micro, at_least
from planner.performance.work import Floats, Work

REFERENCE_MEMORY_RATE = 0.9e12


def sampled_micro(
    work: Work, devices: Devices, micro_batch: Floats, kind: str, stack: str, c: Constants
) -> Micro:
    """Cost of a whole CNN, ViT or diffusion model for one micro-batch: FLOPs plus activation traffic.

    Args:
        work: `forward_flops` and `activations` per sample.
        devices: device rows.
        micro_batch: samples per device.
        kind: `cnn`, `vit` or `diffusion`: which efficiencies apply.
        stack: software stack class.
        c: constants.
    """
    rate = devices.gemm_peak * devices.achievable * c[f"{kind}.gemm_ratio"]
    shape = 1.0 / (1.0 + c[f"{kind}.half_batch"] / micro_batch)
    gemm = work.forward_flops * micro_batch / (rate * shape)
    # Inputs per output of the mean layer: few (depthwise, narrow) come with more element-wise work per activation.
    width = work.forward_flops / (2.0 * work.activations)
    passes = c[f"{kind}.passes.{stack}"] * (1.0 + c[f"{kind}.narrow_width"] / width)
    # Above the reference memory (V100 class) unfused kernels gain less than the memory does.
    faster = np.maximum(devices.memory_rate / REFERENCE_MEMORY_RATE, 1.0)
    reached = devices.memory_rate * faster ** (c[f"{kind}.memory_scaling.{stack}"] - 1.0)
    memory = work.activations * micro_batch * work.element_bytes * passes / reached
    floor = np.broadcast_to(c[f"{kind}.floor_s.{stack}"], gemm.shape)
    zero = np.zeros(gemm.shape)
    forward = at_least(gemm + memory, floor)
    backward = at_least(2.0 * gemm + 2.0 * memory, floor * c["floor.backward"])
    return Micro(
        gemm, 2.0 * gemm, zero, memory, floor, forward, backward, zero, micro_batch * np.ones(gemm.shape)
    )
