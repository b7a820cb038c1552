"""Figures of recorded spot pools, ready to use: `planner/data/spot/pools.csv`, derived from the hazards by age.

Fitting hazards at every start would cost more than the plan, so their first and second moments are kept for each
recorded type, region and zone at a few gangs: instances of the type itself, accelerators where a row stands for the
other sizes of a family. `python -m planner.spot.pools` writes the file anew; a test holds it equal to what the hazards
say.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.spot.hazards import HazardModel, HazardTable
    from planner.spot.policy.job import SpotZone


DATA_FILE = Path(__file__).parents[1] / "data" / "spot" / "pools.csv"
GANGS = (1, 4, 16, 64, 256)
FIGURES = ("rate_per_hour", "wait_hours", "first_wait_hours", "frailty_sd", "dispersion_ratio")
COLUMNS = ("provider", "instance_type", "region", "zone", "gang", *FIGURES, "observed_ratio", "source")
RECORDED = "recorded"
OWN_RECORDS = "your records beside public ones"
Key = tuple[str, str, str, str]


class Pool(NamedTuple):
    """Figures of one pool: `values` in the order of `FIGURES`, shape `(n_gangs, 5)`, at `gangs`; its source.

    `observed`: share of time up in its records, shape `(n_gangs,)`; `members`: how many of what `gangs` counts one
    instance holds: its accelerators where the pool stands for other sizes of a family, else 1.
    """

    gangs: Floats
    values: Floats
    source: str
    observed: Floats
    members: float = 1.0


def figures_at(pools: Sequence[Pool], which: Ints, gang: Floats) -> Floats:
    """Figures of pools at gangs, straight in logarithms between the gangs known and flat beyond them.

    Args:
        pools: of the same known gangs.
        which: pool of each gang asked for, shape `(n,)`.
        gang: instances that must run together, shape `(n,)`.

    Returns:
        Figures in the order of `FIGURES`, shape `(5, n)`.
    """
    members = np.asarray([pool.members for pool in pools])
    known, place = np.log(pools[0].gangs), np.log(gang * members[which])
    logs = np.log(np.stack([pool.values for pool in pools]))
    left = np.clip(np.searchsorted(known, place, side="right") - 1, 0, len(known) - 2)
    slope = (logs[which, left + 1] - logs[which, left]) / (known[left + 1] - known[left])[:, None]
    values = slope * (place - known[left])[:, None] + logs[which, left]
    values[place <= known[0]] = logs[which[place <= known[0]], 0]
    values[place >= known[-1]] = logs[which[place >= known[-1]], -1]
    return np.asarray(np.exp(values).T, dtype=np.float64)


def observed_at(pools: Sequence[Pool], which: Ints, gang: Floats) -> Floats:
    """Share of time up in the records of pools at gangs, straight over log gang and flat beyond the gangs known.

    Args:
        pools: of the same known gangs.
        which: pool of each gang asked for, shape `(n,)`.
        gang: instances that must run together, shape `(n,)`.

    Returns:
        Shares, shape `(n,)`.
    """
    members = np.asarray([pool.members for pool in pools])
    known, seen = np.log(pools[0].gangs), np.stack([pool.observed for pool in pools])
    place = np.clip(np.log(gang * members[which]), known[0], known[-1])
    left = np.clip(np.searchsorted(known, place, side="right") - 1, 0, len(known) - 2)
    share = (place - known[left]) / (known[left + 1] - known[left])
    return np.asarray(seen[which, left] * (1.0 - share) + seen[which, left + 1] * share, dtype=np.float64)


def family_of(instance_type: str) -> str:
    """What stands before the first point or dash: `p3` of `p3.2xlarge`."""
    return instance_type.split(".", 1)[0].split("-", 1)[0]


@cache
def recorded_pools() -> dict[Key, Pool]:
    """All recorded pools by (provider, type, region, zone).

    An empty zone or region is the mean of all of them; `FAMILY*` as type stands for sizes that were not recorded.
    """
    found: dict[Key, list[tuple[list[float], str]]] = {}
    with DATA_FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for provider, kind, region, zone, *numbers, source in rows:
            row = [float(text) for text in numbers]
            found.setdefault((provider, kind, region, zone), []).append((row, source))
    return {key: _pool(rows_of) for key, rows_of in found.items()}


def _pool(rows: list[tuple[list[float], str]]) -> Pool:
    numbers = np.asarray([values for values, _ in rows])
    return Pool(numbers[:, 0], numbers[:, 1:-1], rows[0][1], numbers[:, -1])


def find_pool(
    provider: str, instance_type: str, region: str, zone: str, accelerators: float = 1.0
) -> Pool | None:
    """The nearest recorded pool: the zone, its region, the type, other sizes of its family; None without any.

    Args:
        provider: and the following, where spot is asked for.
        instance_type: what is asked for.
        region: its region.
        zone: its zone, empty where the catalog knows none.
        accelerators: of one instance; records of other sizes of the family are of so many accelerators.
    """
    pools = recorded_pools()
    family = f"{family_of(instance_type)}*"
    keys = (
        (provider, instance_type, region, zone), (provider, instance_type, region, ""),
        (provider, instance_type, "", ""), (provider, family, region, zone), (provider, family, region, ""),
        (provider, family, "", ""),
    )  # fmt: skip
    key = next((key for key in keys if key in pools), None)
    if key is None:
        return None
    return pools[key]._replace(members=max(accelerators, 1.0)) if key[1] == family else pools[key]


def pool_of(
    model: HazardModel, provider: str, instance_type: str, region: str, zone: str, accelerators: float = 0.0
) -> Pool | None:
    """The same straight from hazards, for evidence of the user's own: gangs are instances."""
    from planner.spot.hazards import load_hazards

    label = RECORDED if model.cells is load_hazards().cells else OWN_RECORDS
    place = spot_zone(provider, instance_type, region, zone, accelerators)
    if not model.knows_family(place):
        return None
    tables = [model.table_for(replace(place, gang=gang)) for gang in GANGS]
    values = np.asarray([figures_of(table) for table in tables])
    source = f"{label}: {tables[0].source}"
    observed = np.asarray([np.nan if t.observed_ratio is None else t.observed_ratio for t in tables])
    return Pool(np.asarray(GANGS, dtype=np.float64), values, source, observed)


