"""Layouts that others measured as the fastest: preferred where the model cannot tell layouts apart.

Between layouts of one job the model errs by up to 6.5 % for 80 % of the measured ones, so of two predictions that lie
within 10 % either may be the faster. There the layout is taken that was measured as the fastest of at least three, on
as many of the same accelerators with the same software, precision and recompute, for a model and a batch nearby
(`planner/data/measured_layouts.csv`, made by `python -m benchmarks.measured_layouts`). Its time remains the prediction.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.performance.layouts import Layouts
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec
from planner.performance.work import PRECISION_GROUP
from planner.records import record

DATA_FILE = Path(__file__).parents[1] / "data" / "measured_layouts.csv"
# The error between layouts of one job that 80 % of the measured ones stay within.
LAYOUT_ERROR = 0.065
# Predictions within this factor do not tell which of two layouts is faster.
TOLD_APART = 1.1
# Doublings of layers, sequence and batch and of the square of the width, together, beyond which a model is another one.
FARTHEST = 2.0
_LEVELS = {"none": 0.0, "selective": 1.0, "full": 2.0}


@record(frozen=True)
class MeasuredLayout:
    """The fastest of the `layouts` layouts that a publisher measured with one model, batch and cluster.

    Attributes:
        publisher: who measured it; `workload`: model and accelerator as text.
        software: class of the software; `precision`: group of precisions.
        width, layers, sequence, batch: sizes of the job; batch in sequences per step.
        sharded: whether the weights are sharded over replicas (ZeRO-3); `recompute`: 0 none, 1 selective, 2 full.
    """

    publisher: str
    workload: str
    accelerator: str
    accelerators: int
    software: str
    precision: str
    width: int
    layers: int
    sequence: int
    batch: int
    tp: int
    pp: int
    cp: int
    sharded: bool
    micro_batch: int
    recompute: float
    layouts: int

    def distance(self, width: float, layers: float, sequence: float, batch: float) -> float:
        """Doublings between this job and another one; the width counts twice, as work grows with its square."""
        return (
            2.0 * abs(math.log2(self.width / width)) + abs(math.log2(self.layers / layers))
            + abs(math.log2(self.sequence / sequence)) + abs(math.log2(self.batch / batch))
        )  # fmt: skip

    def matches(self, layout: Layouts, accelerators: Floats) -> Bools:
        """Which of some layouts are this one."""
        degrees = (layout.tp == self.tp) & (layout.pp == self.pp) & (layout.cp == self.cp)
        same = (layout.micro_batch == self.micro_batch) & (layout.recompute == self.recompute)
        alone = (layout.ep == 1.0) & (layout.interleave == 1.0) & (accelerators == self.accelerators)
        return np.asarray(degrees & same & alone & ((layout.zero >= 3.0) == self.sharded), dtype=np.bool_)


@cache
def load_measured_layouts(path: Path = DATA_FILE) -> tuple[MeasuredLayout, ...]:
    """Read the table."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            MeasuredLayout(
                row["publisher"], row["workload"], row["accelerator"], int(row["accelerators"]), row["software"],
                row["precision"], int(row["width"]), int(row["layers"]), int(row["sequence"]), int(row["batch"]),
                int(row["tensor_parallel"]), int(row["pipeline_parallel"]), int(row["context_parallel"]),
                int(row["zero_stage"]) >= 3, int(row["micro_batch"]), _LEVELS[row["recompute"]], int(row["layouts"]),
            )
            for row in csv.DictReader(file)
        )  # fmt: skip


@cache
def accelerator_codes() -> dict[str, float]:
    """Numbers of the accelerators of the table, from 1 on; every other accelerator is 0."""
    names = sorted({item.accelerator for item in load_measured_layouts()})
    return {name: float(number) for number, name in enumerate(names, start=1)}


def nearby(
    model: ModelSpec, training: TrainingSpec, known: Sequence[MeasuredLayout] | None = None
) -> list[MeasuredLayout]:
    """Measured layouts of jobs like this one, the most alike first; dense models that learn in full.

    Args:
        model: sizes.
        training: batch, precision, software.
        known: the table, the bundled one by default.
    """
    whole = (
        training.lora_rank is None and training.tuning.adapter is None and training.tuning.rollouts is None
    )
    if model.family is not ModelFamily.TRANSFORMER or model.experts or model.parts or not whole:
        return []
    if not (model.hidden and model.layers and training.sequence_length and training.global_batch):
        return []
    sizes = (float(model.hidden), float(model.layers), training.sequence_length, training.global_batch)
    alike = [
        (item.distance(*sizes), number, item)
        for number, item in enumerate(load_measured_layouts() if known is None else known)
        if item.software == training.stack and item.precision == PRECISION_GROUP[training.precision]
    ]
    return [item for distance, _, item in sorted(alike, key=lambda entry: entry[:2]) if distance <= FARTHEST]


def preferred(known: Sequence[MeasuredLayout], layout: Layouts, accelerators: Floats, codes: Floats) -> Bools:
    """Layouts that are one of the measured ones.

    Args:
        known: as `nearby` gives them.
        layout: layouts on some machines.
        accelerators: of each layout's cluster.
        codes: of each layout's accelerator, as `accelerator_codes` numbers them.
    """
    found = np.zeros(layout.n_rows, dtype=np.bool_)
    for item in known:
        found |= (codes == accelerator_codes()[item.accelerator]) & item.matches(layout, accelerators)
    return found


def measured_words(
    known: Sequence[MeasuredLayout], layout: Layouts, accelerators: Floats, codes: Floats, at: int
) -> str:
    """Who measured layout `at` as the fastest; arguments as of `preferred`."""
    row = np.asarray([at])
    for item in known:
        if preferred([item], layout.take(row), accelerators[row], codes[row])[0]:
            return (
                f"preferred within the model's error: {item.publisher} measured it as the fastest of {item.layouts}"
                f" layouts of a similar job on {item.accelerators} {item.accelerator}"
            )
    return ""


def with_measured(
    known: Sequence[MeasuredLayout],
    layout: Layouts,
    accelerators: Floats,
    codes: Floats,
    times: Floats,
    cell: Ints,
    best: Ints,
) -> Ints:
    """The best layout per cell, a measured one where its predicted time is within `TOLD_APART` of the least.

    Args:
        known: as `nearby` gives them.
        layout: layouts, `accelerators`, `codes`, `times` (s) and `cell` of each.
        accelerators: of each layout's cluster.
        codes: of each layout's accelerator.
        times: predicted steps.
        cell: which cluster each layout is for.
        best: position of the fastest layout of each cell.
    """
    of_cell = {int(cell[position]): number for number, position in enumerate(best.tolist())}
    chosen = best.copy()
    # The most alike is last to be taken, the fastest of its variants at last.
    for item in reversed(known):
        same = (codes == accelerator_codes()[item.accelerator]) & item.matches(layout, accelerators)
        rows = np.flatnonzero(same)
        for row in rows[np.argsort(-times[rows], kind="stable")].tolist():
            number = of_cell[int(cell[row])]
            if times[row] <= TOLD_APART * times[best[number]]:
                chosen[number] = row
    return chosen
