"""Which vendors' software has been measured on which kind of model: where nothing was, a prediction is a guess."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from planner.bundled import bundled_rows


class Evidence(NamedTuple):
    """Measured rows of one vendor and model family; `note` says what software the vendor's chips need."""

    vendor: str
    family: str
    measured_rows: int
    note: str


@cache
def load_evidence() -> dict[tuple[str, str], Evidence]:
    """Read evidence.csv by (vendor, family); what is absent was never measured."""
    rows = [
        Evidence(row["vendor"], row["family"], int(row["measured_rows"]), row["note"])
        for row in bundled_rows("evidence.csv")
    ]
    return {(row.vendor, row.family): row for row in rows}
