"""A pool that generates the answers of reinforcement learning and trains nothing, as the table of `estimate_shapes`.

A step generates `global_batch` answers, to the last token of the longest, on replicas inside a node that share nothing.
An engine takes its share of the memory whatever it keeps there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalogs.tables.table import Floats, Table
from planner.performance.constants import Constants, load_constants
from planner.performance.device import build_devices
from planner.performance.inference.cases import GIB
from planner.performance.inference.chips import stored_bytes
from planner.performance.inference.rates import MEMORY_SHARE
from planner.performance.inference.rollouts import generate
from planner.performance.inference.shapes import Replica, replica_table
from planner.performance.links import build_links
from planner.performance.memory_risk import usable_gib
from planner.performance.post_training.spec import Rollouts
from planner.performance.spec import ModelSpec, TrainingSpec


def estimate_rollouts(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    node_counts: Sequence[int],
    max_accelerators: int | None,
    constants: Constants | None,
) -> Table:
    """Estimate pools of rollouts; arguments and columns are those of `planner.performance.search.estimate_shapes`.

    A step takes at least `paced_s`, which the trainer sets.
    """
    c = constants or load_constants()
    rollouts = training.tuning.rollouts
    assert rollouts is not None
    devices = build_devices(hardware, training, model.family.value, c)
    counts = np.asarray(list(node_counts), dtype=np.int64)
    row = np.repeat(np.arange(hardware.n_rows, dtype=np.int64), len(counts))
    nodes, each = np.tile(counts, hardware.n_rows), devices.take(row)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = generate(
            model, rollouts, int(training.global_batch), each, nodes * each.count, c, most_tp=each.count
        )
        rate = training.global_batch / (np.maximum(made.time_s, rollouts.paced_s) * nodes)
    held = np.minimum(MEMORY_SHARE * each.memory_gib, usable_gib(each.memory_gib, each.memory_rate, c))
    weights = stored_bytes(model, rollouts.engine) / each.count / GIB
    replica = Replica(np.nan_to_num(rate), made.tp, held, weights, np.zeros(len(row)))
    own = np.arange(len(row), dtype=np.int64)
    return replica_table(model, training, each, replica, own, nodes, max_accelerators, c).with_columns(
        hardware_row=row
    )


def node_rates(model: ModelSpec, training: TrainingSpec, hardware: Table) -> Floats:
    """Usable rate of a node's network, bytes/s, NaN where it is unknown; shape `(n_hardware,)`."""
    c = load_constants()
    return build_links(build_devices(hardware, training, model.family.value, c), c).inter_node


def weight_bytes(model: ModelSpec, rollouts: Rollouts) -> float:
    """Bytes of the weights that each step hands over."""
    return stored_bytes(model, rollouts.engine)


def handover_s(size: float, copies: Floats, rate: Floats, gbps: Floats) -> Floats:
    """Time to hand new weights from the trainer's nodes to those of the rollouts, s; infinite where a link is unknown.

    Every replica takes a copy over its node's network; nodes pass copies on (a tree), so that their number does not
    count, and the slower network of the two pools sets the pace. As between colocated nodes, `rollouts.refit_ratio` of
    it is reached. Between regions one copy crosses first.

    Args:
        size: bytes of the weights.
        copies: replicas on a node of the rollouts.
        rate: of the slower of two nodes' networks, bytes/s; any shapes that broadcast.
        gbps: Gb/s between the regions of the pools, infinite within one.
    """
    c = load_constants()
    with np.errstate(divide="ignore", invalid="ignore"):
        time = size * copies / (rate * c["rollouts.refit_ratio"]) + c["rollouts.refit_s"]
        result: Floats = np.where(rate > 0, time + size * 8.0 / (gbps * 1e9), np.inf)
    return result
