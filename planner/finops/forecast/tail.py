"""Last days whose bill is not complete yet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST_DAYS = 3  # a fall that lasts longer is a change, not a late bill
_SHARE = 0.6  # of the weekday's usual cost; below it a last day is taken as not complete
_WEEKS = 4


def incomplete_days(cost: Floats) -> int:
    """How many of the last days cost so little, against the same weekdays of four weeks, that their bill must be late.

    Args:
        cost: (n_days,) total cost per day without gaps.
    """
    for back in range(1, MOST_DAYS + 2):
        at = len(cost) - back
        same = cost[[at - 7 * week for week in range(1, _WEEKS + 1) if at - 7 * week >= 0]]
        if len(same) < _WEEKS or not cost[at] < _SHARE * float(np.median(same)):
            return back - 1
    return 0
