"""Jobs that may pause and move, over hours with a forecast of prices and availability.

    minimise   sum price_to n_jto + sum (startup_hours_o price_to + startup_usd_o) s_jto
               + sum copy_jr w_jr,first + sum keep_jr w_jrt
    work       sum min(speed_jo, work_j) / unit_j n_jto >= work_j / unit_j      unit_j: the largest such min
    start      s_jto >= n_jto - n_j,t-1,o
    shared     sum_j n_jto <= available_to                      where several jobs may want it
    nodes      sum_o n_jto <= max_nodes_j
    at_least   sum_o n_jto >= min_nodes_j z_jtr                 (and n_jto <= most_jto z_jtr)
    one        sum_r z_jtr <= 1                                 jobs in one region at a time
    data       n_jto <= most_jto w_jrt, or z_jtr <= w_jrt       only where a copy costs something
    kept       w_jrt >= w_jr,t+1                                a copy is made at the begin, kept to its last use

n whole, z and w 0 or 1; s follows n and need not be said to be whole.
Only hours in which a job may run have columns. `planner.schedules.question.evaluate` works every answer out
again without this model.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats, Ints, distinct
from planner.records import record
from planner.schedules.question import Cell, ScheduleInput
from solvers.execution.solve import solve
from solvers.problem.milp import Block, Milp, MilpBuilder
from solvers.problem.options import SolveOptions

ANYWHERE = -1  # the "region" of a switch that stands for all regions


@record(frozen=True, eq=False)
class _Cells:
    """Columns n: where a job may run, in the order of job, hour, pool; shape (n_cells,) each."""

    job: Ints
    hour: Ints
    pool: Ints
    region: Ints
    most: Floats
    column: Ints


def build_schedule(question: ScheduleInput, *, shortfall: bool = False) -> Milp:
    """Build the model; columns of nodes carry `Cell` keys.

    Args:
        question: the question.
        shortfall: let work be missing and minimise the sum of its shares instead of the cost.
    """
    builder = MilpBuilder("schedule")
    cells = _add_nodes(builder, question, cost=not shortfall)
    _add_work(builder, question, cells, shortfall=shortfall)
    _add_shared(builder, question, cells)
    switches = _add_switches(builder, question, cells)
    _add_limits(builder, question, cells, switches)
    if not shortfall:
        _add_starts(builder, question, cells)
        _add_copies(builder, question, cells, switches)
    return builder.build()


def copies_of(problem: Milp) -> dict[tuple[int, int], int]:
    """The column that says whether a paid copy is made, by (job, region), in the order of the columns."""
    columns: dict[tuple[int, int], int] = {}
    for block in problem.column_blocks:
        for number, tag in enumerate(block.tags if block.name == "w" else ()):
            assert isinstance(tag, tuple)
            columns.setdefault((tag[1], tag[2]), block.start + number)
    return columns


def _add_nodes(builder: MilpBuilder, question: ScheduleInput, *, cost: bool) -> _Cells:
    most = question.most_nodes
    job, hour, pool = (axis.astype(np.int64) for axis in np.nonzero(most > 0))
    keys = [Cell(cell) for cell in zip(job.tolist(), hour.tolist(), pool.tolist(), strict=True)]
    upper = most[job, hour, pool]
    price = question.usd_per_hour[hour, pool] if cost else 0.0
    block = builder.add_columns("n", keys, cost=price, upper=upper, integer=True)
    return _Cells(job, hour, pool, question.region[pool], upper, np.arange(block.start, block.stop))


def _add_work(builder: MilpBuilder, question: ScheduleInput, cells: _Cells, *, shortfall: bool) -> None:
    # One node-hour never counts for more than the whole work, and the row's unit is what the fastest one does: so a
    # solver's absolute tolerance means the same share of the work in every unit.
    useful = np.minimum(question.speed, question.work[:, None])
    unit = useful.max(axis=1)
    unit = np.where(unit > 0, unit, question.work)
    rows = builder.add_rows("work", len(question.jobs), lower=question.work / unit, tags=question.jobs)
    builder.add_entries(rows.start + cells.job, cells.column, (useful / unit[:, None])[cells.job, cells.pool])
    if shortfall:
        keys = _missing_keys(question)
        missing = builder.add_columns("missing", keys, cost=unit / question.work, upper=question.work / unit)
        builder.add_entries(np.arange(rows.start, rows.stop), np.arange(missing.start, missing.stop), 1.0)


def _add_shared(builder: MilpBuilder, question: ScheduleInput, cells: _Cells) -> None:
    """What several jobs may want at once."""
    place = cells.hour * len(question.pools) + cells.pool
    demand = np.bincount(place, weights=cells.most, minlength=question.available.size)
    tight = np.flatnonzero(demand > question.available.ravel())
    row_of = np.full(question.available.size, -1)
    tags = [f"{at // len(question.pools)}.{at % len(question.pools)}" for at in tight.tolist()]
    if not len(tight):
        return
    rows = builder.add_rows("shared", len(tight), upper=question.available.ravel()[tight], tags=tags)
    row_of[tight] = np.arange(rows.start, rows.stop)
    inside = row_of[place] >= 0
    builder.add_entries(row_of[place][inside], cells.column[inside], 1.0)


@record(frozen=True, eq=False)
class _Switches:
    """Columns z by (job, hour, region or ANYWHERE); `of_cell` is each cell's column, -1 where it has none."""

    job: Ints
    hour: Ints
    region: Ints
    column: Ints
    of_cell: Ints


