"""Billing latency: how much of a day's final cost is reported how many days later, and last days not complete yet."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.forecast.clean import regular_series
from planner.finops.forecast.daily import DailyCost
from planner.records import record

Days = NDArray[np.datetime64]
FINAL_AGE_DAYS = 14  # a day reported at this age or later is taken as final
MAX_AGE_DAYS = 45
_MIN_DAYS = 5  # days seen at an age before its share is trusted
_TRUSTED_SPREAD = (
    0.25  # widest 10-90 % range of an age's shares that is grossed up; a wider one is forecast instead
)


@record(frozen=True, eq=False)
class Completion:
    """Completion factors.

    Attributes:
        share: (max_age + 1,) share of the final amount that is reported `age` days after the day, ratio of sums.
        spread: (max_age + 1,) range from the 10th to the 90th percentile of single days' shares.
        days: (max_age + 1,) days seen at each age.
        newest_age: age of the newest day of a report, in the median: that of the last day of a bill whose own day of
            report is not known.
    """

    share: Floats
    spread: Floats
    days: NDArray[np.int64]
    newest_age: int = 0

    def report_of(self, last: np.datetime64) -> np.datetime64:
        """The day on which a bill that ends with a day is taken to be reported."""
        return last + np.timedelta64(self.newest_age, "D")

    def trusted(self, age: int) -> bool:
        """Whether a day of this age can be grossed up rather than forecast."""
        if age >= len(self.share):
            return True
        seen = self.days[age] >= _MIN_DAYS
        return bool(seen and self.share[age] > 0.5 and self.spread[age] <= _TRUSTED_SPREAD)

    def factor(self, age: int) -> float:
        """What a reported amount of this age is multiplied with."""
        return 1.0 if age >= len(self.share) or not self.days[age] else 1.0 / float(self.share[age])


def learn_completion(vintages: Iterable[tuple[object, ArrayLike, ArrayLike]]) -> Completion:
    """Learn completion factors from reports of the same days made at different times.

    Args:
        vintages: per report: the day it was made, the days it tells of, and their costs.

    Raises:
        InputError: no day was seen both early and as final.
    """
    seen: dict[int, dict[int, float]] = {}
    newest = []
    for reported, days, cost in vintages:
        report = int(np.datetime64(reported, "D").astype(int))  # type: ignore[call-overload]
        when = np.asarray(days, dtype="datetime64[D]").astype(int)
        newest += [int(ages.min())] if (ages := (report - when)[when <= report]).size else []
        for day, amount in zip(when, np.asarray(cost, dtype=float), strict=True):
            if 0 <= report - day <= MAX_AGE_DAYS and np.isfinite(amount):
                seen.setdefault(int(day), {})[report - int(day)] = float(amount)
    final = {day: ages[max(ages)] for day, ages in seen.items() if max(ages) >= FINAL_AGE_DAYS}
    final = {day: amount for day, amount in final.items() if amount > 0}
    if not final:
        raise InputError(
            f"completion: no day is reported again {FINAL_AGE_DAYS} days later; keep reports for some weeks"
        )
    share, spread, count = (
        np.ones(MAX_AGE_DAYS + 1),
        np.zeros(MAX_AGE_DAYS + 1),
        np.zeros(MAX_AGE_DAYS + 1, int),
    )
    for age in range(FINAL_AGE_DAYS):
        pairs = [(seen[day][age], amount) for day, amount in final.items() if age in seen[day]]
        if pairs:
            early, late = np.array(pairs).T
            share[age], count[age] = early.sum() / late.sum(), len(pairs)
            low, high = np.quantile(early / late, (0.1, 0.9))
            spread[age] = high - low
    return Completion(
        share[:FINAL_AGE_DAYS],
        spread[:FINAL_AGE_DAYS],
        count[:FINAL_AGE_DAYS],
        round(float(np.median(newest))),
    )


def settle(
    days: Days, cost: Floats, reported: np.datetime64, completion: Completion
) -> tuple[Days, Floats, int]:
    """Gross up young days, and drop those too young to say anything.

    Args:
        days: (n,) in order.
        cost: (n,) as reported.
        reported: the day of the report.
        completion: factors.

    Returns:
        Days and costs that are settled, and how many last days were dropped.
    """
    age = (reported - days).astype(int)
    good = np.array([completion.trusted(int(a)) for a in age])
    bad = np.flatnonzero(~good)
    end = int(bad[0]) if bad.size else len(days)
    factor = np.array([completion.factor(int(a)) for a in age[:end]])
    return days[:end], cost[:end] * factor, len(days) - end


MOST_DAYS = 3  # a fall that lasts longer is a change, not a late bill
_SHARE = 0.6  # of the weekday's usual cost; below it a last day is taken as not complete
_WEEKS = 4


def late_days(total: DailyCost) -> int:
    """How many last days look late: by use alone where it is known, for fees and credits come on single days."""
    used = None if total.used is None else np.nan_to_num(total.used)
    judged = total.cost if used is None or not used.any() else used
    return incomplete_days(regular_series(total.days, judged).cost)


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
