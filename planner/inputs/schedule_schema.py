"""The schedule, version 1: jobs that may pause, pools they may run on, and a forecast by the hour."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.inputs.fields import (
    Bool,
    Deadline,
    Hours,
    Moment,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Size,
    Text,
)
from planner.inputs.purchase_options import PurchaseOption
from planner.inputs.section import Section


class SchedulePool(Section):
    """Machines of one kind in one place; the forecast has their price and number."""

    name: Text = Field(description="Name, unique; the forecast names it.")
    provider: Text = Field(description="Provider.")
    region: Text = Field(description="Region.")
    instance_type: Text | None = Field(None, description="Instance type, for the plan's readers.")
    purchase_option: PurchaseOption = Field("on_demand", description="How it is bought.")
    work_per_node_hour: NonNegativeFloat = Field(description="Work of one node in an hour; 0: cannot run.")
    startup_hours: Hours = Field(
        0.0, description="Cost of starting a node, in hours at the price of its first hour."
    )
    startup_usd: NonNegativeFloat = Field(0.0, description="Additional cost of a start, US dollars.")


class ScheduleData(Section):
    """Data that a job reads where it runs."""

    size: Size = Field(description="Size, e.g. 2 TB.")
    location: Text = Field(description="Location: provider/region. Copies elsewhere are charged.")


class ScheduleJob(Section):
    """Work that may be divided over nodes, paused and moved."""

    name: Text = Field(description="Name, unique.")
    work: PositiveFloat = Field(description="Work to be done, in the unit of work_per_node_hour.")
    earliest_start: Deadline | None = Field(
        None, description="Not before: a time from the start, or a date; default the start."
    )
    deadline: Deadline | None = Field(
        None, description="Done by: a time from the start, or a date; default the forecast's end."
    )
    min_nodes: PositiveInt = Field(1, description="Nodes in every hour in which it runs, at least.")
    max_nodes: PositiveInt | None = Field(None, description="Nodes at once, at most.")
    one_region: Bool = Field(True, description="All its nodes of an hour in one region.")
    data: ScheduleData | None = Field(None, description="Data that must be in the region of the job.")
    work_per_node_hour: dict[str, NonNegativeFloat] = Field(
        {}, description="Per pool: the job's speed instead of the pool's; 0: cannot run there."
    )


class Schedule(Section):
    """Jobs, pools and the forecast."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["schedule"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Free text.")
    start: Moment = Field(description="When hour 0 of the forecast begins.")
    work_unit: Text = Field("units", description="Unit of the work, e.g. million samples.")
    forecast_csv: Text = Field(
        description="CSV file with columns hour, pool, usd_per_hour, available_nodes; "
        "an hour without a row for a pool does not offer it."
    )
    pools: tuple[SchedulePool, ...] = Field(min_length=1, description="Where the jobs may run.")
    jobs: tuple[ScheduleJob, ...] = Field(min_length=1, description="Jobs to schedule.")
