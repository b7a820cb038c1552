"""Exact reductions: an optimum always remains, and each reports how much it removed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from solvers.problem.milp import Block, Bools, Floats, Ints, Milp

ROUNDING = 1e-9  # given away before a limit is rounded down to a whole number


def restrict(problem: Milp, columns: Ints) -> Milp:
    """Return `problem` with only `columns`; the others stay at their lower bound.

    A restriction, not a reduction: its optimum is feasible for `problem` and an upper bound on its optimum.
    """
    keep = np.zeros(problem.n_columns, dtype=np.bool_)
    keep[columns] = True
    columns = np.flatnonzero(keep)
    entries = np.repeat(keep, np.diff(problem.indptr))
    indptr = np.zeros(len(columns) + 1, dtype=np.int32)
    np.cumsum(np.diff(problem.indptr)[columns], out=indptr[1:])
    resting = problem.activity(np.where(keep, 0.0, problem.lb))
    keys = tuple(problem.column_keys[number] for number in columns)
    return replace(
        problem,
        c=problem.c[columns],
        lb=problem.lb[columns],
        ub=problem.ub[columns],
        integrality=problem.integrality[columns],
        row_lo=problem.row_lo - resting,
        row_hi=problem.row_hi - resting,
        data=problem.data[entries],
        indices=problem.indices[entries],
        indptr=indptr,
        column_keys=keys,
        column_blocks=(Block("core", 0, len(columns), keys),),
        name=f"{problem.name} (restricted)",
    )


def part_of(problem: Milp, columns: Bools, rows: Bools) -> Milp:
    """Return the columns and rows of `problem` that two masks name; what else its rows would hold is left out."""
    entries = np.repeat(columns, np.diff(problem.indptr)) & rows[problem.indices]
    entries_per_column = np.bincount(problem.column_of_entry()[entries], minlength=problem.n_columns)[columns]
    indptr = np.zeros(len(entries_per_column) + 1, dtype=np.int32)
    np.cumsum(entries_per_column, out=indptr[1:])
    place = np.cumsum(rows, dtype=np.int32) - 1
    keys = tuple(problem.column_keys[number] for number in np.flatnonzero(columns).tolist())
    return replace(
        problem,
        c=problem.c[columns],
        lb=problem.lb[columns],
        ub=problem.ub[columns],
        integrality=problem.integrality[columns],
        row_lo=problem.row_lo[rows],
        row_hi=problem.row_hi[rows],
        data=problem.data[entries],
        indices=place[problem.indices[entries]],
        indptr=indptr,
        column_keys=keys,
        column_blocks=_blocks_of(problem.column_blocks, columns),
        row_blocks=_blocks_of(problem.row_blocks, rows),
    )


def alive(problem: Milp) -> tuple[Bools, Bools]:
    """Return masks of the columns that may be other than 0, and of the rows that then say something."""
    columns = (problem.lb != 0) | (problem.ub != 0)
    rows = (problem.row_lo > 0) | (problem.row_hi < 0)
    rows[problem.indices[np.repeat(columns, np.diff(problem.indptr))]] = True
    return columns, rows


def _blocks_of(blocks: tuple[Block, ...], kept: Bools) -> tuple[Block, ...]:
    """The ranges of what a mask keeps; members are numbered anew."""
    before = np.r_[0, np.cumsum(kept)].tolist()
    return tuple(Block(block.name, before[block.start], before[block.stop]) for block in blocks)


def dominated(
    groups: npt.NDArray[np.int64],
    less_is_better: Floats,
    more_is_better: Floats,
    *,
    can_replace: Bools,
    chunk: int = 512,
) -> Bools:
    """Mark members that another member of the same group can replace without loss.

    Member j is dominated when some i of its group with `can_replace` is no worse in every figure, and better
    in one or listed earlier (so that of equal members one stays).

    Args:
        groups: group code per member, shape `(n,)`; only members of one group are compared.
        less_is_better: figures to minimise, shape `(n, k)`.
        more_is_better: figures to maximise, shape `(n, m)`.
        can_replace: whether a member may stand in for any number of others, shape `(n,)`.
        chunk: rows compared at a time, bounds the memory.

    Returns:
        True where dominated, shape `(n,)`.
    """
    figures = np.column_stack([less_is_better, -more_is_better])
    result = np.zeros(len(groups), dtype=np.bool_)
    order = np.argsort(groups, kind="stable")
    edges = np.r_[0, np.flatnonzero(np.diff(groups[order])) + 1, len(order)]
    several = np.flatnonzero(np.diff(edges) > 1)  # most groups have one member
    for start, end in zip(edges[several].tolist(), edges[several + 1].tolist(), strict=True):
        members = order[start:end]
        rivals = members[can_replace[members]]
        for first in range(0, len(members), chunk):
            part = members[first : first + chunk]
            result[part] = _beaten(figures[part], part, figures[rivals], rivals)
    return result


def _beaten(figures: Floats, members: Ints, rival_figures: Floats, rivals: Ints) -> Bools:
    no_worse = (rival_figures[None, :, :] <= figures[:, None, :]).all(axis=2)
    better = (rival_figures[None, :, :] < figures[:, None, :]).any(axis=2)
    earlier = rivals[None, :] < members[:, None]
    return np.asarray((no_worse & (better | earlier)).any(axis=1), dtype=np.bool_)


def whole_limits(problem: Milp) -> tuple[Floats, Ints]:
    """Return the most of each integer column that some row alone allows (its exact upper limit), and that row.

    From `sum_k a_k x_k <= side` follows x_j <= floor((side - least of the other terms) / a_j). An offer larger than its
    quota gets 0 here, which the relaxation would use in part.

    Returns:
        limits, shape `(n_columns,)`, never above `problem.ub`; the row that gave each, -1 where it is the bound itself.
    """
    upper, by_row = problem.ub.copy(), np.full(problem.n_columns, -1)
    columns, rows = problem.column_of_entry(), problem.indices
    for values, sides in ((problem.data, problem.row_hi), (-problem.data, -problem.row_lo)):
        activity = values * np.where(values > 0, problem.lb[columns], problem.ub[columns])
        finite = np.isfinite(activity)
        least = np.bincount(rows[finite], weights=activity[finite], minlength=problem.n_rows)
        endless = np.bincount(rows[~finite], minlength=problem.n_rows)
        usable = (values > 0) & np.isfinite(sides[rows]) & (endless[rows] == 0) & problem.integrality[columns]
        at, row = columns[usable], rows[usable]
        room = sides[row] - (least[row] - activity[usable])
        limit = np.floor(room / values[usable] * (1 + ROUNDING) + ROUNDING)
        order = np.lexsort((limit, at))
        first = order[np.r_[True, np.diff(at[order]) != 0]] if len(order) else order
        tighter = limit[first] < upper[at[first]]
        chosen = first[tighter]
        upper[at[chosen]] = np.maximum(limit[chosen], problem.lb[at[chosen]])
        by_row[at[chosen]] = row[chosen]
    return upper, by_row
