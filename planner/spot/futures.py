"""Futures of spot capacity: spells drawn from age hazards, from the state at launch and what the last day showed.

Three things move the hazards of a table in a future:

* levels per side, constant over the job: one of each zone, and one that zones of an instance type share, since days
  differ for all of them (`planner.spot.levels`). What the last hours showed narrows both.
* weather shared by the zones of a region, and weather shared by all zones: Ornstein-Uhlenbeck, at launch by the spells
  that zones are in, up hazards moving against down hazards. It makes zones fail together.
* chance: within a tick a spell ends with probability `1 - exp(-theta h0 tick)`, where h0 is the table's hazard under
  usual conditions (`planner.spot.calm`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.records import record
from planner.spot.calm import calm_hazards, log_chance_of_weather
from planner.spot.hazards import HazardTable, Weather, age_bucket, load_weather
from planner.spot.hazards_cells import plain_type, spell_age_ticks
from planner.spot.levels import Known, draw_levels
from planner.spot.policy.job import SpotJob, SpotZone

Float32Array = npt.NDArray[np.float32]

_MAX_AGE_HOURS = 400.0  # beyond it a hazard stays what it is
_WEATHER_TICKS = 5  # weather moves every half hour of a 0.1 h grid: fine against its 12 h
_WEATHER_DRAWS = 64  # of the weather at launch, of which each future takes one
_NOISE_TICKS = 64  # noise is drawn in blocks, to keep the calls few and the memory small


@record(frozen=True, eq=False)
class Spells:
    """One side of a table on the grid of ticks; index a stands for the tick in which the spell is a + 1 ticks old.

    Attributes:
        hazard: hazard per tick, shape `(n_ages,)`.
        residual: the same for a spell found running and watched for a + 1 ticks (equilibrium renewal): the hazard of
            `S(t) / integral of S from t`.
        survival: chance that a spell reaches each age, shape `(n_ages,)`.
    """

    hazard: Floats
    residual: Floats
    survival: Floats


@record(frozen=True, eq=False)
class Launch:
    """Futures of a job's zones at launch, before their first tick.

    Attributes:
        up: shape `(n, n_zones)`.
        age: ticks of the present spell less 1, shape `(n, n_zones)`.
        level: factors of the hazards of up and of down spells, shape `(2, n, n_zones)`.
        hazard: per tick in calm weather, by zone: ages of up spells, then of down spells.
        region: number of each zone's region, shape `(n_zones,)`.
        local: weather of each zone's region over its sd, shape `(n, n_zones)`.
        common: weather of all zones over its sd, shape `(n, 1)`.
    """

    up: Bools
    age: Ints
    level: Floats
    hazard: Float32Array
    region: Ints
    local: Floats
    common: Floats


def spells_of(hazard_per_hour: Floats, tick_hours: float) -> Spells:
    """A side of a table on a grid of ticks."""
    n = round(_MAX_AGE_HOURS / tick_hours)
    hazard = hazard_per_hour[age_bucket((np.arange(n) + 1) * tick_hours)] * tick_hours
    # kept above zero for the quotient below: ages that no spell reaches
    survival = np.maximum(np.exp(-np.concatenate(([0.0], np.cumsum(hazard[:-1])))), 1e-200)
    # ticks still ahead: the sum of the survival, beyond the last age at its constant hazard
    tail = survival[-1] / -np.expm1(-max(float(hazard[-1]), 1e-12))
    ahead = np.cumsum(np.append(survival[:-1], tail)[::-1])[::-1]
    return Spells(hazard, -np.log1p(-np.minimum(survival / ahead, 1.0 - 1e-12)), survival)


@record(frozen=True, eq=False)
class Seen:
    """What a history says about one zone.

    Attributes:
        up: whether the zone was up at the last tick seen; None without a history.
        age_ticks: length of the present spell, that tick included; the whole history where it began before.
        age_known: whether the history shows its beginning.
        downs, downs_expected: ends of up spells, and what the table expects for the same hours.
        ups, ups_expected: the same of down spells.
    """

    up: bool | None
    age_ticks: int = 0
    age_known: bool = False
    downs: float = 0.0
    downs_expected: float = 0.0
    ups: float = 0.0
    ups_expected: float = 0.0


def seen_in(history: Bools, up: Spells, down: Spells) -> Seen:
    """Count a history against a table.

    Args:
        history: up per tick, oldest first, shape `(n_ticks,)`.
        up: hazards of up spells.
        down: hazards of down spells.
    """
    n = len(history)
    if n == 0:
        return Seen(None)
    age = np.minimum(spell_age_ticks(history), len(up.hazard))
    other = history != history[0]
    began = np.arange(n) >= (int(np.argmax(other)) if other.any() else n)
    counts = []
    for side, spells in ((history, up), (~history, down)):
        hazard = np.where(began, spells.hazard[age - 1], spells.residual[age - 1])
        counts += [float((side[:-1] & ~side[1:]).sum()), float(hazard[:-1][side[:-1]].sum())]
    return Seen(bool(history[-1]), int(age[-1]), bool(began[-1]), *counts)


def sample_futures(
    job: SpotJob,
    tables: Mapping[str, HazardTable],
    n: int,
    ticks: int,
    seed: int = 0,
    *,
    weather: Weather | None = None,
) -> Bools:
    """Futures of all zones of a job, from its launch on.

    Args:
        job: its zones and what their last hours showed (`job.history`).
        tables: hazards by zone name.
        n: futures.
        ticks: length of each, in ticks of the job.
        seed: of the generator; the same seed gives the same futures.
        weather: what zones share; None takes the bundled fit.

    Returns:
        Whether each zone is up, shape `(n, n_zones, ticks)`.
    """
    rng = np.random.default_rng(seed)
    sky = load_weather() if weather is None else weather
    return run_on(rng, draw_launch(rng, job, tables, n, sky), sky, ticks, job.tick_hours)


def draw_launch(
    rng: np.random.Generator, job: SpotJob, tables: Mapping[str, HazardTable], n: int, sky: Weather
) -> Launch:
    """What is drawn at a job's launch, from its tables and what its last hours showed; arguments as above."""
    starts = [_start(rng, job, zone, tables[zone.name], n) for zone in job.zones]
    of = [tables[zone.name] for zone in job.zones]
    names = [zone.region for zone in job.zones]
    region = np.asarray([names.index(name) for name in names])
    up = np.stack([start[0] for start in starts], axis=1)
    age = np.stack([start[1] for start in starts], axis=1)
    ages_hours = np.asarray((age + 1) * job.tick_hours, dtype=np.float64)
    local, common = _weather(rng, of, sky, (up, ages_hours), region)
    return Launch(
        up=up,
        age=age,
        level=_levels(rng, job, tables, [start[2] for start in starts], n),
        hazard=np.concatenate([_calm_per_tick(table, sky, job.tick_hours) for table in of]),
        region=region,
        local=local,
        common=common,
    )


