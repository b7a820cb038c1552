"""Counts behind the hazards: hours seen and ends of spells, by age of the spell, per zone, type, gang and period."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.files import write_atomically
from planner.records import record
from planner.spot.trace import ZoneTrace

# Lower edges of the age buckets. They double, and lie between the ticks of a 0.1 h grid, so that rounding of an age
# never moves it to another bucket. Median spells last 0.2-1.5 h, the longest 140 h.
AGE_EDGES_HOURS: Floats = np.asarray([0.0, 0.15, 0.35, 0.75, 1.55, 3.15, 6.35, 12.75, 25.55, 51.15])
N_AGES = len(AGE_EDGES_HOURS)
DATA_DIRECTORY = Path(__file__).parents[1] / "data" / "spot"
COLUMNS = (
    "provider", "region", "zone", "instance_type", "gang", "age_from_hours", "age_to_hours", "up_hours",
    "downs", "down_hours", "ups", "source", "as_of",
)  # fmt: skip
MOST_NAMES = 4096  # remembered of each kind; users' records and workloads bring names of their own
_COUNTED = ("up_hours", "downs", "down_hours", "ups")


@record(frozen=True, eq=False)
class HazardCell:
    """What one zone showed for one gang over one period.

    Attributes:
        provider, region, zone, instance_type, gang: what was asked for, and where.
        up_hours: hours seen in up spells by age, shape `(N_AGES,)`; a spell's end counts for half its tick.
        downs: ends of up spells by age, shape `(N_AGES,)`.
        down_hours, ups: the same of down spells.
        source: where it was read.
        as_of: first day of the period, ISO.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    gang: int
    up_hours: Floats
    downs: Floats
    down_hours: Floats
    ups: Floats
    source: str = ""
    as_of: str = ""

    @property
    def hours(self) -> float:
        """Hours seen, up or down."""
        return float(self.up_hours.sum() + self.down_hours.sum())

    @property
    def never_up(self) -> bool:
        """Whether the gang could not be had once in the whole record."""
        return not self.up_hours.any() and not self.ups.any() and bool(self.down_hours.any())


def age_bucket(age_hours: npt.ArrayLike) -> Ints:
    """Index of the age bucket; an age counts the present tick, as `ZoneState.since_hours` does.

    Args:
        age_hours: any shape, non-negative.

    Returns:
        0..N_AGES-1, same shape.
    """
    return np.asarray(np.searchsorted(AGE_EDGES_HOURS, np.asarray(age_hours, float), side="right") - 1)


def spell_age_ticks(up: Bools) -> Ints:
    """Ticks of the present spell up to and with each tick, from the start of the record, shape of `up`.

    The first spell's true age is unknown; it counts from the first tick, as whoever watches the zone would count.
    """
    n = len(up)
    changed = np.flatnonzero(up[1:] != up[:-1]) + 1
    starts = np.zeros(n, dtype=np.int64)
    starts[changed] = changed
    return np.arange(n) - np.maximum.accumulate(starts) + 1


def count_spells(up: Bools, tick_hours: float) -> Floats:
    """Hours seen and ends of spells by age, shape `(4, N_AGES)`: up hours, downs, down hours, ups.

    The chance to leave within a tick is `1 - exp(-h tick)`; with half of its last tick a spell's exposure makes
    `ends / exposure` equal to h up to the third order in `h tick`.
    """
    out = np.zeros((4, N_AGES))
    if len(up) < 2:
        return out
    age = age_bucket(spell_age_ticks(up)[:-1] * tick_hours)
    now, end = up[:-1], up[1:] != up[:-1]
    for row, side in ((0, now), (2, ~now)):
        ends = np.bincount(age[side & end], minlength=N_AGES)
        out[row] = np.bincount(age[side], minlength=N_AGES) * tick_hours - ends * (tick_hours / 2.0)
        out[row + 1] = ends
    return out


def cell_of(trace: ZoneTrace) -> HazardCell:
    """Counts of one trace."""
    up_hours, downs, down_hours, ups = count_spells(np.asarray(trace.up, bool), trace.tick_hours)
    return HazardCell(
        trace.provider, trace.region, plain_zone(trace.zone), plain_type(trace.instance_type), trace.gang,
        up_hours, downs, down_hours, ups, trace.source, trace.start.date().isoformat(),
    )  # fmt: skip


