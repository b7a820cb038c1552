"""Predictions of rows that the fit has not seen: each publisher left out, or folds of workload groups left out.

A workload group is one model on one accelerator family (`split_group` of the measured rows), so a fold asks what the
rows kept aside ask: a model on a machine for which nothing was measured. `python -m benchmarks.held_out [--data FILE]`
scores vision models in each way of leaving rows out (`WAYS`): a model, a machine, both or a publisher not seen before.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accelerators import load_devices
from benchmarks.error_figures import errors
from benchmarks.fit_performance import FAMILIES, FOLDS, family_of, fit, load_priors
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from catalogs.tables.table import Floats
from planner.performance.constants import DIRECTORY, Constants, load_constants


def source_labels(cases: Sequence[Case]) -> list[str]:
    """The publisher of each case."""
    return [case.group for case in cases]


def fold_labels(cases: Sequence[Case], folds: int) -> list[str]:
    """A fold per case, of whole workload groups."""
    return folds_of([case.split_group or case.model.name for case in cases], folds)


def folds_of(names: Sequence[str], folds: int) -> list[str]:
    """A fold per name: all of one name in one fold, the most frequent first to the fold that has fewest rows."""
    rows_of_fold = [0] * folds
    fold_of: dict[str, int] = {}
    for name, size in sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])):
        fold_of[name] = rows_of_fold.index(min(rows_of_fold))
        rows_of_fold[fold_of[name]] += size
    return [f"fold {fold_of[name]}" for name in names]


def held_out(
    cases: Sequence[Case], labels: Sequence[str], start: Constants, path: Path = DIRECTORY
) -> Floats:
    """Predicted metric of each case with constants fitted on the cases of other labels, shape `(n_cases,)`.

    Families are fitted apart: a left-out CNN row says nothing of transformers.
    """
    value = np.full(len(cases), np.nan)
    for out, constants in fits_without(cases, labels, start, path):
        held = [cases[p] for p in out]
        value[out] = throughput(build_groups(held), len(held), constants)
    return value


def fits_without(
    cases: Sequence[Case], labels: Sequence[str], start: Constants, path: Path = DIRECTORY
) -> Iterator[tuple[list[int], Constants]]:
    """Positions of the cases of each label and family, with constants fitted on the family's other cases."""
    for kinds in FAMILIES.values():
        for label in sorted(set(labels)):
            out = [p for p, case in enumerate(cases) if labels[p] == label and case.kind in kinds]
            rest = [case for p, case in enumerate(cases) if labels[p] != label and case.kind in kinds]
            if out:
                yield out, fit(rest, start, path)


# What the rows left out have in common; all but publishers are spread over folds.
WAYS: dict[str, Callable[[Case], str]] = {
    "model and accelerator family of one publisher": lambda case: (
        f"{case.group}|{case.model.name}|{family_of(case)}"
    ),
    "model and accelerator family": lambda case: case.split_group or case.model.name,
    "model": lambda case: case.model.name,
    "accelerator family": family_of,
    "publisher": lambda case: case.group,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the error of vision models for each way of leaving rows out."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    chosen = parser.parse_args(arguments)
    constants = load_constants()
    cases, _ = load_cases(load_rows(chosen.data), load_devices())
    cases, _ = settle([case for case in cases if case.kind in FAMILIES["vision"]], load_priors(constants))
    measured = np.asarray([case.measured.value for case in cases])
    for name, key in WAYS.items():
        keys = [key(case) for case in cases]
        labels = keys if name == "publisher" else folds_of(keys, FOLDS)
        made = errors(held_out(cases, labels, constants), measured)
        print(
            f"{name:46} {made['n']:5.0f} rows  MAPE {made['mape']:5.1f}  median {made['median']:5.1f}"
            f"  p90 {made['p90']:5.1f}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
