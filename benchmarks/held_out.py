"""Predictions of rows that the fit has not seen: each publisher left out, or folds of workload groups left out.

A workload group is one model on one accelerator family (`split_group` of the measured rows), so a fold asks what the
rows kept aside ask: a model on a machine for which nothing was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.fit_performance import FAMILIES, fit
from benchmarks.measured import Case
from benchmarks.predict import build_groups, throughput
from planner.performance.constants import DIRECTORY, Constants

Floats = npt.NDArray[np.float64]


def source_labels(cases: Sequence[Case]) -> list[str]:
    """The publisher of each case."""
    return [case.group for case in cases]


def fold_labels(cases: Sequence[Case], folds: int) -> list[str]:
    """A fold per case: whole workload groups, the largest first to the fold that has fewest rows."""
    names = [case.split_group or case.model.name for case in cases]
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
