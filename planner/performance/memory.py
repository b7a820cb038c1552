"""Memory per device on the most loaded pipeline stage, GiB, and its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.contrastive import pair_bytes
from planner.performance.embeddings import table_bytes, vector_bytes
from planner.performance.layouts import Layouts
from planner.performance.memory_activations import FULL, NONE, SELECTIVE, passing
from planner.performance.memory_states import states
from planner.performance.memory_work import STACKS, Footprint
from planner.performance.parts import layout_of

GIB = 1024.0**3
PARTS = ("weights_gib", "gradients_gib", "optimizer_gib", "activations_gib", "logits_gib", "buffers_gib",
         "runtime_gib")  # fmt: skip
__all__ = [
    "FULL", "GIB", "NONE", "PARTS", "SELECTIVE", "levels_gib", "memory_gib", "memory_parts", "needed_gib",
    "needed_parts",
]  # fmt: skip


def levels_gib(job: Footprint, layout: Layouts, levels: Sequence[int], c: Constants) -> list[Floats]:
    """Needed memory per device at several recompute levels, GiB, each of the layouts' shape."""
    waste, runtime = _overheads(job, layout, c)
    factor = (1.0 + waste) / GIB
    each = [(network, place, states(network, place, c)) for network, place in _networks(job, layout)]
    lasting = sum(
        (held.weights + held.gradients + held.optimizer + held.gathered for _, _, held in each), np.zeros(1)
    )
    lasting = lasting + table_bytes(job.tables, layout)
    stepping = sum((held.stepping for _, _, held in each), np.zeros(1))
    by_level = []
    for level in levels:
        works = [passing(network, place, level, c) for network, place, _ in each]
        moving = sum((work.activations + work.logits for work in works), pair_bytes(job.work, layout))
        moving = moving + vector_bytes(job.tables, job.work, layout)
        # Activations are gone when the optimizer steps.
        by_level.append((lasting + np.maximum(moving, stepping)) * factor + runtime)
    return by_level


def _networks(job: Footprint, layout: Layouts) -> list[tuple[Footprint, Layouts]]:
    """The model and the networks beside it, each with its part of the layout."""
    return [(job, layout), *((item.footprint, layout_of(item.part, layout)) for item in job.beside)]


def memory_gib(job: Footprint, layout: Layouts, level: int, c: Constants) -> Floats:
    """Needed memory per device at one recompute level, GiB."""
    return levels_gib(job, layout, [level], c)[0]


def needed_gib(job: Footprint, layout: Layouts, c: Constants) -> Floats:
    """Needed memory per device at each row's own recompute level, GiB."""
    result: Floats = np.choose(
        layout.recompute.astype(np.int64), levels_gib(job, layout, (NONE, SELECTIVE, FULL), c)
    )
    return result


def memory_parts(job: Footprint, layout: Layouts, level: int, c: Constants) -> dict[str, Floats]:
    """Memory per device by part, GiB; the parts (`PARTS`) sum to `memory_gib`.

    `buffers_gib` holds gathered ZeRO-3 weights, what the optimizer's step needs beyond the activations that are gone
    by then, and what the allocator wastes; `runtime_gib` context, libraries and
    communication channels, which a framework's own counters do not see.
    """
    waste, runtime = _overheads(job, layout, c)
    shape = layout.tp.shape
    total = {name: np.zeros(shape) for name in PARTS}
    stepping = np.zeros(shape)
    for network, place in _networks(job, layout):
        state, work = states(network, place, c), passing(network, place, level, c)
        used = (
            state.weights
            + state.gradients
            + state.optimizer
            + state.gathered
            + work.activations
            + work.logits
        )
        values = (state.weights, state.gradients, state.optimizer, work.activations, work.logits,
                  state.gathered + waste * used)  # fmt: skip
        for name, value in zip(PARTS, values, strict=False):
            total[name] = total[name] + value / GIB
        stepping = stepping + state.stepping / GIB
    pairs, held, passed = (
        pair_bytes(job.work, layout),
        table_bytes(job.tables, layout),
        vector_bytes(job.tables, job.work, layout),
    )
    total["logits_gib"] = total["logits_gib"] + pairs / GIB
    total["weights_gib"] = total["weights_gib"] + held / GIB
    total["activations_gib"] = total["activations_gib"] + passed / GIB
    total["buffers_gib"] = total["buffers_gib"] + waste * (pairs + held + passed) / GIB
    beyond = np.maximum(stepping - total["activations_gib"] - total["logits_gib"], 0.0)
    total["buffers_gib"] = total["buffers_gib"] + beyond * (1.0 + waste)
    return {**total, "runtime_gib": np.broadcast_to(runtime, shape)}


def needed_parts(job: Footprint, layout: Layouts, c: Constants) -> dict[str, Floats]:
    """As `memory_parts`, at each row's own recompute level."""
    by_level = [memory_parts(job, layout, level, c) for level in (NONE, SELECTIVE, FULL)]
    own = layout.recompute.astype(np.int64)
    return {name: np.choose(own, [parts[name] for parts in by_level]) for name in PARTS}


def _overheads(job: Footprint, layout: Layouts, c: Constants) -> tuple[Floats, Floats]:
    """Share the allocator wastes, by software stack, and GiB outside the framework's own memory.

    A framework for tensor and pipeline parallelism sets up channels and workspaces for each of its groups of devices;
    sharded data parallelism (ZeRO-3) and plain data parallelism have one group.
    """
    waste = np.asarray([c.of_stack("memory.fragmentation_ratio", word) for word in STACKS])[
        job.stack.astype(np.int64)
    ]
    # Megatron-LM frees what a stage has sent and reuses its buffers.
    piped = (layout.pp > 1) & (job.stack != STACKS.index("tuned"))
    waste = waste + np.where(piped, c["memory.fragmentation_ratio.piped"], 0.0)
    many = (job.many_groups > 0) & (layout.zero < 3)
    return waste, np.where(many, c["memory.runtime_gib.many_groups"], c["memory.runtime_gib.one_group"])
