"""How saved forecasts did: error by vintage and scope, bias, and how often the interval held."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.finops.forecast.daily import DailyCost
from planner.finops.forecast.plans import MAX_BYTES
from planner.inputs.load import decode, read_limited
from planner.records import record


@record(frozen=True)
class Score:
    """One period of one scope, as one forecast saw it.

    Attributes:
        vintage: last day whose cost the forecast knew.
        days_ahead: days of the period that were forecast.
        forecast, low, high: as told; `actual`: what came.
        error_ratio: |forecast - actual| / |actual|; None where nothing was spent.
        held: whether the interval held the actual.
    """

    vintage: date
    scope: str
    period: str
    days_ahead: int
    forecast: float
    low: float
    high: float
    actual: float
    error_ratio: float | None
    held: bool


@record(frozen=True)
class Accuracy:
    """Scores taken together.

    Attributes:
        error_ratio: sum of |forecast - actual| over sum of |actual|; None where nothing was spent.
        median_error_ratio: of the single errors.
        bias_ratio: sum of (forecast - actual) over sum of actual; above 0: too high.
        held_ratio: share of intervals that held.
    """

    scope: str
    vintage: date | None
    count: int
    error_ratio: float | None
    median_error_ratio: float | None
    bias_ratio: float | None
    held_ratio: float


def score_forecasts(saved: Iterable[Mapping[str, Any]], actual: Mapping[str, DailyCost]) -> tuple[Score, ...]:
    """Compare saved forecasts with what came.

    Periods that are not over, that were over already when the forecast was made, or of scopes without actual cost
    are left out.

    Args:
        saved: answers of `planner forecast -o json`, read.
        actual: daily cost per scope.

    Raises:
        InputError: a saved forecast is none.
    """
    scores = []
    for values in saved:
        try:
            vintage = date.fromisoformat(values["last_day"])
            rows = [row for scope in values["scopes"] for row in scope["periods"]]
            scores += [_score(vintage, row, actual[row["scope"]]) for row in rows if _over(row, actual)]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"a saved forecast lacks or garbles {error}; save with planner forecast -o json"
            ) from error
    return tuple(scores)


def load_saved(patterns: Iterable[str]) -> list[Mapping[str, Any]]:
    """Read saved answers of `planner forecast -o json`.

    Raises:
        InputError: a file is missing or no JSON.
    """
    found: list[Mapping[str, Any]] = []
    for pattern in patterns:
        names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - a pattern may be absolute
        if not names:
            raise InputError(f"--score {pattern}: no such file")
        for name in names:
            try:
                found.append(json.loads(decode(read_limited(Path(name), MAX_BYTES), name)))
            except json.JSONDecodeError as error:
                raise InputError(f"{name}:{error.lineno}: is not JSON: {error.msg}") from error
            except (
                ValueError,
                RecursionError,
            ) as error:  # a number of thousands of digits, brackets without end
                raise InputError(f"{name}: is not JSON that a forecast has: {str(error)[:200]}") from None
    return found


def accuracy(scores: Iterable[Score], *, by_vintage: bool = False) -> tuple[Accuracy, ...]:
    """Take scores together by scope, or by scope and vintage."""
    groups: dict[tuple[str, date | None], list[Score]] = {}
    for one in scores:
        groups.setdefault((one.scope, one.vintage if by_vintage else None), []).append(one)
    return tuple(_accuracy(scope, vintage, group) for (scope, vintage), group in groups.items())


def _over(row: Mapping[str, Any], actual: Mapping[str, DailyCost]) -> bool:
    one = actual.get(row["scope"])
    return one is not None and row["days_left"] > 0 and np.datetime64(row["end"]) <= one.days[-1] + 1


def _score(vintage: date, row: Mapping[str, Any], one: DailyCost) -> Score:
    inside = (one.days >= np.datetime64(row["start"])) & (one.days < np.datetime64(row["end"]))
    came = float(one.cost[inside].sum())
    forecast, low, high = float(row["expected"]), float(row["low"]), float(row["high"])
    error = abs(forecast - came) / abs(came) if came else None
    return Score(
        vintage, row["scope"], row["period"], int(row["days_left"]), forecast, low, high, came, error,
        low <= came <= high,
    )  # fmt: skip


def _accuracy(scope: str, vintage: date | None, group: list[Score]) -> Accuracy:
    spent, size = sum(one.actual for one in group), sum(abs(one.actual) for one in group)
    errors = [one.error_ratio for one in group if one.error_ratio is not None]
    return Accuracy(
        scope,
        vintage,
        len(group),
        sum(abs(one.forecast - one.actual) for one in group) / size if size else None,
        float(np.median(errors)) if errors else None,
        sum(one.forecast - one.actual for one in group) / spent if spent else None,
        sum(one.held for one in group) / len(group),
    )
