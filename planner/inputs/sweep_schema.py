"""A sweep, version 1: many questions at once, every combination of its lists.

`planner sweep` plans the workloads on the days and under the scenarios; `planner simulate --sweep` replays spot
policies for the workloads and for jobs named by their hours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.inputs.fields import (
    MAX_FLOAT,
    Day,
    Hours,
    NonNegativeFloat,
    PositiveHours,
    PositiveInt,
    Text,
    Texts,
)
from planner.inputs.section import Section

DeadlineRatio = Annotated[float, Field(strict=True, ge=1, le=MAX_FLOAT, allow_inf_nan=False)]


class Sweep(Section):
    """Workloads with days and scenarios, or jobs to be replayed: the product of the lists."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["sweep"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the answer.")
    description: str = Field("", description="Free text.")
    work_hours: tuple[PositiveHours, ...] = Field((), description="Undisturbed work of a job, hours.")
    deadline_ratio: tuple[DeadlineRatio, ...] = Field(
        (1.5,), min_length=1, description="Deadline over work, at least 1."
    )
    restart_hours: tuple[Hours, ...] = Field(
        (0.2,), min_length=1, description="Paid hours without progress after each start."
    )
    on_demand_acquire_hours: Hours = Field(0.0, description="Hours until on-demand capacity is obtained.")
    egress_usd: NonNegativeFloat = Field(
        0.0, description="Price of moving the checkpoint to another region, US dollars."
    )
    instance_types: tuple[Text, ...] = Field((), description="Only traces of these; default: all.")
    gangs: tuple[PositiveInt, ...] = Field((), description="Only traces of these gang sizes; default: all.")
    workloads: tuple[Text, ...] = Field(
        (),
        description="Workload files (for `planner sweep` also folders of them), relative to this file; "
        "`planner simulate` plans each and replays its best spot plan.",
    )
    days: tuple[Day, ...] = Field(
        (), description="For `planner sweep`: plan as on each of these days, with the prices known then."
    )
    scenarios: dict[Text, Texts] = Field(
        {},
        description="For `planner sweep`: by name, KEY=VALUE texts that override each workload, as for `--set`.",
    )
