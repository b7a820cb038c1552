"""What engines without CUDA graphs take longer: `python -m benchmarks.eager_mode`.

`decode.eager_layer_s` is the geometric mean over publishers of the time of launches a layer that fits the rows of each
(those of eager mode in `data/later_inference.csv`, and `data/eager_pairs.csv`), so that no host or engine of one
publisher decides it. `decode.eager_spread` is what holds 80 % of the rows, with publishers weighed alike, beyond the
interval of the newest vLLM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.fit_servers import width
from benchmarks.other_inference import LATER, Asked, read
from benchmarks.rows import read_csv
from planner.performance.constants import load_constants
from planner.performance.inference.engines import find_engine

PAIRS = Path(__file__).resolve().parent / "data" / "eager_pairs.csv"
LAUNCHES = "decode.eager_layer_s"


@dataclass(frozen=True, eq=False)
class Eager:
    """A published row of eager mode.

    Attributes:
        asked: as a user asks for it; `publisher`: whose row it is.
        rate: measured output tokens/s; NaN where only the slowdown is published.
        slowdown: over the same with CUDA graphs; NaN where it is not published.
    """

    asked: Asked
    publisher: str
    rate: float
    slowdown: float

    def predict(self, launches: float) -> float:
        """Output tokens/s where launches of a layer take so many s; with 0, as with CUDA graphs."""
        return self.asked.predict(load_constants().replace({LAUNCHES: launches}))

    def gap(self, launches: float) -> float:
        """Log of the predicted over the measured time of a token."""
        measured = self.rate if math.isfinite(self.rate) else self.predict(0.0) / self.slowdown
        return math.log(measured / self.predict(launches))


def load() -> list[Eager]:
    """All rows of eager mode."""
    series = [row for row in read(LATER) if not row.engine.graphs]
    rows = [Eager(row, row.publisher, row.measured, math.nan) for row in series]
    for raw, row in zip(read_csv(PAIRS), read(PAIRS), strict=True):
        publisher = raw["source"].split(" ")[0]
        rows.append(Eager(row, publisher, row.measured, float(raw["slowdown"])))
    return rows


def launches_of(rows: Sequence[Eager]) -> float:
    """Time of the launches of a layer with the least mean square of log errors, s."""

    def error(log: float) -> float:
        return float(np.mean([row.gap(math.exp(log)) ** 2 for row in rows]))

    bounds = (math.log(1e-5), math.log(5e-3))
    return math.exp(minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-3}).x)


def fit(rows: Sequence[Eager]) -> tuple[dict[str, float], float, float]:
    """Launches of a layer by publisher in s, their geometric mean, and the spread beyond the engine's own interval."""
    names = sorted({row.publisher for row in rows})
    each = {name: launches_of([row for row in rows if row.publisher == name]) for name in names}
    mean = math.exp(float(np.mean(np.log(list(each.values())))))
    gaps = np.asarray([row.gap(mean) for row in rows])
    whole = width(gaps, np.asarray([row.publisher for row in rows]))
    own = find_engine("vllm", None).spread
    return each, mean, math.sqrt(max(whole**2 - own**2, 0.0))


def main() -> int:
    """Print the figures and every pair."""
    rows = load()
    each, mean, spread = fit(rows)
    for name, found in each.items():
        print(f"{name:32} {1e3 * found:.3f} ms a layer")
    print(f"{LAUNCHES} {mean:.3g} s, decode.eager_spread {spread:.2g}")
    known = load_constants()[LAUNCHES]
    for row in rows:
        if math.isfinite(row.slowdown):
            slower = row.predict(0.0) / row.predict(known)
            print(f"{row.asked.key:32} {row.slowdown:.2f} times slower, predicted {slower:.2f};"
                  f" token {1e3 / row.rate:.1f} ms, predicted {1e3 / row.predict(known):.1f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
