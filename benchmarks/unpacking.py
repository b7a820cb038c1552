"""How much slower MXFP4 weights are on chips without arithmetic in 4 bits: `python -m benchmarks.unpacking`.

`mxfp4.unpack` and `mxfp4.unpack.before_2026` divide the shares of peak and bandwidth there. Each is the factor with the
least squares of the publishers' mean log errors, publishers alike, and of its own log: rates of other formats say that
no factor is the usual case, so that one publisher moves it by half of what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.other_inference import FILE, LATER, Asked, read
from planner.performance.constants import load_constants
from planner.performance.inference.chips import SETTLED
from planner.performance.inference.engines import find_engine

NOW, BEFORE = "mxfp4.unpack", "mxfp4.unpack.before_2026"


def rows_of(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Rows in MXFP4 that a constant moves, by its name."""
    found: dict[str, list[Asked]] = {NOW: [], BEFORE: []}
    for row in asked:
        if row.engine.precision == "mxfp4" and row.unpacks:
            year = row.engine.year or find_engine(row.engine.name, None).year
            found[BEFORE if year < SETTLED else NOW].append(row)
    return found


def factor(name: str, rows: Sequence[Asked]) -> float:
    """The constant that fits these rows; 1 without any."""
    publishers = sorted({row.publisher for row in rows})

    def error(log: float) -> float:
        constants = load_constants().replace({name: math.exp(log)})
        gaps = {publisher: [] for publisher in publishers}  # type: dict[str, list[float]]
        for row in rows:
            gaps[row.publisher].append(math.log(row.predict(constants) / row.measured))
        return float(sum(np.mean(off) ** 2 for off in gaps.values())) + log**2

    return math.exp(minimize_scalar(error, bounds=(-0.7, 1.4), method="bounded", options={"xatol": 1e-2}).x)


def main() -> int:
    """Print both constants, and what they would be without each publisher."""
    for name, rows in rows_of([row for path in (FILE, LATER) for row in read(path)]).items():
        print(f"{name} {factor(name, rows):.3g} of {len(rows)} rows")
        for publisher in sorted({row.publisher for row in rows}):
            others = [row for row in rows if row.publisher != publisher]
            print(f"  without {publisher:20} {factor(name, others):.3g}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
