"""Forecast of one scope: the coming days, the total with its interval, and where a month will end.

`forecast_daily` and `forecast_month_end` take plain arrays and need numpy only. The members are in `members`, what
they are trusted in `ensemble`, the intervals in `conformal`, billing latency in `completion`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
from numpy.typing import ArrayLike, NDArray

from catalogs.tables.table import Floats
from planner.finops.forecast.clean import ForecastError, Series, regular_series
from planner.finops.forecast.completion import Completion, learn_completion, settle
from planner.finops.forecast.conformal import LEVELS, Spread, calibrate, plain_halves
from planner.finops.forecast.ensemble import FIRST_ORIGIN, combine, weigh, window_totals
from planner.finops.forecast.members import MEMBERS, all_paths
from planner.finops.forecast.more import Fit, with_more_members
from planner.finops.forecast.reported import Reported, reported_costs
from planner.records import record

__all__ = [
    "Backtest",
    "Completion",
    "DailyForecast",
    "MonthEnd",
    "forecast_daily",
    "forecast_month_end",
    "forecast_periods",
    "learn_completion",
]

Days = NDArray[np.datetime64]
MAX_HORIZON_DAYS = 750
ENOUGH_WINDOWS = (
    5  # that do not overlap: with fewer, what share of them an interval held says next to nothing
)
_FAN_DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 270, 365, 550, 750)


@record(frozen=True)
class Backtest:
    """How the same method did on the scope's own past, each forecast with what was known at its origin.

    Attributes:
        windows: past windows judged; windows of neighbouring days overlap. 0: the history is too short.
        horizon_days: their length.
        median_error_ratio, p90_error_ratio: of |forecast - actual| / |actual| of the totals.
        bias_ratio: sum of forecast - actual over sum of actual; above 0: forecasts were too high.
        within_12_ratio: share of windows with an error of at most 12 %.
        coverage_ratio: share of windows whose interval held the actual.
        level: what that share should be.
    """

    windows: int
    horizon_days: int
    median_error_ratio: float | None
    p90_error_ratio: float | None
    bias_ratio: float | None
    within_12_ratio: float | None
    coverage_ratio: float | None
    level: float

    @property
    def windows_apart(self) -> int:
        """Windows that do not overlap: those of neighbouring days share most of their days."""
        return (self.windows + self.horizon_days - 1) // self.horizon_days if self.windows else 0

    @property
    def is_rough(self) -> bool:
        """Whether the record is too short to tell how far the interval can be believed."""
        return self.windows_apart < ENOUGH_WINDOWS


@record(frozen=True, eq=False)
class DailyForecast:
    """The coming days.

    Attributes:
        days: (horizon,) datetime64[D].
        expected: (horizon,) cost per day.
        cumulative_low, cumulative_high: (horizon,) interval of the cost from the first day to each day.
        total, total_low, total_high: cost of all days, with its interval at `level`.
        weights: member -> weight, sum 1.
        backtest: the record.
        spread: the whole distribution of the total.
        dropped_days: last days left out because their bill is not complete.
        filled_days: absent days that were filled in.
    """

    days: Days
    expected: Floats
    cumulative_low: Floats
    cumulative_high: Floats
    total: float
    total_low: float
    total_high: float
    level: float
    weights: Mapping[str, float]
    backtest: Backtest
    spread: Spread
    dropped_days: int = 0
    filled_days: int = 0

    def p_over(self, amount: float) -> float:
        """Probability that the total is above `amount`."""
        return self.spread.p_over(amount)


@record(frozen=True, eq=False)
class MonthEnd:
    """Where a month, or another period, will end.

    Attributes:
        actual_to_date: reported cost of its known days; absent days are filled in for the models only, not here.
        settled_to_date: the same, grossed up where young.
        missing_days: days up to the last known one without any report; they count as 0.
        landing, low, high: expected cost of the whole period, and its interval at `level`.
        days_left: days that are forecast.
        spread: distribution of the cost of those days; None when none is left.
        expected: (days_left,) cost per day of those days.
    """

    start: date
    end: date
    actual_to_date: float
    landing: float
    low: float
    high: float
    level: float
    days_left: int
    spread: Spread | None
    backtest: Backtest
    weights: Mapping[str, float]
    expected: Floats
    settled_to_date: float
    missing_days: int

    def p_over(self, budget: float) -> float:
        """Probability that the period costs more than `budget`."""
        if self.spread is None:
            return float(self.settled_to_date > budget)
        return self.spread.p_over(budget - self.settled_to_date)


def forecast_daily(
    days: ArrayLike,
    cost: ArrayLike,
    *,
    horizon_days: int,
    used: ArrayLike | None = None,
    once: ArrayLike | None = None,
    level: float = 0.8,
    completion: Completion | None = None,
    reported_on: date | np.datetime64 | None = None,
) -> DailyForecast:
    """Forecast the days after the last one.

    Args:
        days: (n,) days with known cost, at least 7; see `clean.regular_series` for absent days.
        cost: (n,) cost per day, any currency, credits negative.
        horizon_days: days ahead, counted from the last day given.
        used: (n,) cost per day of use alone, NaN on days without a charge of use: a credit of the last days is then not
            expected on every coming day, and a scope whose use ended loses the range of the time before.
        once: (n,) of the cost what was bought once: sums to date have it, models and their record do not.
        level: what share of cases the intervals should hold.
        completion: billing latency; young days are grossed up or left out and forecast instead.
        reported_on: day of the report, for `completion`; when None as old as reports are on the last day.

    Raises:
        InputError: the history or an argument cannot be used.
    """
    if not 1 <= horizon_days <= MAX_HORIZON_DAYS:
        raise ForecastError(f"the horizon must be 1 to {MAX_HORIZON_DAYS} days, got {horizon_days}")
    _check_level(level)
    given = regular_series(days, _recurring(cost, once), used)
    series, dropped = _settled(given, completion, reported_on)
    ahead = horizon_days + dropped
    ensemble = combine(series.cost, series.days, ahead)
    spread, held = calibrate(series.reported, ensemble.paths, ahead, level, in_use=series.in_use)
    low, high = _fan(series.reported, ensemble.paths, level, spread)
    return DailyForecast(
        days=series.days[-1] + 1 + np.arange(ahead),
        expected=ensemble.paths[-1],
        cumulative_low=low,
        cumulative_high=high,
        total=spread.centre,
        total_low=spread.bounds(level)[0],
        total_high=spread.bounds(level)[1],
        level=level,
        weights=dict(zip(MEMBERS, ensemble.weights[:, -1].tolist(), strict=True)),
        backtest=_backtest(series.reported, ensemble.paths, ahead, level, held),
        spread=spread,
        dropped_days=dropped,
        filled_days=given.filled,
    )


def forecast_month_end(
    days: ArrayLike,
    cost: ArrayLike,
    *,
    month: str | date | np.datetime64,
    used: ArrayLike | None = None,
    once: ArrayLike | None = None,
    completion: Completion | None = None,
    level: float = 0.8,
    reported_on: date | np.datetime64 | None = None,
) -> MonthEnd:
    """Say where a calendar month will end; arguments as of `forecast_daily`, `month` as 2026-10 or any day of it."""
    try:
        first = np.datetime64(str(month)[:7], "M")
    except ValueError:
        raise ForecastError(f"{str(month)!r} is not a month; write 2026-10") from None
    start, end = first.astype("datetime64[D]"), (first + 1).astype("datetime64[D]")
    periods = [(start, end)]
    return forecast_periods(
        days, cost, used=used, once=once, periods=periods, completion=completion, level=level,
        reported_on=reported_on,
    )[0]  # fmt: skip


def forecast_periods(
    days: ArrayLike,
    cost: ArrayLike,
    *,
    periods: Sequence[tuple[np.datetime64, np.datetime64]],
    used: ArrayLike | None = None,
    once: ArrayLike | None = None,
    completion: Completion | None = None,
    level: float = 0.8,
    reported_on: date | np.datetime64 | None = None,
    more_members: Mapping[str, Fit] | None = None,
) -> list[MonthEnd]:
    """Say where periods will end: over, running or to come.

    Args:
        days: as of `forecast_daily`, and so are the others.
        cost: cost per day.
        periods: first day, and the day after the last one, of each.
        used: as of `forecast_daily`.
        once: as of `forecast_daily`.
        completion: billing latency.
        level: of the intervals.
        reported_on: day of the report.
        more_members: members of the extra `forecast`: `more.statsforecast_members()`.

    Raises:
        InputError: a period ends too far ahead, or the history cannot be used.
    """
    _check_level(level)
    given = regular_series(days, _recurring(cost, once), used)
    series, _ = _settled(given, completion, reported_on)
    reported = reported_costs(days, cost, series.days[-1], completion, reported_on)
    next_day = series.days[-1] + 1
    horizon = max((int((end - next_day).astype(int)) for _, end in periods), default=0)
    if horizon > MAX_HORIZON_DAYS:
        raise ForecastError(
            f"{horizon} days ahead are too far, at most {MAX_HORIZON_DAYS}: ask for fewer periods"
        )
    paths = all_paths(series.cost, series.days, horizon) if horizon > 0 else None
    more = None
    if more_members and paths is not None:
        more = with_more_members(series.cost, weigh(series.cost, paths).paths, dict(more_members))
    month_ends: list[MonthEnd] = []
    for start, end in periods:
        earlier = [one for one in month_ends if one.end < _date(start)]
        month_ends.append(
            _period(series, reported, paths, start, end, level, earlier[-1] if earlier else None, more)
        )
    return month_ends


def _period(
    series: Series,
    reported: Reported,
    paths: Floats | None,
    start: np.datetime64,
    end: np.datetime64,
    level: float,
    before: MonthEnd | None,
    more: tuple[Floats, Mapping[str, float]] | None,
) -> MonthEnd:
    next_day = series.days[-1] + 1
    actual, settled, missing = reported.between(start, end)
    stop = int((end - next_day).astype(int))
    head = (_date(start), _date(end - 1), actual)
    if stop <= 0 or paths is None:
        none = Backtest(0, 0, None, None, None, None, None, level)
        return MonthEnd(
            *head, settled, settled, settled, level, 0, None, none, {}, np.empty(0), settled, missing
        )
    skip = max(int((start - next_day).astype(int)), 0)
    ensemble = weigh(series.cost, paths[:, :, :stop])
    weights = dict(zip(MEMBERS, ensemble.weights[:, -1].tolist(), strict=True))
    if more is not None:
        ensemble.paths[-1] = more[0][:stop]
        weights = {name: more[1]["ensemble"] * weight for name, weight in weights.items()}
        weights |= {name: weight for name, weight in more[1].items() if name != "ensemble"}
    spread, held = calibrate(series.reported, ensemble.paths, stop - skip, level, skip, series.in_use)
    if before is not None and before.spread is not None and before.days_left >= stop - skip:
        spread = spread.at_least(before.spread)  # the further ahead, the less is known
    low, high = spread.bounds(level)
    return MonthEnd(
        *head,
        settled + spread.centre,
        settled + low,
        settled + high,
        level,
        stop - skip,
        spread,
        _backtest(series.reported, ensemble.paths, stop - skip, level, held, skip),
        weights,
        ensemble.paths[-1, skip:],
        settled,
        missing,
    )


def _recurring(cost: ArrayLike, once: ArrayLike | None) -> ArrayLike:
    if once is None:
        return cost
    whole, apart = (np.asarray(one, dtype=float).ravel() for one in (cost, once))
    if len(whole) != len(apart):
        raise ForecastError(f"{len(whole)} costs but {len(apart)} of what was bought once; give one per day")
    recurring: Floats = whole - apart
    return recurring


def _check_level(level: float) -> None:
    if not 0 < level <= LEVELS[-1]:
        raise ForecastError(f"the level must be above 0 and at most {LEVELS[-1]}, got {level:g}")


def _settled(
    series: Series, completion: Completion | None, reported_on: date | np.datetime64 | None
) -> tuple[Series, int]:
    if completion is None:
        return series, 0
    last = series.days[-1]
    as_of = np.datetime64(str(reported_on), "D") if reported_on is not None else completion.report_of(last)
    days, cost, dropped = settle(series.days, series.cost, as_of, completion)
    if len(days) < FIRST_ORIGIN:
        raise ForecastError(f"only {len(days)} days have a complete bill, {FIRST_ORIGIN} are needed")
    given = series.reported[: len(cost)]
    reported = np.where((given == 0) | np.isnan(given), given, cost)
    in_use = None if series.in_use is None else series.in_use[: len(cost)]
    return Series(days, cost, reported, series.filled, in_use), dropped


def _fan(cost: Floats, paths: Floats, level: float, spread: Spread) -> tuple[Floats, Floats]:
    """Bounds of the cost up to each day ahead, never wider than those of a later day."""
    horizon = paths.shape[1]
    low, high = spread.bounds(level)
    lengths = [0, *(h for h in _FAN_DAYS if h < horizon), horizon]
    between = [plain_halves(cost, paths, length, level) for length in lengths[1:-1]]
    halves = np.array([(0.0, 0.0), *between, (spread.centre - low, high - spread.centre)])
    halves = np.minimum.accumulate(halves[::-1], axis=0)[::-1]
    ahead, expected = np.arange(1, horizon + 1), np.cumsum(paths[-1])
    below, above = (np.interp(ahead, lengths, half) for half in halves.T)
    return expected - below, expected + above


def _backtest(
    cost: Floats, paths: Floats, length: int, level: float, held: NDArray[np.bool_], start: int = 0
) -> Backtest:
    actual = window_totals(cost, length, start)
    expected = paths[:, start : start + length].sum(axis=1)
    known = np.isfinite(actual) & np.isfinite(expected)
    known[:FIRST_ORIGIN] = False
    if not known.any():
        return Backtest(0, length, None, None, None, None, None, level)
    actual, expected = actual[known], expected[known]
    error = np.abs(expected - actual)
    share = np.divide(error, np.abs(actual), out=np.full_like(error, np.inf), where=actual != 0)
    share[error == 0] = 0.0
    finite = np.isfinite(share).any()
    return Backtest(
        windows=len(actual),
        horizon_days=length,
        median_error_ratio=_finite(np.quantile(share, 0.5, method="lower")) if finite else None,
        p90_error_ratio=_finite(np.quantile(share, 0.9, method="lower")) if finite else None,
        bias_ratio=_finite((expected - actual).sum() / actual.sum()) if actual.sum() else None,
        within_12_ratio=float((share <= 0.12).mean()),
        coverage_ratio=float(held.mean()) if len(held) else None,
        level=level,
    )


def _date(day: np.datetime64) -> date:
    return date.fromisoformat(str(day.astype("datetime64[D]")))


def _finite(value: np.float64 | float) -> float | None:
    return float(value) if np.isfinite(value) else None
