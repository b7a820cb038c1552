"""From days and amounts as they come to a series without gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.records import record

Days = NDArray[np.datetime64]
MIN_DAYS = 7
MOST_DAYS = 800  # older days say nothing about the coming ones, and cost time
_NEIGHBOUR_WEEKS = 2
_MOST_UNKNOWN = 0.05  # share of absent days above which they are days without cost, not days without a report
_STRAY_DAYS = 3  # last days with next to no cost: no more of them are only late
_SPIKE_DAYS = 14
_SPIKE_MADS = 6.0
_HUGE = 30.0  # times the largest of the days before: more than a month of it
_HUGE_DAYS = 35  # before: a charge that comes once a month is among them
_WEEK, _MOST_OF_WEEK = 7, 4
_SMALL = 0.1  # of what days usually cost
_LAST_DAYS = 2  # what comes on a day is told from a level by the two days after it
_MONTH_AGO = (27, 32)  # days: a charge that came then too comes by the month
_BEGIN_DAYS = 28  # of a history: what is usual in it


class ForecastError(InputError):
    """A history or an argument that cannot be forecast; `reason` is the message of one scope among others."""

    def __init__(self, reason: str) -> None:
        """Keep the reason beside the whole message."""
        self.reason = reason
        super().__init__(f"forecast: {reason}")


@record(frozen=True, eq=False)
class Series:
    """A series without gaps.

    Attributes:
        days: (n,) datetime64[D], one after the other.
        cost: (n,), absent days filled in: for models only.
        reported: (n,), absent days 0: what sums are judged by. NaN in months of which no day is there.
        filled: how many days were absent and are filled in.
        in_use: (n,) whether a day has a charge of use, or nothing is known of it; None where use is not known apart.
    """

    days: Days
    cost: Floats
    reported: Floats
    filled: int
    in_use: NDArray[np.bool_] | None = None


def regular_series(days: ArrayLike, cost: ArrayLike, used: ArrayLike | None = None) -> Series:
    """Sort, check and fill.

    Where what use alone cost is known too (`used`, NaN on days without a charge of it), credits and fees of the last
    two days that are unlike those of the days before count in sums, but models do not see them (`charged_once`).

    Days before the history begins (`history_start`) are cut off. A few absent days (5 %) are unknown: they
    become the median of the same weekday in the weeks around them, or of all days. Many are days without cost: bills
    have no rows for them. A whole calendar month without a day, in a history that has nearly all others, is unknown
    (`unreported_days`), and what it cost says nothing of how good a forecast was. Only the last 800 days are kept.

    Raises:
        InputError: unequal lengths, a day twice, a number that is none, fewer than 7 days.
    """
    when = np.asarray(days, dtype="datetime64[D]").ravel()
    amount = np.asarray(cost, dtype=float).ravel()
    if len(when) != len(amount):
        raise ForecastError(f"{len(when)} days but {len(amount)} costs; give one cost per day")
    if np.isnat(when).any() or not np.isfinite(amount).all():
        raise ForecastError("a day or a cost is not a number; leave such days out")
    others, of_use = np.zeros(len(amount)), None
    if used is not None:
        of_use = np.asarray(used, dtype=float).ravel()
        if len(of_use) != len(amount):
            raise ForecastError(f"{len(when)} days but {len(of_use)} costs of use; give one cost per day")
        others = amount - np.nan_to_num(of_use)
    order = np.argsort(when, kind="stable")
    when, amount, others = when[order], amount[order], others[order]
    once = charged_once(when, others, amount)
    if (twice := np.flatnonzero(when[1:] == when[:-1])).size:
        raise ForecastError(f"{when[twice[0]]} is given twice; add its costs up first")
    first = max(min(history_start(when, amount), len(when) - MIN_DAYS), 0)
    when, amount = when[first:], amount[first:]
    if not len(when) or (when[-1] - when[0]).astype(int) + 1 < MIN_DAYS:
        raise ForecastError(f"at least {MIN_DAYS} days of cost are needed, there are {len(when)}")
    once = once[-len(when) :]
    series, last = _filled(when, amount - once), min(len(when), _LAST_DAYS)
    back = (when[-1] - when[-last:]).astype(int)
    kept = back < len(series.reported)  # the day before the last may be years before it
    series.reported[len(series.reported) - 1 - back[kept]] += once[-last:][kept]
    return series if of_use is None else replace(series, in_use=_in_use(series, when, of_use[order][first:]))


def _in_use(series: Series, when: Days, of_use: Floats) -> NDArray[np.bool_]:
    found = np.isnan(series.reported)
    at = (when[np.isfinite(of_use)] - series.days[0]).astype(int)
    found[at[at >= 0]] = True
    return found


def charged_once(days: Days, others: Floats, cost: Floats) -> Floats:
    """Credits and fees of the last two days that nothing says will come again.

    They leave the usual range of those of the two weeks before, by more than a tenth of what a day costs, and there was
    nothing like them a month earlier. Where they do come again, models see them two days later.

    Args:
        days: (n,) in order.
        others: (n,) cost per day without use.
        cost: (n,) cost per day.

    Returns:
        (n,) the part beyond the usual; 0 before the last two days.
    """
    once = np.zeros(len(cost))
    if len(cost) < _SPIKE_DAYS + _LAST_DAYS:
        return once
    before = others[-_SPIKE_DAYS - _LAST_DAYS : -_LAST_DAYS]
    middle = np.median(before)
    usual = _SPIKE_MADS * 1.4826 * np.median(np.abs(before - middle)) + _SMALL * np.median(np.abs(cost))
    for at in range(len(cost) - _LAST_DAYS, len(cost)):
        away = others[at] - middle
        ago = (days[at] - days).astype(int)
        like = (others - middle)[(ago >= _MONTH_AGO[0]) & (ago <= _MONTH_AGO[1])] * np.sign(away)
        if abs(away) > usual and not (like > 0.5 * abs(away)).any():
            once[at] = away
    return once


def history_start(days: Days, cost: Floats) -> int:
    """Row with which a history begins; charges before it are of a time that the bill does not cover.

    Bills bring corrections of months before their own. A history begins with the first week of which most days have a
    charge, and in it with the first day that costs a tenth of the usual. What lies before is apart where it is sparse
    and either refunds more than it charges or comes to a tenth of the first four weeks; else (bills by the month,
    services that start slowly) it is part of the history.

    Args:
        days: (n,) in order, none twice.
        cost: (n,).

    Returns:
        The row; without any cost 0.
    """
    charged = np.flatnonzero(cost)
    if not charged.size:
        return 0
    at, amount = days[charged].astype("datetime64[D]").astype(int), cost[charged]
    in_week = np.searchsorted(at, at + _WEEK) - np.arange(len(at))
    dense = np.flatnonzero(in_week >= _MOST_OF_WEEK)
    if not dense.size:
        return int(charged[0])
    first = int(dense[0])
    near = np.abs(amount[first:][at[first:] < at[first] + _BEGIN_DAYS])
    first += int(np.argmax(near[: in_week[first]] >= _SMALL * float(np.median(near))))
    before, lead = int(at[first] - at[0]), amount[:first]
    is_sparse = before < _WEEK or first <= before / 2
    is_little = lead.sum() <= 0 or np.abs(lead).sum() < _SMALL * near.sum()
    return int(charged[first if is_sparse and is_little else 0])


def _filled(when: Days, amount: Floats) -> Series:
    at = (when - when[0]).astype(int)
    whole = float(np.median(amount))
    cost = np.full(at[-1] + 1, np.nan)
    cost[at] = amount
    unreported = unreported_days(when[0], np.isnan(cost))
    if np.isnan(cost[~unreported]).mean() > _MOST_UNKNOWN:
        cost[np.isnan(cost)] = 0.0
    reported = np.where(unreported, np.nan, np.nan_to_num(cost))
    ended = cost[_last_usual(cost, whole) + 1 :]
    ended[:] = np.fmax(ended, 0.0)  # absent days too
    absent = np.flatnonzero(np.isnan(cost))
    around = 7 * np.array([k for k in range(-_NEIGHBOUR_WEEKS, _NEIGHBOUR_WEEKS + 1) if k])
    filled = cost.copy()
    for day in absent:
        near = day + around
        near = cost[near[(near >= 0) & (near < len(cost))]]
        near = near[np.isfinite(near)]
        filled[day] = np.median(near) if len(near) else beside(cost, int(day), whole)
    days = when[0] + np.arange(len(cost))
    return Series(
        days[-MOST_DAYS:],
        filled[-MOST_DAYS:],
        reported[-MOST_DAYS:],
        int((absent >= len(cost) - MOST_DAYS).sum()),
    )


def unreported_days(first: np.datetime64, absent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Days of absent runs with a whole calendar month in them: files by the month miss one.

    Of a history that lacks many other days too they are days without cost, as those are.

    Args:
        first: the first day.
        absent: (n_days,) whether a day has no row.
    """
    found = np.zeros(len(absent), dtype=bool)
    edges = np.flatnonzero(np.diff(np.r_[False, absent, False].astype(int)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        month = (first + start).astype("datetime64[M]")
        month += month.astype("datetime64[D]") < first + start  # the first one that begins in the run
        found[start:stop] = (month + 1).astype("datetime64[D]") <= first + stop
    return found if absent[~found].mean() <= _MOST_UNKNOWN else np.zeros(len(absent), dtype=bool)


def beside(cost: Floats, day: int, otherwise: float) -> float:
    """Median of the known weeks before and after a day of a long gap."""
    known = np.flatnonzero(np.isfinite(cost))
    near = np.r_[known[known < day][-_WEEK:], known[known > day][:_WEEK]]
    return float(np.median(cost[near])) if len(near) else otherwise


def _last_usual(cost: Floats, whole: float) -> int:
    """Last day before a service ended, if the days since then say that it did; else the last day of all.

    Those days are absent or far below what a day cost. What is charged on them are corrections and credits of the time
    before: these belong to the sums, but a model would expect them on every coming day. Four weeks of them are a level.
    """
    last = len(cost) - 1
    with np.errstate(invalid="ignore"):
        usual = np.flatnonzero(cost >= _SMALL * whole) if whole > 0 else np.empty(0, int)
    if not usual.size or last - usual[-1] <= _STRAY_DAYS:
        return last
    charged = np.nan_to_num(cost[usual[-1] + 1 :])
    return int(usual[-1]) if np.count_nonzero(charged) < _BEGIN_DAYS else last


def until(days: Days, cost: Floats, last: np.datetime64, then: float = 0.0) -> tuple[Days, Floats]:
    """Carry a series on to `last` with days without cost: others were charged on them, this one was not.

    Args:
        days: (n,) in order.
        cost: (n,).
        last: day to which it goes on.
        then: what it is on those days.
    """
    if not len(days):
        return days, cost
    more = np.arange(days[-1] + 1, last + 1)
    return np.concatenate([days, more]), np.concatenate([cost, np.full(len(more), then)])


def one_day_spikes(cost: Floats) -> NDArray[np.bool_]:
    """Days that leave the usual range of the two weeks before them and are back in it for the two days after.

    Args:
        cost: (n_days,).

    Returns:
        (n_days,); a day is told only by days up to two after it.
    """
    found = np.zeros(len(cost), dtype=bool)
    if len(cost) < _SPIKE_DAYS + 3:
        return found
    middle, usual = _usual_range(cost[:-3])
    away = [np.abs(cost[_SPIKE_DAYS + k : len(cost) - 2 + k] - middle) > usual for k in (0, 1, 2)]
    found[_SPIKE_DAYS : len(cost) - 2] = away[0] & ~away[1] & ~away[2] & (usual > 0)
    return found


def above_usual(cost: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """What days cost above the usual range of the two weeks before them.

    Args:
        cost: (n_days,).

    Returns:
        (n_days,) cost above the median of the two weeks before, 0 inside their range and in the first two weeks, told
        by days before; and (n_days,) whether the day is a spike of one day, recognised by the two days after it.
    """
    excess = np.zeros(len(cost))
    if len(cost) > _SPIKE_DAYS:
        middle, usual = _usual_range(cost[:-1])
        away = cost[_SPIKE_DAYS:] - middle
        excess[_SPIKE_DAYS:] = np.where(away > usual, away, 0.0)
    return excess, one_day_spikes(cost) & (excess > 0)


def _usual_range(cost: Floats) -> tuple[Floats, Floats]:
    """Median of the two weeks before day _SPIKE_DAYS + row, and how far from it a day is usual."""
    before = np.lib.stride_tricks.sliding_window_view(cost, _SPIKE_DAYS)
    middle = np.median(before, axis=1)
    spread = np.median(np.abs(before - middle[:, None]), axis=1)
    return middle, _SPIKE_MADS * 1.4826 * spread + 0.5 * np.abs(middle)


def without_huge_days(cost: Floats) -> Floats:
    """Put the same weekday of the week before in the place of days thirty times as large as any of five weeks before.

    A purchase, a refund: nothing says that it comes again, and one would outweigh all other days in every mean. Where
    such costs stay, only their first day is lost. Told by days before, so at every origin alike.

    Args:
        cost: (n_days,).
    """
    size = np.abs(cost)
    if len(cost) <= _SPIKE_DAYS:
        return cost
    padded = np.concatenate([np.zeros(_HUGE_DAYS), size[:-1]])
    before = np.lib.stride_tricks.sliding_window_view(padded, _HUGE_DAYS).max(axis=1)
    huge = (size > _HUGE * before) & (before > 0)
    huge[:_SPIKE_DAYS] = False
    return without_spikes(cost, huge)


def without_spikes(cost: Floats, spikes: NDArray[np.bool_]) -> Floats:
    """Put the same weekday of the week before in the place of spikes."""
    out = cost.copy()
    for day in np.flatnonzero(spikes):
        out[day] = out[day - 7]
    return out
