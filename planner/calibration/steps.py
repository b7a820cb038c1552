"""From the steps of a log to one step time: robust against warm-up, checkpoints, evaluations and stragglers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from planner.errors import InputError
from planner.records import record

# Standard deviation of a normal distribution over its median absolute deviation.
MAD_TO_SD = 1.4826
# Standard error of a median of n normal values: 1.2533 sd / sqrt(n) (large n).
MEDIAN_ERROR = 1.2533
# A step counts as warmed up within this many deviations of the second half's median, and never closer than the ratio.
WARM_DEVIATIONS, WARM_RATIO = 4.0, 0.05


@record(frozen=True)
class StepTime:
    """One step time with what it rests on.

    Attributes:
        seconds: median of the steps used.
        mad_s: their median absolute deviation; None where the log gives one figure only.
        used: steps behind it; `dropped` leading ones were warm-up.
        error: standard deviation of the logarithm of `seconds` as the steps tell it; None with `mad_s`.
    """

    seconds: float
    mad_s: float | None
    used: int
    dropped: int
    error: float | None


def summarise_steps(seconds: Sequence[float], skip: int | None = None) -> StepTime:
    """Return the median step after warm-up.

    Args:
        seconds: step times in order, s, all above 0.
        skip: leading steps to leave out; None finds the warm-up.

    Raises:
        InputError: no step is left.
    """
    dropped = warm_up(seconds) if skip is None else skip
    used = seconds[dropped:]
    if not used:
        raise InputError(
            f"the log has {len(seconds)} steps and {dropped} are left out: nothing is left; lower --skip"
        )
    middle = median(used)
    mad = median(abs(value - middle) for value in used)
    error = MEDIAN_ERROR * MAD_TO_SD * mad / middle / math.sqrt(len(used)) if len(used) > 2 else None
    return StepTime(middle, mad if len(used) > 2 else None, len(used), dropped, error)


def warm_up(seconds: Sequence[float]) -> int:
    """Leading steps that are slower than the second half of the log shows; at most half of all."""
    half = len(seconds) // 2
    later = seconds[half:]
    if half < 1:
        return 0
    middle = median(later)
    mad = median(abs(value - middle) for value in later)
    limit = middle + max(WARM_DEVIATIONS * MAD_TO_SD * mad, WARM_RATIO * middle)
    slow = [position for position, value in enumerate(seconds[:half]) if value > limit]
    # A lone slow step further on (a checkpoint) is no warm-up: only an unbroken run from the start is.
    count = 0
    while count < len(slow) and slow[count] == count:
        count += 1
    return count
