"""Published rules of thumb on sizing, each with its source, evaluated for one run (`planner/data/sizing_rules.csv`)."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

PUBLISHED = "published"  # the basis of rules on what is measured or listed, whatever the run
VERDICTS = ("holds", "limited", "contradicted", "unsupported")


@record(frozen=True)
class Rule:
    """One rule of thumb.

    Attributes:
        quantity: what it sizes, or the name of a fact; empty where nothing is known of it.
        low, high: the figure, times `basis`.
        basis: `fixed`, the figure of the run that it is a multiple of, or `published`: it is on a fact.
        from_data_gb, to_data_gb: volumes that it is for; None: any.
        goal: beginning of the goals that it is for; empty: all.
        reason: why it says nothing of a run.
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
    goal: str
    verdict: str
    reason: str
    against: str
    instead: str
    source: str
    as_of: str

    @property
    def is_published(self) -> bool:
        """Whether it is on what is measured or listed, whatever the run."""
        return self.basis == PUBLISHED

    def applies(self, data_gb: float, goal: str = "") -> bool:
        """Whether it sizes a run with this volume of data and goal."""
        if not self.quantity or self.is_published or not goal.startswith(self.goal):
            return False
        return (
            (self.from_data_gb or 0.0) <= data_gb < (math.inf if self.to_data_gb is None else self.to_data_gb)
        )

    def value(self, figures: Mapping[str, float]) -> tuple[float, float | None]:
        """What it asks for: lower and upper end (None: at least the lower); `figures` has the bases."""
        scale = 1.0 if self.basis in ("fixed", PUBLISHED) else figures[self.basis]
        assert self.low is not None
        return self.low * scale, None if self.high is None else self.high * scale


@record(frozen=True)
class Fact:
    """What is measured, listed or computed; `arithmetic` is the sum behind it, empty where it was read."""

    name: str
    words: str
    value: float
    unit: str
    arithmetic: str
    source: str
    as_of: str


@cache
def load_facts() -> dict[str, Fact]:
    """All facts by name."""
    rows = [Fact(**{**row, "value": float(row["value"])}) for row in bundled_rows("sizing_facts.csv")]  # type: ignore[arg-type]
    return {fact.name: fact for fact in rows}


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules, in the order of the file."""
    return tuple(_rule(row) for row in bundled_rows("sizing_rules.csv"))


def _rule(row: dict[str, str]) -> Rule:
    numbers = {
        key: float(row[key]) if row[key] else None for key in ("low", "high", "from_data_gb", "to_data_gb")
    }
    return Rule(
        row["rule_id"], row["rule"], row["quantity"], row["basis"], numbers["low"], numbers["high"],
        numbers["from_data_gb"], numbers["to_data_gb"],
        row["goal"], row["verdict"], row["reason"], row["against"], row["instead"], row["source"],
        row["as_of"],
    )  # fmt: skip
