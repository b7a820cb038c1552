"""Which vendors' software has been measured on which kind of model: where nothing was, a prediction is a guess."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

_DATA = Path(__file__).parents[1] / "data" / "evidence.csv"


class Evidence(NamedTuple):
    """Measured rows of one vendor and model family; `note` says what software the vendor's chips need."""

    vendor: str
    family: str
    measured_rows: int
    note: str


@cache
def load_evidence() -> dict[tuple[str, str], Evidence]:
    """Read evidence.csv by (vendor, family); what is absent was never measured."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        rows = [
            Evidence(row["vendor"], row["family"], int(row["measured_rows"]), row["note"])
            for row in csv.DictReader(file)
        ]
    return {(row.vendor, row.family): row for row in rows}
