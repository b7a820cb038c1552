"""From samples to traces: zone names, the interval of the probes behind a file, gaps, and which way round a file is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.spot.trace import ZoneTrace

UNKNOWN_START = datetime(1970, 1, 1, tzinfo=UTC)
_STEP_SHARE = 0.97  # of spells that must be whole steps of a longer probe interval
_SHORT = 16  # samples
MOST_HOURS = 100 * 366 * 24  # of a record
_HELD_PROBES = 3.0  # a value is taken to hold for at most this many probe intervals


class Published(NamedTuple):
    """A zone of a published trace: how much of the time it was up, and for how many instances."""

    instance_type: str
    gang: int
    availability_ratio: float


class ZoneSamples(NamedTuple):
    """Samples of one zone at even spacing, before they are put on a grid.

    Attributes:
        name: zone as the file calls it.
        start: first sample (UTC).
        gap_hours: spacing of the samples.
        instances: how many could be had, shape `(n_samples,)`.
        prices: USD per hour, shape `(n_samples,)`; NaN where unknown.
        on_demand_usd_per_hour: None where unknown.
        instance_type: empty where the file does not say.
    """

    name: str
    start: datetime
    gap_hours: float
    instances: Floats
    prices: Floats
    on_demand_usd_per_hour: float | None = None
    instance_type: str = ""
    provider: str = ""
    region: str = ""


def trace_of(zone: ZoneSamples, gang: int, tick_hours: float, source: str) -> ZoneTrace:
    """Put samples on the grid; a tick is up when `gang` instances could be had.

    Raises:
        InputError: a price is not a number above 0, or there are no samples or samples of centuries.
    """
    _check_prices(zone, source)
    if not 0.0 < len(zone.instances) * zone.gap_hours <= MOST_HOURS:
        raise InputError(
            f"{source}: zone {zone.name}: {len(zone.instances):,} samples every {zone.gap_hours:g} h; a record has at "
            "least one, and covers at most 100 years"
        )
    at = first_samples(len(zone.instances), zone.gap_hours, tick_hours)
    up = zone.instances >= gang
    provider, region = place_of(zone.name)
    known = published().get(zone.name)
    return ZoneTrace(
        provider=zone.provider or provider,
        region=zone.region or region,
        zone=zone.name,
        instance_type=zone.instance_type or (known[0].instance_type if known else ""),
        gang=gang,
        start=zone.start,
        tick_hours=tick_hours,
        up=up_on_grid(up, zone.gap_hours, tick_hours),
        spot_usd_per_hour=zone.prices[at],
        on_demand_usd_per_hour=zone.on_demand_usd_per_hour,
        source=source,
        probe_hours=probe_hours(up, zone.gap_hours),
    )


def _check_prices(zone: ZoneSamples, source: str) -> None:
    listed = [] if zone.on_demand_usd_per_hour is None else [zone.on_demand_usd_per_hour]
    for what, usd in (("spot", zone.prices), ("on-demand", np.asarray(listed, dtype=np.float64))):
        wrong = usd[(usd <= 0) | np.isinf(usd)]
        if len(wrong):
            raise InputError(
                f"{source}: zone {zone.name}: {what} price of {wrong[0]:g} an hour: leave it out where it is unknown"
            )


def place_of(zone: str) -> tuple[str, str]:
    """Provider and region of a zone id: AWS ends in a letter, GCP in a dash and a letter; empty where unclear."""
    base = zone.split("_", 1)[0]
    if re.fullmatch(r"[a-z]+-[a-z]+\d+-[a-z]", base):
        return "gcp", base[:-2]
    if re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", base):
        return "aws", base[:-1]
    return "", base


def probe_hours(up: Bools, gap_hours: float) -> float:
    """Interval of the probes behind a file: its own spacing, or a longer one that its spells come in whole steps of.

    The nine-zone V100 file has a sample every 195 s, yet all its spells last about 3.08, 6.15, 9.2 ... samples: the
    probes were ten minutes apart and repeated. Spells shorter than a probe interval are invisible.

    Args:
        up: samples, shape `(n_samples,)`.
        gap_hours: spacing of the file.
    """
    edges = np.flatnonzero(up[1:] != up[:-1]) + 1
    spells = np.diff(edges)
    # long spells are whole steps of nearly everything; twenty short ones are enough to tell
    short = spells[spells <= _SHORT]
    if len(short) < 20 or short.min() < 2:
        return gap_hours
    best, steps = 0.0, [1.0]
    for step in np.arange(2.0, 6.0, 0.02).round(2).tolist():
        whole = np.arange(1, int(_SHORT / step) + 2) * step
        allowed = np.union1d(np.floor(whole), np.ceil(whole))
        allowed = allowed[allowed <= _SHORT]
        share = float(np.isin(short, allowed).mean())
        # how much better than a step that allows as many lengths by chance
        gain = share - len(allowed) / _SHORT if share >= _STEP_SHARE else 0.0
        if gain > best + 1e-9:
            best, steps = gain, [step]
        elif gain > 0.0 and abs(gain - best) <= 1e-9:
            steps.append(step)
    return gap_hours * float(np.mean(steps))


def check_polarity(zones: Sequence[ZoneSamples], where: str) -> None:
    """Refuse samples that read the wrong way round.

    A file's zones are compared with the published availability of the zones of those names. Availability drifts by
    0.2 in two weeks, so only zones together can tell: refused when on the average they are nearer to the published
    figures upside down, by more than half that drift.

    Args:
        zones: as they were read.
        where: the file or folder, for the message.

    Raises:
        InputError: values that mean `preempted` were read as `available`, or the other way round.
    """
    shift = polarity_shift(zones)
    if shift is not None and shift > 0.1:
        raise InputError(
            f"{where}: reads the wrong way round: turned over, its zones are {shift:.2f} nearer to the published "
            "availability (planner/data/spot/published_availability.csv); say what its values mean: instances that can "
            "be had (polarity `instances`) or 1 = preempted (polarity `preempted`)"
        )


def polarity_shift(zones: Sequence[ZoneSamples]) -> float | None:
    """How much nearer to the published figures the zones are upside down; negative: they stand right; None: unknown.

    A zone with several published records takes the nearest either way.
    """
    shifts = []
    for zone in zones:
        rows = published().get(zone.name, ())
        if len(zone.instances) == 0 or not rows:
            continue
        gaps = []
        for row in rows:
            share = float((zone.instances >= row.gang).mean())
            gaps.append((abs(share - row.availability_ratio), abs(1.0 - share - row.availability_ratio)))
        shifts.append(min(g[0] for g in gaps) - min(g[1] for g in gaps))
    return float(np.mean(shifts)) if shifts else None


def on_even_grid(
    times: Sequence[datetime], values: npt.ArrayLike, prices: npt.ArrayLike
) -> list[tuple[datetime, float, Floats, Floats]]:
    """Uneven probes as runs of even samples: start, gap hours, values, prices.

    A value holds until the next probe, but no longer than three usual intervals: a longer hole ends the run, so that
    no spell is drawn through hours nobody watched.
    """
    order = np.argsort(np.asarray([time.timestamp() for time in times]), kind="stable")
    stamp = np.asarray([times[i].timestamp() for i in order]) / 3600.0
    value, price = np.asarray(values, dtype=float)[order], np.asarray(prices, dtype=float)[order]
    if len(stamp) < 2:
        return []
    steps = np.diff(stamp)
    # to the millisecond: hours since 1970 hold no finer difference, and a grid must not lose its last tick to it
    usual = round(float(np.median(steps[steps > 0])) * 3600.0, 3) / 3600.0 if (steps > 0).any() else 0.0
    if usual <= 0.0:
        return []
    out = []
    for run in np.split(np.arange(len(stamp)), np.flatnonzero(steps > _HELD_PROBES * usual) + 1):
        n = round((stamp[run[-1]] - stamp[run[0]]) / usual) + 1
        if n < 2:
            continue
        grid = stamp[run[0]] + np.arange(n) * usual
        at = run[np.clip(np.searchsorted(stamp[run], grid + usual / 2.0) - 1, 0, len(run) - 1)]
        start = datetime.fromtimestamp(0, UTC) + timedelta(hours=float(stamp[run[0]]))
        out.append((start, usual, value[at], price[at]))
    return out


@cache
def published() -> dict[str, tuple[Published, ...]]:
    """Published availability per zone name of the public traces."""
    found: dict[str, list[Published]] = {}
    for row in bundled_rows("spot/published_availability.csv"):
        one = Published(row["instance_type"], int(row["gang"]), float(row["availability_ratio"]))
        found.setdefault(row["zone"], []).append(one)
    return {zone: tuple(rows) for zone, rows in found.items()}


def first_samples(n_samples: int, gap_hours: float, tick_hours: float) -> Ints:
    """Sample in force at the start of each whole tick, shape `(n_ticks,)`."""
    n = int(n_samples * gap_hours / tick_hours + 1e-9)
    return np.minimum((np.arange(n) * (tick_hours / gap_hours) + 1e-9).astype(np.int64), n_samples - 1)


def up_on_grid(up: Bools, gap_hours: float, tick_hours: float) -> Bools:
    """Availability per tick.

    A tick shorter than three samples takes the value in force at its start; a longer one is up only if all its
    samples are, since one interruption within it ends the tick's work.
    """
    start = first_samples(len(up), gap_hours, tick_hours)
    if gap_hours * 3.0 >= tick_hours - 1e-9:
        return np.asarray(up[start])
    stop = np.minimum(np.ceil((np.arange(len(start)) + 1) * (tick_hours / gap_hours) - 1e-9), len(up))
    down = np.concatenate(([0], np.cumsum(~up)))
    return np.asarray(down[stop.astype(np.int64)] == down[start])
