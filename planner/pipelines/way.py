"""One way to run a task of a pipeline."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from planner.market.pricing import total_usd
from planner.records import record

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.candidates.model import Candidates
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


@record(frozen=True, eq=False)
class Offered:
    """A candidate of a task: what choosing needs of it, the rest worked out where it is asked for.

    Attributes:
        number: of its task, to tell candidates apart.
        place: `provider/region`.
        hours: as those of its `way`.
        usd: expected cost as the engine has it, by 1e-9 of itself and 1e-8 the cost of the lines of its `way`.
        source, row: the candidate that it is; None for one sized elsewhere.
        given: the way, where it is known.
        own_from_hours: of the pipeline, for which start commitments that end are priced; None where it is on none.
    """

    task: str
    number: int
    place: str
    hours: float
    usd: float
    source: Source | None = None
    row: int = -1
    given: Way | None = None
    own_from_hours: float | None = None

    @cached_property
    def way(self) -> Way:
        """The candidate in full, with its cost lines."""
        if self.given is not None:
            return self.given
        assert self.source is not None
        return _described(self, self.source, self.source.made)

    @property
    def exact_usd(self) -> float:
        """The sum of its cost lines."""
        return float(self.way.cost_usd)


def _described(one: Offered, source: Source, candidates: Candidates) -> Way:
    bought, offer = source.bought(one.row), int(candidates.offer[one.row])
    offers = source.context.market.offer_set.offers
    names = ("provider", "region", "zone", "instance_type")
    return Way(
        task=one.task, number=one.number, **{name: str(offers[name][offer]) for name in names},
        purchase_option=bought.how,
        option_variant=bought.parts[0].option_variant if len(bought.parts) == 1 else "",
        nodes=int(candidates.nodes[one.row]), hours=one.hours, expected_hours=float(candidates.hours[one.row]),
        cost_usd=total_usd([line for part in bought.parts for line in part.lines]),
        price_as_of=min(str(offers["as_of"][part.row]) for part in candidates.parts(one.row)), bought=bought,
        source=source, row=one.row,
    )  # fmt: skip
