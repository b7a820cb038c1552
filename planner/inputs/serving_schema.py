"""The serving fleet, version 1: requests in size classes and the machines that may answer them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.inputs.fields import Money, NonNegativeFloat, PositiveFloat, PositiveInt, PurchaseOption, Text
from planner.inputs.section import Section


class Bucket(Section):
    """Requests of one size class."""

    name: Text = Field(description="Name, unique.")
    requests_per_s: PositiveFloat = Field(description="Rate to be served.")


class Machine(Section):
    """A kind of machine. Its price is given, or the catalog's for the offer named."""

    name: Text = Field(description="Name, unique.")
    provider: Text | None = Field(None, description="Provider of the catalog's offer.")
    region: Text | None = Field(None, description="Region; absent: the cheapest.")
    instance_type: Text | None = Field(None, description="Instance type.")
    purchase_option: PurchaseOption = Field("on_demand", description="How it is bought.")
    usd_per_hour: Money | None = Field(None, description="Price of one machine, instead of the catalog's.")
    max_nodes: PositiveInt | None = Field(None, description="Most machines (a quota, say).")
    requests_per_s: dict[str, NonNegativeFloat] = Field(
        {},
        description="Per bucket: what one machine serves of it alone within your latency; 0 or absent: cannot.",
    )


class Serving(Section):
    """Requests and machines."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["serving"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Remark.")
    headroom_ratio: NonNegativeFloat = Field(0.0, lt=1, description="Share of each machine kept free.")
    max_nodes: PositiveInt | None = Field(None, description="Most machines in all.")
    buckets: tuple[Bucket, ...] = Field(min_length=1, description="Size classes of requests.")
    machines: tuple[Machine, ...] = Field(min_length=1, description="Kinds of machines.")
    speeds_csv: Text | None = Field(
        None, description="More speeds: a CSV file with columns machine, bucket, requests_per_s."
    )
