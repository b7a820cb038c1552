"""Widths of the 80 % interval from residuals of rows that the fit had not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.measured import Case

Floats = npt.NDArray[np.float64]
COVERAGE = 0.8
# Extra log width of a generation that was never measured, and where the link inside the node is not stated.
NEVER_MEASURED, UNKNOWN_LINK = 0.3, 0.15
NO_ROWS = 0.5
# A stack with fewer rows than this takes the width of its whole family.
LEAST_ROWS = 40


def interval_widths(cases: Sequence[Case], unseen: Floats, kinds: Sequence[str]) -> dict[str, float]:
    """Constants of the interval: a width per family and stack, extra spread where a generation is thin.

    Args:
        cases: the measured rows.
        unseen: their predictions with their workload group left out of the fit, shape `(n_cases,)`.
        kinds: model families to give widths for.
    """
    gap = np.abs(np.log(unseen) - np.log([case.measured.value for case in cases]))
    widths: dict[str, float] = {}
    for kind in kinds:
        rows = [p for p, case in enumerate(cases) if case.kind == kind and np.isfinite(gap[p])]
        if not rows:
            widths[f"interval.{kind}"] = NO_ROWS
            continue
        thin = np.zeros(len(cases))
        for generation in sorted({cases[p].generation for p in rows}):
            own = [p for p in rows if cases[p].generation == generation]
            rates = [float(cases[p].hardware["memory_gb_per_s"]) for p in own]
            extra = _thin(cases, own)
            thin[own] = extra
            widths[f"thin.{kind}.{generation}"] = extra
            widths[f"thin.{kind}.{generation}.slowest_gb_per_s"] = min(rates)
            widths[f"thin.{kind}.{generation}.fastest_gb_per_s"] = max(rates)
        widths[f"interval.{kind}"] = base_width(gap[rows], thin[rows])
        for stack in sorted({cases[p].training.stack for p in rows}):
            own = [p for p in rows if cases[p].training.stack == stack]
            if len(own) >= LEAST_ROWS:
                widths[f"interval.{kind}.{stack}"] = base_width(gap[own], thin[own])
    return widths


def _thin(cases: Sequence[Case], rows: Sequence[int]) -> float:
    """Extra log width of a generation: falls with the sources and the workloads measured on it."""
    sources = len({cases[p].group for p in rows})
    works = len({cases[p].split_group for p in rows})
    return round(NEVER_MEASURED / math.sqrt(1.0 + sources * math.sqrt(works) / 2.0), 4)


def base_width(gap: Floats, thin: Floats) -> float:
    """The width that, with the extra spread of each row, covers the wanted share of the rows."""
    squared = np.sort(np.maximum(gap * gap - thin * thin, 0.0))
    return float(math.sqrt(squared[math.ceil(COVERAGE * len(squared)) - 1]))
