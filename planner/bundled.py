"""The tables that come with the package: CSV files in `planner/data`, each row with its source and date."""

from __future__ import annotations

import csv
from pathlib import Path

DATA = Path(__file__).parent / "data"


def bundled_rows(name: str) -> list[dict[str, str]]:
    """Rows of `planner/data/NAME` as texts by column, in the order of the file; whoever asks often keeps the answer."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
