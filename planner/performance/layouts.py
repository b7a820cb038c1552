"""Parallel layouts as arrays; `planner.performance.layouts_grid` enumerates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from catalogs.tables.rows import pick
from catalogs.tables.table import Floats, Ints
from planner.performance.spec import TrainingSpec
from planner.records import record

# Virtual stages per device that the search tries, of one layer at least, as in NVIDIA's recipes (Llama 3 70B LoRA: 4
# stages of 20; Megatron-Bridge, perf_recipes). More hardly shorten the bubble.
MAX_INTERLEAVE = 8.0
# Where a layout does not state them.
USUAL_INTERLEAVE, USUAL_LAYERS = 6.0, 2.0


@record(frozen=True)
class Layouts:
    """One row per candidate layout; `hardware` is the device row, `recompute` 0 none, 1 selective, 2 full."""

    hardware: Ints
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

    def take(self, index: Ints) -> Layouts:
        """Return rows `index`."""
        picked: dict[str, Any] = {
            name: pick(getattr(self, name), index) for name in self.__dataclass_fields__
        }
        return Layouts(**picked)

    @staticmethod
    def concat(parts: Sequence[Layouts]) -> Layouts:
        """Join rows of several sets."""
        names = [field.name for field in fields(Layouts)]
        return Layouts(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    @staticmethod
    def empty() -> Layouts:
        """No layouts."""
        none = np.zeros(0)
        return Layouts(none.astype(np.int64), *[none] * 12)

    @property
    def n_rows(self) -> int:
        """Number of layouts."""
        return len(self.hardware)


def interleave(stack: str, layers: Floats, pp: Floats) -> Floats:
    """Virtual stages per device where they are not stated: those of tuned stacks, of two layers at least, up to six."""
    if stack != "tuned":
        return np.ones(pp.shape)
    return np.where(pp > 1, np.clip(np.floor(layers / (USUAL_LAYERS * pp)), 1.0, USUAL_INTERLEAVE), 1.0)


def expert_parallel(experts: int, dp: Floats, count: Floats) -> Floats:
    """Experts are spread over data-parallel ranks of one node: the greatest power of 2 that fits and divides them."""
    if experts <= 1:
        return np.ones(dp.shape)
    limit = np.minimum(np.minimum(dp, count), float(experts & -experts))
    result: Floats = 2.0 ** np.floor(np.log2(np.maximum(limit, 1.0)))
    return result


def expert_shards(layout: Layouts) -> Floats:
    """Devices over which the experts of a layer are divided: by tensor and expert parallelism.

    Where the expert degree is above dp x cp, experts are spread over tensor ranks instead of being split by them.
    """
    result: Floats = layout.tp * np.minimum(layout.ep, np.maximum(layout.dp * layout.cp, 1.0))
    return result


_DEFAULTS = {
    "hardware": 0, "nodes": 1, "tp": 1, "pp": 1, "cp": 1, "zero": 0, "micro_batch": 1, "recompute": 0,
}  # fmt: skip


def explicit(
    count: float, training: TrainingSpec, layers: int, experts: int, rows: Sequence[Mapping[str, int]]
) -> Layouts:
    """Layouts given by hand for `estimate_layouts`.

    Args:
        count: accelerators per node.
        training: gives the global batch and the stack.
        layers: layers of the model.
        experts: experts of the model, 1 for dense.
        rows: per layout `hardware` (row), `nodes`, `tp`, `pp`, `cp`, `zero`, `micro_batch` and `recompute` (0, 1, 2);
            missing ones count as 1 (`hardware`, `zero` and `recompute` as 0). `ep`, `interleave` and
            `sequence_parallel` (0, 1) follow the usual rules where they are missing.

    Raises:
        ValueError: when a layout does not divide the cluster or the batch.
    """
    full = [{**_DEFAULTS, **row} for row in rows]
    table = {name: np.asarray([row[name] for row in full], dtype=np.float64) for name in _DEFAULTS}
    shard = table["tp"] * table["pp"] * table["cp"]
    dp = table["nodes"] * count / shard
    micro_batches = training.global_batch / (dp * table["micro_batch"])
    of_update = training.update_batch / (dp * table["micro_batch"])
    usual = {
        "ep": expert_parallel(experts, dp, np.full(dp.shape, count)),
        "interleave": interleave(training.stack, np.full(dp.shape, float(layers)), table["pp"]),
        "sequence_parallel": (table["tp"] > 1).astype(np.float64),
    }
    for name, rule in usual.items():
        table[name] = np.asarray(
            [row.get(name, value) for row, value in zip(full, rule, strict=True)], dtype=np.float64
        )
    for position in range(len(full)):
        if dp[position] < 1 or dp[position] % 1 or of_update[position] < 1 or of_update[position] % 1:
            raise ValueError(
                f"layout {position}: tp x pp x cp must divide the accelerators, dp x micro-batch the batch"
            )
        if dp[position] * table["cp"][position] * table["tp"][position] % table["ep"][position]:
            raise ValueError(f"layout {position}: ep must divide dp x cp x tp")
    return Layouts(
        table["hardware"].astype(np.int64), table["nodes"], table["tp"], table["pp"], table["cp"], table["ep"], dp,
        table["zero"], table["micro_batch"], micro_batches, table["interleave"], table["sequence_parallel"],
        table["recompute"],
    )  # fmt: skip
