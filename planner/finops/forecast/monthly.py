"""Charges that come once a month on a day of their own: fees, licences, purchases.

A charge is known as monthly when it has come twice, a month apart, on the same day of the month or the same day before
its end. From then on it is taken out of the series that the members see, and put onto its day in what they say.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.finops.forecast.clean import above_usual
from planner.records import record

Days = NDArray[np.datetime64]
_LAST_DAYS = 3  # of a month, counted from its end too
_COMMON_DAYS = 28  # every month has them
_ALIKE = 2.0  # times: two charges are one fee
_TOLD_AFTER = 2  # days: until then a dear day may be the first of many


@record(frozen=True, eq=False)
class Monthly:
    """What is known of monthly charges.

    Attributes:
        without: (n_days,) cost without the charges that were to be expected on their day.
        ahead: (n_days + 1, horizon) charges to expect; row t knows days 0..t-1.
    """

    without: Floats
    ahead: Floats


def monthly_charges(cost: Floats, days: Days, horizon: int) -> Monthly | None:
    """Take monthly charges out of a series; None where it has none.

    Args:
        cost: (n_days,).
        days: (n_days,) without gaps.
        horizon: days ahead, at least 1.
    """
    excess, alone = above_usual(cost)
    charged = np.flatnonzero(cost)
    if len(charged) > 1 and np.diff(charged).min() >= _COMMON_DAYS:  # a bill by the month has no other days
        excess, alone = np.maximum(cost, 0.0), cost > 0
    if np.count_nonzero(alone) < 2:
        return None
    n = len(cost)
    calendar = days[0] + np.arange(n + horizon)
    ahead = np.zeros((n + 1, horizon))
    for back in (_from_start(calendar), _from_end(calendar)):
        found = _expected(np.where(alone, excess, 0.0), back, horizon)
        ahead = np.where(ahead > 0, ahead, found)
    came = (ahead[:n, 0] > 0) & (excess > 0)
    if not ahead.any():
        return None
    return Monthly(np.where(came, cost - excess, cost), ahead)


def _from_start(calendar: Days) -> NDArray[np.int64]:
    """Days back to the same day of the month before, 0 where not every month has it."""
    month = calendar.astype("datetime64[M]")
    first = month.astype("datetime64[D]")
    day = (calendar - first).astype(int)
    back = (first - (month - 1).astype("datetime64[D]")).astype(int)
    return np.where(day < _COMMON_DAYS, back, 0)


def _from_end(calendar: Days) -> NDArray[np.int64]:
    """Days back to the day as far before the end of the month before; 0 where it is not one of the last."""
    month = calendar.astype("datetime64[M]")
    after = (month + 1).astype("datetime64[D]")
    left = (after - calendar).astype(int)
    back = (after - month.astype("datetime64[D]")).astype(int)
    return np.where(left <= _LAST_DAYS, back, 0)


def _expected(charge: Floats, back: NDArray[np.int64], horizon: int) -> Floats:
    """Charges to expect (n_days + 1, horizon), by those that came twice a month apart."""
    n = len(charge)
    at = np.arange(n)
    before = at - back[:n]
    earlier = np.where((back[:n] > 0) & (before >= 0), charge[np.maximum(before, 0)], 0.0)
    alike = (charge <= _ALIKE * earlier) & (earlier <= _ALIKE * charge) & (charge > 0)
    repeats = np.where(alike, charge, 0.0)
    rows = np.arange(n + 1)[:, None]
    if not alike.any():
        return np.zeros((n + 1, horizon))
    source = rows + np.arange(horizon)
    none = back[source] == 0
    source = source - back[source]
    while (late := (source > rows - 1 - _TOLD_AFTER) & ~none).any():
        step = back[np.maximum(source, 0)]
        none |= late & ((step == 0) | (source < 0))
        source = np.where(late, source - step, source)
    return np.where(none | (source < 0), 0.0, repeats[np.clip(source, 0, n - 1)])
