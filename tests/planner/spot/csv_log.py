"""Availability as a CSV that `planner.spot.traces.own` reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, timedelta

from planner.render.csv import csv_text
from planner.spot.trace import ZoneTrace
from planner.spot.traces.own import COLUMNS


def csv_log_text(traces: Iterable[ZoneTrace]) -> str:
    """`available` counts instances, so an up tick of a gang of 16 says 16."""
    return csv_text(COLUMNS, _rows(traces))


def _rows(traces: Iterable[ZoneTrace]) -> Iterator[dict[str, str]]:
    for trace in traces:
        step = timedelta(hours=trace.tick_hours)
        listed = "" if trace.on_demand_usd_per_hour is None else f"{trace.on_demand_usd_per_hour:.10g}"
        start = trace.start.astimezone(UTC)
        for tick, (up, price) in enumerate(
            zip(trace.up.tolist(), trace.spot_usd_per_hour.tolist(), strict=True)
        ):
            yield {
                "time": (start + tick * step).isoformat(timespec="seconds"),
                "provider": trace.provider,
                "region": trace.region,
                "zone": trace.zone,
                "instance_type": trace.instance_type,
                "gang": str(trace.gang),
                "available": str(trace.gang if up else 0),
                "spot_usd_per_hour": "" if math.isnan(price) else f"{price:.10g}",
                "on_demand_usd_per_hour": listed,
            }
