"""Parallel layouts as arrays, and their enumeration within stated bounds.

Bounds: tp powers of 2 up to the accelerators of a node; pp divisors of the layer count, and powers of 2 that leave at
most 15 % of a stage empty; cp 1 unless the sequence is long or data parallelism alone would exceed the batch; dp the
rest; micro-batch powers of 2 that divide a replica's batch, and that batch itself; ZeRO 0 (dp 1), 1, and 3 (pp 1).
ZeRO-0 is left out where dp > 1: with the same traffic, more memory and a longer optimizer step than ZeRO-1 it is never
better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.performance.spec import LayoutPin, TrainingSpec
from planner.performance.work import Floats

MAX_TOKENS = 65536
MAX_SAMPLES = 4096
LONG_SEQUENCE = 32768
MAX_CONTEXT = 8
MIN_CONTEXT_SEQUENCE = 4096
MAX_STAGE_WASTE = 1.15
MAX_INTERLEAVE = 6.0


@dataclass(frozen=True)
class Layouts:
    """One row per candidate layout; `hardware` is the device row, `recompute` 0 none, 1 selective, 2 full."""

    hardware: npt.NDArray[np.int64]
    nodes: Floats
    tp: Floats
    pp: Floats
    cp: Floats
    ep: Floats
    dp: Floats
    zero: Floats
    micro_batch: Floats
    micro_batches: Floats
    interleave: Floats
    sequence_parallel: Floats
    recompute: Floats

    def take(self, index: npt.NDArray[np.int64]) -> Layouts:
        """Return rows `index`."""
        picked: dict[str, Any] = {field.name: getattr(self, field.name)[index] for field in fields(self)}
        return Layouts(**picked)

    @property
    def n_rows(self) -> int:
        """Number of layouts."""
        return len(self.hardware)


@dataclass(frozen=True)
class Bounds:
    """What the enumeration may vary for one job."""

    global_batch: int
    sequence: int
    layers: int
    experts: int
    sampled: bool
    shardable: bool
    pin: LayoutPin


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]


def stages(layers: int) -> list[int]:
    """Pipeline depths to try: divisors of the layers, and powers of 2 that waste at most `MAX_STAGE_WASTE`."""
    uneven = [p for p in _powers(layers) if -(-layers // p) * p <= MAX_STAGE_WASTE * layers]
    return sorted({*divisors(layers), *uneven})


def interleave(stack: str, layers: Floats, pp: Floats) -> Floats:
    """Virtual stages per device: tuned stacks interleave, with at least two layers per virtual stage, up to six."""
    if stack != "tuned":
        return np.ones(pp.shape)
    return np.where(pp > 1, np.clip(np.floor(layers / (2.0 * pp)), 1.0, MAX_INTERLEAVE), 1.0)


def _powers(limit: int) -> list[int]:
    return [1 << k for k in range(max(limit, 1).bit_length()) if 1 << k <= limit]


@lru_cache(maxsize=256)
def grid(count: int, nodes: tuple[int, ...], bounds: Bounds) -> npt.NDArray[np.int64]:
    """All valid layouts of nodes with `count` accelerators.

    Returns:
        int64 array of shape `(n_layouts, 8)`: index into `nodes`, tp, pp, cp, dp, zero, micro-batch, micro-batches.
    """
    pin = bounds.pin
    tps = [pin.tensor_parallel] if pin.tensor_parallel else ([1] if bounds.sampled else _powers(count))
    pps = (
        [pin.pipeline_parallel]
        if pin.pipeline_parallel
        else ([1] if bounds.sampled else stages(bounds.layers))
    )
    long = bounds.sequence >= LONG_SEQUENCE and not bounds.sampled
    some = bounds.sequence >= MIN_CONTEXT_SEQUENCE and not bounds.sampled
    cps = [pin.context_parallel] if pin.context_parallel else (_powers(MAX_CONTEXT) if some else [1])
    # Larger stages stop fitting any cap; 0 stands for "the replica's whole batch".
    cap = MAX_SAMPLES if bounds.sampled else max(1, MAX_TOKENS // max(1, bounds.sequence))
    batches = [pin.micro_batch] if pin.micro_batch else [*_powers(cap), 0]
    zeros = [0, 1, 3] if pin.zero_stage is None else [pin.zero_stage]
    axes = np.meshgrid(np.arange(len(nodes)), tps, pps, cps, batches, zeros, indexing="ij")
    at, tp, pp, cp, mb, zero = (np.asarray(axis, dtype=np.int64).ravel() for axis in axes)
    devices = np.asarray(nodes, dtype=np.int64)[at] * count
    shard = tp * pp * cp
    dp = devices // shard
    ok = (dp >= 1) & (dp * shard == devices) & (tp <= devices)
    replica = np.where(ok, bounds.global_batch // np.maximum(dp, 1), 0)
    ok &= (replica >= 1) & (replica * dp == bounds.global_batch)
    if not (long or pin.context_parallel):
        ok &= (cp == 1) | (dp * cp > bounds.global_batch)
    whole = mb == 0
    mb = np.where(whole, replica, mb)
    # The whole batch counts once, and only where it is no power of two already listed.
    ok &= ~(whole & (((replica & (replica - 1)) == 0) | (replica > cap)))
    ok &= (mb >= 1) & (replica % np.maximum(mb, 1) == 0)
    if pin.zero_stage is None:
        ok &= np.where(dp * cp == 1, zero == 0, (zero == 1) | ((zero == 3) & (pp == 1)))
    keep = np.flatnonzero(ok)
    columns = [at, tp, pp, cp, dp, zero, mb, replica // np.maximum(mb, 1)]
    result = np.stack([column[keep] for column in columns], axis=1)
    result.setflags(write=False)
    return result


def expert_parallel(experts: int, dp: Floats, count: Floats) -> Floats:
    """Experts are spread over data-parallel ranks of one node: the greatest power of 2 that fits and divides them."""
    if experts <= 1:
        return np.ones(dp.shape)
    limit = np.minimum(np.minimum(dp, count), float(experts & -experts))
    result: Floats = 2.0 ** np.floor(np.log2(np.maximum(limit, 1.0)))
    return result


def explicit(
    count: float,
    training: TrainingSpec,
    layers: int,
    experts: int,
    rows: Sequence[Mapping[str, int]],
) -> Layouts:
    """Layouts given by hand for `estimate_layouts`.

    Args:
        count: accelerators per node.
        training: gives the global batch and the stack.
        layers: layers of the model.
        experts: experts of the model, 1 for dense.
        rows: per layout `hardware` (row), `nodes`, `tp`, `pp`, `cp`, `zero`, `micro_batch` and `recompute` (0, 1, 2);
            missing ones count as 1 (`hardware`, `zero` and `recompute` as 0).

    Raises:
        ValueError: when a layout does not divide the cluster or the batch.
    """
    defaults = {
        "hardware": 0,
        "nodes": 1,
        "tp": 1,
        "pp": 1,
        "cp": 1,
        "zero": 0,
        "micro_batch": 1,
        "recompute": 0,
    }
    full = [{**defaults, **row} for row in rows]
    table = {name: np.asarray([row[name] for row in full], dtype=np.float64) for name in defaults}
    shard = table["tp"] * table["pp"] * table["cp"]
    dp = table["nodes"] * count / shard
    micro_batches = training.global_batch / (dp * table["micro_batch"])
    for position in range(len(full)):
        if dp[position] < 1 or dp[position] % 1 or micro_batches[position] < 1 or micro_batches[position] % 1:
            raise ValueError(
                f"layout {position}: tp x pp x cp must divide the accelerators, dp x micro-batch the batch"
            )
    return Layouts(
        table["hardware"].astype(np.int64), table["nodes"], table["tp"], table["pp"], table["cp"],
        expert_parallel(experts, dp, np.full(dp.shape, count)), dp, table["zero"], table["micro_batch"], micro_batches,
        interleave(training.stack, np.full(dp.shape, float(layers)), table["pp"]),
        (table["tp"] > 1).astype(np.float64), table["recompute"],
    )  # fmt: skip
