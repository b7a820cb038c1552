"""Which way to trust the members: chosen without the series it is then judged on.

python -m benchmarks.forecast_left_out --data DIR [--seed 1] [--per-regime 6] [--step 5] [--json OUT]

Candidates change one choice each. For a kind of generated bill (`forecast_regimes`) the candidate is chosen by all
other kinds and the real series; for the real series of DIR, left out together as scopes of one bill, by the generated
ones. Chosen is the candidate of the least mean, over kinds, of log((error + 0.3 %) / (run rate's + 0.3 %)), of median
and 90th percentile alike. Totals of 30 days as reported, origins from day 90; every origin knows the days before it
(a test holds this), so one pass a series gives all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.forecast import load_series
from benchmarks.forecast_regimes import bills
from catalogs.tables.table import Floats
from planner.finops.forecast.clean import Series, regular_series
from planner.finops.forecast.ensemble import Trust, weigh, window_totals
from planner.finops.forecast.members import MEMBERS, all_paths

HORIZON, FIRST, RUN_RATE_DAYS = 30, 90, 28
REAL = "real"
_IMMATERIAL = 0.02  # as of `benchmarks.forecast`
_FLOOR = 0.003
_TRENDS = ("damped_trend", "damped_trend_log", "theta", "drift_28", "drift_56")
_SINCE = tuple(name for name in MEMBERS if name.startswith("since_change"))
CANDIDATES: dict[str, tuple[Trust, tuple[str, ...]]] = {
    "as it is": (Trust(), ()),
    "errors, not regrets": (Trust(good_rank=0), ()),
    "as before": (Trust(good_rank=0, alike_windows=0.0, alike_share=0.0, recent=0.0), _SINCE),
    "last days not looked at": (Trust(recent=0.0), ()),
    "last days once": (Trust(recent=1.0), ()),
    "last days ten times": (Trust(recent=10.0), ()),
    "last days by weeks": (Trust(recent_window_days=7), ()),
    "no member since the change": (Trust(), _SINCE),
    "no trends": (Trust(), _TRENDS),
    "sharpness 3": (Trust(sharpness=3.0), ()),
    "sharpness 9": (Trust(sharpness=9.0), ()),
    "half life 40 days": (Trust(half_life_days=40.0), ()),
    "half life 400 days": (Trust(half_life_days=400.0), ()),
    "40 windows alike": (Trust(alike_windows=40.0), ()),
}


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files with real series")
    parser.add_argument("--seed", type=int, default=1, help="of the generated bills")
    parser.add_argument("--per-regime", type=int, default=6, help="generated series of each kind")
    parser.add_argument("--step", type=int, default=5, help="days between origins")
    parser.add_argument("--json", type=Path, default=None, help="write every figure there")
    args = parser.parse_args(arguments)
    if not args.data.is_dir():
        parser.error(f"--data {args.data}: no such folder")
    errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for kind, series in _all_series(args.data, args.seed, args.per_regime):
        for method, values in _errors(series, args.step).items():
            errors[kind][method] += values
    answer = _answer({kind: {m: np.array(v) for m, v in of.items()} for kind, of in errors.items()})
    _print(answer)
    if args.json is not None:
        args.json.write_text(json.dumps(answer, indent=1) + "\n")
    return 0


def _all_series(folder: Path, seed: int, per_regime: int) -> Iterator[tuple[str, Series]]:
    skipped: list[str] = []
    for _, series in load_series(folder, 0.1, FIRST + HORIZON, skipped):
        yield REAL, series
    for bill in bills(seed, per_regime):
        yield bill.regime, regular_series(bill.days, bill.cost)


def _errors(series: Series, step: int) -> dict[str, list[float]]:
    """Relative errors of every candidate and of the run rate, at the same origins."""
    cost = series.reported
    actual = window_totals(cost, HORIZON)
    usual = float(np.median(np.abs(cost))) * HORIZON
    origins = np.arange(FIRST, len(cost) - HORIZON + 1, step)
    origins = origins[(np.abs(actual[origins]) > _IMMATERIAL * usual) & (actual[origins] != 0)]
    paths = all_paths(series.cost, series.days, HORIZON)
    names = list(MEMBERS)
    told = {"run rate": _run_rate(cost)}
    for name, (trust, without) in CANDIDATES.items():
        used = paths.copy() if without else paths
        used[[names.index(one) for one in without]] = np.nan
        told[name] = weigh(series.cost, used, trust).paths.sum(axis=1)
    return {
        name: np.abs(total[origins] / actual[origins] - 1).tolist() if len(origins) else []
        for name, total in told.items()
    }


def _run_rate(cost: Floats) -> Floats:
    known = np.concatenate([[0.0], np.cumsum(cost)])
    at = np.arange(len(known))
    first = np.maximum(at - RUN_RATE_DAYS, 0)
    return np.asarray((known[at] - known[first]) / np.maximum(at - first, 1) * HORIZON)


def _figures(error: Floats) -> dict[str, float]:
    return {
        "n_windows": len(error),
        "median_error_ratio": float(np.median(error)),
        "p90_error_ratio": float(np.quantile(error, 0.9)),
        "within_12_ratio": float((error <= 0.12).mean()),
    }


def _answer(errors: dict[str, dict[str, Floats]]) -> dict[str, dict[str, dict[str, float | str]]]:
    chosen = {kind: _choose(errors, kind) for kind in errors}
    generated = [kind for kind in errors if kind != REAL]

    def pooled(kinds: list[str], method: str | None) -> dict[str, float | str]:
        return {
            **_figures(
                np.concatenate([errors[kind][chosen[kind] if method is None else method] for kind in kinds])
            )
        }

    groups = {**{kind: [kind] for kind in errors}, "generated": generated, "all": list(errors)}
    out: dict[str, dict[str, dict[str, float | str]]] = {}
    for name, kinds in groups.items():
        out[name] = {method: pooled(kinds, method) for method in ("run rate", *CANDIDATES)}
        out[name]["left out"] = pooled(kinds, None)
        if len(kinds) == 1:
            out[name]["left out"]["chosen"] = chosen[name]
    return out


def _choose(errors: dict[str, dict[str, Floats]], left_out: str) -> str:
    """The candidate that did best on the other kinds, each kind counting alike."""

    def score(method: str) -> float:
        ratios = [
            np.log((np.quantile(of[method], q) + _FLOOR) / (np.quantile(of["run rate"], q) + _FLOOR))
            for kind, of in errors.items()
            if kind != left_out and len(of[method])
            for q in (0.5, 0.9)
        ]
        return float(np.mean(ratios))

    return min(CANDIDATES, key=score)


def _print(answer: dict[str, dict[str, dict[str, float | str]]]) -> None:
    print(
        f"{'30-day total: median, p90, <=12 %':34}{'run rate':>20}{'as before':>20}{'as it is':>20}{'left out':>20}"
    )
    for kind, of in answer.items():
        cells = "".join(_cell(of[method]) for method in ("run rate", "as before", "as it is", "left out"))
        print(f"{kind:34}{cells}  {of['left out'].get('chosen', '')}")
    print("candidates: real; generated")
    for name in CANDIDATES:
        print(f"  {name:32}{_cell(answer[REAL][name])}{_cell(answer['generated'][name])}")


def _cell(figures: dict[str, float | str]) -> str:
    values = [
        100 * float(figures[key]) for key in ("median_error_ratio", "p90_error_ratio", "within_12_ratio")
    ]
    return f"{values[0]:8.1f}{values[1]:7.1f}{values[2]:5.0f}"


if __name__ == "__main__":
    sys.exit(main())
