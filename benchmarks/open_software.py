"""How well the 80 % interval holds where a user leaves the software class open: `python -m benchmarks.open_software`.

Every measured row is asked for as a user would ask (`benchmarks/workloads.py`), without its software class: the planner
takes its default and widens the interval by how far that default moves the rows of the family. The command prints the
share of rows inside, by family and by the class that ran, and the width by the rows (`fit_intervals.class_moves`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.accelerators import load_devices
from benchmarks.fit_intervals import class_moves
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import settle
from benchmarks.workloads import predict_workloads
from catalogs.tables.table import Bools, Floats
from planner.performance.constants import Constants, load_constants

WIDTHS = {
    "transformer": "interval.open.stack",
    "cnn": "interval.cnn.open.stack",
    "vit": "interval.vit.open.stack",
    "diffusion": "interval.diffusion.open.stack",
}


def hidden_class(cases: Sequence[Case], constants: Constants) -> tuple[Floats, Floats]:
    """Log of predicted over measured throughput and half-width of the interval, class left open, shape `(n_cases,)`."""
    asked, _ = predict_workloads(cases, True, constants, hidden=("stack",))
    measured = np.asarray([case.measured.value for case in cases])
    return np.log(asked["value"] / measured), asked["spread"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of the measured rows; default: bundled"
    )
    parser.add_argument(
        "--widths", type=float, nargs="*", default=[], help="other widths of the open class to score"
    )
    options = parser.parse_args(arguments)
    constants = load_constants()
    loaded, _ = load_cases(load_rows(options.data), load_devices())
    cases, _ = settle(loaded, constants)
    gap, spread = hidden_class(cases, constants)
    for kind, own in _kinds(cases):
        bundled = constants[WIDTHS[kind]]
        at = own[np.isfinite(gap[own])]
        moved = class_moves([cases[p] for p in at], constants)
        print(
            f"{kind}: {len(at)} rows; the default class moves them by {moved:.4f} ({WIDTHS[kind]} {bundled})"
        )
        for width in (bundled, *options.widths):
            wide = np.sqrt(np.maximum(spread[at] ** 2 - bundled**2 + width**2, 0.0))
            inside = np.abs(gap[at]) <= wide
            print(f"  width {width:.4f}: {inside.mean():.1%} inside; {_by_class(cases, at, inside)}")
    return 0


def _kinds(cases: Sequence[Case]) -> list[tuple[str, npt.NDArray[Any]]]:
    kinds = np.asarray([case.kind for case in cases])
    return [(kind, np.flatnonzero(kinds == kind)) for kind in WIDTHS if (kinds == kind).any()]


def _by_class(cases: Sequence[Case], at: npt.NDArray[Any], inside: Bools) -> str:
    classes = np.asarray([cases[p].training.stack for p in at])
    shares = ((name, inside[classes == name]) for name in sorted(set(classes)))
    return ", ".join(f"{name} {own.mean():.0%} of {len(own)}" for name, own in shares)


if __name__ == "__main__":
    raise SystemExit(main())
