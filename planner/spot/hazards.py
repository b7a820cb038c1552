"""How long spot stays up and down, by the age of the spell: tables per zone, type and gang, and where they come from.

A table is the nearest evidence there is: the zone at this gang, the zone at other gangs, its region, the pool (type
and gang), the family, the provider, and at last the mean of everything. `HazardTable.source` says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record
from planner.spot.hazards_cells import (
    AGE_EDGES_HOURS,
    DATA_DIRECTORY,
    HazardCell,
    age_bucket,
    cell_of,
    family_of,
    load_cells,
    plain_type,
    plain_zone,
    recorded_types,
    save_cells,
    scale_rows,
)
from planner.spot.hazards_shrink import Scales, SideFit, fit_side
from planner.spot.hazards_table import HazardTable, make_table, mean_spell_hours, moved_table

if TYPE_CHECKING:
    from planner.spot.hints import Hint, Hints
    from planner.spot.policy.job import SpotZone
    from planner.spot.trace import ZoneTrace

Side = Literal["down", "up"]
Pool = tuple[str, str, str]

__all__ = [
    "AGE_EDGES_HOURS", "HazardModel", "HazardTable", "Weather", "age_bucket", "fit_hazards", "load_hazards",
    "load_weather", "make_table", "mean_spell_hours", "moved_table",
]  # fmt: skip


class Asked(NamedTuple):
    """What a table is asked for: `gang` instances together, of `accelerators` each (0: unknown), and where."""

    provider: str
    type_: str
    gang: int
    accelerators: int
    region: str
    zone: str


class Hours(NamedTuple):
    """Hours of a record: up, and up or down."""

    up: float
    seen: float


@record(frozen=True, eq=False)
class HazardModel:
    """Counts of everything known, and the tables they give.

    Attributes:
        cells: counts per zone, type, gang and period.
        scales: spread of the levels per direction.
        given: tables that stand above the counts, by zone name or `pool` key (from `planner.spot.hazards_evidence`).
        hints: what moves the tables of zones without a record (from `planner.spot.hints`).
        accelerators: of one instance, by instance type; sizes of a family are compared by it.
    """

    cells: tuple[HazardCell, ...]
    scales: Mapping[str, Scales]
    given: Mapping[str, HazardTable]
    hints: Hints = field(default_factory=dict)
    accelerators: Mapping[str, int] = field(default_factory=dict)

    def table_for(self, zone: SpotZone) -> HazardTable:
        """Hazards of a zone from the nearest evidence; never fails."""
        for name in (zone.pool, zone.name):
            if name and name in self.given:
                return self.given[name]
        type_ = plain_type(zone.instance_type)
        each = zone.accelerators or self.accelerators.get(type_, 0)
        asked = Asked(zone.provider, type_, zone.gang, each, zone.region, plain_zone(zone.pool or zone.name))
        if asked not in self._tables:
            table, hint = self._look_up(asked), self.hint_for(zone)
            self._tables[asked] = table if hint is None else moved_table(table, hint)
        return self._tables[asked]

    def knows_family(self, zone: SpotZone) -> bool:
        """Whether a record of the zone's own family is behind its table; asked without building the table."""
        for name in (zone.pool, zone.name):
            if name and name in self.given:
                return self.given[name].of_family
        family = family_of(plain_type(zone.instance_type))
        return any((not zone.provider or zone.provider == p) and f == family for p, f in self._families)

    def hint_for(self, zone: SpotZone) -> Hint | None:
        """What prices or scores say of a zone that was not recorded: of itself, else of its region."""
        if not self.hints or self.recorded(zone):
            return None
        type_ = plain_type(zone.instance_type)
        places = (plain_zone(zone.pool or zone.name), zone.region)
        return next((self.hints[type_, place] for place in places if (type_, place) in self.hints), None)

    def recorded(self, zone: SpotZone) -> bool:
        """Whether the zone itself was seen with this instance type, at any gang."""
        type_, name = plain_type(zone.instance_type), plain_zone(zone.pool or zone.name)
        return any(c.instance_type == type_ and c.zone == name for c in self.cells)

    def with_cells(self, cells: Iterable[HazardCell]) -> HazardModel:
        """The model with more records, shrunk anew."""
        return replace(self, cells=(*self.cells, *cells))

    def with_tables(self, tables: Mapping[str, HazardTable]) -> HazardModel:
        """The model with tables that stand above what the counts say, by zone name or pool key."""
        return replace(self, given={**self.given, **tables})

    def with_hints(self, hints: Hints) -> HazardModel:
        """The model with more hints; several of one place add up."""
        both = dict(self.hints)
        for place, hint in hints.items():
            both[place] = both[place] + hint if place in both else hint
        return replace(self, hints=both)

    def with_accelerators(self, accelerators: Mapping[str, int]) -> HazardModel:
        """The model with the accelerators of more instance types."""
        return replace(self, accelerators={**accelerators, **self.accelerators})

    def save(self, path: Path) -> None:
        """Write the counts as CSV."""
        save_cells(self.cells, path)

    @staticmethod
    def load(path: Path) -> HazardModel:
        """Read counts that `save` wrote, with the bundled scales."""
        return HazardModel(load_cells(path), load_scales(), {}, accelerators=recorded_types())

    @cached_property
    def _tables(self) -> dict[Asked, HazardTable]:
        return {}

    @cached_property
    def sides(self) -> dict[str, SideFit]:
        """Fit of each direction."""
        keys = [((c.provider, c.instance_type, str(c.gang)), c.region, c.zone) for c in self.cells]
        same = [(c.zone, c.instance_type, c.source, c.as_of) for c in self.cells]
        count: dict[object, int] = {}
        for one in same:
            count[one] = count.get(one, 0) + 1
        weight = np.asarray([1.0 / count[one] for one in same])
        never = np.asarray([c.never_up for c in self.cells], dtype=np.bool_)
        blank = np.zeros((0, len(AGE_EDGES_HOURS)))

        def stack(name: str) -> Floats:
            return np.asarray([getattr(c, name) for c in self.cells]) if self.cells else blank

        return {
            "down": fit_side(
                keys,
                stack("downs"),
                stack("up_hours"),
                weight,
                np.zeros(len(keys), bool),
                self.scales["down"],
            ),
            "up": fit_side(keys, stack("ups"), stack("down_hours"), weight, never, self.scales["up"]),
        }

    @cached_property
    def _pools(self) -> dict[tuple[str, str], dict[int, dict[tuple[str, str], Hours]]]:
        """(provider, type) -> gang -> (region, zone) -> hours seen."""
        found: dict[tuple[str, str], dict[int, dict[tuple[str, str], Hours]]] = {}
        for c in self.cells:
            zones = found.setdefault((c.provider, c.instance_type), {}).setdefault(c.gang, {})
            old = zones.get((c.region, c.zone), Hours(0.0, 0.0))
            zones[c.region, c.zone] = Hours(old.up + float(c.up_hours.sum()), old.seen + c.hours)
        return found

    @cached_property
    def _families(self) -> frozenset[tuple[str, str]]:
        """(provider, family) of every record."""
        return frozenset((provider, family_of(type_)) for provider, type_ in self._pools)

    def _look_up(self, asked: Asked) -> HazardTable:
        known = self._pools
        own = [pool for pool in known if pool[1] == asked.type_ and asked.provider in ("", pool[0])]
        if own:
            return self._of_pool(own[0], asked.gang, asked, f"{own[0][0]} {asked.type_}")
        family = family_of(asked.type_)
        kin = [p for p in known if family_of(p[1]) == family and asked.provider in ("", p[0])]
        if kin:
            return self._of_several(kin, asked, f"family {family}: other sizes")
        mates = [p for p in known if p[0] == asked.provider]
        if mates:
            table = self._of_several(mates, asked, f"prior of {asked.provider}: its other families")
            return replace(table, of_family=False, observed_ratio=None)
        if known:
            table = self._of_several(list(known), asked, "nothing known: mean of everything")
            return replace(table, of_family=False, observed_ratio=None)
        one, sd = np.ones(len(AGE_EDGES_HOURS)), (1.0, 1.0)
        source = "no record at all: up 1 h and down 2 h in the mean, assumed"
        return make_table(one, one / 2, sd, 0.0, source, of_family=False)

    def _of_pool(self, pool: tuple[str, str], gang: float, asked: Asked, label: str) -> HazardTable:
        """The zone at this gang, between gangs that it was seen at, else its region's or the pool's.

        A zone that was never up says so of its own type: of others it is no record.
        """
        by_gang, region, zone = self._pools[pool], asked.region, asked.zone
        if pool[1] != asked.type_ and not any(
            (region, zone) in z and z[region, zone].up for z in by_gang.values()
        ):
            zone = ""
        levels = (
            ("zone", [g for g, zones in by_gang.items() if (region, zone) in zones]),
            ("region", [g for g, zones in by_gang.items() if any(r == region for r, _ in zones)]),
            ("pool", list(by_gang)),
        )
        level, gangs = next((name, found) for name, found in levels if found)
        near = _bracket(sorted(gangs), gang)
        seen = [
            [
                hours
                for (r, z), hours in by_gang[g].items()
                if level == "pool" or (r == region and (level == "region" or z == zone))
            ]
            for g in near
        ]
        hours = min(sum(one.seen for one in part) for part in seen)
        where = {"zone": f"zone {zone}", "region": f"region {region}", "pool": "all zones"}[level]
        named = f"x{gang:g}" if near == [gang] else f"x{gang:g} from x{' and x'.join(str(g) for g in near)}"
        down, sd_down = self._at_gang("down", pool, near, gang, region, zone)
        up, sd_up = self._at_gang("up", pool, near, gang, region, zone)
        return make_table(
            down, up, (sd_down, sd_up), hours, f"{label} {named}, {where}, {hours:.0f} h seen",
            observed_ratio=_observed(seen, near, gang),
        )  # fmt: skip

    def _at_gang(
        self, side: Side, pool: tuple[str, str], near: list[int], gang: float, region: str, zone: str
    ) -> tuple[Floats, float]:
        """Hazard at a gang: straight in log hazard over log gang between two that were seen.

        Beyond them it is the nearest one's with the measured gang exponent, the less sure the farther the gang is.
        """
        fit = self.sides[side]
        found = [fit.hazard((*pool, str(g)), region, zone) for g in near]
        if len(near) == 1:
            farther, (hazard, sd) = float(np.log(gang / near[0])), found[0]
            unsure = fit.scales.gang_exponent_sd * farther
            return hazard * np.exp(fit.scales.gang_exponent * farther), float(np.hypot(sd, unsure))
        share = _share(near, gang)
        (low, sd_low), (high, sd_high) = found
        return np.exp((1 - share) * np.log(low) + share * np.log(high)), max(sd_low, sd_high)

    def _of_several(self, pools: Sequence[tuple[str, str]], asked: Asked, label: str) -> HazardTable:
        """Geometric mean over pools, with the spread between pools added to the frailty.

        Gangs are compared in accelerators: four instances of eight are judged by records of 32, where both sizes are
        known.
        """
        gangs = [asked.gang * self._instances(asked, pool[1]) for pool in pools]
        tables = [self._of_pool(pool, gang, asked, "") for pool, gang in zip(pools, gangs, strict=True)]
        down = np.exp(np.mean([np.log(t.down_per_hour) for t in tables], axis=0))
        up = np.exp(np.mean([np.log(t.up_per_hour) for t in tables], axis=0))
        sd = (
            float(np.hypot(max(t.frailty_sd_down for t in tables), self.scales["down"].pool_sd)),
            float(np.hypot(max(t.frailty_sd_up for t in tables), self.scales["up"].pool_sd)),
        )
        seen = [t.observed_ratio for t in tables if t.observed_ratio is not None]
        counted = ", gangs counted in accelerators" if asked.accelerators else f", x{asked.gang}"
        return make_table(
            down, up, sd, 0.0, f"{label} ({len(tables)} pools){counted}",
            observed_ratio=float(np.mean(seen)) if seen else None,
        )  # fmt: skip

    def _instances(self, asked: Asked, recorded_type: str) -> float:
        """How many instances of a recorded type hold the accelerators of one asked for; 1 where either is unknown."""
        theirs = self.accelerators.get(recorded_type, 0)
        return asked.accelerators / theirs if asked.accelerators and theirs else 1.0


