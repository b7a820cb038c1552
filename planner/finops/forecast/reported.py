"""What was reported of a period: the only costs that may be called actual. Filled days are for the models."""

from __future__ import annotations

from datetime import date

import numpy as np
from numpy.typing import ArrayLike, NDArray

from catalogs.tables.table import Floats
from planner.finops.forecast.clean import history_start
from planner.finops.forecast.completion import Completion, settle
from planner.records import record

Days = NDArray[np.datetime64]


@record(frozen=True, eq=False)
class Reported:
    """Reported days in order, without any filled day.

    Attributes:
        days: (n,) days that have a report.
        cost, settled: (n,) as reported, and grossed up where young.
        first, last: day with which the history begins, and last day that is known.
    """

    days: Days
    cost: Floats
    settled: Floats
    first: np.datetime64
    last: np.datetime64

    def between(self, start: np.datetime64, end: np.datetime64) -> tuple[float, float, int]:
        """Reported and settled cost of a period, and how many of its known days have no report."""
        inside = (self.days >= start) & (self.days < end)
        begin, stop = max(start, self.first), min(end, self.last + 1)
        known = max(int((stop - begin).astype(int)), 0)
        missing = known - int((inside & (self.days >= begin)).sum())
        return float(self.cost[inside].sum()), float(self.settled[inside].sum()), missing


def reported_costs(
    days: ArrayLike,
    cost: ArrayLike,
    last: np.datetime64,
    completion: Completion | None,
    reported_on: date | np.datetime64 | None,
) -> Reported:
    """Reported days up to `last`; arguments as of `model.forecast_daily`."""
    when, amount = np.asarray(days, dtype="datetime64[D]").ravel(), np.asarray(cost, dtype=float).ravel()
    order = np.argsort(when, kind="stable")
    when, amount = when[order], amount[order]
    settled = amount
    if completion is not None:
        told = None if reported_on is None else np.datetime64(str(reported_on), "D")
        reported = completion.report_of(when[-1]) if told is None else told
        when, settled, _ = settle(when, amount, reported, completion)
    first = when[history_start(when, amount[: len(when)])]
    known = when <= last
    return Reported(when[known], amount[: len(when)][known], settled[known], first, last)
