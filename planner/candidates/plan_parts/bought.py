"""How one candidate is bought, part by part with its cost lines: the same words and prices in every answer."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.candidates.model import IN_TURN
from planner.candidates.plan_parts.summary import bought_text, lines_by_part
from planner.plan.ids import CostId
from planner.records import record
from planner.render.precision import dollars_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.plan.model import CostLine

_LEAST_SHARE = Decimal("0.01")  # of the cost of an answer; less is not worth a line
_KNOWN = 0.5  # half-width, relative, of what slow runs pay
_TEXTS = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")


@record(frozen=True)
class BoughtPart:
    """One purchase: `nodes` instances of an offer, in use for `hours`, with its cost lines."""

    offer_id: str
    provider: str
    region: str
    zone: str
    instance_type: str
    purchase_option: str
    option_variant: str
    nodes: int
    hours: float
    lines: tuple[CostLine, ...]

    def to_dict(self) -> dict[str, Any]:
        """As answers print it."""
        lines = [
            {"kind": line.kind, "label": line.label, "amount_usd": line.amount_usd} for line in self.lines
        ]
        names = ("offer_id", *_TEXTS, "nodes", "hours")
        return {name: getattr(self, name) for name in names} | {"lines": lines}


@record(frozen=True)
class Bought:
    """A candidate as bought.

    Attributes:
        how: its purchase options in words, fall-back and zones included.
        in_turn: whether its parts are used one after another, else side by side.
    """

    how: str
    in_turn: bool
    parts: tuple[BoughtPart, ...]

    def outlasting(self, name: str, total_usd: Decimal) -> Iterator[str]:
        """What of its cost is paid after the end of commitments, in words, where that is a share of the answer's.

        Args:
            name: of the task or pool.
            total_usd: cost of the answer.
        """
        usd = sum(
            (line.amount_usd for part in self.parts for line in part.lines if line.id == CostId.AFTER_END),
            Decimal(0),
        )
        if usd >= total_usd * _LEAST_SHARE and usd:
            words = "of its cost on average is for runs that outlast its commitment"
            yield f"{name}: {dollars_known(usd, float(usd) * _KNOWN)} {words}"


@record(frozen=True, eq=False)
class Source:
    """Candidates with the run they are of."""

    context: Context
    made: Candidates

    def bought(self, at: int) -> Bought:
        """Describe how candidate `at` is bought."""
        context, made = self.context, self.made
        offers = context.market.offer_set.offers
        parts = tuple(
            BoughtPart(
                offer_id=context.market.offer_set.offer_id(part.row),
                **{name: str(offers[name][part.row]) for name in _TEXTS},
                nodes=part.nodes, hours=part.paid_hours, lines=tuple(lines),
            )
            for part, lines in zip(made.parts(at), lines_by_part(made, at), strict=True)
        )  # fmt: skip
        return Bought(bought_text(made, at), int(made.kind[at]) == IN_TURN, parts)
