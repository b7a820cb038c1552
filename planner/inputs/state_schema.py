"""The state of a running job, version 1: what a launcher knows when it asks `planner advise` what to do next."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from planner.inputs.bounds import MOST_HOURS
from planner.inputs.fields import (
    DATETIME_PATTERN,
    Bool,
    Hours,
    NonNegativeInt,
    PositiveFloat,
    PositiveHours,
    Share,
    Text,
)
from planner.inputs.quantities import parse_hours_or_moment
from planner.inputs.section import Section
from planner.units import DURATION_PATTERN


def _validated(value: object) -> float | datetime:
    try:
        return parse_hours_or_moment(value)
    except ValueError as error:
        raise PydanticCustomError("quantity", "{text}", {"text": str(error)}) from None


def _plain(value: float | datetime) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


HoursOrMoment = Annotated[
    float | datetime,
    PlainValidator(_validated),
    PlainSerializer(_plain),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": MOST_HOURS},
                {"type": "string", "pattern": DURATION_PATTERN},
                {"type": "string", "pattern": DATETIME_PATTERN},
            ],
            "examples": [6.5, "6h 30m", "2026-12-01T08:00Z"],
            "x-quantity": "hours_or_moment",
        }
    ),
]


class Spell(Section):
    """A period in which a zone was up or down."""

    available: Bool = Field(description="Whether spot was available.")
    hours: PositiveHours = Field(description="How long, hours.")


class StateZone(Section):
    """A zone as the launcher sees it now."""

    name: Text = Field(description="Name of the zone, unique; `zone` names one of them.")
    region: Text | None = Field(
        None, description="Its region; default: the plan's, or the plan's zone of this name."
    )
    available: Bool = Field(description="Whether spot is available there now (for all nodes together).")
    usd_per_hour: PositiveFloat | None = Field(
        None, description="Spot price of one instance, US dollars an hour; default: the plan's."
    )
    since: HoursOrMoment | None = Field(
        None,
        description="How long it has been so: hours, a duration, or the moment it began; default: just now.",
    )
    history: tuple[Spell, ...] = Field(
        (), description="Spells before the current one, oldest first; the last 24 hours are used."
    )


class RunState(Section):
    """State of a job."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["state"] = Field(description="Kind of file.")
    now: HoursOrMoment = Field(description="The present: hours since the launch, or a moment.")
    launched_at: HoursOrMoment | None = Field(
        None,
        description="Time of the launch; default: the plan's start. The deadline of the plan does not move.",
    )
    done_hours: Hours | None = Field(
        None, description="Work done and saved, in undisturbed hours; one of the three done_ keys is needed."
    )
    done_ratio: Share | None = Field(None, description="Work done and saved, as a share of the whole.")
    done_steps: NonNegativeInt | None = Field(None, description="Optimizer steps done and saved.")
    mode: Literal["idle", "spot", "on_demand"] = Field(description="What runs now.")
    zone: Text | None = Field(None, description="Where it runs, if on spot.")
    restart_left_hours: Hours = Field(
        0.0, description="Hours until the present instances make progress (boot, load); 0 when they do."
    )
    checkpoint_region: Text | None = Field(
        None, description="Region of the last checkpoint; default: where it runs, or none yet."
    )
    on_demand_usd_per_hour: PositiveFloat | None = Field(
        None, description="On-demand price of one instance; default: the plan's, or the catalog's."
    )
    zones: tuple[StateZone, ...] = Field(min_length=1, description="Zones where spot may be requested.")
