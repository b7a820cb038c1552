"""From outcomes of replays to means, gaps closed and intervals that know which outcomes belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record

LEVEL = 0.9
RESAMPLES = 2_000
LEAST_CLUSTERS = 4  # fewer say nothing of how clusters differ
_LEAST = 1e-9


@record(frozen=True)
class Interval:
    """A figure with a bootstrap interval of level `LEVEL`; NaN where it is unknown."""

    value: float
    low: float
    high: float


def gap_closed(policy: Floats, baseline: Floats, optimum: Floats) -> float:
    """Share of the gap between a baseline and the offline optimum that a policy closes.

    `(sum baseline - sum policy) / (sum baseline - sum optimum)`: 1 is the optimum, 0 the baseline, below 0 worse. NaN
    where the baseline is the optimum.

    Args:
        policy: cost ratios, or their sums per cell, shape `(n,)`.
        baseline: of the same launches.
        optimum: of the same launches.
    """
    gap = float(baseline.sum() - optimum.sum())
    return (
        float(baseline.sum() - policy.sum()) / gap
        if gap > _LEAST * float(np.abs(optimum).sum())
        else math.nan
    )


def clustered_gap(
    policy: Floats, baseline: Floats, optimum: Floats, clusters: Sequence[str], *, seed: int = 0
) -> Interval:
    """`gap_closed` with a bootstrap interval in which whole clusters are drawn.

    Launches in one zone group share its weather; drawing them one by one would claim far too much. With fewer than
    `LEAST_CLUSTERS` clusters there is no interval.

    Args:
        policy: as in `gap_closed`.
        baseline: as in `gap_closed`.
        optimum: as in `gap_closed`.
        clusters: zone group of each entry.
        seed: of the draws.
    """
    value = gap_closed(policy, baseline, optimum)
    drawn, sums = _drawn((policy, baseline, optimum), clusters, seed)
    if not drawn:
        return Interval(value, math.nan, math.nan)
    gap = sums[1] - sums[2]
    good = gap > _LEAST * np.abs(sums[2])
    return Interval(value, *_ends((sums[1] - sums[0])[good] / gap[good]))


def clustered_mean(sums: Floats, counts: Floats, clusters: Sequence[str], *, seed: int = 0) -> Interval:
    """Mean of what cells hold as sums and counts, with a bootstrap interval in which whole clusters are drawn."""
    value = float(sums.sum() / counts.sum())
    drawn, (top, bottom) = _drawn((sums, counts), clusters, seed)
    return Interval(value, *_ends(top / bottom)) if drawn else Interval(value, math.nan, math.nan)


def _ends(values: Floats) -> tuple[float, float]:
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
    return float(low), float(high)


def _drawn(arrays: Sequence[Floats], clusters: Sequence[str], seed: int) -> tuple[bool, tuple[Floats, ...]]:
    """Sums of each array over clusters drawn with replacement, shape `(RESAMPLES,)`; False for too few clusters."""
    _, at = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    n = int(at.max()) + 1 if len(at) else 0
    if n < LEAST_CLUSTERS:
        return False, tuple(np.zeros(0) for _ in arrays)
    chosen = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))
    return True, tuple(np.bincount(at, weights=array)[chosen].sum(axis=1) for array in arrays)
