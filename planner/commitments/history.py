"""Usage by the hour, from a simple CSV or from a bill; every bad cell is named with its line.

Simple: columns `hour` (a moment, or a number of hours from the first), `pool`, `instances`. A bill is what
`planner.finops.read` reads (FOCUS 1.0 to 1.4 as CSV or Parquet, the clouds' own exports): rows
with ChargeCategory Usage; units in use are ConsumedQuantity (else PricingQuantity) over the hours of the charge period.
Unused commitments are not use and are left out; use covered by commitments is use like any other.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.files import limited
from planner.files.tables import comma_hint, csv_rows
from planner.finops.read import open_bill
from planner.finops.read.adapters import detect_adapter
from planner.finops.read.columns import detect_dataset
from planner.finops.read.files import inspect_files, line_of
from planner.inputs.faults import near, need_columns
from planner.records import record

if TYPE_CHECKING:
    import pandas as pd

    from planner.inputs.commit_schema import Pool

MAX_HOURS = 5 * 366 * 24
HOUR = timedelta(hours=1)
_WHOLE = re.compile("[0-9]{1,9}")
_DEMAND = ("hour", "pool", "instances")
_TYPE_COLUMNS = ("InstanceType", "x_InstanceType", "SkuId", "SkuPriceId")
_HOUR_UNITS = ("hour", "hours", "hrs", "h", "instance-hours")


@record(frozen=True, eq=False)
class History:
    """Use by the hour.

    Attributes:
        start: the first hour.
        demand: units in use, shape `(n_hours, n_pools)`, pools in the order asked for.
        notes: what a reader must know of the data.
    """

    start: datetime
    demand: Floats
    notes: tuple[str, ...] = ()


@record(frozen=True, eq=False)
class CsvCell:
    """Where a value stands, for messages."""

    file: str
    line: int
    column: str

    def error(self, text: str) -> InputError:
        """Return the error to raise for this cell."""
        return InputError(f"{self.file}:{self.line}: {self.column}: {text}")


def read_history(path: Path, pools: Sequence[Pool], kind: str = "auto") -> History:
    """Read a history of use.

    Args:
        path: CSV, plain or gzip.
        pools: the pools asked for; rows of others are counted, not used (simple CSV: refused).
        kind: `demand`, `focus`, or `auto` (by the header).

    Raises:
        InputError: unreadable file, missing column or bad cell, named with its line.
    """
    if kind == "focus" or (kind == "auto" and _is_parquet(path)):
        return _focus(path, pools)
    with open_text(path) as file:
        reader = csv_rows(file, path)
        header = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = header
        if kind == "auto" and (detect_dataset(header, costs=False) or detect_adapter(header)):
            return _focus(path, pools)
        need_columns(path, header, _DEMAND)
        return _simple(reader, path, pools)


def open_text(path: Path) -> StringIO:
    """Open a CSV, plain or gzip, as text.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file; save it to one, for it is read twice")
    try:
        return limited.open_text(path, limited.MAX_RECORD_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text: save it as UTF-8") from None


def rows_of(reader: csv.DictReader[str], path: Path, width: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and row; short, long and blank lines are named or skipped."""
    for row in reader:
        values = list(row.values())
        if (
            len(values) > width or None in values
        ):  # DictReader puts spare cells together, and None where one lacks
            raise InputError(f"{path}:{reader.line_num}: has not the {width} cells of the header")
        if any(value.strip() for value in row.values()):
            yield reader.line_num, row


def parse_units(text: str, cell: CsvCell) -> float:
    """Read a quantity of at least 0."""
    try:
        value = float(text)
    except ValueError:
        raise cell.error(f"must be a number, got {text[:60]!r}{comma_hint(text)}") from None
    if not (math.isfinite(value) and value >= 0):
        raise cell.error(f"must be a finite number of at least 0, got {text[:60]!r}")
    return value


def parse_hour(text: str, cell: CsvCell) -> datetime | int:
    """Read a moment (UTC where no zone is given), or a whole number of hours."""
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise cell.error(
            f"must be a moment like 2026-01-31T15:00Z or a whole number of hours, got {text[:60]!r}"
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _simple(reader: csv.DictReader[str], path: Path, pools: Sequence[Pool]) -> History:
    index = {pool.name: number for number, pool in enumerate(pools)}
    width = len(reader.fieldnames or ())
    counts: dict[tuple[int, int], float] = {}
    first: datetime | int | None = None
    for line, row in rows_of(reader, path, width):
        cell = CsvCell(str(path), line, "pool")
        pool = row["pool"].strip()
        if pool not in index:
            close = near(pool, index)
            hint = f" (did you mean {close!r}?)" if close else ""
            raise cell.error(f"no pool is called {pool[:60]!r}{hint}; the question has {', '.join(index)}")
        hour = parse_hour(row["hour"], CsvCell(str(path), line, "hour"))
        first = hour if first is None else first
        at = _since(hour, first, CsvCell(str(path), line, "hour"))
        key = (at, index[pool])
        if key in counts:
            raise InputError(f"{path}:{line}: hour {row['hour']} of pool {pool} is already listed above")
        counts[key] = parse_units(row["instances"], CsvCell(str(path), line, "instances"))
    if first is None:
        raise InputError(f"{path}: has a header but no rows")
    return _fill(counts, first, len(pools), path, ())


def _since(hour: datetime | int, first: datetime | int, cell: CsvCell) -> int:
    """Return whole hours since `first` (negative where earlier)."""
    if isinstance(hour, datetime) and isinstance(first, datetime):
        return math.floor((hour - first.replace(minute=0, second=0, microsecond=0)) / HOUR)
    if isinstance(hour, int) and isinstance(first, int):
        return hour - first
    raise cell.error("moments and numbers of hours are mixed; use one of them")


def _fill(
    counts: Mapping[tuple[int, int], float],
    first: datetime | int,
    pools: int,
    path: Path,
    notes: tuple[str, ...],
) -> History:
    """Make the table; hours without a row are hours without use."""
    low, high = min(hour for hour, _ in counts), max(hour for hour, _ in counts)
    if high - low >= MAX_HOURS:
        raise InputError(
            f"{path}: spans {high - low + 1:,} hours; at most {MAX_HOURS:,} (five years) are read"
        )
    demand = np.zeros((high - low + 1, pools))
    for (hour, pool), units in counts.items():
        demand[hour - low, pool] = units
    empty = int((~demand.any(axis=1)).sum())
    if empty:
        notes = (*notes, f"{empty:,} of {len(demand):,} hours of the history have no use")
    if isinstance(first, int):
        begin = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday: numbers of hours know no calendar
        notes = (*notes, "hours are numbers without a date: the first is taken as Monday 00:00")
    else:
        begin = first.replace(minute=0, second=0, microsecond=0) + low * HOUR
    return History(begin, demand, notes)


def _focus(path: Path, pools: Sequence[Pool]) -> History:
    """Read use from a bill: FOCUS of any version and form, or an export that is known."""
    extra = tuple(dict.fromkeys([*_TYPE_COLUMNS, *(column for pool in pools for column in pool.usage)]))
    with open_bill([path], extra_columns=extra, costs=False) as bill:
        if faults := [finding for finding in bill.findings if finding.severity == "error"]:
            raise InputError(faults[0].message)
        # columns that no row has are not in the view
        frame = bill.engine.query("SELECT * FROM focus WHERE 1 = 0")
        wanted = [name for name in ("RegionId", "SkuPriceDetails", *extra) if name in frame.columns]
        keys = ", ".join(dict.fromkeys(f'"{name}"' for name in wanted))
        use = bill.engine.query(_USE.format(keys=keys))
    return _add_up(path, pools, use)


_USE = """
SELECT ChargePeriodStart AS begin_at, ChargePeriodEnd AS end_at,
  CASE WHEN ConsumedQuantity IS NULL THEN 'PricingUnit' ELSE 'ConsumedUnit' END AS unit_column,
  CASE WHEN ConsumedQuantity IS NULL THEN PricingUnit ELSE ConsumedUnit END AS unit,
  SUM(COALESCE(ConsumedQuantity, PricingQuantity)) AS quantity, COUNT(*) AS row_count, {keys}
FROM focus
WHERE COALESCE(ChargeCategory, 'Usage') = 'Usage' AND COALESCE(CommitmentDiscountStatus, '') <> 'Unused'
GROUP BY ChargePeriodStart, ChargePeriodEnd, ConsumedQuantity IS NULL,
  CASE WHEN ConsumedQuantity IS NULL THEN PricingUnit ELSE ConsumedUnit END, {keys}
ORDER BY ChargePeriodStart, ChargePeriodEnd, unit, {keys}
"""


def _add_up(path: Path, pools: Sequence[Pool], use: pd.DataFrame) -> History:
    counts: dict[tuple[int, int], float] = {}
    first: datetime | None = None
    other, longest = 0, HOUR
    for record_ in use.to_dict("records"):
        row = {str(name): value if isinstance(value, str) else "" for name, value in record_.items()}
        pool = _pool_of(row, pools)
        if pool is None:
            other += int(record_["row_count"])
            continue
        begin, end = _utc(record_["begin_at"]), _utc(record_["end_at"])
        if begin is None or end is None or end <= begin:
            where = _line(path, lambda cells: cells["ChargePeriodEnd"] <= cells["ChargePeriodStart"])
            raise InputError(f"{where}: ChargePeriodEnd: is not after ChargePeriodStart ({begin} to {end})")
        unit, amount = row["unit"], float(record_["quantity"])
        if unit and pools[pool].unit == "instance" and unit.strip().lower() not in _HOUR_UNITS:
            column = row["unit_column"]
            where = _line(path, partial(_has, column, unit))
            raise InputError(f"{where}: {column}: must be hours for a pool of instances, got {unit!r}")
        if not amount >= 0:
            where = f"{path}: use of pool {pools[pool].name} at {begin:%Y-%m-%dT%H:%MZ}"
            raise InputError(f"{where}: the quantity is {amount:g}; it must be a number of at least 0")
        first = begin.replace(minute=0, second=0, microsecond=0) if first is None else first
        longest = max(longest, end - begin)
        for hour, share in _hours(begin, end, first):
            counts[hour, pool] = counts.get((hour, pool), 0.0) + amount * share
    if first is None:
        raise InputError(
            f"{path}: no usage row belongs to a pool; {other:,} belong to others (see 'usage' of a pool)"
        )
    notes = [f"{other:,} usage rows of the history belong to no pool and are left out"] if other else []
    if longest > HOUR:
        text = f"charge periods are up to {longest / HOUR:g} h long: hourly peaks are not seen"
        notes.append(f"{text}, and commitments look better used than they are")
    return _fill(counts, first, len(pools), path, tuple(notes))


def _utc(moment: pd.Timestamp) -> datetime | None:
    """Return a moment of the view, which is UTC; None where the bill has none."""
    return None if moment != moment else moment.to_pydatetime().replace(tzinfo=UTC)


def _line(path: Path, test: Callable[[Mapping[str, str]], bool]) -> str:
    """Return `file:line` of a CSV's first row that passes a test, else the file."""
    line = line_of(inspect_files([path])[0][0], test)
    return f"{path}:{line}" if line else str(path)


def _has(column: str, cell: str, row: Mapping[str, str]) -> bool:
    return row.get(column) == cell


def _is_parquet(path: Path) -> bool:
    try:
        return limited.read_start(path, 4) == b"PAR1"
    except OSError:
        return False  # told with its reason where the file is read


def _hours(begin: datetime, end: datetime, first: datetime) -> Iterator[tuple[int, float]]:
    """Yield each hour of a charge period with the units that one consumed unit means there."""
    low = (begin - first) / HOUR
    high = (end - first) / HOUR
    for hour in range(math.floor(low), math.ceil(high)):
        overlap = min(high, hour + 1) - max(low, hour)
        yield hour, overlap / (high - low)


def _pool_of(row: Mapping[str, str], pools: Sequence[Pool]) -> int | None:
    """Return the first pool that a FOCUS row belongs to."""
    for number, pool in enumerate(pools):
        if pool.usage:
            if all(row.get(column, "") == value for column, value in pool.usage.items()):
                return number
        elif (
            pool.instance_type
            and row.get("RegionId", "") == pool.region
            and type_of(row) == pool.instance_type
        ):
            return number
    return None


def type_of(row: Mapping[str, str]) -> str:
    """Return the machine type that a row of a bill names; empty where it names none."""
    details = row.get("SkuPriceDetails", "")
    if details.startswith("{"):
        try:
            named = json.loads(details)
        except (ValueError, RecursionError):
            named = {}
        for key in ("InstanceType", "x_InstanceType"):
            if isinstance(named.get(key), str):
                return str(named[key])
    return next((row[name] for name in _TYPE_COLUMNS if row.get(name)), "")
