"""A batch that the accelerators of a plan cannot share evenly, so that some of them split the model instead."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.sizes import estimate_hardware
from planner.render.numbers import percent

if TYPE_CHECKING:
    from planner.candidates.model import Candidates

# A gain in samples per second that is worth another batch; less is within what near layouts differ by.
_LEAST_GAIN = 0.02


def division_warnings(candidates: Candidates, at: int) -> tuple[str, ...]:
    """That the nearest batch that divides would be faster on the cluster of candidate `at`; nothing otherwise.

    Steps of reinforcement learning and trainings in phases have several batches and are left out.
    """
    context = candidates.context
    asked, row = context.asked, candidates.shapes.row(int(candidates.shape[at]))
    training, replicas = asked.job.training, int(row["dp"])
    each = int(row["tp"] * row["pp"] * row["cp"])
    batch, count = int(training.global_batch), replicas * each
    if asked.job.is_inference or training.tuning.rollouts is not None or training.phases:
        return ()
    if batch < count or batch % count == 0:
        return ()
    near = round(batch / count) * count
    other = replace(asked, job=replace(asked.job, training=replace(training, global_batch=near)))
    rows = np.asarray([row["hardware_row"]], dtype=np.int64)
    found = estimate_hardware(other, context.market, rows, [int(row["nodes"])]).row(0)
    gain = found["samples_per_s"] / row["samples_per_s"] - 1.0
    if not found["fits"] or found["dp"] <= replicas or not gain >= _LEAST_GAIN:
        return ()
    return (
        f"global_batch {batch:,} does not divide among {count:,} accelerators, so {replicas:,} replicas of {each} "
        f"share it; {near:,} does, with {percent(gain, 0)} more samples per second",
    )