def _weather(
    rng: np.random.Generator,
    tables: Sequence[HazardTable],
    sky: Weather,
    spells: tuple[Bools, Floats],
    region: Ints,
) -> tuple[Floats, Floats]:
    """Weather at launch of each zone's region and of all, over their sds, given the spells that zones are in.

    Each future takes one of several draws, with the chance that spells have lasted in it.

    Args:
        rng: generator.
        tables: of the zones.
        sky: sds of weather.
        spells: whether zones are up, and the hours that their spells have lasted, shape `(n, n_zones)` each.
        region: number of each zone's region.
    """
    (up, ages_hours), sd = spells, float(np.hypot(sky.region_sd, sky.common_sd))
    n, n_zones = up.shape
    local = rng.standard_normal((n, _WEATHER_DRAWS, n_zones))[:, :, region]
    common = rng.standard_normal((n, _WEATHER_DRAWS))
    log_chance = np.zeros((n, _WEATHER_DRAWS))
    for zone, table in enumerate(tables if sd > 0 else ()):
        weather = (sky.region_sd * local[:, :, zone] + sky.common_sd * common) / sd
        log_chance += log_chance_of_weather(table, sky, up[:, zone], ages_hours[:, zone], weather)
    chance = np.cumsum(np.exp(log_chance - log_chance.max(axis=1, keepdims=True)), axis=1)
    taken = (chance < rng.random((n, 1)) * chance[:, -1:]).sum(axis=1)
    return local[np.arange(n), taken], common[np.arange(n), taken, None]


