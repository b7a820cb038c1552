"""Synthetic availability from the fitted model: seeded, for tests and for replays where nobody recorded anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from planner.errors import InputError
from planner.spot.futures import sample_futures
from planner.spot.hazards import HazardTable, Weather, make_table
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.trace import ZoneTrace

CALM = Weather(0.0, 0.0, 1.0)
"""No shared weather: zones are independent, and a refit gives the table back."""
_START = datetime(2026, 1, 1, tzinfo=UTC)


def generate_traces(
    zones: Sequence[SpotZone],
    tables: Mapping[str, HazardTable],
    hours: float,
    *,
    seed: int = 0,
    tick_hours: float = 0.1,
    start: datetime = _START,
    weather: Weather | None = None,
    frailty: bool = True,
    on_demand_usd_per_hour: float | None = None,
) -> tuple[ZoneTrace, ...]:
    """Availability of zones over `hours`, at the zones' constant prices.

    Args:
        zones: names unique.
        tables: hazards by zone name.
        hours: length, at least one tick.
        seed: the same seed gives the same traces.
        tick_hours: grid step.
        start: of the first tick.
        weather: what zones share; None takes the bundled fit, `CALM` nothing.
        frailty: whether the levels of the hazards are drawn; False takes the tables as they are.
        on_demand_usd_per_hour: written into the traces.

    Raises:
        InputError: no zone, or shorter than a tick.
    """
    ticks = round(hours / tick_hours)
    if not zones or ticks < 1:
        raise InputError("generated traces: need at least one zone and one tick; give more hours")
    job = SpotJob(
        work_hours=hours,
        deadline_hours=hours,
        restart_hours=0.0,
        on_demand_usd_per_hour=on_demand_usd_per_hour or 0.0,
        zones=tuple(zones),
        tick_hours=tick_hours,
    )
    known = {
        zone.name: tables[zone.name] if frailty else _without_frailty(tables[zone.name]) for zone in zones
    }
    up = sample_futures(job, known, 1, ticks, seed, weather=weather)[0]
    return tuple(
        ZoneTrace(
            provider=zone.provider,
            region=zone.region,
            zone=zone.name,
            instance_type=zone.instance_type,
            gang=zone.gang,
            start=start,
            tick_hours=tick_hours,
            up=up[at],
            spot_usd_per_hour=np.full(ticks, zone.usd_per_hour),
            on_demand_usd_per_hour=on_demand_usd_per_hour,
            source=f"generated, seed {seed}: {known[zone.name].source}",
            probe_hours=tick_hours,
        )
        for at, zone in enumerate(zones)
    )


def _without_frailty(table: HazardTable) -> HazardTable:
    return make_table(table.down_per_hour, table.up_per_hour, (0.0, 0.0), table.hours_seen, table.source)
