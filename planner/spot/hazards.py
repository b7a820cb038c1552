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
import numpy.typing as npt

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
    save_cells,
)
from planner.spot.hazards_shrink import Scales, SideFit, fit_side
from planner.spot.scales import scale_rows

if TYPE_CHECKING:
    from planner.spot.hints import Hint, Hints
    from planner.spot.policy.job import SpotZone
    from planner.spot.trace import ZoneTrace

FloatArray = npt.NDArray[np.float64]
Side = Literal["down", "up"]
Pool = tuple[str, str, str]

__all__ = [
    "AGE_EDGES_HOURS", "HazardModel", "HazardTable", "Weather", "age_bucket", "fit_hazards", "load_hazards",
    "load_weather",
]  # fmt: skip


@record(frozen=True, eq=False)
class HazardTable:
    """Hazards of one gang in one zone; `1 - exp(-h tick)` is the chance to leave within a tick.

    Attributes:
        age_edges_hours: lower edges of the age buckets, shape `(k,)`; `age_bucket` finds the bucket of an age.
        down_per_hour: hazard of leaving up by age of the up spell, shape `(k,)`.
        up_per_hour: hazard of leaving down by age of the down spell, shape `(k,)`.
        frailty_sd_down, frailty_sd_up: sd of the log level of each over the time of a job: how far next week differs
            from what was seen, and how little was seen.
        availability_ratio: long-run share of time up that the hazards give.
        hours_seen: hours of record behind the nearest level.
        source: which level that is, in words.
        of_family: a record of the gang's own family is behind it; without one, published bands and priors know more.
    """

    age_edges_hours: FloatArray
    down_per_hour: FloatArray
    up_per_hour: FloatArray
    frailty_sd_down: float
    frailty_sd_up: float
    availability_ratio: float
    hours_seen: float
    source: str
    of_family: bool = True

    @property
    def mean_up_hours(self) -> float:
        """Mean length of an up spell."""
        return mean_spell_hours(self.down_per_hour)

    @property
    def mean_down_hours(self) -> float:
        """Mean length of a down spell."""
        return mean_spell_hours(self.up_per_hour)


def make_table(
    down_per_hour: FloatArray,
    up_per_hour: FloatArray,
    frailty_sd: tuple[float, float],
    hours_seen: float,
    source: str,
    *,
    of_family: bool = True,
) -> HazardTable:
    """A table from its hazards; the availability follows from the mean spells."""
    up, down = mean_spell_hours(down_per_hour), mean_spell_hours(up_per_hour)
    return HazardTable(
        AGE_EDGES_HOURS,
        down_per_hour,
        up_per_hour,
        *frailty_sd,
        up / (up + down),
        hours_seen,
        source,
        of_family,
    )


def moved_table(table: HazardTable, hint: Hint) -> HazardTable:
    """The table with its hazards moved by a hint."""
    down, up = table.down_per_hour * np.exp(hint.log_down), table.up_per_hour * np.exp(hint.log_up)
    sd = (table.frailty_sd_down, table.frailty_sd_up)
    source = f"{table.source}; moved by {hint.by}"
    return make_table(down, up, sd, table.hours_seen, source, of_family=table.of_family)


def mean_spell_hours(hazard_per_hour: FloatArray) -> float:
    """Mean of a spell whose hazard is constant within each age bucket: sum of S_b (1 - exp(-h_b w_b)) / h_b."""
    width = np.append(np.diff(AGE_EDGES_HOURS), np.inf)
    h = np.maximum(hazard_per_hour, 1e-9)
    survive = np.exp(-np.concatenate(([0.0], np.cumsum(h[:-1] * width[:-1]))))
    return float((survive * -np.expm1(-h * width) / h).sum())