def _add_switches(builder: MilpBuilder, question: ScheduleInput, cells: _Cells) -> _Switches:
    """Switches of jobs in one region at a time, and of those that need several nodes in every hour they run."""
    gang = question.one_region[cells.job]
    needs = gang | (question.min_nodes[cells.job] > 1)
    region = np.where(gang, cells.region, ANYWHERE)
    code = (cells.job * question.n_hours + cells.hour) * (len(question.regions) + 1) + region + 1
    groups, at = distinct(code[needs])[::2]
    pair, place = np.divmod(groups, len(question.regions) + 1)
    job, hour = np.divmod(pair, question.n_hours)
    place = place - 1
    of_cell = np.full(len(code), -1, dtype=np.int64)
    if not len(groups):
        return _Switches(job, hour, place, groups, of_cell)
    names = zip(job.tolist(), hour.tolist(), place.tolist(), strict=True)
    block = builder.add_columns("z", [("z", *name) for name in names], upper=1.0, integer=True)
    column = np.arange(block.start, block.stop)
    of_cell[needs] = column[at]
    rows = builder.add_rows("switch", int(needs.sum()), upper=0.0, tags=_tags(cells, needs))
    number = np.arange(rows.start, rows.stop)
    builder.add_entries(number, cells.column[needs], 1.0)
    builder.add_entries(number, of_cell[needs], -cells.most[needs])
    lone = question.one_region[job]
    hours, which = distinct(pair[lone])[::2]
    several = np.bincount(which, minlength=len(hours)) > 1
    if several.any():
        row = np.full(len(hours), -1, dtype=np.int64)
        one_region = builder.add_rows("one", int(several.sum()), upper=1.0)
        row[several] = np.arange(one_region.start, one_region.stop)
        picked = several[which]
        builder.add_entries(row[which][picked], column[lone][picked], 1.0)
    return _Switches(job, hour, place, column, of_cell)


