"""Memory per device on the most loaded pipeline stage, GiB, and its parts."""

from __future__ import annotations

import numpy as np

from planner.performance.constants import Constants
from planner.performance.layouts import Layouts
from planner.performance.memory_activations import FULL, NONE, SELECTIVE, passing
from planner.performance.memory_states import states
from planner.performance.memory_work import STACKS, Footprint
from planner.performance.work import Floats

GIB = 1024.0**3
PARTS = ("weights_gib", "gradients_gib", "optimizer_gib", "activations_gib", "logits_gib", "buffers_gib",
         "runtime_gib")  # fmt: skip
__all__ = ["FULL", "GIB", "NONE", "PARTS", "SELECTIVE", "memory_gib", "memory_parts"]


def memory_parts(job: Footprint, layout: Layouts, level: int, c: Constants) -> dict[str, Floats]:
    """Memory per device by part, GiB; the parts sum to `memory_gib`.

    `buffers_gib` holds gathered ZeRO-3 weights and what the allocator wastes; `runtime_gib` context, libraries and
    communication channels, which a framework's own counters do not see.
    """
    state, work = states(job, layout, c), passing(job, layout, level, c)
    stack = job.stack.astype(np.int64)
    used = state.weights + state.gradients + state.optimizer + state.gathered + work.activations + work.logits
    waste = np.asarray([c[f"memory.fragmentation.{word}"] for word in STACKS])[stack] * used
    runtime = np.asarray([c[f"memory.runtime_gib.{word}"] for word in STACKS])[stack]
    shape = layout.tp.shape
    return {
        "weights_gib": np.broadcast_to(state.weights / GIB, shape),
        "gradients_gib": np.broadcast_to(state.gradients / GIB, shape),
        "optimizer_gib": np.broadcast_to(state.optimizer / GIB, shape),
        "activations_gib": np.broadcast_to(work.activations / GIB, shape),
        "logits_gib": np.broadcast_to(work.logits / GIB, shape),
        "buffers_gib": np.broadcast_to((state.gathered + waste) / GIB, shape),
        "runtime_gib": np.broadcast_to(runtime, shape),
    }


def memory_gib(job: Footprint, layout: Layouts, level: int, c: Constants) -> Floats:
    """Needed memory per device at one recompute level, GiB, shape of the layouts."""
    parts = memory_parts(job, layout, level, c)
    total: Floats = np.sum(np.stack([parts[name] for name in PARTS]), axis=0)
    return total
