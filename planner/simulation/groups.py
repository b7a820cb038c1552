"""Zones that a job may use together: traces of one recording, type and gang on a common clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np

from catalogs.tables.table import Bools, Floats
from planner.records import record
from planner.spot.hazards_cells import plain_zone
from planner.spot.trace import ZoneTrace

KINDS = ("single", "several")
_A_DAY = timedelta(days=1)


@record(frozen=True, eq=False)
class ZoneGroup:
    """One or more zones with what was recorded of them.

    Attributes:
        name: the zone, or the zones and their number.
        kind: a name in `KINDS`.
        source: the recording they come from.
        zones: their traces, of equal start, tick and length.
    """

    name: str
    kind: str
    source: str
    zones: tuple[ZoneTrace, ...]

    @property
    def cluster(self) -> str:
        """What is drawn together in a bootstrap: the same zones on other days are not independent."""
        return f"{self.zones[0].instance_type} x{self.zones[0].gang} {self.name}"

    @property
    def up(self) -> Bools:
        """Availability, shape `(n_zones, n_ticks)`."""
        return np.array([zone.up for zone in self.zones])

    @property
    def usd_per_hour(self) -> Floats:
        """Spot price of the gang, shape `(n_zones, n_ticks)`; a gap takes the zone's mean, NaN where none is known."""
        return np.array([_filled(zone.spot_usd_per_hour) for zone in self.zones])

    @property
    def on_demand_usd_per_hour(self) -> float | None:
        """Cheapest on-demand price of the gang among the zones, None where none is recorded."""
        recorded = [
            zone.on_demand_usd_per_hour for zone in self.zones if zone.on_demand_usd_per_hour is not None
        ]
        return min(recorded) if recorded else None


def zone_groups(traces: Iterable[ZoneTrace], kinds: Sequence[str] = KINDS) -> Iterator[ZoneGroup]:
    """Each zone alone, and all zones of one recording, type, gang and tick that overlap, together."""
    for zones in _recordings(traces):
        if "single" in kinds:
            for zone in zones:
                yield ZoneGroup(plain_zone(zone.zone), "single", zone.source, (zone,))
        several = _longest_each(zones)
        if "several" in kinds and len(several) > 1:
            aligned = _aligned(several)
            if aligned:
                yield ZoneGroup(_name(several), "several", several[0].source, aligned)


def _recordings(traces: Iterable[ZoneTrace]) -> Iterator[list[ZoneTrace]]:
    """Zones seen together: from one source, or, where each zone has its own file, begun within a day."""
    alike: dict[tuple[str, str, int, float], list[ZoneTrace]] = {}
    for trace in traces:
        alike.setdefault((trace.provider, trace.instance_type, trace.gang, trace.tick_hours), []).append(
            trace
        )
    for zones in alike.values():
        sources: dict[str, list[ZoneTrace]] = {}
        for zone in zones:
            sources.setdefault(zone.source, []).append(zone)
        loose = [recordings[0] for recordings in sources.values() if len(recordings) == 1]
        yield from (recordings for recordings in sources.values() if len(recordings) > 1)
        while loose:
            first = min(zone.start for zone in loose)
            yield [zone for zone in loose if zone.start - first < _A_DAY]
            loose = [zone for zone in loose if zone.start - first >= _A_DAY]


def _longest_each(zones: Sequence[ZoneTrace]) -> tuple[ZoneTrace, ...]:
    """One record per zone: a log with holes gives several, of which the longest is used beside other zones."""
    best: dict[str, ZoneTrace] = {}
    for zone in zones:
        if zone.zone not in best or zone.hours > best[zone.zone].hours:
            best[zone.zone] = zone
    return tuple(best.values())


def _name(zones: Sequence[ZoneTrace]) -> str:
    """`2 zones: us-east-2a us-west-2a,b`."""
    letters: dict[str, list[str]] = {}
    for zone in zones:
        letters.setdefault(zone.region, []).append(plain_zone(zone.zone).removeprefix(zone.region))
    places = (region + ",".join(parts) for region, parts in letters.items())
    return f"{len(zones)} zones: {' '.join(places)}"


def _aligned(zones: Sequence[ZoneTrace]) -> tuple[ZoneTrace, ...]:
    """The zones cut to the time that all of them cover; empty where there is none."""
    start, end = max(zone.start for zone in zones), min(zone.end for zone in zones)
    tick = zones[0].tick_hours
    ticks = int((end - start).total_seconds() / 3600.0 / tick + 1e-6)
    if ticks <= 0:
        return ()
    cut = []
    for zone in zones:
        at = round((start - zone.start).total_seconds() / 3600.0 / tick)
        last = min(at + ticks, len(zone.up))
        cut.append((zone, at, last))
    shortest = min(last - at for _, at, last in cut)
    return tuple(
        replace(
            zone,
            start=start,
            up=zone.up[at : at + shortest],
            spot_usd_per_hour=zone.spot_usd_per_hour[at : at + shortest],
        )
        for zone, at, _ in cut
    )


def _filled(usd: Floats) -> Floats:
    is_known = np.isfinite(usd)
    return (
        usd if is_known.all() else np.where(is_known, usd, usd[is_known].mean() if is_known.any() else np.nan)
    )