def _tags(cells: _Cells, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    parts = (cells.job[which].tolist(), cells.hour[which].tolist(), cells.pool[which].tolist())
    return [f"{j}.{t}.{o}" for j, t, o in zip(*parts, strict=True)]


def _add_limits(builder: MilpBuilder, question: ScheduleInput, cells: _Cells, switches: _Switches) -> None:
    """At most `max_nodes` and, where a job runs, at least `min_nodes`; by switch where there are switches."""
    pair = cells.job * question.n_hours + cells.hour
    group = np.where(switches.of_cell >= 0, switches.of_cell, -1 - pair)
    groups, at = distinct(group)[::2]
    if not len(groups):
        return
    total = np.bincount(at, weights=cells.most)
    job = np.zeros(len(groups), dtype=np.int64)
    job[at] = cells.job
    switched = groups >= 0
    above = total > question.max_nodes[job]
    _add_group(builder, "nodes", above, at, cells, 1.0,
               np.where(switched, 0.0, question.max_nodes[job]),
               np.where(switched, groups, -1), -question.max_nodes[job].astype(np.float64))  # fmt: skip
    below = switched & (question.min_nodes[job] > 1)
    _add_group(builder, "at_least", below, at, cells, -1.0, np.zeros(len(groups)), groups,
               question.min_nodes[job].astype(np.float64))  # fmt: skip


def _add_group(
    builder: MilpBuilder, name: str, which: np.ndarray[tuple[int], np.dtype[np.bool_]], at: Ints, cells: _Cells,
    sign: float, upper: Floats, switch: Ints, weight: Floats,
) -> None:  # fmt: skip
    """A row per group of cells: sign * sum of its nodes + weight * switch <= upper."""
    if not which.any():
        return
    rows = builder.add_rows(name, int(which.sum()), upper=upper[which])
    row_of = np.full(len(which), -1, dtype=np.int64)
    row_of[which] = np.arange(rows.start, rows.stop)
    inside = which[at]
    builder.add_entries(row_of[at][inside], cells.column[inside], sign)
    has_switch = which & (switch >= 0)
    builder.add_entries(row_of[has_switch], switch[has_switch], weight[has_switch])


def _add_starts(builder: MilpBuilder, question: ScheduleInput, cells: _Cells) -> None:
    """Starts of the pools where one costs something; a node that goes on from the hour before starts nothing."""
    price = question.usd_per_hour[cells.hour, cells.pool]
    cost = question.startup_hours[cells.pool] * price + question.startup_usd[cells.pool]
    paid = cost > 0
    if not paid.any():
        return
    tags = _tags(cells, paid)
    block = builder.add_columns("s", [("s", tag) for tag in tags], cost=cost[paid], upper=cells.most[paid])
    rows = builder.add_rows("start", len(tags), upper=0.0, tags=tags)
    number = np.arange(rows.start, rows.stop)
    builder.add_entries(number, cells.column[paid], 1.0)
    builder.add_entries(number, np.arange(block.start, block.stop), -1.0)
    before = _column_before(question, cells)[paid]
    has = before >= 0
    builder.add_entries(number[has], before[has], -1.0)


def _column_before(question: ScheduleInput, cells: _Cells) -> Ints:
    """The column of the same job and pool an hour earlier, -1 where there is none."""
    table = np.full((len(question.jobs), question.n_hours + 1, len(question.pools)), -1, dtype=np.int64)
    table[cells.job, cells.hour + 1, cells.pool] = cells.column
    return np.asarray(table[cells.job, cells.hour, cells.pool])


def _add_copies(builder: MilpBuilder, question: ScheduleInput, cells: _Cells, switches: _Switches) -> None:
    """Copies of data, where they cost something: columns w by (job, region, hour of possible use)."""
    paid = (question.copy_usd > 0) | (question.keep_usd_per_hour > 0)
    needs = paid[cells.job, cells.region]
    if not needs.any():
        return
    regions = len(question.regions)
    code = (cells.job * regions + cells.region) * question.n_hours + cells.hour
    groups, at = distinct(code[needs])[::2]
    pair, hour = np.divmod(groups, question.n_hours)
    job, region = np.divmod(pair, regions)
    opens = np.r_[True, pair[1:] != pair[:-1]]
    previous = np.where(opens, question.first[job] - 1, np.r_[0, hour[:-1]])
    cost = question.keep_usd_per_hour[job, region] * (hour - previous) + np.where(
        opens, question.copy_usd[job, region], 0.0
    )
    names = zip(job.tolist(), region.tolist(), hour.tolist(), strict=True)
    block = builder.add_columns("w", [("w", *name) for name in names], cost=cost, upper=1.0, integer=True)
    column = np.arange(block.start, block.stop)
    if not opens.all():
        rows = builder.add_rows("kept", int((~opens).sum()), upper=0.0)
        number = np.arange(rows.start, rows.stop)
        later = np.flatnonzero(~opens)
        builder.add_entries(number, column[later], 1.0)
        builder.add_entries(number, column[later - 1], -1.0)
    _link_copies(builder, question, cells, switches, needs, column[at])


def _link_copies(
    builder: MilpBuilder, question: ScheduleInput, cells: _Cells, switches: _Switches,
    needs: np.ndarray[tuple[int], np.dtype[np.bool_]], copy: Ints,
) -> None:  # fmt: skip
    """No node without the data; where a switch stands for the region it speaks for its nodes."""
    switch = np.where(question.one_region[cells.job], switches.of_cell, -1)[needs]
    alone = switch < 0
    if alone.any():
        rows: Block = builder.add_rows("data", int(alone.sum()), upper=0.0)
        number = np.arange(rows.start, rows.stop)
        builder.add_entries(number, cells.column[needs][alone], 1.0)
        builder.add_entries(number, copy[alone], -cells.most[needs][alone])
    groups, first = distinct(switch)[:2]
    first = first[groups >= 0]
    if len(first):
        rows = builder.add_rows("data_of_switch", len(first), upper=0.0)
        number = np.arange(rows.start, rows.stop)
        builder.add_entries(number, switch[first], 1.0)
        builder.add_entries(number, copy[first], -1.0)


def _missing_keys(question: ScheduleInput) -> list[tuple[str, int]]:
    return [("missing", job) for job in range(len(question.jobs))]


def least_missing(question: ScheduleInput, options: SolveOptions) -> Floats | None:
    """Work that each job lacks at best, all together, shape (J,); None where that was not found in time."""
    problem = build_schedule(question, shortfall=True)
    solution = solve(problem, options)
    if not solution.has_point:
        return None
    block = next(block for block in problem.column_blocks if block.name == "missing")
    lacks = np.asarray([solution.x.get(key, 0.0) for key in _missing_keys(question)])
    return np.asarray(lacks / problem.ub[block.indices] * question.work, dtype=np.float64)
