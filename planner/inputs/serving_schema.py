"""The serving fleet, version 1: requests in size classes and the machines that may answer them.

Speeds are given (a load test's), or predicted from the model, the lengths of each size class and the engine.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.inputs.fields import (
    Confidence,
    Money,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    SmallInt,
    Text,
)
from planner.inputs.post_training_schema import EngineChoice
from planner.inputs.purchase_options import PurchaseOption
from planner.inputs.section import Section
from planner.inputs.training_schema import Network


class Bucket(Section):
    """Requests of one size class."""

    name: Text = Field(description="Name, unique.")
    requests_per_s: PositiveFloat = Field(description="Rate to be served.")
    input_tokens: PositiveFloat | None = Field(
        None, description="Mean tokens of a prompt; required if speeds are predicted."
    )
    output_tokens: PositiveFloat | None = Field(
        None, description="Mean tokens of a response; required if speeds are predicted."
    )


class Latency(Section):
    """Latency limits of a user without queueing; they limit the concurrent requests of a replica."""

    time_to_first_token_s: PositiveFloat | None = Field(
        None, description="Maximum seconds to read a prompt and generate the first token."
    )
    time_per_token_s: PositiveFloat | None = Field(
        None,
        description="Maximum seconds per token of the response, including interleaved prompts of others.",
    )


class Machine(Section):
    """A kind of machine. Its price is given, or the catalog's for the offer named."""

    name: Text = Field(description="Name, unique.")
    provider: Text | None = Field(None, description="Provider of the catalog's offer.")
    region: Text | None = Field(None, description="Region; absent: the cheapest.")
    instance_type: Text | None = Field(None, description="Instance type.")
    purchase_option: PurchaseOption = Field("on_demand", description="How it is bought.")
    usd_per_hour: Money | None = Field(None, description="Price of one machine, instead of the catalog's.")
    max_nodes: PositiveInt | None = Field(
        None, description="Maximum number of machines (for example, a quota)."
    )
    requests_per_s: dict[str, NonNegativeFloat] = Field(
        {},
        description="Per bucket: what one machine serves of it alone within your latency; 0 or absent: cannot."
        " No speed at all, here or in speeds_csv: they are predicted, where the file names a model.",
    )
    measured: dict[str, PositiveFloat] = Field(
        {},
        description="Of predicted speeds: per bucket what a load test of one machine reached; the bucket takes it, the"
        " machine's other buckets are rescaled by it.",
    )
    tensor_parallel: SmallInt | None = Field(
        None,
        description="Of predicted speeds: accelerators of one replica, instead of inference.tensor_parallel.",
    )


class Serving(Section):
    """Requests and machines."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["serving"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Free text.")
    headroom_ratio: NonNegativeFloat = Field(
        0.0, lt=1, description="Headroom: share of each machine that is not used."
    )
    max_nodes: PositiveInt | None = Field(None, description="Maximum total number of machines.")
    buckets: tuple[Bucket, ...] = Field(min_length=1, description="Size classes of requests.")
    machines: tuple[Machine, ...] = Field(min_length=1, description="Kinds of machines.")
    model: Network | None = Field(
        None, description="The model, as a preset or sizes: missing speeds are predicted."
    )
    inference: EngineChoice = Field(
        EngineChoice(), description="Engine, release and precision of predictions."
    )
    latency: Latency = Field(Latency(), description="Limits that predicted speeds keep.")
    confidence: Confidence = Field(
        0.9, description="Of predicted speeds: probability with which a machine is as fast as it is counted."
    )
    speeds_csv: Text | None = Field(
        None, description="More speeds: a CSV file with columns machine, bucket, requests_per_s."
    )