def _observed(seen: Sequence[Sequence[Hours]], near: list[int], gang: float) -> float:
    """Share of time up at a gang, straight over log gang between the gangs seen."""
    ratio = [sum(one.up for one in part) / max(sum(one.seen for one in part), 1e-9) for part in seen]
    share = _share(near, gang) if len(near) > 1 else 0.0
    return ratio[0] * (1.0 - share) + ratio[-1] * share


def _share(near: list[int], gang: float) -> float:
    """Where a gang lies between two, in logs."""
    return float(np.log(gang / near[0]) / np.log(near[1] / near[0]))


def _bracket(gangs: list[int], gang: float) -> list[int]:
    """The gang itself, or the two around it, or the nearest."""
    if gang in gangs:
        return [int(gang)]
    below = [g for g in gangs if g < gang]
    above = [g for g in gangs if g > gang]
    return [*below[-1:], *above[:1]]


def fit_hazards(traces: Sequence[ZoneTrace]) -> HazardModel:
    """Fit a model to traces alone; `load_hazards().with_cells(...)` adds them to the bundled one instead."""
    cells = tuple(cell_of(trace) for trace in traces)
    return HazardModel(cells, load_scales(), {}, accelerators=recorded_types())


@cache
def load_hazards(path: Path | None = None) -> HazardModel:
    """The bundled fit, or one that was saved."""
    return HazardModel.load(path or DATA_DIRECTORY / "hazards.csv")


class Weather(NamedTuple):
    """What moves the hazards of several zones together.

    Attributes:
        region_sd: sd of the log hazard shared within a region; up hazards move against down hazards.
        common_sd: the same shared by all zones.
        hours: how long it lasts (Ornstein-Uhlenbeck correlation time).
    """

    region_sd: float
    common_sd: float
    hours: float


@cache
def load_scales() -> Mapping[str, Scales]:
    """Spread of the levels per direction, from hazard_scales.csv."""
    rows = scale_rows()
    return {side: Scales(*(float(rows[name][side]) for name in Scales._fields)) for side in ("down", "up")}


@cache
def load_weather() -> Weather:
    """What zones share, from hazard_scales.csv."""
    rows = scale_rows()
    return Weather(*(float(rows[f"weather_{name}"]["down"]) for name in Weather._fields))
