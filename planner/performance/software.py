"""Software: classes of training software, and what a vendor's accelerators run."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

# The class whose constants stand in where a class has none: hand-fused kernels without a graph compiler are nearest to
# compiled ones, a young framework to one that launches every operator.
RESEMBLES = {"fused": "compiled", "tinygrad": "eager"}
_DATA = Path(__file__).parents[1] / "data" / "software.csv"


@cache
def load_software() -> dict[str, str]:
    """Read software.csv: the software of each vendor; a vendor that is absent trains with none that is known."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        return {row["vendor"]: row["software"] for row in csv.DictReader(file)}
