"""The model's constants: physical figures with bounds and provenance, read from a data file.

`planner/data/performance/*.csv` have one row per constant (name, value, unit, lower, upper, provenance): `transformer`
(with links, network and data loading), `vision` (CNN, ViT, diffusion) and `memory`.
`benchmarks/fit_performance.py` rewrites the fitted ones. Nothing is read at import.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from planner.bundled import bundled_rows
from planner.records import record

DIRECTORY = Path(__file__).resolve().parent.parent / "data" / "performance"


@record(frozen=True)
class Constants:
    """Named constants; optional families of constants (multipliers, per generation) fall back to a default."""

    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def get(self, name: str, default: float) -> float:
        """Return constant `name`, or `default` when the file has none."""
        return self.values.get(name, default)

    def of_stack(self, name: str, stack: str) -> float:
        """Return constant `name` of a software class, or that of the class it resembles where it has none."""
        value = self.values.get(f"{name}.{stack}")
        return self.values[f"{name}.{RESEMBLES[stack]}"] if value is None else value

    def replace(self, changes: Mapping[str, float]) -> Constants:
        """Return a copy with `changes` applied (fitting and sensitivity)."""
        return Constants({**self.values, **changes})


@lru_cache(maxsize=4)
def load_constants(path: Path = DIRECTORY) -> Constants:
    """Read a constants file, or all of a folder, once.

    Raises:
        ValueError: when a row has no value or two rows have the same name.
    """
    values: dict[str, float] = {}
    for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
        _read(file, values)
    return Constants(values)


def _read(path: Path, values: dict[str, float]) -> None:
    """Add the constants of one file to `values`."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)  # a third of the time of a reader of dicts
        head = next(rows)
        name_at, value_at = head.index("name"), head.index("value")
        for number, row in enumerate(filter(None, rows), start=2):
            name = row[name_at]
            if name in values:
                raise ValueError(f"{path}:{number}: constant {name!r} is given twice")
            try:
                values[name] = float(row[value_at])
            except ValueError as error:
                raise ValueError(f"{path}:{number}: constant {name!r} has no number") from error


# The class whose constants stand in where a class has none: hand-fused kernels without a graph compiler are nearest to
# compiled ones, a young framework to one that launches every operator.
RESEMBLES = {"fused": "compiled", "tinygrad": "eager"}


@cache
def load_software() -> dict[str, str]:
    """Read software.csv: the software of each vendor; a vendor that is absent trains with none that is known."""
    return {row["vendor"]: row["software"] for row in bundled_rows("software.csv")}