@record(frozen=True, eq=False)
class HazardModel:
    """Counts of everything known, and the tables they give.

    Attributes:
        cells: counts per zone, type, gang and period.
        scales: spread of the levels per direction.
        given: tables that stand above the counts, by zone name or `pool` key (from `planner.spot.hazards_evidence`).
        hints: what moves the tables of zones without a record (from `planner.spot.hints`).
    """

    cells: tuple[HazardCell, ...]
    scales: Mapping[str, Scales]
    given: Mapping[str, HazardTable]
    hints: Hints = field(default_factory=dict)

    def table_for(self, zone: SpotZone) -> HazardTable:
        """Hazards of a zone from the nearest evidence; never fails."""
        for name in (zone.pool, zone.name):
            if name and name in self.given:
                return self.given[name]
        type_ = plain_type(zone.instance_type)
        key = (zone.provider, type_, zone.gang, zone.region, plain_zone(zone.pool or zone.name))
        if key not in self._tables:
            table, hint = self._look_up(*key), self.hint_for(zone)
            self._tables[key] = table if hint is None else moved_table(table, hint)
        return self._tables[key]

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

    def save(self, path: Path) -> None:
        """Write the counts as CSV."""
        save_cells(self.cells, path)

    @staticmethod
    def load(path: Path) -> HazardModel:
        """Read counts that `save` wrote, with the bundled scales."""
        return HazardModel(load_cells(path), load_scales(), {})

    @cached_property
    def _tables(self) -> dict[tuple[str, str, int, str, str], HazardTable]:
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
        blank = np.zeros((0, len(AGE_EDGES_HOURS)))

        def stack(name: str) -> FloatArray:
            return np.asarray([getattr(c, name) for c in self.cells]) if self.cells else blank

        return {
            "down": fit_side(keys, stack("downs"), stack("up_hours"), weight, self.scales["down"]),
            "up": fit_side(keys, stack("ups"), stack("down_hours"), weight, self.scales["up"]),
        }

    @cached_property
    def _pools(self) -> dict[tuple[str, str], dict[int, dict[tuple[str, str], float]]]:
        """(provider, type) -> gang -> (region, zone) -> hours seen."""
        found: dict[tuple[str, str], dict[int, dict[tuple[str, str], float]]] = {}
        for c in self.cells:
            zones = found.setdefault((c.provider, c.instance_type), {}).setdefault(c.gang, {})
            zones[c.region, c.zone] = zones.get((c.region, c.zone), 0.0) + c.hours
        return found

    def _look_up(self, provider: str, type_: str, gang: int, region: str, zone: str) -> HazardTable:
        known = self._pools
        own = [pool for pool in known if pool[1] == type_ and provider in ("", pool[0])]
        if own:
            return self._of_pool(own[0], gang, region, zone, f"{own[0][0]} {type_}")
        family = family_of(type_)
        kin = [p for p in known if family_of(p[1]) == family and provider in ("", p[0])]
        if kin:
            return self._of_several(kin, gang, region, zone, f"family {family}: other sizes")
        mates = [p for p in known if p[0] == provider]
        if mates:
            table = self._of_several(mates, gang, region, zone, f"prior of {provider}: its other families")
            return replace(table, of_family=False)
        if known:
            table = self._of_several(list(known), gang, region, zone, "nothing known: mean of everything")
            return replace(table, of_family=False)
        one, sd = np.ones(len(AGE_EDGES_HOURS)), (1.0, 1.0)
        source = "no record at all: up 1 h and down 2 h in the mean, assumed"
        return make_table(one, one / 2, sd, 0.0, source, of_family=False)

    def _of_pool(self, pool: tuple[str, str], gang: int, region: str, zone: str, label: str) -> HazardTable:
        """The zone at this gang, between gangs it was seen at, else its region's or the pool's."""
        by_gang = self._pools[pool]
        levels = (
            ("zone", [g for g, zones in by_gang.items() if (region, zone) in zones]),
            ("region", [g for g, zones in by_gang.items() if any(r == region for r, _ in zones)]),
            ("pool", list(by_gang)),
        )
        level, gangs = next((name, found) for name, found in levels if found)
        near = _bracket(sorted(gangs), gang)
        hours = min(
            sum(
                h
                for (r, z), h in by_gang[g].items()
                if level == "pool" or (r == region and (level == "region" or z == zone))
            )
            for g in near
        )
        where = {"zone": f"zone {zone}", "region": f"region {region}", "pool": "all zones"}[level]
        seen = f"x{gang}" if near == [gang] else f"x{gang} from x{' and x'.join(str(g) for g in near)}"
        down, sd_down = self._at_gang("down", pool, near, gang, region, zone)
        up, sd_up = self._at_gang("up", pool, near, gang, region, zone)
        return make_table(down, up, (sd_down, sd_up), hours, f"{label} {seen}, {where}, {hours:.0f} h seen")

    def _at_gang(
        self, side: Side, pool: tuple[str, str], near: list[int], gang: int, region: str, zone: str
    ) -> tuple[FloatArray, float]:
        """Hazard at a gang: straight in log hazard over log gang between two that were seen.

        Beyond them it is the nearest one's with the measured gang exponent.
        """
        fit = self.sides[side]
        found = [fit.hazard((*pool, str(g)), region, zone) for g in near]
        if len(near) == 1:
            beyond = (gang / near[0]) ** fit.scales.gang_exponent
            return found[0][0] * beyond, found[0][1]
        share = float(np.log(gang / near[0]) / np.log(near[1] / near[0]))
        (low, sd_low), (high, sd_high) = found
        return np.exp((1 - share) * np.log(low) + share * np.log(high)), max(sd_low, sd_high)

    def _of_several(
        self, pools: Sequence[tuple[str, str]], gang: int, region: str, zone: str, label: str
    ) -> HazardTable:
        """Geometric mean over pools, with the spread between pools added to the frailty."""
        tables = [self._of_pool(pool, gang, region, zone, "") for pool in pools]
        down = np.exp(np.mean([np.log(t.down_per_hour) for t in tables], axis=0))
        up = np.exp(np.mean([np.log(t.up_per_hour) for t in tables], axis=0))
        sd = (
            float(np.hypot(max(t.frailty_sd_down for t in tables), self.scales["down"].pool_sd)),
            float(np.hypot(max(t.frailty_sd_up for t in tables), self.scales["up"].pool_sd)),
        )
        return make_table(down, up, sd, 0.0, f"{label} ({len(tables)} pools), x{gang}")


def _bracket(gangs: list[int], gang: int) -> list[int]:
    """The gang itself, or the two around it, or the nearest."""
    if gang in gangs:
        return [gang]
    below = [g for g in gangs if g < gang]
    above = [g for g in gangs if g > gang]
    return [*below[-1:], *above[:1]]


def fit_hazards(traces: Sequence[ZoneTrace]) -> HazardModel:
    """Fit a model to traces alone; `load_hazards().with_cells(...)` adds them to the bundled one instead."""
    return HazardModel(tuple(cell_of(trace) for trace in traces), load_scales(), {})


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
