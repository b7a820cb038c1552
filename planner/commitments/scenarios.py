"""Futures: demand by the hour, drawn from the history in whole days or weeks, grown, with planned use on top.

A block bootstrap (Künsch 1989) keeps what a day or a week looks like and how pools move together; blocks of a week
start on the weekday they replace, blocks of a day come from a weekday or a weekend as the day they replace. Every
scenario has its own random stream, so more scenarios leave the earlier ones as they were; each plan has one too, so
what is planned leaves the history as it was drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.commitments.history import (
    CsvCell,
    History,
    open_text,
    parse_hour,
    parse_units,
    read_history,
    rows_of,
)
from planner.commitments.prices import HOURS_PER_YEAR
from planner.errors import InputError
from planner.files.tables import csv_rows
from planner.inputs.faults import need_columns
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.commit_load import LoadedCommit
    from planner.inputs.commit_schema import CommitQuestion, Planned, Pool

_MOST_YEARS = 5  # of a horizon
DECIMALS = 3  # of a unit, so that certificates can count in thousandths


@record(frozen=True, eq=False)
class Future:
    """One year of one scenario.

    Attributes:
        scenario: number of the scenario.
        year: 0, 1, ...
        hour: hours since the start of the horizon, shape `(n,)`.
        weight: hours each row stands for, shape `(n,)`.
        demand: units wanted, owned commitments not yet taken off, shape `(n, P)`.
    """

    scenario: int
    year: int
    hour: Ints
    weight: Floats
    demand: Floats


@record(frozen=True, eq=False)
class Futures:
    """All scenarios."""

    names: tuple[str, ...]
    probability: Floats
    blocks: tuple[Future, ...]
    notes: tuple[str, ...] = ()


def draw_futures(question: CommitQuestion, history: History | None, years: int) -> Futures:
    """Draw the scenarios of `question` from its history and plans.

    Args:
        question: gives scenarios, growth, plans.
        history: use by the hour; None where there are plans only.
        years: length of the horizon.

    Raises:
        InputError: the history is shorter than one block.
    """
    asked = question.scenarios
    blocks = []
    starts = None if history is None else _Starts(history, question.start, asked.block_hours)
    for scenario in range(asked.count):
        draw = np.random.default_rng([asked.seed, scenario])
        growth = _growth(draw, question)
        realised = _realised(question, scenario)
        for year in range(years):
            hours = (
                np.sort(draw.choice(HOURS_PER_YEAR, asked.hours_per_year, replace=False))
                + year * HOURS_PER_YEAR
            )
            demand = np.zeros((len(hours), len(question.pools)))
            luck = draw.random(_blocks(hours, asked.block_hours)[-1] + 1)
            if starts is not None and history is not None:
                demand = history.demand[starts.source(luck, hours)]
                demand = demand * growth ** (hours / HOURS_PER_YEAR)[:, None]
            _add_planned(demand, question, realised, hours)
            weight = np.full(len(hours), HOURS_PER_YEAR / len(hours))
            blocks.append(Future(scenario, year, hours, weight, demand.round(DECIMALS)))
    names = tuple(f"s{number + 1}" for number in range(asked.count))
    return Futures(names, np.full(asked.count, 1 / asked.count), tuple(blocks))


def _growth(draw: np.random.Generator, question: CommitQuestion) -> float:
    """Return a yearly factor; the same random number is used up where growth is certain."""
    growth = question.scenarios.growth
    at = draw.random()
    low, likely, high = growth.low, growth.likely, growth.high
    if high == low:
        return low
    edge = (likely - low) / (high - low)  # inverse of the triangular distribution
    if at < edge:
        return float(low + np.sqrt(at * (high - low) * (likely - low)))
    return float(high - np.sqrt((1 - at) * (high - low) * (high - likely)))


class _Starts:
    """Which days of the history may stand for a block of the future."""

    def __init__(self, history: History, start: date, block_hours: int) -> None:
        self.block = block_hours
        self.weekday = start.weekday()
        skip = -history.start.hour % 24  # to the first midnight
        days = (len(history.demand) - skip) // 24
        if days * 24 < block_hours:
            raise InputError(
                f"the history holds {len(history.demand):,} hours ({max(days, 0)} whole days); drawing blocks of "
                f"{block_hours} hours needs one block at least: give more history or 'block_hours: 24'"
            )
        first = (history.start + timedelta(hours=skip)).weekday()
        weekdays = (first + np.arange(days)) % 7
        at = skip + 24 * np.arange(days)
        fits = np.arange(days) + block_hours // 24 <= days
        if block_hours == 168:
            same = fits & (weekdays == self.weekday)
            self.lists = [at[same] if same.any() else at[fits]]
        else:
            weekend = weekdays >= 5
            self.lists = [at[group] if group.any() else at for group in (~weekend, weekend)]

    def source(self, picks: Floats, hours: Ints) -> Ints:
        """Return the hour of the history that each hour of the future is taken from, by one number 0..1 per block."""
        first = hours[0] // self.block
        numbers = np.arange(first, first + len(picks))
        if len(self.lists) == 1:
            chosen = self.lists[0][(picks * len(self.lists[0])).astype(np.int64)]
        else:
            weekend = (self.weekday + numbers) % 7 >= 5
            each = [group[(picks * len(group)).astype(np.int64)] for group in self.lists]
            chosen = np.where(weekend, each[1], each[0])
        return np.asarray(chosen[_blocks(hours, self.block)] + hours % self.block, dtype=np.int64)


def _blocks(hours: Ints, block_hours: int) -> Ints:
    """Number of the block of each hour, the first one's is 0."""
    return np.asarray(hours // block_hours - hours[0] // block_hours)


def _realised(question: CommitQuestion, scenario: int) -> list[Planned]:
    """Plans that come true, each by random streams of its own: neither their order nor other periods' plans matter.

    The chances of a plan in the scenarios are one in each of as many equal parts of 0..1 (Latin hypercube; M. McKay,
    R. Beckman, W. Conover, Technometrics 21, 1979), so it comes true in the share of them that its probability says.
    """
    out: list[Planned] = []
    alike: Counter[tuple[int, int]] = Counter()
    seed, count = question.scenarios.seed, question.scenarios.count
    for plan in sorted(question.demand.planned, key=_order):
        period = (plan.start.toordinal(), plan.end.toordinal())
        key = (*period, alike[period])
        parts = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)).permutation(count)
        stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(scenario, *key)))
        if (parts[scenario] + stream.random()) / count < plan.probability:
            out.append(plan)
        alike[period] += 1
    return out


