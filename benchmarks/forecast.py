"""Forecasts against what came: rolling origins over a folder of daily series.

python -m benchmarks.forecast --data DIR [--step 10 | --every-day [--told-late 5]] [--min-history 90] [--horizon 30]
    [--late] [--json OUT]

Each origin sees only the days before it. `--every-day` takes every day as origin in one pass a series, with the same
forecasts (absent days alone are filled by the weeks on both sides): of windows every ten days the share within 12 %
moves by three points with which days these are. Judged are the total of the next `horizon` days, and where calendar
months land as told on their 5th, 10th and 20th day, both on what was reported (an absent day counts 0, for run rates
too); seasonal naive and run rate stand beside. CSV files (also .gz) with columns date, scope, cost; files that name
them otherwise (cost_usd; category, project, service, description) are read too, and what is skipped is said.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.forecast_regimes import reported as partly_reported
from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.forecast.clean import MIN_DAYS, Series, regular_series
from planner.finops.forecast.completion import Completion, learn_completion
from planner.finops.forecast.conformal import Spread, past_widths
from planner.finops.forecast.daily import load_daily
from planner.finops.forecast.ensemble import combine, window_totals
from planner.finops.forecast.model import forecast_daily, forecast_month_end

Days = NDArray[np.datetime64]
LANDING_DAYS = (5, 10, 20)
LEVELS = (0.8, 0.95)
_SCOPES = ("scope", "description", "category", "project", "service")  # the finest a file has
_LONGEST_HEADER = 100_000  # bytes
_COSTS = ("cost", "cost_usd")
_METHODS = ("forecast", "seasonal_naive", "run_rate_28", "level_told")
_LEVEL_DAYS = 7  # of a window, that tell `level_told` its level: what no method knows
_CHANGES = (0.0, 0.02, 0.2, np.inf)  # of a window after its tenth day: classes of `--by-series`
# windows below this share of the series' usual window are left out: their errors are ratios to ~0
_IMMATERIAL = 0.02


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--step", type=int, default=10, help="days between origins")
    parser.add_argument("--every-day", action="store_true", help="every day is an origin, in one pass")
    parser.add_argument(
        "--told-late",
        type=int,
        default=0,
        help="days of each window that are known before it is forecast: what could be gained",
    )
    parser.add_argument("--min-history", type=int, default=90, help="days before the first origin")
    parser.add_argument("--horizon", type=int, default=30, help="days of a window")
    parser.add_argument(
        "--min-cost-per-day", type=float, default=0.1, help="series below it on average are left out"
    )
    parser.add_argument(
        "--late", action="store_true", help="landings: young days are reported in part, as on Azure"
    )
    parser.add_argument("--json", type=Path, default=None, help="write every figure there")
    parser.add_argument("--by-series", action="store_true", help="print each series too")
    args = parser.parse_args(arguments)
    if not args.data.is_dir():
        parser.error(f"--data {args.data}: no such folder")
    if args.told_late and not args.every_day:
        parser.error("--told-late needs --every-day")
    if not 0 <= args.told_late <= args.horizon:
        parser.error(f"--told-late {args.told_late}: a window has {args.horizon} days")
    skipped: list[str] = []
    series = dict(load_series(args.data, args.min_cost_per_day, args.min_history + args.horizon, skipped))
    started, windows, landings = time.perf_counter(), [], []
    args.step = 1 if args.every_day else args.step
    forecast = partial(_each_day, told_late=args.told_late) if args.every_day else _each_origin
    for name, one in series.items():
        origins = _origins(one, args.horizon, args.step, args.min_history)
        windows += [{"series": name, **row} for row in forecast(one, args.horizon, origins)]
        landings += [{"series": name, **row} for row in _landings(one, args.min_history, late=args.late)]
    seconds = time.perf_counter() - started
    if not windows:
        print("no window to judge", *skipped, sep="\n  ", file=sys.stderr)
        return 1
    answer = _summary(args, series, windows, landings, skipped, seconds)
    _print(answer, by_series=args.by_series)
    if args.json is not None:
        args.json.write_text(
            json.dumps({**answer, "windows": windows, "landings": landings}, indent=1) + "\n"
        )
    return 0


def load_series(
    folder: Path, least: float, min_days: int, skipped: list[str]
) -> Iterator[tuple[str, Series]]:
    """Series of a folder of at least `min_days` days and `least` a day; what is left out is added to `skipped`."""
    for path in sorted(p for p in folder.rglob("*") if p.name.endswith((".csv", ".csv.gz"))):
        columns = _columns(path)
        if columns is None:
            skipped.append(f"{path.name}: no columns date, scope, cost")
            continue
        try:
            found = load_daily(path, columns=columns)
        except InputError as error:
            skipped.append(f"{path.name}: {error}")
            continue
        for scope, daily in found.items():
            name = f"{str(path.relative_to(folder)).partition('.')[0]}/{scope}"
            if len(daily.days) < MIN_DAYS or (daily.days[-1] - daily.days[0]).astype(int) + 1 < min_days:
                skipped.append(f"{name}: shorter than {min_days} days")
            elif np.abs(daily.cost).mean() < least:
                skipped.append(f"{name}: less than {least} a day")
            else:
                yield name, regular_series(daily.days, daily.cost, daily.used)


def _columns(path: Path) -> tuple[str, str, str] | None:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            header = next(csv.reader([file.readline(_LONGEST_HEADER).decode("utf-8-sig", "replace")]), [])
    except (OSError, EOFError):
        return None
    scope = next((name for name in _SCOPES if name in header), None)
    cost = next((name for name in _COSTS if name in header), None)
    return ("date", scope, cost) if "date" in header and scope and cost else None


def _origins(series: Series, horizon: int, step: int, min_history: int) -> list[int]:
    """Origins of windows that cost something and begin where they should: after a day that was reported."""
    cost = series.reported
    least = _IMMATERIAL * float(np.median(np.abs(cost))) * horizon
    actual = window_totals(cost, horizon)
    return [
        origin
        for origin in range(min_history, len(cost) - horizon + 1, step)
        if abs(actual[origin]) > least and series.cost[origin - 1] == cost[origin - 1]
    ]


def _each_origin(series: Series, horizon: int, origins: list[int]) -> Iterator[dict[str, Any]]:
    """A forecast at each origin, with the days before it alone."""
    for origin in origins:
        days, cost = _known(series, origin)
        used = (
            cost
            if series.in_use is None
            else np.where(series.in_use[np.isin(series.days, days)], cost, np.nan)
        )
        spread = forecast_daily(days, cost, used=used, horizon_days=horizon).spread
        yield _window(series, horizon, origin, spread)


def _each_day(
    series: Series, horizon: int, origins: list[int], told_late: int = 0
) -> Iterator[dict[str, Any]]:
    """All origins in one pass; what is added to both sides of an interval's ratio is of the whole series.

    Intervals are as without `told_late`, and around its forecasts.
    """
    paths = combine(series.cost, series.days, horizon).paths
    errors, widths = past_widths(series.reported, paths, horizon, in_use=series.in_use)
    told = np.cumsum(np.r_[0.0, np.nan_to_num(series.reported)])
    totals = paths[:, : horizon - told_late].sum(axis=1)
    totals = totals[told_late:] + told[told_late:] - told[: len(told) - told_late]
    for origin in origins:
        size = float(errors.size[origin])
        spread = Spread(float(totals[origin]), errors.logarithmic, size, widths[origin])
        yield _window(series, horizon, origin, spread)


def _window(series: Series, horizon: int, origin: int, spread: Spread) -> dict[str, Any]:
    past, actual = series.reported[:origin], float(series.reported[origin : origin + horizon].sum())
    bounds = {level: spread.bounds(level) for level in LEVELS}
    window = series.reported[origin : origin + horizon]
    return {
        "origin": str(series.days[origin]),
        "actual": actual,
        "change": _change(window),
        "forecast": spread.centre,
        "seasonal_naive": float(past[-7:][np.arange(horizon) % 7].sum()),
        "run_rate_28": float(past[-28:].mean()) * horizon,
        "level_told": float(window[:_LEVEL_DAYS].mean()) * horizon,
        **{f"covered_{level:.2f}": low <= actual <= high for level, (low, high) in bounds.items()},
        **{f"width_{level:.2f}": (high - low) / abs(actual) for level, (low, high) in bounds.items()},
    }


def _change(window: Floats) -> float | None:
    """How far a day after the tenth lies from one before, as a share of it; None where these cost nothing."""
    first, later = float(window[:10].mean()), float((window[10:] if len(window) > 10 else window).mean())
    return abs(later / first - 1) if first else None


def _known(series: Series, origin: int) -> tuple[Days, Floats]:
    """Days that were reported before an origin, and their costs."""
    there = (series.cost == series.reported)[:origin]
    return series.days[:origin][there], series.reported[:origin][there]


def _landings(series: Series, min_history: int, *, late: bool) -> Iterator[dict[str, Any]]:
    days, cost = series.days, series.reported
    rng = np.random.default_rng(0)
    shares = _completion(series, min_history, rng) if late else None
    usual = float(np.median(np.abs(cost))) * 30
    for month in np.unique(days.astype("datetime64[M]")):
        first, last = month.astype("datetime64[D]"), (month + 1).astype("datetime64[D]") - 1
        inside = (days >= first) & (days <= last)
        actual, length = float(cost[inside].sum()), int((last - first).astype(int)) + 1
        if inside.sum() < length or abs(actual) <= _IMMATERIAL * usual:
            continue
        for day in LANDING_DAYS:
            known = days < first + day
            if known.sum() < min_history:
                continue
            told, amount = _known(series, int(known.sum()))
            amount = partly_reported(amount, rng) if late else amount
            landing = forecast_month_end(told, amount, month=month, completion=shares)
            to_date = float(amount[told >= first].sum())
            yield {
                "month": str(month),
                "day": day,
                "actual": actual,
                "forecast": landing.landing,
                "run_rate": to_date / day * length,
                "covered_0.80": landing.low <= actual <= landing.high,
            }


def _completion(series: Series, min_history: int, rng: np.random.Generator) -> Completion:
    """Completion factors from a report on each of the first days."""
    reports = range(MIN_DAYS, min_history)
    days, cost = series.days, series.reported
    return learn_completion((days[n - 1], days[:n], partly_reported(cost[:n], rng)) for n in reports)


def _errors(rows: list[dict[str, Any]], method: str) -> dict[str, float]:
    error = np.array([abs(row[method] - row["actual"]) / abs(row["actual"]) for row in rows])
    return {
        "median_error_ratio": float(np.median(error)),
        "p90_error_ratio": float(np.quantile(error, 0.9)),
        "within_12_ratio": float((error <= 0.12).mean()),
        "within_20_ratio": float((error <= 0.20).mean()),
    }


def _summary(
    args: argparse.Namespace,
    series: dict[str, Series],
    windows: list[dict[str, Any]],
    landings: list[dict[str, Any]],
    skipped: list[str],
    seconds: float,
) -> dict[str, Any]:
    by_day = {day: [row for row in landings if row["day"] == day] for day in LANDING_DAYS}
    return {
        "horizon_days": args.horizon,
        "step_days": args.step,
        "min_history_days": args.min_history,
        "n_series": len(series),
        "n_windows": len(windows),
        "total": {method: _errors(windows, method) for method in _METHODS},
        "by_change": [_of_change(windows, *ends) for ends in pairwise(_CHANGES)],
        "intervals": {
            f"{level:.2f}": {
                "coverage_ratio": float(np.mean([row[f"covered_{level:.2f}"] for row in windows])),
                "median_width_ratio": float(np.median([row[f"width_{level:.2f}"] for row in windows])),
            }
            for level in LEVELS
        },
        "landing": {
            str(day): {
                "n": len(rows),
                **{method: _errors(rows, method) for method in ("forecast", "run_rate")},
                "coverage_0.80_ratio": float(np.mean([row["covered_0.80"] for row in rows])),
            }
            for day, rows in by_day.items()
            if rows
        },
        "series": {
            name: {"days": len(one.cost), "filled_days": one.filled, **_of_series(name, windows)}
            for name, one in series.items()
        },
        "skipped": skipped,
        "seconds_per_forecast": seconds / (len(windows) + len(landings)),
    }


def _of_series(name: str, windows: list[dict[str, Any]]) -> dict[str, Any]:
    mine = [row for row in windows if row["series"] == name]
    if not mine:
        return {"n_windows": 0}
    return {
        "n_windows": len(mine),
        **_errors(mine, "forecast"),
        "run_rate_28_median_error_ratio": _errors(mine, "run_rate_28")["median_error_ratio"],
        "coverage_0.80_ratio": float(np.mean([row["covered_0.80"] for row in mine])),
    }


def _of_change(windows: list[dict[str, Any]], low: float, high: float) -> dict[str, Any]:
    """Windows whose days from the eleventh on cost so much more or less than the first ten, and median errors."""
    rows = [
        row
        for row in windows
        if (low <= row["change"] < high if row["change"] is not None else high == np.inf)
    ]
    medians = {method: _errors(rows, method)["median_error_ratio"] for method in _METHODS if rows}
    return {"at_least": low, "share_ratio": len(rows) / len(windows), **medians}


def _print(answer: dict[str, Any], *, by_series: bool) -> None:
    print(
        f"{answer['n_windows']} windows of {answer['horizon_days']} days, {answer['n_series']} series, every "
        f"{answer['step_days']} days from day {answer['min_history_days']}; "
        f"{answer['seconds_per_forecast']:.3f} s a forecast"
    )
    print(f"{'total of the window':24}{'median':>8}{'p90':>8}{'<=12 %':>8}{'<=20 %':>8}")
    for method, figures in answer["total"].items():
        print(f"  {method:22}" + "".join(f"{100 * value:>7.1f}%" for value in figures.values()))
    for level, figures in answer["intervals"].items():
        print(
            f"{float(level):.0%} interval: holds {figures['coverage_ratio']:.1%}, "
            f"median width {figures['median_width_ratio']:.0%} of the actual"
        )
    print(
        f"{'month-end landing':24}{'median':>8}{'p90':>8}{'run rate':>10}{'p90':>8}{'80 % holds':>12}{'n':>6}"
    )
    for day, figures in answer["landing"].items():
        ours, theirs = figures["forecast"], figures["run_rate"]
        print(
            f"  told on day {day:<10}{100 * ours['median_error_ratio']:>7.1f}%{100 * ours['p90_error_ratio']:>7.1f}%"
            f"{100 * theirs['median_error_ratio']:>9.1f}%{100 * theirs['p90_error_ratio']:>7.1f}%"
            f"{100 * figures['coverage_0.80_ratio']:>11.1f}%{figures['n']:>6}"
        )
    if by_series:
        for one in answer["by_change"]:
            medians = ", ".join(f"{name} {100 * one[name]:.1f}%" for name in _METHODS if name in one)
            share = f"{100 * one['share_ratio']:.0f}% of windows"
            print(f"change after day 10 of at least {100 * one['at_least']:.0f}%: {share}; {medians}")
        for name, figures in answer["series"].items():
            error = figures.get("median_error_ratio")
            told = ""
            if error is not None:
                run_rate = figures["run_rate_28_median_error_ratio"]
                told = f"{100 * error:6.1f}%  run rate {100 * run_rate:6.1f}%"
                told += f"  80 % holds {figures['coverage_0.80_ratio']:.0%}"
            print(f"  {name[:60]:60} {figures['days']:>5} d {figures['n_windows']:>4} windows {told}")
    for line in answer["skipped"]:
        print(f"skipped {line}")


if __name__ == "__main__":
    sys.exit(main())
