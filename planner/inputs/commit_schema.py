"""The commitment question, version 1: what is used, what it may become, what is owned, what may be bought.

Attribute names are the YAML keys. Prices come from the catalog; `prices` of a pool overrides them or stands in.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.inputs.fields import (
    MAX_INT,
    Bool,
    Confidence,
    Day,
    NonNegativeFloat,
    PositiveFloat,
    Ratio,
    Share,
    Text,
)
from planner.inputs.purchase_options import COMMIT_OPTIONS, CommitOption
from planner.inputs.section import Section

PriceName = Literal["on_demand", "spot", CommitOption]


class Pool(Section):
    """One kind of capacity: machines of one type in one region, or a resource such as vCPUs of a family."""

    name: Text = Field(description="Name in the demand file and on the plan.")
    provider: Text = Field(description="Provider id.")
    region: Text = Field(description="Region.")
    instance_type: Text | None = Field(None, description="Type in the catalog; absent: prices must be given.")
    unit: Text = Field("instance", description="What is counted: instance, vCPU, GiB, GPU.")
    usage: dict[Text, Text] = Field(
        default_factory=dict, description="Columns and values that mark this pool's rows in a FOCUS file."
    )
    prices: dict[PriceName, NonNegativeFloat] = Field(
        default_factory=dict, description="USD per unit-hour; takes precedence over the catalog's."
    )
    upfront_usd: dict[CommitOption, NonNegativeFloat] = Field(
        default_factory=dict, description="Upfront payment per unit, in addition to the hourly price."
    )
    spot_share: Share = Field(0.0, description="Share of the demand that may run on spot machines.")


class Planned(Section):
    """Planned use, in addition to or instead of the history."""

    pool: Text = Field(description="Pool.")
    instances: PositiveFloat = Field(description="Units in use.")
    start: Day = Field(description="First day.")
    end: Day = Field(description="Last day.")
    probability: Ratio = Field(1.0, description="Share of the scenarios in which it happens.")


class Demand(Section):
    """Where demand comes from: a history (CSV or FOCUS CSV), plans, or both."""

    file: Text | None = Field(None, description="CSV with hour,pool,instances; or a FOCUS CSV; .gz is read.")
    format: Literal["auto", "demand", "focus"] = Field("auto", description="Format of the file.")
    planned: tuple[Planned, ...] = Field((), description="Planned use.")


class Growth(Section):
    """Yearly factor on the history, drawn per scenario from a triangular distribution."""

    low: PositiveFloat = Field(1.0, description="Lowest factor per year.")
    likely: PositiveFloat = Field(1.0, description="Most likely factor per year.")
    high: PositiveFloat = Field(1.0, description="Largest factor per year.")


class Scenarios(Section):
    """How futures are made of the history, or the file that gives them."""

    file: Text | None = Field(None, description="CSV with scenario,hour,pool,instances[,probability].")
    count: Annotated[int, Field(strict=True, ge=1, le=1000)] = Field(50, description="Futures to draw.")
    seed: Annotated[int, Field(strict=True, ge=0, le=MAX_INT)] = Field(1, description="Of the random draws.")
    block_hours: Literal[24, 168] = Field(
        168, description="Days or weeks are drawn whole, all pools together."
    )
    hours_per_year: Annotated[int, Field(strict=True, ge=24, le=8760)] = Field(
        1000, description="Hours evaluated per scenario and year; 8760: all."
    )
    growth: Growth = Field(default_factory=lambda: Growth(), description="Growth.")


class Owned(Section):
    """A commitment that is already paid for."""

    purchase_option: CommitOption = Field(description="How it was bought.")
    provider: Text | None = Field(None, description="Of a savings plan.")
    pool: Text | None = Field(None, description="Of a reservation.")
    instances: PositiveFloat | None = Field(None, description="Units reserved.")
    usd_per_hour: PositiveFloat | None = Field(None, description="Committed spend of a savings plan.")
    expires: Day = Field(description="Last day it covers.")


class Options(Section):
    """Possible purchases."""

    allow: tuple[CommitOption, ...] = Field(
        COMMIT_OPTIONS, description="Options to consider, if they have prices."
    )
    renewals: Bool = Field(
        True,
        description="Plan later purchases too: 1-year terms in horizons beyond a year, and what replaces an owned "
        "commitment from its end on.",
    )
    upfront_limit_usd: PositiveFloat | None = Field(None, description="Maximum upfront payment at the start.")
    max_instances: dict[Text, PositiveFloat] = Field(
        default_factory=dict,
        description="Maximum units bought for a pool that are in force at a time; what is owned today is not counted.",
    )
    max_usd_per_hour: PositiveFloat | None = Field(
        None,
        description="Maximum spend per hour on the plans in dollars that are bought and in force at a time; what is "
        "owned today is not counted.",
    )


class Risk(Section):
    """What is minimised: (1 - weight) x expected cost + weight x mean of the worst outcomes.

    `loss_price` adds the chance of a loss, times what buying nothing is expected to cost.
    """

    weight: Share = Field(0.0, description="0: expected cost; 1: only the worst outcomes.")
    level: Confidence = Field(0.9, description="0.9: the worst tenth.")
    loss_price: NonNegativeFloat = Field(
        0.0, description="What the chance of a loss counts: 2: a point of it must save 2 % of the cost of buying "
        "nothing; 0: nothing."
    )  # fmt: skip
    loss_limit: Share = Field(0.02, description="A loss: this much more than the cost of buying nothing.")


class CommitQuestion(Section):
    """A commitment file, version 1."""

    version: Literal[1] = Field(description="Version of this format.")
    name: Text = Field(description="Shown on the plan.")
    start: Day = Field(description="First day of new commitments.")
    horizon_years: Annotated[int, Field(strict=True, ge=1, le=5)] | None = Field(
        None, description="Years looked ahead; default: the longest term that may be bought."
    )
    tail_value: Share | None = Field(
        None, description="Share of the obligations beyond the horizon that will still be useful; required if a term "
        "is longer than the horizon."
    )  # fmt: skip
    pools: Annotated[tuple[Pool, ...], Field(min_length=1, max_length=64)] = Field(
        description="Kinds of capacity."
    )
    demand: Demand = Field(default_factory=lambda: Demand(), description="History and plans.")
    scenarios: Scenarios = Field(default_factory=lambda: Scenarios(), description="Futures.")
    commitments: tuple[Owned, ...] = Field((), description="Commitments owned today.")
    options: Options = Field(default_factory=lambda: Options(), description="Possible purchases.")
    risk: Risk = Field(default_factory=lambda: Risk(), description="Attitude to risk.")
