"""Fit the constants of one software class alone, all others held: `python -m benchmarks.fit_class fused`.

For a change that concerns one class: the rest of the planner's figures stay as they are. The fit is that of
`benchmarks.fit_performance`, with the weights of all rows; the interval of the class follows its rows left out, whose
folds hold the bundled constants of other classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.accelerators import load_devices
from benchmarks.fit_intervals import interval_widths
from benchmarks.fit_performance import (
    FOLDS,
    OTHER_STACKS,
    best_constants,
    family_of,
    free_constants,
    learned_factors,
    load_priors,
    log_gap,
    row_weights,
)
from benchmarks.held_out import fold_labels
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from benchmarks.rows import read_csv, write_records
from catalogs.tables.table import Floats
from planner.performance.constants import DIRECTORY, Constants, load_constants

KIND = "transformer"


def fit_class(cases: Sequence[Case], stack: str, held: Constants) -> Constants:
    """`held` with the fitted constants of `stack` and its factors on machines that it was measured on found anew."""
    own = [case for case in cases if case.training.stack == stack]
    priors = load_priors(held)
    free = [
        replace(f, value=priors[f.name])
        for f in free_constants(DIRECTORY, True)
        if f.name.endswith(f".{stack}")
    ]
    bare = held.replace({name: 1.0 for name in held.values if name.startswith("multiplier.")})
    mine = [case.training.stack == stack for case in cases]
    fitted = best_constants(own, row_weights(cases)[mine], len(cases), free, bare.replace)
    where = {family_of(case) for case in own} | {case.generation for case in own}
    factors = {
        name: value
        for name, value in learned_factors(cases, log_gap(cases, fitted), KIND).items()
        if name.endswith(f".{stack}") and name.split(".")[2] in where
    }
    return held.replace({f.name: fitted[f.name] for f in free} | factors)


def unseen(cases: Sequence[Case], stack: str, held: Constants) -> Floats:
    """Predictions of the class's rows with their fold of workload groups left out; others with `held`."""
    value = throughput(build_groups(cases), len(cases), held)
    labels = fold_labels(cases, FOLDS)
    for label in sorted(set(labels)):
        out = [p for p, c in enumerate(cases) if labels[p] == label and c.training.stack == stack]
        if out:
            rest = [case for p, case in enumerate(cases) if labels[p] != label]
            rows = [cases[p] for p in out]
            value[out] = throughput(build_groups(rows), len(rows), fit_class(rest, stack, held))
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit one class and write its constants and the width of its interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "stack", choices=OTHER_STACKS, help="software class; others are fitted in order, together"
    )
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; bundled points by default"
    )
    chosen = parser.parse_args(arguments)
    held = load_constants()
    cases, _ = load_cases(load_rows(chosen.data), load_devices())
    cases, _ = settle([case for case in cases if case.kind == KIND], held)
    fitted = fit_class(cases, chosen.stack, held)
    widths = interval_widths(cases, unseen(cases, chosen.stack, held), (KIND,), fitted)
    own = f"interval.{KIND}.{chosen.stack}"
    changed = {name: value for name, value in fitted.values.items() if value != held.get(name, 1.0)}
    write(DIRECTORY / f"{KIND}.csv", changed | {own: widths[own]})
    print(f"{len(cases)} rows, {len(changed)} constants of {chosen.stack} written")
    return 0


def write(path: Path, changed: dict[str, float]) -> None:
    """Put new values of constants in their rows of a file."""
    rows = read_csv(path)
    if missing := sorted(set(changed) - {row["name"] for row in rows}):
        raise SystemExit(f"{path.name} has no rows of {', '.join(missing)}: fit all constants first")
    for row in rows:
        if row["name"] in changed:
            digits = 4 if row["name"].startswith(("multiplier.", "interval.")) else 5
            row["value"] = f"{changed[row['name']]:.{digits}g}"
    write_records(path, rows)


if __name__ == "__main__":
    raise SystemExit(main())
