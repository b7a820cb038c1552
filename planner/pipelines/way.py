"""One way to run a task of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.records import record

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.candidates.plan_parts.bought import Bought, Source


@record(frozen=True, eq=False)
class Way:
    """One way to run a task.

    Attributes:
        number: of its task, to tell ways apart.
        purchase_option: how it is bought, in words: fall-back and zones included.
        hours: planned: kept with the workload's deadline_confidence; expected_hours: on average.
        cost_usd: expected cost, transfers between tasks apart.
        price_as_of: date of the oldest price; empty for a candidate sized elsewhere.
        bought: its parts with their cost lines; None for a candidate sized elsewhere.
        source, row: the candidate that it is; None for one sized elsewhere.
    """

    task: str
    number: int
    provider: str
    region: str
    zone: str
    instance_type: str
    purchase_option: str
    option_variant: str
    nodes: int
    hours: float
    expected_hours: float
    cost_usd: Decimal
    price_as_of: str
    bought: Bought | None = None
    source: Source | None = None
    row: int = -1

    @property
    def place(self) -> str:
        """`provider/region`."""
        return f"{self.provider}/{self.region}"

    def __str__(self) -> str:
        return f"{self.task}.{self.number}"