def _order(plan: Planned) -> tuple[float, float, str]:
    """Order of plans of one period: by what they are, the pool's name last."""
    return (plan.instances, plan.probability, plan.pool)


def _add_planned(demand: Floats, question: CommitQuestion, realised: Sequence[Planned], hours: Ints) -> None:
    names = [pool.name for pool in question.pools]
    for plan in realised:
        low = (plan.start - question.start).days * 24
        high = ((plan.end - question.start).days + 1) * 24
        demand[(hours >= low) & (hours < high), names.index(plan.pool)] += plan.instances


def check_demand(loaded: LoadedCommit) -> None:
    """Read the files of demand that a question names, for their errors alone.

    Raises:
        InputError: a file cannot be read, or is not valid; names the line.
    """
    question = loaded.question
    if question.scenarios.file is not None:
        years = (
            question.horizon_years or _MOST_YEARS
        )  # the horizon follows from prices, which are not asked for here
        read_futures(loaded.file(question.scenarios.file), question.pools, question.start, years)
    elif question.demand.file is not None:
        read_history(loaded.file(question.demand.file), question.pools, question.demand.format)


def read_futures(path: Path, pools: Sequence[Pool], start: date, years: int) -> Futures:
    """Read scenarios given by the user: columns scenario, hour, pool, instances and, if wanted, probability.

    Raises:
        InputError: a bad cell, named with its line; probabilities that do not fit.
    """
    index = {pool.name: number for number, pool in enumerate(pools)}
    tables: dict[str, dict[tuple[int, int], float]] = {}
    chance: dict[str, float] = {}
    name = str(path)
    begin = datetime(start.year, start.month, start.day, tzinfo=UTC)
    with open_text(path) as file:
        reader = csv_rows(file, path)
        need_columns(path, reader.fieldnames, ("scenario", "hour", "pool", "instances"))
        for line, row in rows_of(reader, path, len(reader.fieldnames or ())):
            if row["pool"] not in index:
                raise CsvCell(name, line, "pool").error(
                    f"no pool is called {row['pool'][:60]!r}; there are {', '.join(index)}"
                )
            hour = parse_hour(row["hour"], CsvCell(name, line, "hour"))
            at = hour if isinstance(hour, int) else int((hour - begin) // timedelta(hours=1))
            if not 0 <= at < years * HOURS_PER_YEAR:
                raise CsvCell(name, line, "hour").error(
                    f"is outside the horizon of {years} years from {start}"
                )
            key = (at, index[row["pool"]])
            table = tables.setdefault(row["scenario"], {})
            if key in table:
                raise CsvCell(name, line, "hour").error("is already listed above for this scenario and pool")
            table[key] = parse_units(row["instances"], CsvCell(name, line, "instances"))
            if row.get("probability"):
                value = parse_units(row["probability"], CsvCell(name, line, "probability"))
                if chance.setdefault(row["scenario"], value) != value:
                    raise CsvCell(name, line, "probability").error(
                        "differs from an earlier row of the same scenario"
                    )
    if not tables:
        raise InputError(f"{path}: has no scenarios")
    return _given(path, tables, chance, len(pools), years)


def _given(
    path: Path,
    tables: dict[str, dict[tuple[int, int], float]],
    chance: dict[str, float],
    pools: int,
    years: int,
) -> Futures:
    if chance and set(chance) != set(tables):
        raise InputError(
            f"{path}: some scenarios have a probability, others ({len(tables) - len(chance)}) have none"
        )
    weights = np.array([chance.get(scenario, 1.0) for scenario in tables])
    if not weights.sum() > 0:
        raise InputError(f"{path}: the probabilities sum to 0")
    blocks, repeated = [], False
    for number, table in enumerate(tables.values()):
        hours = np.array(sorted({hour for hour, _ in table}), dtype=np.int64)
        demand = np.zeros((len(hours), pools))
        row_of = {int(hour): row for row, hour in enumerate(hours)}
        for (hour, pool), units in table.items():
            demand[row_of[hour], pool] = units
        for year in range(years):
            rows = hours // HOURS_PER_YEAR == year
            if not rows.any():  # the years that the file leaves out are like its last one
                repeated = True
                rows = hours // HOURS_PER_YEAR == hours[-1] // HOURS_PER_YEAR
            at = hours[rows] % HOURS_PER_YEAR + year * HOURS_PER_YEAR
            weight = np.full(len(at), HOURS_PER_YEAR / len(at))
            blocks.append(Future(number, year, at, weight, demand[rows].round(DECIMALS)))
    notes = ("years without given hours are taken to be like the last year given",) if repeated else ()
    return Futures(tuple(tables), weights / weights.sum(), tuple(blocks), notes)
