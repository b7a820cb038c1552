"""What was seen of spot capacity: a zone's availability and price on a regular grid."""

from __future__ import annotations

from datetime import datetime, timedelta

from catalogs.tables.table import Bools, Floats
from planner.records import record


@record(frozen=True, eq=False)
class ZoneTrace:
    """Availability of one gang in one zone.

    Attributes:
        provider: `aws`, `gcp`, ...; empty where the source does not say.
        region, zone: the provider's own ids.
        instance_type: the provider's spelling.
        gang: instances that must be obtainable together for a tick to count as up.
        start: the first tick (UTC).
        tick_hours: grid step, hours.
        up: whether the whole gang was obtainable, shape `(n_ticks,)`.
        spot_usd_per_hour: price of the whole gang, shape `(n_ticks,)`; NaN where unknown.
        on_demand_usd_per_hour: price of the whole gang, or None where unknown.
        source: where it was read.
        probe_hours: time between two looks; an interruption shorter than it may not be seen, and none is counted that
            is. 0 where unknown.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    gang: int
    start: datetime
    tick_hours: float
    up: Bools
    spot_usd_per_hour: Floats
    on_demand_usd_per_hour: float | None = None
    source: str = ""
    probe_hours: float = 0.0

    @property
    def hours(self) -> float:
        """Length of the record in hours."""
        return len(self.up) * self.tick_hours

    @property
    def end(self) -> datetime:
        """The moment after the last tick."""
        return self.start + timedelta(hours=self.hours)
