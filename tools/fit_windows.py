"""How much wider intervals must be because a history has few dates: split conformal prediction over windows of dates.

Offers of one day move together, so days are what is exchangeable, not offers; and the windows of two days overlap
unless they lie a horizon apart. With n windows that do not, intervals that hold a share q of what was seen hold
`q / (1 + 1/n)` of what comes (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005; Dunn, Wasserman
and Ramdas, JASA 118, 2023, for groups). So spreads are multiplied until they hold `q (1 + 1/n)` of what was seen, never
made smaller. The shortest horizon has the most windows; the longer ones, which have too few for any factor (n must
exceed q / (1 - q)), take its factor, because what the dates lack is missing from them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

WIDEST = 3.0
_CLOSE = 0.005  # of the factor
_NOISE = 1e-9  # of a sum of shares


def windows(days: Sequence[int], horizon_days: int) -> int:
    """Windows of a horizon between the first of `days` (ordinals) and the end of the last one's, at least 1."""
    return 1 + (max(days) - min(days)) // horizon_days


def factor_for(covered: Callable[[float], float], wanted: float, n_windows: int) -> float:
    """The least factor of at least 1 with which intervals hold what few windows ask for.

    Args:
        covered: share of what was seen that intervals hold with a factor on their spread; never falls.
        wanted: share of what comes that they shall hold, 0..1.
        n_windows: windows of dates that do not overlap.

    Returns:
        The factor; `WIDEST` where more would be needed.

    Raises:
        ValueError: so few windows that no factor is enough.
    """
    needed = wanted * (1.0 + 1.0 / n_windows) - _NOISE
    if needed >= 1.0:
        raise ValueError(f"{n_windows} windows are too few to hold {100 * wanted:.0f} %")
    if covered(1.0) >= needed:
        return 1.0
    low, high = 1.0, WIDEST
    while log(high / low) > _CLOSE:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if covered(middle) >= needed else (middle, high)
    return high
