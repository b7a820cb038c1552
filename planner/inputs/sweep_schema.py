"""A sweep, version 1: many jobs at once for `planner simulate --sweep`, every combination of the lists."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.inputs.fields import MAX_FLOAT, NonNegativeFloat, PositiveFloat, PositiveInt, Text
from planner.inputs.section import Section

DeadlineRatio = Annotated[float, Field(strict=True, ge=1, le=MAX_FLOAT, allow_inf_nan=False)]


class Sweep(Section):
    """Jobs to be replayed: the product of the lists, and the workloads named beside them."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["sweep"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the answer.")
    description: str = Field("", description="Remark.")
    work_hours: tuple[PositiveFloat, ...] = Field((), description="Undisturbed work of a job, hours.")
    deadline_ratio: tuple[DeadlineRatio, ...] = Field(
        (1.5,), min_length=1, description="Deadline over work, at least 1."
    )
    restart_hours: tuple[NonNegativeFloat, ...] = Field(
        (0.2,), min_length=1, description="Paid hours without progress after each start."
    )
    on_demand_acquire_hours: NonNegativeFloat = Field(
        0.0, description="Hours until on-demand capacity is obtained."
    )
    egress_usd: NonNegativeFloat = Field(
        0.0, description="Price of moving the checkpoint to another region, US dollars."
    )
    instance_types: tuple[Text, ...] = Field((), description="Only traces of these; default: all.")
    gangs: tuple[PositiveInt, ...] = Field((), description="Only traces of these gang sizes; default: all.")
    workloads: tuple[Text, ...] = Field(
        (), description="Workload files beside the lists; each is planned and its best spot plan replayed."
    )
