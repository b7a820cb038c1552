"""80 % intervals from grouped residuals of the measured rows; wider where measurements are thin."""

from __future__ import annotations

import numpy as np

from planner.performance.constants import Constants
from planner.performance.work import Floats


def log_spread(kind: str, stack: str, thin: Floats, inferred: Floats, c: Constants) -> Floats:
    """Half-width of the 80 % interval in log step time, shape of `thin`.

    Args:
        kind: model family.
        stack: software stack class.
        thin: extra spread of the accelerator generation (0 where many rows were measured).
        inferred: 1 where the operators of a vision model are inferred from its FLOPs.
        c: constants; `interval.<kind>.<stack>` (or `interval.<kind>`) is the width that, with `thin`, covers 80 % of
            the measured rows when their workload group is left out of the fit.
    """
    base = c.get(f"interval.{kind}.{stack}", c[f"interval.{kind}"])
    result: Floats = np.sqrt(base * base + thin * thin + inferred * c["vision.inferred_spread"] ** 2)
    return result
