"""What software a vendor's accelerators run: code written for one needs a port to another."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

_DATA = Path(__file__).parents[1] / "data" / "software.csv"


@cache
def load_software() -> dict[str, str]:
    """Read software.csv: the software of each vendor; a vendor that is absent trains with none that is known."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        return {row["vendor"]: row["software"] for row in csv.DictReader(file)}
