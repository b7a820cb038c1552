"""Demand by the hour: the history as its file gives it, and the futures that the question's seed draws from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, read_unpacked
from planner.judge.commits.prices import HOURS_PER_YEAR
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.commit_load import LoadedCommit
    from planner.inputs.commit_schema import CommitQuestion, Planned, Pool

PLACES = 3  # demand is in thousandths of a unit
_MONDAY = datetime(2024, 1, 1, tzinfo=UTC)  # of hours that are numbers
_HOUR = timedelta(hours=1)
_MOST_HOURS = 5 * 366 * 24


@record(frozen=True, eq=False)
class Year:
    """A year of a future: hours after the start and the weight of each, `(n,)`, demand in units, `(n, pools)`."""

    future: int
    year: int
    hour: Ints
    weight: Floats
    demand: Floats


@record(frozen=True, eq=False)
class Futures:
    """All futures: how likely each is, and its years."""

    probability: Floats
    years: tuple[Year, ...]


@record(frozen=True, eq=False)
class OfBill:
    """What the code that made an answer reads of a bill and draws from it, given to its judge: all else is its own.

    Attributes:
        futures: the scenarios drawn.
        sha256: of each file of the bill.
    """

    futures: Futures
    sha256: tuple[str, ...]


def futures_of(loaded: LoadedCommit, years: int) -> Futures:
    """The futures of a question: given in a file, or drawn."""
    question = loaded.question
    if question.scenarios.file is not None:
        return _given(loaded.file(question.scenarios.file), question, years)
    history = None
    if question.demand.file is not None:
        history = read_use(loaded.file(question.demand.file), question.pools, question.demand.format)
    count = question.scenarios.count
    drawn = tuple(year for number in range(count) for year in _drawn(question, history, number, years))
    return Futures(np.full(count, 1.0 / count), drawn)


def read_use(path: Path, pools: Sequence[Pool], form: str) -> tuple[datetime, Floats]:
    """The first hour of a history, and units in use by hour and pool."""
    data = read_unpacked(path, MAX_RECORD_BYTES)
    if form != "focus" and data[:4] != b"PAR1":
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        if {"hour", "pool", "instances"} <= {name.strip() for name in rows.fieldnames or ()}:
            return _table(list(_counted(rows, pools)), len(pools))
    from planner.judge.commits.bill import used_hours

    return _table(list(used_hours(path, pools)), len(pools))


def _counted(rows: csv.DictReader[str], pools: Sequence[Pool]) -> Iterator[tuple[datetime, int, float]]:
    numbers = {pool.name: number for number, pool in enumerate(pools)}
    rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
    for row in rows:
        if any(cell.strip() for cell in row.values()):
            yield moment_of(row["hour"]), numbers[row["pool"].strip()], float(row["instances"])


def moment_of(text: str) -> datetime:
    """A moment, UTC where it names no zone; a whole number counts hours from a Monday."""
    text = text.strip()
    if text.isdigit():
        return _MONDAY + int(text) * _HOUR
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _table(rows: Sequence[tuple[datetime, int, float]], pools: int) -> tuple[datetime, Floats]:
    """Units by hour; hours without a row are hours without use. Numbers of hours begin on a Monday."""
    if not rows:
        raise InputError("the history has no use of the pools asked for")
    hours = [int((moment - _MONDAY) // _HOUR) for moment, _, _ in rows]
    low, high = min(hours), max(hours)
    if high - low >= _MOST_HOURS:
        raise InputError(f"the history spans {high - low + 1:,} hours; at most {_MOST_HOURS:,} are read")
    units = np.zeros((high - low + 1, pools))
    for hour, (_, pool, amount) in zip(hours, rows, strict=True):
        units[hour - low, pool] += amount
    return _MONDAY + low * _HOUR, units


def _drawn(
    question: CommitQuestion, history: tuple[datetime, Floats] | None, number: int, years: int
) -> Iterator[Year]:
    """A future: its own stream of random numbers gives growth, hours and blocks of days; each plan has one more."""
    scenarios = question.scenarios
    stream = np.random.default_rng([scenarios.seed, number])
    growth = _triangular(
        stream.random(), scenarios.growth.low, scenarios.growth.likely, scenarios.growth.high
    )
    real = [plan for plan, luck in _lucks(question, number) if luck < plan.probability]
    starts = None if history is None else _block_starts(history, question, scenarios.block_hours)
    for year in range(years):
        picked = stream.choice(HOURS_PER_YEAR, scenarios.hours_per_year, replace=False)
        hours = np.sort(picked) + year * HOURS_PER_YEAR
        demand = np.zeros((len(hours), len(question.pools)))
        block = hours // scenarios.block_hours
        luck = stream.random(int(block[-1] - block[0]) + 1)[block - block[0]]
        if history is not None and starts is not None:
            source = (
                _source(starts, question, scenarios.block_hours, block, luck) + hours % scenarios.block_hours
            )
            demand = history[1][source] * growth ** (hours / HOURS_PER_YEAR)[:, None]
        names = [pool.name for pool in question.pools]
        for plan in real:
            first, after = (plan.start - question.start).days, (plan.end - question.start).days + 1
            demand[(hours >= 24 * first) & (hours < 24 * after), names.index(plan.pool)] += plan.instances
        weight = np.full(len(hours), HOURS_PER_YEAR / len(hours))
        yield Year(number, year, hours, weight, demand.round(PLACES))


def _lucks(question: CommitQuestion, number: int) -> Iterator[tuple[Planned, float]]:
    """Each plan with its random number in a future: of the k-th of its period by size, chance and pool.

    A plan's numbers lie one in each of as many equal parts of 0..1 as there are futures.
    """
    drawn = question.scenarios
    periods: dict[tuple[date, date], list[Planned]] = {}
    for plan in question.demand.planned:
        periods.setdefault((plan.start, plan.end), []).append(plan)
    for (start, end), plans in periods.items():
        plans.sort(key=lambda plan: (plan.instances, plan.probability, plan.pool))
        for k, plan in enumerate(plans):
            own = (start.toordinal(), end.toordinal(), k)
            order = np.random.default_rng(np.random.SeedSequence(drawn.seed, spawn_key=own)).permutation(
                drawn.count
            )
            within = np.random.default_rng(np.random.SeedSequence(drawn.seed, spawn_key=(number, *own)))
            yield plan, (int(order[number]) + float(within.random())) / drawn.count


def _triangular(luck: float, low: float, likely: float, high: float) -> float:
    """Inverse of the triangular distribution."""
    if high == low:
        return low
    if luck < (likely - low) / (high - low):
        return low + float(np.sqrt(luck * (high - low) * (likely - low)))
    return high - float(np.sqrt((1 - luck) * (high - low) * (high - likely)))


Starts = tuple[Ints, Ints]


def _block_starts(history: tuple[datetime, Floats], question: CommitQuestion, block: int) -> Starts:
    """Hours of the history that a block may start at: for blocks on working days, and for those on weekends."""
    begin, units = history
    skip = -begin.hour % 24
    days = (len(units) - skip) // 24
    if days * 24 < block:
        raise InputError(f"the history holds {days} whole days, less than a block of {block} hours")
    weekday = ((begin + skip * _HOUR).weekday() + np.arange(days)) % 7
    hour = skip + 24 * np.arange(days)
    if block > 24:  # a week starts on the weekday that it replaces, where one fits
        whole = np.arange(days) + block // 24 <= days
        same = hour[whole & (weekday == question.start.weekday())]
        same = same if len(same) else hour[whole]
        return same, same
    working, weekend = hour[weekday < 5], hour[weekday >= 5]
    return working if len(working) else hour, weekend if len(weekend) else hour


def _source(starts: Starts, question: CommitQuestion, length: int, block: Ints, luck: Floats) -> Ints:
    picked = [each[(luck * len(each)).astype(np.int64)] for each in starts]
    days = question.start.weekday() + block * (length // 24)
    return np.where(days % 7 >= 5, picked[1], picked[0]) if length == 24 else picked[0]


def _given(path: Path, question: CommitQuestion, years: int) -> Futures:
    """Futures of a file: years that it leaves out are like the last one that it has."""
    data = read_unpacked(path, MAX_RECORD_BYTES)
    numbers = {pool.name: number for number, pool in enumerate(question.pools)}
    begin = datetime(question.start.year, question.start.month, question.start.day, tzinfo=UTC)
    tables: dict[str, dict[int, Floats]] = {}
    chance: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")):
        if not any(cell.strip() for cell in row.values()):
            continue
        text = row["hour"].strip()
        hour = int(text) if text.isdigit() else int((moment_of(text) - begin) // _HOUR)
        table = tables.setdefault(row["scenario"], {})
        table.setdefault(hour, np.zeros(len(numbers)))[numbers[row["pool"]]] = float(row["instances"])
        chance[row["scenario"]] = float(row.get("probability") or chance.get(row["scenario"], 1.0))
    years_read = []
    for number, table in enumerate(tables.values()):
        hours = np.array(sorted(table), dtype=np.int64)
        demand = np.array([table[int(hour)] for hour in hours])
        for year in range(years):
            mine = hours // HOURS_PER_YEAR == year
            mine = mine if mine.any() else hours // HOURS_PER_YEAR == hours[-1] // HOURS_PER_YEAR
            at = hours[mine] % HOURS_PER_YEAR + year * HOURS_PER_YEAR
            weight = np.full(len(at), HOURS_PER_YEAR / len(at))
            years_read.append(Year(number, year, at, weight, demand[mine].round(PLACES)))
    weights = np.array([chance[name] for name in tables])
    return Futures(weights / weights.sum(), tuple(years_read))