def spot_zone(
    provider: str, instance_type: str, region: str, zone: str, accelerators: float = 0.0
) -> SpotZone:
    """The place as hazards know it: its zone, or its region where the catalog knows no zones."""
    from planner.spot.policy.job import SpotZone

    return SpotZone(zone or region, region, instance_type, 0.0, provider, accelerators=round(accelerators))


def figures_of(table: HazardTable) -> tuple[float, ...]:
    """The renewal model's figures of an age-dependent table (formulas: `planner.spot.evidence`)."""
    up, up_square = _spell(table.age_edges_hours, table.down_per_hour)
    down, down_square = _spell(table.age_edges_hours, table.up_per_hour)
    spread = (up * up * (down_square - down * down) + down * down * (up_square - up * up)) / up**3
    dispersion = spread / (2.0 * down * down / up)
    own = (
        spell_sd(table.age_edges_hours, table.down_per_hour, table.frailty_sd_down),
        spell_sd(table.age_edges_hours, table.up_per_hour, table.frailty_sd_up),
    )
    sd = float(np.hypot(*own) / np.sqrt(2.0))
    # a table holds median levels; the renewal model's frailties have mean 1
    mean = float(np.exp(sd * sd / 2.0))
    return (mean / up, down * mean, down_square / (2.0 * down) * mean, sd, dispersion)


def spell_sd(edges: Floats, hazard: Floats, sd: float) -> float:
    """Sd of the log mean spell where the log level of its hazard has `sd`.

    Hazards fall with age, so a higher level also keeps spells from the ages at which they last: their mean moves about
    twice as far as the level. Taken straight between one sd below and one above.
    """
    longest, shortest = (_spell(edges, hazard * np.exp(z * sd))[0] for z in (-1.0, 1.0))
    return float(np.log(longest / shortest) / 2.0)


def level_sd(edges: Floats, hazard: Floats, sd: float) -> float:
    """Sd of the log level that spreads mean spells by `sd` (log): the inverse of `spell_sd`, by bisection."""
    low, high = 0.0, sd  # spells move at least as far as levels
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spell_sd(edges, hazard, middle) < sd else (low, middle)
    return 0.5 * (low + high)


def as_wide(table: HazardTable, sd: float) -> HazardTable:
    """The table with levels that spread its mean spells by `sd` (log), as a plan takes pools without a record."""
    edges = table.age_edges_hours
    down, up = (level_sd(edges, hazard, sd) for hazard in (table.down_per_hour, table.up_per_hour))
    return replace(table, frailty_sd_down=down, frailty_sd_up=up)


def _spell(edges: Floats, hazard: Floats) -> tuple[float, float]:
    """Mean and second moment of a spell whose hazard is constant between `edges`.

    Integrals of the survival function S: E[X] = int S, E[X^2] = 2 int t S.
    """
    h, width = np.maximum(hazard, 1e-6), np.diff(edges)
    survive = np.exp(-np.concatenate(([0.0], np.cumsum(h[:-1] * width))))
    end = np.append(np.exp(-h[:-1] * width), 0.0)
    tail = np.append(width, 0.0) * end
    area = survive * (1.0 - end) / h
    moment = survive * ((1.0 - end) / h**2 - tail / h) + edges * area
    return float(area.sum()), float(2.0 * moment.sum())


def pools_text() -> str:
    """The file as the bundled hazards give it."""
    from planner.spot.hazards import load_hazards

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    model = load_hazards()
    for provider, kind, region, zone in _places(model):
        # another size of one accelerator stands for all sizes of its family: their gangs are counted in accelerators
        others = kind.endswith("*")
        asked = f"{kind[:-1]}.other" if others else kind
        pool = pool_of(model, provider, asked, region, zone, 1.0 if others else 0.0)
        assert pool is not None
        for gang, values, seen in zip(pool.gangs, pool.values, pool.observed, strict=True):
            figures = [f"{value:.5g}" for value in (*values, seen)]
            writer.writerow([provider, kind, region, zone, f"{gang:.0f}", *figures, pool.source])
    return out.getvalue()


def _places(model: HazardModel) -> Iterator[Key]:
    seen = {(c.provider, c.instance_type, c.region, c.zone) for c in model.cells}
    seen |= {(provider, f"{family_of(kind)}*", region, zone) for provider, kind, region, zone in seen}
    seen |= {(provider, kind, region, "") for provider, kind, region, _ in seen}
    seen |= {(provider, kind, "", "") for provider, kind, _, _ in seen}
    yield from sorted(seen)


if __name__ == "__main__":
    from planner.files import write_atomically

    write_atomically(DATA_FILE, pools_text())
