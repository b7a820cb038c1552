"""Scopes whose use stopped for the first time: no forecast can know whether they have ended or pause."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import numpy as np
from numpy.typing import NDArray

from planner.finops.forecast.daily import DailyCost
from planner.render.currency import with_currency

_WEEK, _MONTH, _NEWS = 7, 30, 62  # days; what stopped before the last two months is no news
_LEAST_RATIO = 0.01  # of the cost of all scopes in the same days
_NAMED = 5


def silent_words(scopes: Mapping[str, DailyCost], currency: str) -> tuple[str, ...]:
    """Scopes of which forecasts expect less or nothing: without use for over a week, and longer than ever before.

    A scope that paused as long before may come back, which its interval knows (`conformal`).

    Args:
        scopes: daily cost per scope.
        currency: ISO 4217; `XXX` where unknown.
    """
    first = min(one.days[0] for one in scopes.values())
    last = max(one.days[-1] for one in scopes.values())
    together = np.zeros(int((last - first).astype(int)) + 1)
    for one in scopes.values():
        together[(one.days - first).astype(int)] += one.cost
    found = []
    for name, one in scopes.items():
        days = _used_days(one)
        if not len(days):
            continue
        silence = int((last - days[-1]).astype(int))
        pauses = np.diff(days).astype(int)
        if not _WEEK < silence <= _NEWS or len(days) < _WEEK or silence <= pauses.max(initial=0):
            continue
        end = int((days[-1] - first).astype(int)) + 1
        cost = float(one.cost[(one.days > days[-1] - _MONTH) & (one.days <= days[-1])].sum())
        if cost > 0 and cost >= _LEAST_RATIO * together[max(0, end - _MONTH) : end].sum():
            found.append((cost, name, date.fromisoformat(str(days[-1]))))
    found.sort(key=lambda each: (-each[0], each[1]))
    words = [
        f"{name} has had no use since {day:%-d %B}: forecasts expect less of it or nothing; it cost "
        f"{with_currency(f'{cost:,.0f}', currency)} in the {_MONTH} days before"
        for cost, name, day in found[:_NAMED]
    ]
    more = len(found) - _NAMED
    return (*words, f"{more} more scopes have had no use for over a week") if more > 0 else tuple(words)


def _used_days(one: DailyCost) -> NDArray[np.datetime64]:
    """Days with a charge of use; with a cost above 0 where use is not known apart."""
    return one.days[one.cost > 0] if one.used is None else one.days[~np.isnan(one.used)]
