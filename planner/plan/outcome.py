"""A plan as one row beside others: what is chosen, what it costs, when it is done; and what differs between two."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from planner.plan.front_scale import Scale, bounds_chance, chance_or_bound, cost_places
from planner.plan.report_launch import strategy_words
from planner.plan.words import OBJECTIVES, machines_of
from planner.records import record
from planner.render import claims
from planner.render.precision import dollars, dollars_enough, moment_known, rounded
from planner.render.words import cluster, option, place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.plan.model import Plan, PlanLine
    from planner.plan.relaxation import Change, Relaxation


MOST_PLACES = 3  # that a sentence names
_WHOLE_PERCENT, _WHOLE_HOURS = 0.01, 100.0  # from which on digits of what would be enough are rounded


@record(frozen=True)
class Outcome:
    """What a question comes to.

    Attributes:
        name: of the question.
        status: `planned` or `infeasible`.
        choice: machines, way to buy and regions; empty where there is none.
        total_usd, hours, finish, p_meet_deadline: of the plan; None where there is none.
        needs: where there is none, the smallest changes of one limit that bring one.
        prices_as_of: oldest price that it rests on.
        usd_ratio, hours_ratio: half of the interval of cost and hours over the figures themselves; 0: not known.
        unproven: how near the plan is proven to come to the best; empty where it is the best.
        bounds_chance: whether `p_meet_deadline` is a lower bound.
    """

    name: str
    status: Literal["planned", "infeasible"]
    choice: str
    total_usd: Decimal | None
    hours: float | None
    finish: str | None
    p_meet_deadline: float | None
    needs: tuple[str, ...] = ()
    prices_as_of: str = ""
    usd_ratio: float = 0.0
    hours_ratio: float = 0.0
    unproven: str = ""
    bounds_chance: bool = False

    @property
    def in_time(self) -> float | str:
        """The chance of meeting the deadline as a table shows it."""
        return chance_or_bound(self.p_meet_deadline, is_bound=self.bounds_chance)

    @property
    def usd_known(self) -> Decimal | None:
        """The cost rounded to what is known of it."""
        total = self.total_usd
        return None if total is None else rounded(total, cost_places(total, self.usd_ratio))

    @property
    def usd_words(self) -> str:
        """The cost in the digits that are known of it."""
        return (
            ""
            if self.total_usd is None
            else dollars(self.total_usd, cost_places(self.total_usd, self.usd_ratio))
        )

    @property
    def done_words(self) -> str:
        """The end as well as it is known."""
        if self.finish is None or self.hours is None:
            return ""
        return moment_known(
            self.finish, self.hours_ratio * self.hours, datetime.fromisoformat(self.finish).year
        )


def outcome_of(plan: Plan, name: str) -> Outcome:
    """The outcome of a plan."""
    if not plan.lines:
        needs = tuple(change_words(relaxation) for relaxation in plan.relaxations)
        return Outcome(name, "infeasible", "", None, None, None, None, needs)
    scale = Scale.of(plan)
    return Outcome(
        name, "planned", choice_words(plan), plan.total_usd, plan.hours, plan.finish_expected,
        None if plan.risk is None else plan.risk.p_meet_deadline,
        prices_as_of=min(line.price_as_of for line in plan.lines), usd_ratio=scale.usd_ratio,
        hours_ratio=scale.hours_ratio, unproven=_unproven(plan), bounds_chance=bounds_chance(plan),
    )  # fmt: skip


def _unproven(plan: Plan) -> str:
    if plan.proof is None or plan.proof.status == "optimal":
        return ""
    return claims.best_plan(
        OBJECTIVES.get(plan.objective, "Best"), plan.proof.status, plan.proof.gap_ratio
    ).lower()


def choice_words(plan: Plan) -> str:
    """What a plan uses, in a few words: `4 x p5.48xlarge spot in 3 zones, else on_demand, aws/us-west-2`."""
    first = plan.lines[0]
    if plan.launch is not None and plan.launch.strategy in ("spot", "spot_with_fallback"):
        return (
            f"{cluster(first.nodes, first.instance_type)} {strategy_words(plan)}, {regions_words(plan.lines)}"
        )
    if len(plan.lines) > 3:
        nodes = sum(line.nodes for line in plan.lines)
        return f"{nodes:,} nodes of {len(plan.lines)} offers, most {_line_words(max(plan.lines, key=_cost))}"
    return " + ".join(_line_words(line) for line in machines_of(plan))


def regions_words(lines: tuple[PlanLine, ...]) -> str:
    """Regions in the order of use, the provider named once: `aws/us-west-2 then us-east-1`."""
    return places_in_turn((line.provider, line.region) for line in lines)


def places_in_turn(pairs: Iterable[tuple[str, str]]) -> str:
    """Providers and regions in the order of use, as `regions_words` says those of lines."""
    regions = list(dict.fromkeys(pairs))
    places = [
        region if at and provider == regions[at - 1][0] and region else f"{provider}/{region}" if region else provider
        for at, (provider, region) in enumerate(regions)
    ]  # fmt: skip
    more = len(places) - MOST_PLACES
    remainder = f" and {more} more {'region' if more == 1 else 'regions'}" if more > 0 else ""
    return " then ".join(places[:MOST_PLACES]) + remainder


def _cost(line: PlanLine) -> Decimal:
    return line.cost_usd


def _line_words(line: PlanLine) -> str:
    bought = option(line.purchase_option, line.option_variant)
    return f"{cluster(line.nodes, line.instance_type)} {bought}, {place(line.provider, line.region, '')}"


def change_words(item: Relaxation) -> str:
    """A relaxation limit by limit: `deadline 1.0 h -> 22.3 h and budget $5 -> $12,400`."""
    if not item.changes:
        return f"{item.constraint} {item.current} -> {item.needed}"
    return " and ".join(f"{one.constraint} {one.current} -> {_enough(one)}" for one in item.changes)


def enough(item: Relaxation) -> str:
    """What the limits must become, in the digits that are known and rounded so that it is enough."""
    return " and ".join(_enough(change) for change in item.changes) or item.needed


def _enough(change: Change) -> str:
    number = change.enough
    if number is None:
        return change.needed
    if change.constraint == "confidence" and number >= _WHOLE_PERCENT:
        return f"{math.floor(100 * number + 1e-9) / 100:g}"
    if change.constraint == "budget":
        return dollars_enough(number)
    if change.constraint == "deadline" and number >= _WHOLE_HOURS:
        digit = 10 ** (math.floor(math.log10(number)) - 2)
        return f"{math.ceil(number / digit - 1e-9) * digit:,} h"
    return change.needed
