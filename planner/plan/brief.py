"""A candidate of a plan in brief: its baseline, an alternative, and what they stand for."""

from __future__ import annotations

from decimal import Decimal

from planner.records import record


@record(frozen=True)
class SummaryPart:
    """One offer of a candidate in brief: all its nodes, or those bought or used this way."""

    nodes: int
    purchase_option: str
    option_variant: str
    region: str
    zone: str


@record(frozen=True)
class Summary:
    """One candidate in brief: the baseline, an alternative, or the best of another provider.

    `purchase_option` is a label where there are several `parts`: `4 reserved_1y (already_owned) + 2 on_demand`.
    `brings`, of an alternative: in what nothing above it is like it (accelerator, provider, region, size, way).
    `marginal_cost_usd` and `full_cost_usd`: the cost if own machines count without and with their purchase.
    `energy_kwh` and `operational_kgco2e`: expected, of the electricity; None where power or grid is unknown.
    """

    label: str
    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    accelerators: float
    purchase_option: str
    option_variant: str
    nodes: int
    hours: float
    cost_usd: Decimal
    delta_cost_usd: Decimal
    delta_hours: float
    price_as_of: str
    flags: tuple[str, ...] = ()
    parts: tuple[SummaryPart, ...] = ()
    brings: tuple[str, ...] = ()
    marginal_cost_usd: Decimal | None = None
    full_cost_usd: Decimal | None = None
    energy_kwh: float | None = None
    operational_kgco2e: float | None = None


@record(frozen=True)
class Folded:
    """Feasible decisions that a listed one stands for; `rank` 1 is the plan, 2 the first alternative.

    `differs_in`: the one thing that they differ in from it (provider, region, size or way); `several`: more than one;
    `machine`: none, only zone, machine or layout. `best`: the best of those that differ from the plan in one thing.
    """

    rank: int
    differs_in: str
    count: int
    best: Summary | None


@record(frozen=True)
class Choice:
    """A decision that a buyer weighs, and for what it is the best.

    `kinds`: `cheapest`, `fastest` or `least_carbon` (the plan), `sooner` or `cheaper` (worth its price: a percent
    for a percent), `reserved`, `firm`, `on_demand`, `one_offer` (a fleet's), `owned`, `provider` (another than the
    plan's), `known_prices`; `limits_aside` beside `on_demand` says that a fleet's baseline breaks a limit.
    `best`: None for the plan itself.
    """

    kinds: tuple[str, ...]
    best: Summary | None
    finish_expected: str
    p_meet_deadline: float | None
