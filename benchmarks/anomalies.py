"""Anomalies: injected spikes found, and false alarms, on real daily cost series.

python -m benchmarks.anomalies --data DIR [--spike 0.5] [--json OUT]

DIR holds CSV files (also .gz) as of benchmarks.forecast. Months are judged as a review would: with the days up to the
end of each 30 days and no later ones. Each day in turn costs (1 + spike) times as much; found is the share that is then
an anomaly. Alarms on days that were left alone count as false, although the series hold real incidents nobody labelled.
Beside it two usual rules: mean and standard deviation, and median and MAD, of the 28 days before (threshold 4).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.forecast import load_series
from catalogs.tables.table import Floats
from planner.finops.anomalies import THRESHOLD, scores

REVIEW_DAYS, FIRST_DAY, MIN_DAYS, MIN_COST = 30, 28, 60, 0.1


def ours(cost: Floats) -> Floats:
    """(n,) score over its threshold."""
    return scores(cost)[0] / THRESHOLD


def before(cost: Floats, *, robust: bool) -> Floats:
    """(n,) the same for a rule over the 28 days before."""
    out = np.full(len(cost), np.nan)
    for i in range(FIRST_DAY, len(cost)):
        past = cost[i - FIRST_DAY : i]
        past = past[np.isfinite(past)]
        middle = np.median(past) if robust else past.mean()
        spread = 1.4826 * np.median(np.abs(past - middle)) if robust else past.std(ddof=1)
        out[i] = (cost[i] - middle) / max(spread, 1e-12) / 4
    return out


RULES: dict[str, Callable[[Floats], Floats]] = {
    "ours": ours,
    "mean and sd of 28 days": lambda cost: before(cost, robust=False),
    "median and MAD of 28 days": lambda cost: before(cost, robust=True),
}


def judge(rule: Callable[[Floats], Floats], cost: Floats, spike: float) -> tuple[int, int, int]:
    """Spikes found, false alarms and days judged, of one series."""
    found = alarms = judged = 0
    start = FIRST_DAY
    for end in [*range(MIN_DAYS, len(cost), REVIEW_DAYS), len(cost)]:
        seen = cost[:end]
        plain = rule(seen)
        for day in range(start, end):
            if not (np.isfinite(plain[day]) and seen[day] > 0):
                continue
            changed = seen.copy()
            changed[day] *= 1 + spike
            judged += 1
            alarms += int(plain[day] > 1)
            found += int(rule(changed)[day] > 1)
        start = end
    return found, alarms, judged


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--spike", type=float, default=0.5, help="0.5: a day costs half as much again")
    parser.add_argument("--json", type=Path, default=None)
    args = parser.parse_args(arguments)
    skipped: list[str] = []
    series = dict(load_series(args.data, MIN_COST, MIN_DAYS, skipped))
    answer: dict[str, object] = {"series": len(series), "spike": args.spike, "skipped": skipped}
    for name, rule in RULES.items():
        rows = [judge(rule, one.cost, args.spike) for one in series.values()]
        found, alarms, judged = (sum(column) for column in zip(*rows, strict=True))
        each = float(np.mean([f / n for f, _, n in rows if n]))
        answer[name] = {
            "days": judged, "found_ratio": found / judged, "found_ratio_mean_of_series": each,
            "false_per_100_days": 100 * alarms / judged,
        }  # fmt: skip
        print(
            f"{name:28s} {judged:6,d} days  found {found / judged:6.1%} (mean of series {each:6.1%})"
            f"  false alarms {100 * alarms / judged:5.2f} per 100 days"
        )
    print(f"{len(series)} series, {len(skipped)} files or series skipped (--json names them)")
    if args.json is not None:
        args.json.write_text(json.dumps(answer, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
