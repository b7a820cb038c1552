"""Embedding tables of recommenders: their share of memory, look-ups, and the exchange of vectors among accelerators.

Tables are divided evenly among all accelerators (row-wise, or table-wise with a sharder that balances them). Each reads
and updates its share of the rows of the global batch; vectors go to the accelerator that has the sample, and their
gradients back: a model-parallel part inside of data parallelism (Naumov et al. 2019, arXiv 1906.00091, section 4;
Mudigere et al. 2022, arXiv 2104.05158, section 4). Costs follow the estimator of TorchRec's sharding planner
(pytorch/torchrec, torchrec/distributed/planner/shard_estimators.py and constants.py): bytes of rows over memory
bandwidth, twice as much backward, narrow rows at a lower rate, indices of 8 bytes, vectors over the links.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.device import Devices
from planner.performance.layouts import Layouts
from planner.performance.links import Links
from planner.performance.spec import TableSpec
from planner.performance.step import Step
from planner.performance.work import Work

# Of rows read forward; the backward pass reads and writes them (BWD_COMPUTE_MULTIPLIER).
BACKWARD_READS = 2.0
# Rows narrower than a block of the kernel (FULL_BLOCK_EMB_DIM 128) reach less bandwidth: width from which, factor.
NARROW = ((128, 1.0), (64, 1.15), (0, 1.75))
INDEX_BYTES = 8.0
# Factor within which ten measured rows are (`python -m benchmarks.recommenders`); nothing above is fitted to them.
TABLES_WITHIN = 2.0


def _ranks(layout: Layouts) -> Floats:
    ranks: Floats = layout.dp * layout.tp * layout.pp * layout.cp
    return ranks


def table_bytes(tables: TableSpec | None, layout: Layouts) -> Floats:
    """Bytes per accelerator of its share of the rows and their states."""
    return np.zeros(1) if tables is None else tables.all_bytes / _ranks(layout)


def vector_bytes(tables: TableSpec | None, work: Work, layout: Layouts) -> Floats:
    """Bytes per accelerator of vectors and their gradients: as sent for all samples, and as received for its own."""
    if tables is None:
        return np.zeros(1)
    result: Floats = (
        4.0 * work.global_batch / _ranks(layout) * tables.tables * tables.width * work.element_bytes
    )
    return result


def with_tables(
    tables: TableSpec, work: Work, devices: Devices, layout: Layouts, links: Links, step: Step
) -> Step:
    """Add look-ups and updates of rows, and the exchange of indices, vectors and gradients of vectors."""
    ranks = _ranks(layout)
    samples = work.global_batch / ranks
    slower = next(factor for width, factor in NARROW if tables.width >= width)
    read = samples * tables.lookups * slower * tables.row_bytes
    states = samples * tables.lookups * 2.0 * tables.state_bytes
    looked_up = ((1.0 + BACKWARD_READS) * read + states) / devices.memory_rate
    vectors = samples * tables.tables * tables.width * work.element_bytes
    indices = samples * tables.lookups * INDEX_BYTES
    inside = np.minimum(devices.domain, ranks)
    exchange = sum(
        (_exchange_s(volume, ranks, inside, devices, links) for volume in (indices, vectors, vectors)),
        np.zeros(1),
    )
    exchange = np.where(ranks > 1, exchange, 0.0)
    added = {"memory_bound_s": looked_up, "tp_comm_s": exchange}
    parts = {name: value + added.get(name, 0.0) for name, value in step.parts.items()}
    return Step(step.total + looked_up + exchange, parts)


def _exchange_s(volume: Floats, ranks: Floats, inside: Floats, devices: Devices, links: Links) -> Floats:
    """Time of one all-to-all of `volume` bytes per accelerator, near and far at once, s."""
    near = volume * (inside - 1.0) / ranks / links.intra
    crosses = ranks > inside
    far = np.where(crosses, volume * (1.0 - inside / ranks) * devices.count / links.inter_node, 0.0)
    result: Floats = np.maximum(near, far) + links.intra_latency + np.where(crosses, links.inter_latency, 0.0)
    return result
