"""Samples onto the grid of ticks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def first_samples(n_samples: int, gap_hours: float, tick_hours: float) -> npt.NDArray[np.int64]:
    """Sample in force at the start of each whole tick, shape `(n_ticks,)`."""
    n = int(n_samples * gap_hours / tick_hours + 1e-9)
    return np.minimum((np.arange(n) * (tick_hours / gap_hours) + 1e-9).astype(np.int64), n_samples - 1)


def up_on_grid(up: BoolArray, gap_hours: float, tick_hours: float) -> BoolArray:
    """Availability per tick.

    A tick shorter than three samples takes the value in force at its start; a longer one is up only if all its
    samples are, since one interruption within it ends the tick's work.
    """
    start = first_samples(len(up), gap_hours, tick_hours)
    if gap_hours * 3.0 >= tick_hours - 1e-9:
        return np.asarray(up[start])
    stop = np.minimum(np.ceil((np.arange(len(start)) + 1) * (tick_hours / gap_hours) - 1e-9), len(up))
    down = np.concatenate(([0], np.cumsum(~up)))
    return np.asarray(down[stop.astype(np.int64)] == down[start])
