"""Losses over all pairs of the global batch: embeddings gathered from every replica, and the block of their products.

Each replica has b = B / replicas of B pairs. `rows`: it compares its own pairs with all others in both directions
(local loss of open_clip); `full`: it computes the whole B x B matrix (Radford et al. 2021, arXiv 2103.00020, figure 3);
`chunks`: embeddings of one tower pass round and one b x b block lives at a time (Zhai et al. 2023, arXiv 2303.15343,
section 3.3).
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.device import Devices
from planner.performance.layouts import Layouts
from planner.performance.links import Links, all_reduce_s
from planner.performance.post_training.counts import PAIR_LOGITS
from planner.performance.step import Step
from planner.performance.work import Work

FULL, CHUNKS = float(PAIR_LOGITS.index("full")), float(PAIR_LOGITS.index("chunks"))
# Products and softmax are kept in 32 bit, with their gradients; the loss reads and writes them a few times.
LOGIT_BYTES = 4.0
KEPT, PASSES = 2.0, 6.0


def _elements(work: Work, layout: Layouts) -> tuple[Floats, Floats]:
    """Products that a replica computes in a step, and those that live at once."""
    batch = work.global_batch * np.ones(layout.dp.shape)
    own = batch / layout.dp
    chunked = work.pair_logits == CHUNKS
    shared = np.where(chunked, 1.0, 2.0) * own * batch
    computed = np.where(work.pair_logits == FULL, batch * batch, shared)
    return computed, np.where(chunked, own * own, computed)


def pair_bytes(work: Work, layout: Layouts) -> Floats:
    """Bytes per device of the products and of the gathered embeddings of both halves."""
    if not (work.pair_width > 0).any():
        return np.zeros(1)
    living = _elements(work, layout)[1]
    pairs = np.where(work.pair_logits == CHUNKS, work.global_batch / layout.dp, work.global_batch)
    result: Floats = KEPT * LOGIT_BYTES * (living + 2.0 * pairs * work.pair_width)
    return result


def with_pairs(work: Work, devices: Devices, layout: Layouts, links: Links, step: Step) -> Step:
    """Add the products and the exchange of embeddings: gathered forward, their gradients scattered backward."""
    if not (work.pair_width > 0).any():
        return step
    computed = _elements(work, layout)[0]
    flops = 3.0 * 2.0 * computed * work.pair_width / (devices.gemm_peak * devices.achievable)
    moved = PASSES * LOGIT_BYTES * computed / devices.memory_rate
    towers = np.where(work.pair_logits == CHUNKS, 1.0, 2.0)
    volume = towers * work.global_batch * work.pair_width * work.element_bytes
    inside = np.minimum(layout.dp, np.maximum(np.floor(devices.domain / layout.tp), 1.0))
    exchange = all_reduce_s(volume, layout.dp, inside, devices.count, links)
    exchange = np.where(layout.dp > 1, exchange, 0.0)
    added = {"compute_s": flops, "memory_bound_s": moved, "dp_comm_s": exchange}
    parts = {name: value + added.get(name, 0.0) for name, value in step.parts.items()}
    return Step(step.total + flops + moved + exchange, parts)
