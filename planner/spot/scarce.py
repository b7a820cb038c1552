"""Spot and on-demand that are scarce at once, as both sell the same machines (docs/spot/launch.md)."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Floats


def scarce_together(never: Floats | float, late: Floats | float, link: Floats | float) -> Floats:
    """Probability that on-demand does not come and spot alone is too late.

    Args:
        never: that on-demand does not come, 0..1.
        late: that spot alone is too late, of the same shape.
        link: how far both markets are one, 0 (independent) to 1.
    """
    apart = never * late
    return np.asarray(apart + link * (np.minimum(never, late) - apart), dtype=np.float64)


def comes_given(late: Bools, had: float, link: float) -> Floats:
    """Probability that on-demand comes in each of equally probable futures, shape `(n,)`; its mean is `had`.

    Args:
        late: whether spot alone is too late, shape `(n,)`.
        had: probability that on-demand comes.
        link: as above.
    """
    share, never = float(late.mean()), 1.0 - had
    both = float(scarce_together(never, share, link))
    where_late, elsewhere = both / max(share, 1e-300), (never - both) / max(1.0 - share, 1e-300)
    return 1.0 - np.where(late, where_late, elsewhere)
