"""Score measured rows on or after a date with constants fitted only on the rows before it.

`python -m benchmarks.blind [--rows FILE] --since DATE [--json OUT]`. Each row is predicted as a user would ask (a
workload, see `benchmarks/workloads.py`). Physical constants, learned factors and interval widths are refitted on the
earlier rows. A row's date is the month it names, its round of MLPerf or the release of its software; a year alone
counts as June. Rows without a date are counted and enter neither side.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accelerators import load_devices
from benchmarks.error_figures import errors
from benchmarks.fit_intervals import NEVER_MEASURED, UNKNOWN_LINK, interval_widths
from benchmarks.fit_performance import FAMILIES, KINDS, fit, load_priors
from benchmarks.held_out import fold_labels, held_out
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import settle
from benchmarks.workloads import predict_workloads
from planner.files import write_atomically
from planner.performance.constants import Constants, load_constants

# Folds of workload groups that the interval is measured on; the bundled widths take five.
FOLDS = 3
WIDTHS = ("thin.", "interval.", "measured.")


def split(cases: Sequence[Case], since: str) -> tuple[list[Case], list[Case], int]:
    """Cases dated before `since` (ISO date), those on or after it, and the count of cases without a date."""
    before = [case for case in cases if case.ran_on and case.ran_on < since]
    after = [case for case in cases if case.ran_on and case.ran_on >= since]
    return before, after, len(cases) - len(before) - len(after)


def refit(cases: Sequence[Case], bundled: Constants) -> Constants:
    """Constants, learned factors and interval widths from `cases` alone, families apart."""
    constants = fit(cases, bundled)
    widths = {"thin.default": NEVER_MEASURED, "thin.family": NEVER_MEASURED / 2.0}
    widths["interval.unknown_link"] = UNKNOWN_LINK
    for kinds in FAMILIES.values():
        own = [case for case in cases if case.kind in kinds]
        unseen = held_out(own, fold_labels(own, FOLDS), bundled)
        widths |= interval_widths(own, unseen, kinds, constants)
    kept = {name: value for name, value in constants.values.items() if not name.startswith(WIDTHS)}
    return Constants({**kept, **widths})


def score(cases: Sequence[Case], constants: Constants) -> dict[str, dict[str, float]]:
    """Errors in %, coverage of the 80 % interval and publishers, for all cases, by kind and by generation."""
    if not cases:
        return {}
    asked, _ = predict_workloads(list(cases), True, constants)
    value, spread = np.asarray(asked["value"]), np.asarray(asked["spread"])
    measured = np.asarray([case.measured.value for case in cases])
    known = np.isfinite(value) & (value > 0)
    parts = {"all": known}
    for name in sorted({case.kind for case in cases}):
        parts[name] = known & np.asarray([case.kind == name for case in cases])
    for kind, generation in sorted({(case.kind, case.generation) for case in cases}):
        same = [(case.kind, case.generation) == (kind, generation) for case in cases]
        parts[f"  {kind}, {generation}"] = known & np.asarray(same)
    out = {}
    for name, mask in parts.items():
        at = np.flatnonzero(mask)
        if len(at):
            gap = np.abs(np.log(value[at] / measured[at]))
            out[name] = {**errors(value[at], measured[at]), "coverage": float((gap <= spread[at]).mean()),
                         "publishers": len({cases[p].group for p in at})}  # fmt: skip
    out["all"] = out.get("all", {"n": 0}) | {"no prediction": int((~known).sum())}
    return out


def report(rows: list[dict[str, str]], since: str) -> dict[str, Any]:
    """The whole report.

    Raises:
        ValueError: no usable row of a date before `since`, or none after.
    """
    bundled = load_constants()
    cases, skipped = load_cases(rows, load_devices())
    before, after, undated = split(cases, since)
    if not before or not after:
        raise ValueError(f"{len(before)} usable rows before {since}, {len(after)} after: choose another date")
    before, lost = settle([case for case in before if case.kind in KINDS], load_priors(bundled))
    after, lost_after = settle(after, load_priors(bundled))
    constants = refit(before, bundled)
    skipped.update(lost + lost_after)
    seen = {case.group for case in before}
    return {
        "since": since, "undated": undated, "left out": dict(skipped),
        "publishers after, also before": len({c.group for c in after} & seen),
        "blind": score(after, constants), "in-sample": score(before, constants),
    }  # fmt: skip


def render(made: dict[str, Any]) -> str:
    """The report as text."""
    lines = [
        f"{made['undated']} usable rows without a date left out; {sum(made['left out'].values())} not usable"
    ]
    lines.append(
        f"publishers after {made['since']} that published before: {made['publishers after, also before']}"
    )
    for title in ("blind", "in-sample"):
        lines.append(f"{title:30} {'n':>5} {'publ.':>5} {'median':>7} {'MAPE':>7} {'p90':>7} {'covered':>8}")
        for name, v in made[title].items():
            if v["n"]:
                lines.append(
                    f"{name:30} {v['n']:5d} {v['publishers']:5d} {v['median']:7.1f} {v['mape']:7.1f}"
                    f" {v['p90']:7.1f} {v['coverage']:8.1%}"
                )
        lines.append(f"without a prediction: {made[title]['all']['no prediction']}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Refit on the rows before a date and score the rows after it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    parser.add_argument("--since", required=True, help="first date scored, such as 2025-01-01")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    chosen = parser.parse_args(arguments)
    try:
        since = date.fromisoformat(chosen.since).isoformat()
        made = report(load_rows(chosen.rows), since)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        parser.error(str(error))
    print(render(made))
    if chosen.json:
        write_atomically(chosen.json, json.dumps(made, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
