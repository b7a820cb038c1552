"""From schedule.yaml and the forecast it names to a `LoadedSchedule`, or to errors that name file and line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.files.tables import comma_hint, csv_rows
from planner.inputs.checks import end_moment, start_moment
from planner.inputs.checks_of_jobs import tiny_data
from planner.inputs.documents import Document, read_document
from planner.inputs.faults import Fault, named_twice, near, need_columns
from planner.inputs.load import decode, read_limited
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.schedule_schema import Schedule

MAX_CSV_BYTES = 16 * 1024 * 1024
MAX_HOURS = 24 * 7 * 26  # half a year
MAX_NODES = 1_000_000
MAX_USD = 1e6  # per node-hour
COLUMNS = ("hour", "pool", "usd_per_hour", "available_nodes")


@record(frozen=True, eq=False)
class LoadedSchedule:
    """A valid question.

    Attributes:
        schedule: the file, a read-only view.
        forecast: price and available nodes by (hour, number of the pool); what is absent is not offered.
        n_hours: hours of the forecast.
        windows: first hour of each job, and the hour after its last one.
    """

    schedule: Schedule
    forecast: dict[tuple[int, int], tuple[float, int]]
    n_hours: int
    windows: tuple[tuple[int, int], ...]
    document: Document


def load_schedule(path: Path) -> LoadedSchedule:
    """Load and validate a schedule file with its forecast.

    Raises:
        InputError: lists all faults with their places.
    """
    read: tuple[Schedule, Document] = read_document(path, "schedule", _faults)
    schedule, document = read
    file = path.parent / schedule.forecast_csv
    if not file.is_file():
        raise document.source.error([Fault(("forecast_csv",), f"no such file: {schedule.forecast_csv}")])
    forecast = _table(file, schedule)
    pools = {pool for _, pool in forecast}
    silent = [at for at in range(len(schedule.pools)) if at not in pools]
    if silent:
        raise document.source.error(
            [
                Fault(("pools", at, "name"), f"the forecast {file.name} has no row of this pool")
                for at in silent
            ]
        )
    n_hours = max(hour for hour, _ in forecast) + 1
    faults: list[Fault] = []
    windows = tuple(_window(schedule, at, n_hours, faults) for at in range(len(schedule.jobs)))
    if faults:
        raise document.source.error(faults)
    return LoadedSchedule(schedule, forecast, n_hours, windows, document)


def as_on(loaded: LoadedSchedule, now: datetime) -> LoadedSchedule:
    """The question on a later day: hours of the forecast that are past by then are of no use.

    Raises:
        InputError: no whole hour is left to a job.
    """
    start = start_moment(loaded.schedule.start)
    past = max(0, math.ceil((now - start) / timedelta(hours=1)))
    windows = tuple((max(first, past), last) for first, last in loaded.windows)
    late = [
        (job.name, last)
        for job, (first, last) in zip(loaded.schedule.jobs, windows, strict=True)
        if first >= last
    ]
    if late:
        name, last = late[0]
        ends = start + timedelta(hours=last)
        raise InputError(
            f"--as-of {now:%Y-%m-%d}: job {name!r} ends by {ends:%Y-%m-%d %H:%M}, when its deadline or the forecast "
            "does: leave the job out, or give a later deadline and a longer forecast"
        )
    return replace(loaded, windows=windows)


def _faults(schedule: Schedule) -> Iterator[Fault]:
    pools = [pool.name for pool in schedule.pools]
    yield from named_twice("pools", pools)
    yield from named_twice("jobs", [job.name for job in schedule.jobs])
    for at, job in enumerate(schedule.jobs):
        path = ("jobs", at)
        if job.max_nodes is not None and job.max_nodes < job.min_nodes:
            yield Fault((*path, "max_nodes"), f"is below min_nodes ({job.min_nodes})")
        for name in job.work_per_node_hour:
            if name not in pools:
                yield Fault(
                    (*path, "work_per_node_hour", name), f"no pool {name!r}", near(name, pools), at_key=True
                )
        if job.data is not None and not all(job.data.location.partition("/")):
            yield Fault((*path, "data", "location"), "must be provider/region, like aws/us-east-1")
        if job.data is not None:
            yield from tiny_data((*path, "data", "size"), job.data.size)


def _window(schedule: Schedule, at: int, n_hours: int, faults: list[Fault]) -> tuple[int, int]:
    """The whole hours of the forecast in which a job may run."""
    job, start = schedule.jobs[at], start_moment(schedule.start)
    first = math.ceil(_hours(job.earliest_start, start, end=False)) if job.earliest_start is not None else 0
    last = math.floor(_hours(job.deadline, start, end=True)) if job.deadline is not None else n_hours
    if first < 0:
        faults.append(Fault(("jobs", at, "earliest_start"), "is before the start of the forecast"))
    if last > n_hours:
        text = f"is {last} hours from the start; the forecast ends after {n_hours}: extend it or come earlier"
        faults.append(Fault(("jobs", at, "deadline"), text))
    if last <= first:
        key = "deadline" if job.deadline is not None else "earliest_start"
        faults.append(Fault(("jobs", at, key), "leaves no whole hour between earliest start and deadline"))
    return first, last


def _hours(value: date | datetime | timedelta, start: datetime, *, end: bool) -> float:
    if not isinstance(value, timedelta):
        value = (end_moment if end else start_moment)(value) - start
    return value / timedelta(hours=1)


def _table(file: Path, schedule: Schedule) -> dict[tuple[int, int], tuple[float, int]]:
    """Price and nodes by hour and pool."""
    quotes: dict[tuple[int, int], tuple[float, int]] = {}
    for line, hour, pool, usd, nodes in _rows(file, schedule):
        if (hour, pool) in quotes:
            name = schedule.pools[pool].name
            raise InputError(f"{file}:{line}: hour {hour} of {name!r} is given twice")
        quotes[hour, pool] = usd, nodes
    if not quotes:
        raise InputError(f"{file}:2: there is no row; needed: {', '.join(COLUMNS)}")
    return quotes


def _rows(file: Path, schedule: Schedule) -> Iterator[tuple[int, int, int, float, int]]:
    """Line, hour, number of the pool, price and nodes of each row."""
    reader = csv_rows(decode(read_limited(file, MAX_CSV_BYTES), str(file)), file)
    need_columns(file, reader.fieldnames, COLUMNS)
    names = [pool.name for pool in schedule.pools]
    for row in reader:
        place = f"{file}:{reader.line_num}"
        if row["pool"] not in names:
            hint = f" (did you mean '{near(row['pool'] or '', names) or names[0]}'?)"
            raise InputError(f"{place}: no pool '{str(row['pool'])[:60]}'{hint}")
        hour = _number(row, "hour", place, MAX_HOURS - 1, whole=True)
        usd = _number(row, "usd_per_hour", place, MAX_USD)
        nodes = _number(row, "available_nodes", place, MAX_NODES, whole=True)
        yield reader.line_num, int(hour), names.index(row["pool"]), usd, int(nodes)


def _number(row: dict[str, str], name: str, place: str, most: float, *, whole: bool = False) -> float:
    text = row[name]
    try:
        value = Decimal(text.strip())
        good = value.is_finite() and 0 <= value <= Decimal(most) and not (whole and value % 1)
    except (AttributeError, InvalidOperation):
        good = False
    if not good:
        kind = "a whole number" if whole else "a number"
        kind += " of hours after 'start'" if name == "hour" else ""
        raise InputError(
            f"{place}: {name} must be {kind} from 0 to {most:,.0f}, got '{(text or '')[:60]}'{comma_hint(text)}"
        )
    return float(value)
