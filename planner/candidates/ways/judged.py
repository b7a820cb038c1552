"""Ways to run in turn judged: timed, priced, and left out where they miss the deadline.

Zones that share their evidence make sets that run alike, so one of each kind is worked out: a sixth in most jobs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.rows import distinct_rows
from planner.candidates.limits import mark_parts
from planner.candidates.model import IN_TURN, Candidates, Turns
from planner.candidates.starts import fallback_had, fallback_hours
from planner.candidates.ways.chances import keep_confidence, link_of
from planner.candidates.ways.course import (
    CONFIDENCE_SLIP,
    Cells,
    Course,
    Frame,
    frame_of,
    run_in_turn,
    take_columns,
)
from planner.candidates.ways.pricing import price_in_turn
from planner.market.quota import draws_on

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints


_SLIP_HOURS = 1e-9  # of the sums of hours
_NEARLY_ALL = (
    0.9  # that may be in time: the others are left out at the end, as setting them aside copies all columns
)
Judged = tuple[dict[str, Any], Turns]


def judged_turns(candidates: Candidates, cells: Cells | None) -> Judged | None:
    """Time, price and judge cells; what misses the deadline is left out.

    What cannot be in time whatever the luck on spot is set aside first: that takes a few multiplications, the course
    on spot a thousand.

    Args:
        candidates: candidates that the cells are based on.
        cells: what runs where.

    Returns:
        Columns of `Candidates` and the `Turns` behind them; None when nothing is left.
    """
    context = candidates.context
    if cells is None or not len(cells.base):
        return None
    limits = context.asked.workload.constraints
    allowed = _allowed(candidates, cells)
    cells = cells if allowed.all() else cells.take(np.flatnonzero(allowed))
    frame = frame_of(candidates, cells)
    possible = frame.possible(limits.deadline_confidence)
    if not possible.any():
        return None
    if np.count_nonzero(possible) < _NEARLY_ALL * len(possible):
        at = np.flatnonzero(possible)
        cells, frame, possible = cells.take(at), frame.take(at), possible[at]
    one, own = alike(candidates, cells, frame)
    course, number = _kept(candidates, cells.take(one), frame.take(one))
    at = np.flatnonzero((number[own] >= 0) & possible)
    if not len(at):
        return None
    columns, turns = price_in_turn(candidates, cells.take(at), take_columns(course, number[own[at]]))
    kind, detail = np.full(len(at), IN_TURN), np.arange(len(at))
    mark_parts(replace(candidates, **columns, kind=kind, detail=detail, turns=turns))
    return columns, turns


def _kept(candidates: Candidates, cells: Cells, frame: Frame) -> tuple[Course, Ints]:
    """How cells run that may be kept, and the number of each cell among those, -1 for the others."""
    context, number = candidates.context, np.full(len(cells.base), -1)
    confidence = context.asked.workload.constraints.deadline_confidence - CONFIDENCE_SLIP
    sure = np.flatnonzero(keep_confidence(candidates, cells, frame, confidence))
    cells = cells.take(sure)
    course = run_in_turn(candidates, cells, frame.take(sure))
    # what changes in time ends at the deadline at the latest
    hours = course.waiting + candidates.fixed_hours[cells.base] + course.elapsed
    kept = hours <= candidates.deadline_hours(cells.base) + _SLIP_HOURS
    kept &= (cells.on_demand < 0) | (course.work_share < 0.999)
    at = np.flatnonzero(kept)
    number[sure[at]] = at
    return course, number


def alike(candidates: Candidates, cells: Cells, frame: Frame) -> tuple[Ints, Ints]:
    """One of each kind of cells that have the same chances and course, and the kind of each cell among those."""
    base, nodes, pool = cells.base, candidates.nodes[cells.base], cells.pool
    return distinct_rows(
        candidates.work_hours[base], candidates.write_hours[base], candidates.interval_hours[base],
        candidates.fixed_hours[base], candidates.sigma[base],
        candidates.context.spot.figures.notice_hours[cells.zones[:, 0]],
        pool.rate, pool.wait, pool.first_wait, pool.frailty_sd, pool.dispersion,
        frame.waiting, frame.room, frame.steady, frame.slack, frame.slack_loss, frame.surely,
        fallback_hours(candidates.context.starts, cells.on_demand, nodes),
        fallback_had(candidates, cells.on_demand, nodes), link_of(candidates, cells),
    )  # fmt: skip


def _allowed(candidates: Candidates, cells: Cells) -> Bools:
    """Whether on-demand holds the gang and keeps the quotas; spot did already. They are not in use together."""
    context = candidates.context
    nodes, rows = candidates.nodes[cells.base], cells.on_demand
    has = rows >= 0
    fits = ~has | ~(nodes > context.market.offer_set.capacity[rows])  # NaN: unlimited
    for limit, units in draws_on(
        context.asked.workload.constraints.quota, context.market.offer_set, context.market.tariffs
    ):
        fits &= ~has | (units[rows] * nodes <= limit * (1 + 1e-9))
    return np.asarray(fits, dtype=np.bool_)