def _start(
    rng: np.random.Generator, job: SpotJob, zone: SpotZone, table: HazardTable, n: int
) -> tuple[Bools, Ints, Seen]:
    """State, age in ticks less 1 and what was seen of one zone."""
    up, down = spells_of(table.down_per_hour, job.tick_hours), spells_of(table.up_per_hour, job.tick_hours)
    seen = seen_in(np.asarray(job.history.get(zone.name, ()), dtype=np.bool_), up, down)
    state = rng.random(n) < table.availability_ratio if seen.up is None else np.full(n, seen.up)
    if seen.age_known:
        age = np.full(n, seen.age_ticks - 1)
    else:
        # found running: any age beyond what was watched, by the chance that a spell reaches it
        watched, share, age = max(seen.age_ticks - 1, 0), rng.random(n), np.zeros(n, dtype=np.int64)
        for of, spells in ((state, up), (~state, down)):
            reach = np.cumsum(spells.survival[watched:])
            age[of] = watched + np.searchsorted(reach, share[of] * reach[-1])
    return state, np.minimum(age, len(up.hazard) - 1), seen


def _calm_per_tick(table: HazardTable, sky: Weather, tick_hours: float) -> Float32Array:
    """Hazards per tick in calm weather: ages of up spells, then of down spells."""
    ages = np.arange(1.0, round(_MAX_AGE_HOURS / tick_hours) + 1.0) * tick_hours
    return np.asarray(np.concatenate(calm_hazards(table, sky, ages)) * tick_hours, dtype=np.float32)


def _levels(
    rng: np.random.Generator, job: SpotJob, tables: Mapping[str, HazardTable], seen: Sequence[Seen], n: int
) -> Floats:
    """Levels of the hazards of up and of down spells, shape `(2, n, n_zones)`."""
    pools = [(zone.provider, plain_type(zone.instance_type)) for zone in job.zones]
    of = [tables[zone.name] for zone in job.zones]
    lines = [None if table.hours_seen else table.source for table in of]
    down, up = [], []
    for pool, table, spells, line in zip(pools, of, seen, lines, strict=True):
        down.append(Known(pool, table.frailty_sd_down, spells.downs, spells.downs_expected, line))
        up.append(Known(pool, table.frailty_sd_up, spells.ups, spells.ups_expected, line))
    return np.stack([draw_levels(rng, "down", down, n).T, draw_levels(rng, "up", up, n).T])


def run_on(rng: np.random.Generator, launch: Launch, sky: Weather, ticks: int, tick_hours: float) -> Bools:
    """Step all zones of all futures through the ticks together; shape `(n, n_zones, ticks)`."""
    up, age, level, hazard, region = launch.up, launch.age, launch.level, launch.hazard, launch.region
    n, n_zones = up.shape
    n_ages = len(hazard) // (2 * n_zones)
    first = np.arange(n_zones) * (2 * n_ages)
    keep = float(np.exp(-_WEATHER_TICKS * tick_hours / sky.hours))
    shake = float(np.sqrt(1.0 - keep * keep))
    local, common = launch.local, launch.common
    out = np.empty((ticks, n, n_zones), dtype=np.bool_)
    level_down, level_up = (level[side].astype(np.float32) for side in (0, 1))
    noise = np.empty((0, n, n_zones), dtype=np.float32)
    for tick in range(ticks):
        if tick % _NOISE_TICKS == 0:
            noise = rng.standard_exponential((min(_NOISE_TICKS, ticks - tick), n, n_zones), dtype=np.float32)
        if tick % _WEATHER_TICKS == 0:
            local = keep * local + shake * rng.standard_normal((n, n_zones))[:, region]
            common = keep * common + shake * rng.standard_normal((n, 1))
            factor = np.exp(sky.region_sd * local + sky.common_sd * common).astype(np.float32)
            down_now, up_now = level_down * factor, level_up / factor
        rate = hazard[first + np.where(up, 0, n_ages) + age] * np.where(up, down_now, up_now)
        leave = noise[tick % _NOISE_TICKS] < rate
        up = up ^ leave
        age = np.where(leave, 0, np.minimum(age + 1, n_ages - 1))
        out[tick] = up
    return np.ascontiguousarray(out.transpose(1, 2, 0))
