"""Choices of a training run that change its memory but hardly its speed; every one has a default by software stack."""

from __future__ import annotations

from typing import Literal

from planner.records import record

Gradients = Literal["auto", "fp32", "half", "both"]
Loss = Literal["auto", "materialised", "fused", "tiled"]
Master = Literal["auto", "none"]
Groups = Literal["auto", "one", "many"]


@record(frozen=True)
class MemoryOptions:
    """How states, logits and activations are kept.

    Attributes:
        gradients: precision of accumulated gradients of 16-bit training; `auto`: 32 bit for bf16 and fp8, 16 for fp16;
            `both`: 16-bit gradients stay beside 32-bit sums (DeepSpeed's optimizer for bf16).
        master: `none` when 16-bit weights are updated in place, with 16-bit moments and no 32-bit copy.
        loss: `materialised` keeps 16- and 32-bit logits and their gradients, `fused` one copy and its gradient,
            `tiled` a small piece at a time; `auto`: fused on a tuned stack, else materialised.
        groups: `many` when the framework sets up communication for tensor, pipeline and data parallelism apart
            (Megatron-LM and its kin), whatever their degrees; `auto`: transformers unless the stack is eager.
        offload_optimizer: states (and 32-bit weights) live in host memory, updated there.
        offload_weights: weights live in host memory too and come layer by layer (ZeRO-3 only).
        offload_activations: the input that full recompute keeps of each layer lives in host memory.
        fp8_weights: weights are kept in 8 bit for the matmuls, without a 16-bit copy.
        shard_ranks: ranks that share one copy of what ZeRO or FSDP shards (hybrid sharding, often a node); `None`: all.
        optimizer_in_backward: each gradient is applied and freed as soon as it is known (one micro-batch per step).
        dropout: whether dropout masks are kept; `None`: models without a gated MLP have dropout.
        confidence: least probability with which a layout must fit; `None`: 1 - `memory.oom_limit`.
    """

    gradients: Gradients = "auto"
    master: Master = "auto"
    loss: Loss = "auto"
    groups: Groups = "auto"
    offload_optimizer: bool = False
    offload_weights: bool = False
    offload_activations: bool = False
    fp8_weights: bool = False
    shard_ranks: int | None = None
    dropout: bool | None = None
    optimizer_in_backward: bool = False
    confidence: float | None = None
