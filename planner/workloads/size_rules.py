"""Published rules of thumb on sizing, each with its source, evaluated for one run (`planner/data/sizing_rules.csv`)."""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

RULES_FILE = Path(__file__).parents[1] / "data" / "sizing_rules.csv"
VERDICTS = ("holds", "limited", "contradicted", "unsupported")


@record(frozen=True)
class Rule:
    """One rule of thumb.

    Attributes:
        quantity: what it sizes, empty where it gives no figure of a run; low, high: the figure, times `basis`.
        basis: `fixed`, or the figure of the run that it is a multiple of.
        from_data_gb, to_data_gb: volumes that it is for; None: any.
        verdict: one of `VERDICTS`; against: what is known against it; instead: what to use.
    """

    rule_id: str
    rule: str
    quantity: str
    basis: str
    low: float | None
    high: float | None
    from_data_gb: float | None
    to_data_gb: float | None
    verdict: str
    against: str
    instead: str
    source: str
    as_of: str

    def applies(self, data_gb: float) -> bool:
        """Whether it sizes a run with this volume of data."""
        if not self.quantity:
            return False
        return (
            (self.from_data_gb or 0.0) <= data_gb < (math.inf if self.to_data_gb is None else self.to_data_gb)
        )

    def value(self, figures: Mapping[str, float]) -> tuple[float, float | None]:
        """What it asks for: lower and upper end (None: at least the lower); `figures` has the bases."""
        scale = 1.0 if self.basis == "fixed" else figures[self.basis]
        assert self.low is not None
        return self.low * scale, None if self.high is None else self.high * scale


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules, in the order of the file."""
    with RULES_FILE.open(encoding="utf-8", newline="") as stream:
        return tuple(_rule(row) for row in csv.DictReader(stream))


def _rule(row: dict[str, str]) -> Rule:
    numbers = {
        key: float(row[key]) if row[key] else None for key in ("low", "high", "from_data_gb", "to_data_gb")
    }
    return Rule(
        row["rule_id"], row["rule"], row["quantity"], row["basis"], numbers["low"], numbers["high"],
        numbers["from_data_gb"], numbers["to_data_gb"], row["verdict"], row["against"], row["instead"], row["source"],
        row["as_of"],
    )  # fmt: skip