@lru_cache(maxsize=MOST_NAMES)
def plain_zone(name: str) -> str:
    """The provider's zone in a trace's name for it: `us-west-2a` of `us-west-2a_v100_1`."""
    return name.split("_", 1)[0]


@lru_cache(maxsize=MOST_NAMES)
def plain_type(instance_type: str) -> str:
    """Instance type without a gang written behind it: `a3-highgpu-1g` of `a3-highgpu-1g x16`."""
    return re.sub(r"\s+x\d+$", "", instance_type)


@lru_cache(maxsize=MOST_NAMES)
def family_of(instance_type: str) -> str:
    """Family of an instance type: what stands before its first point or dash (`p3` of `p3.2xlarge`)."""
    return re.split(r"[.\-]", instance_type, maxsplit=1)[0]


def cells_text(cells: Iterable[HazardCell]) -> str:
    """The cells as CSV, a row per age bucket that was seen."""
    from planner.render.csv import csv_text

    return csv_text(COLUMNS, _rows(cells))


def _rows(cells: Iterable[HazardCell]) -> Iterator[dict[str, str]]:
    upper = [*AGE_EDGES_HOURS[1:].tolist(), math.inf]
    for cell in cells:
        for at in range(N_AGES):
            if cell.up_hours[at] or cell.down_hours[at]:
                values = (
                    cell.provider, cell.region, cell.zone, cell.instance_type, str(cell.gang),
                    f"{AGE_EDGES_HOURS[at]:g}", f"{upper[at]:g}",
                    *(f"{getattr(cell, name)[at]:.10g}" for name in _COUNTED), cell.source, cell.as_of,
                )  # fmt: skip
                yield dict(zip(COLUMNS, values, strict=True))


def save_cells(cells: Sequence[HazardCell], path: Path) -> None:
    """Write the cells to `path`, whole or not at all."""
    write_atomically(path, cells_text(cells))


def load_cells(path: Path) -> tuple[HazardCell, ...]:
    """Read cells that `save_cells` wrote.

    Raises:
        InputError: the file is missing, lacks a column or holds a figure that is none.
    """
    from planner.inputs.faults import need_columns  # the bundled hazards need none

    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            need_columns(path, reader.fieldnames, COLUMNS)
            return _cells_of(path, list(reader))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _cells_of(path: Path, rows: list[dict[str, str]]) -> tuple[HazardCell, ...]:
    found: dict[tuple[str, ...], Floats] = {}
    for number, row in enumerate(rows, start=2):
        key = tuple(
            row[n] for n in ("provider", "region", "zone", "instance_type", "gang", "source", "as_of")
        )
        try:
            at = int(age_bucket(float(row["age_from_hours"])))
            int(row["gang"])
            values = [float(row[name]) for name in _COUNTED]
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: row {number}: not a number: {error}") from error
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise InputError(f"{path}: row {number}: hours and counts must be finite and not negative")
        found.setdefault(key, np.zeros((4, N_AGES)))[:, at] += values
    out = []
    for (provider, region, zone, type_, gang, source, as_of), counts in found.items():
        up_hours, downs, down_hours, ups = counts
        out.append(
            HazardCell(
                provider, region, zone, type_, int(gang), up_hours, downs, down_hours, ups, source, as_of
            )
        )
    return tuple(out)


def scale(name: str, side: str) -> float:
    """One figure of hazard_scales.csv."""
    return float(scale_rows()[name][side])


@cache
def scale_rows() -> dict[str, dict[str, str]]:
    """All figures by name: texts of the columns `down` and `up`."""
    return {row["name"]: row for row in bundled_rows("spot/hazard_scales.csv")}


@cache
def recorded_types() -> dict[str, int]:
    """Accelerators of one instance, by recorded instance type (recorded_types.csv)."""
    return {row["instance_type"]: int(row["accelerators"]) for row in bundled_rows("spot/recorded_types.csv")}
