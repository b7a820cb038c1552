"""The question whether to buy or to rent, version 1: a machine's parts, what it costs to run, and the cloud beside it.

Attribute names are the YAML keys. An estimate is a number, or `low`, `value` and `high` with their source; what a file
leaves out is taken from `planner/data/tco_defaults.csv` and listed as assumed.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from planner.inputs.fields import MAX_FLOAT, Bool, Day, NonNegativeFloat, PositiveFloat, PositiveInt, Text
from planner.inputs.section import Section
from planner.units import parse_money

Words = Annotated[str, Field(min_length=1, max_length=1000)]
CloudOption = Literal[
    "on_demand", "spot", "reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y", "cud_1y", "cud_3y",
    "capacity_block",
]  # fmt: skip
PartKind = Literal[
    "server",
    "board",
    "accelerator",
    "cpu",
    "memory",
    "nvme",
    "disk",
    "power_supply",
    "network",
    "case",
    "other",
]
AnyNumber = Annotated[float, Field(strict=True, ge=-MAX_FLOAT, le=MAX_FLOAT, allow_inf_nan=False)]


class Estimate(Section):
    """An uncertain figure: its value, its range and its source."""

    low: AnyNumber | None = Field(None, description="Low end; default: the value.")
    value: AnyNumber | None = Field(None, description="Central value; default: the middle of low and high.")
    high: AnyNumber | None = Field(None, description="High end; default: the value.")
    source: Words | None = Field(None, description="Source of the figures.")
    as_of: Text | None = Field(None, description="Their date.")
    note: Words | None = Field(None, description="Note on the figures.")


def _estimate(value: Any) -> Any:
    """A bare number is an estimate without a range; of a text, what to write instead is said."""
    if isinstance(value, str):
        text = f"must be a number, or a range like {{low: 1, value: 2, high: 3}}{_as_number(value)}"
        raise PydanticCustomError("quantity", "{text}", {"text": text})
    return {"value": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_number(text: str) -> str:
    """How an amount of money or a percentage is written here; other texts as they are."""
    try:
        number = float(text.strip()[:-1]) / 100 if text.strip().endswith("%") else float(parse_money(text))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        return f", got {text!r}"
    return f": write {number:.10g} instead of {text!r}"


Amount = Annotated[Estimate, BeforeValidator(_estimate, json_schema_input_type=AnyNumber | Estimate)]


class Part(Section):
    """One line of a bill of materials; figures are per piece."""

    name: Text = Field(description="What it is.")
    kind: PartKind = Field("other", description="Kind of part.")
    count: PositiveInt = Field(1, description="Pieces in one machine.")
    usd: Amount = Field(description="US dollars per piece.")
    market: tuple[Text, ...] = Field(
        (), description="Items of planner/data/hardware_prices.csv whose prices are shown for comparison."
    )
    watts: NonNegativeFloat | None = Field(
        None, description="Maximum power drawn; for a power supply: provided."
    )
    spare: Bool = Field(False, description="Of a power supply: one piece may fail, so it does not count.")
    pcie_lanes: NonNegativeFloat | None = Field(None, description="Lanes used; of a CPU or board: offered.")
    memory_gb: PositiveFloat | None = Field(None, description="Of memory and accelerators, GB.")
    memory_type: Literal["ddr4", "ddr5"] | None = Field(None, description="Of memory; of a CPU: taken.")
    capacity_tb: PositiveFloat | None = Field(None, description="Of drives, TB.")
    read_gb_per_s: PositiveFloat | None = Field(None, description="Of drives, sequential reads, GB/s.")
    cores: PositiveInt | None = Field(None, description="Of a CPU.")
    note: Words | None = Field(None, description="Shown with the part.")


class Machine(Section):
    """The machine to buy."""

    name: Text | None = Field(None, description="Name of the machine; default: that of the file.")
    accelerator: Text = Field(description="Canonical accelerator id, as in `planner catalog list`.")
    accelerators: PositiveInt = Field(description="Per machine.")
    machines: PositiveInt = Field(1, description="How many are bought.")
    parts: Annotated[tuple[Part, ...], Field(min_length=1, max_length=200)] = Field(
        description="Bill of materials."
    )
    printed_usd: Amount | None = Field(None, description="The sum that the list itself prints, to test it.")
    power_kw: Amount | None = Field(
        None, description="Drawn at full load by one machine; default: the sum of the parts' watts."
    )
    accelerator_usd: Amount | None = Field(
        None, description="Price of one replaced accelerator; default: the part of that kind, else its share."
    )
    intra_node: Literal["nvswitch", "nvlink", "pcie", "single", "unknown"] | None = Field(
        None, description="Link between the accelerators; needed to hand the machine to `planner optimize`."
    )
    internode_gbps: NonNegativeFloat | None = Field(None, description="Network of one machine, Gb/s.")
    rdma: Text | None = Field(None, description="efa, infiniband or roce.")


class Site(Section):
    """Location of the machine: your site, or a colocation."""

    usd_per_kwh: Amount | None = Field(None, description="Electricity.")
    pue: Amount | None = Field(None, description="Power of the site over power of the machines, >= 1.")
    hosting_usd_per_month: Amount | None = Field(
        None, description="Rooms, network, insurance of one machine."
    )
    usd_per_kw_month: Amount | None = Field(None, description="Rent per kW at full load; power is apart.")
    staff_fte: Amount | None = Field(None, description="Full-time people per machine.")
    staff_usd_per_year: Amount | None = Field(None, description="Cost of one full-time person.")
    rack_kw: PositiveFloat | None = Field(None, description="Power of one rack, to test what fits.")


class Upkeep(Section):
    """What keeps the machine running."""

    maintenance_ratio: Amount | None = Field(None, description="Support contract, share of price per year.")
    failures_per_year: Amount | None = Field(None, description="Accelerators replaced, share per year.")
    repair_days: Amount | None = Field(None, description="Days a machine is down after such a failure.")
    spares_ratio: Amount | None = Field(None, description="Spare accelerators, share of those installed.")
    warranty_years: NonNegativeFloat = Field(0.0, description="Replaced at no charge so long.")


class Life(Section):
    """How long the machine is used and what it is worth then."""

    years: Amount | None = Field(None, description="Years of use.")
    residual_ratio: Amount | None = Field(None, description="Resale value over price after the years below.")
    residual_after_years: PositiveFloat | None = Field(
        None, description="When that value was seen; default: the central years of use."
    )


class Cloud(Section):
    """Offers to rent instead: the cheapest fitting offers of each option."""

    accelerator: Text | None = Field(None, description="Id or glob; default: the machine's accelerator.")
    speed_ratio: Amount | None = Field(
        None, description="Work of one rented accelerator over one owned; default: ratio of their BF16 peaks."
    )
    workload: Text | None = Field(
        None, description="A workload file: its plans by option give the price of a useful hour."
    )
    providers: tuple[Text, ...] = Field((), description="Provider ids; default: all.")
    regions: tuple[Text, ...] = Field((), description="Globs over `provider/region`; default: all.")
    instance_types: tuple[Text, ...] = Field((), description="Globs; default: all.")
    options: Annotated[tuple[CloudOption, ...], Field(min_length=1)] = Field(
        (
            "on_demand", "spot", "reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y", "cud_1y",
            "cud_3y", "capacity_block",
        ),
        description="Options to rent, if they have prices.",
    )  # fmt: skip
    lost_ratio: Amount | None = Field(None, description="Share of spot hours lost to interruptions.")
    price_change_ratio: Amount | None = Field(
        None, description="Yearly change of cloud prices; -0.1: they fall by 10 % a year."
    )


class Tco(Section):
    """A file of `planner tco`, version 1."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["tco"] = Field("tco", description="Kind of the file.")
    name: Text = Field(description="Shown on the answer.")
    description: Words | None = Field(None, description="For readers.")
    start: Day | None = Field(None, description="Day of purchase; default: the day of the question.")
    machine: Machine = Field(description="The machine to buy.")
    own_site: Site | None = Field(None, description="Running it on your site.")
    colocation: Site | None = Field(None, description="Running it in rented rooms.")
    upkeep: Upkeep = Field(default_factory=lambda: Upkeep(), description="Repairs and support.")
    life: Life = Field(default_factory=lambda: Life(), description="Use and resale.")
    utilisation_ratio: Amount | None = Field(None, description="Share of all hours with useful work.")
    idle_ratio: Amount | None = Field(None, description="Power of an idle machine over full load.")
    capital_ratio: Amount | None = Field(None, description="Cost of capital per year.")
    cloud: Cloud = Field(default_factory=lambda: Cloud(), description="Offers to rent instead.")
