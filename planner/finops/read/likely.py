"""What a file that is no bill the reader knows most likely is, from `planner/finops/data/known_exports.csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from planner.finops.read.columns import plain

_DATA = Path(__file__).resolve().parents[1] / "data"


@lru_cache(maxsize=1)
def _known() -> tuple[tuple[frozenset[str], str, str], ...]:
    with (_DATA / "known_exports.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            (frozenset(plain(name) for name in row["columns"].split()), row["product"], row["remedy"])
            for row in csv.DictReader(file)
        )


def likely_product(header: Iterable[str]) -> tuple[str, str] | None:
    """Return the product whose columns a header has, and what to do instead; None where none is known."""
    names = {plain(name) for name in header}
    return next(((product, remedy) for marks, product, remedy in _known() if marks <= names), None)
