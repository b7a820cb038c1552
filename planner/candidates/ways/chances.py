"""Chances of what runs in turn, one meaning for all that is stated or asked for.

All are calibrated (`planner.spot.meet`) and averaged over the error of the predicted work. With the room A to the
deadline, c hours from asking for on-demand to progress on it, and work that takes T hours on spot where it would take G
on on-demand (both grow with the error of the prediction):

    alone  = P(T <= A)                                spot alone is in time
    needed = 1 - P(T <= A - c - (G - floor))          on-demand is asked for: at the last moment spot is not done
    meet   = had P(G <= A - c) + (1 - had) alone      at least `alone`; had: on-demand comes within c

c leaves the wait for on-demand more than its mean (`planner.candidates.starts.allotted_level`). As c and G - floor
(machine failures) are never negative, needed >= 1 - alone. Where on-demand does not come in time, the job goes on on
spot: it is then in time as often as spot alone is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import IN_TURN
from planner.candidates.running import model_arguments
from planner.candidates.starts import fallback_had
from planner.candidates.ways.course import Cells, Frame, cells_of, change_hours, frame_of
from planner.records import record
from planner.spot.renewal import p_meet_deadline

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates


@record(frozen=True, eq=False)
class Chances:
    """Probabilities of the module's head, 0..1, each of shape `(n,)`; `needed` is 0 without a fall-back."""

    meet: Floats
    alone: Floats
    needed: Floats


def chances_of(candidates: Candidates, at: Ints) -> Chances:
    """The chances of candidates `at`, all of them in turn, by the deadline of their run."""
    cells, count = cells_of(candidates, at), len(at)
    has = cells.on_demand >= 0
    frame = frame_of(candidates, cells)
    # both chances in one call, which costs milliseconds however few they are
    hours = np.concatenate([frame.room, frame.room - change_hours(candidates, cells)])
    steady = np.concatenate([np.full(count, -np.inf), frame.steady])
    alone, done = np.split(
        spot_chance(candidates, cells.take(np.tile(np.arange(count), 2)), hours, steady), 2
    )
    return Chances(
        meet=np.where(has, np.maximum(alone, at_least(candidates, cells, frame, alone)), alone),
        alone=alone,
        needed=np.where(has, 1.0 - done, 0.0),
    )


def stated_chance(candidates: Candidates, at: int) -> float | None:
    """Probability that candidate `at` meets the deadline, None without one."""
    if candidates.context.dates.deadline_hours is None:
        return None
    if candidates.kind[at] == IN_TURN:
        return float(chances_of(candidates, np.asarray([at])).meet[0])
    return None if np.isnan(candidates.p_meet[at]) else float(candidates.p_meet[at])


def keep_confidence(candidates: Candidates, cells: Cells, frame: Frame, confidence: float) -> Bools:
    """Whether cells meet the deadline with `confidence`.

    Most do whatever the luck on spot, by on-demand that comes in time; how spot goes is worked out for the others.
    """
    enough = at_least(candidates, cells, frame, 0.0) >= confidence
    open_ = np.flatnonzero(~enough)
    if len(open_):
        few, frames = cells.take(open_), frame.take(open_)
        had = fallback_had(candidates, few.on_demand, candidates.nodes[few.base])
        by_both = (confidence - had * frames.surely) / np.where(had < 1.0, 1.0 - had, 1.0)
        needed = np.where(had < 1.0, np.minimum(by_both, confidence), confidence)
        alone = spot_chance(candidates, few, frames.room, None, needed)
        enough[open_] = np.maximum(alone, at_least(candidates, few, frames, alone)) >= confidence
    return enough


def at_least(candidates: Candidates, cells: Cells, frame: Frame, alone: Floats | float) -> Floats:
    """Probability to be in time by on-demand, or by spot where that does not come; `alone` without a fall-back."""
    had = fallback_had(candidates, cells.on_demand, candidates.nodes[cells.base])
    return np.asarray(had * frame.surely + (1.0 - had) * alone, dtype=np.float64)


def spot_chance(
    candidates: Candidates,
    cells: Cells,
    hours: Floats,
    steady: Floats | None,
    needed: Floats | None = None,
) -> Floats:
    """P(spot ends within `hours`), less what `steady` takes beyond the undisturbed work where it is given.

    `needed`: where only it matters whether the chance reaches so much, shape `(n,)`; elsewhere it may be a bound.
    """
    base = cells.base
    work, write, interval = (
        candidates.work_hours[base],
        candidates.write_hours[base],
        candidates.interval_hours[base],
    )
    context = candidates.context
    arguments = model_arguments(context.asked, context.spot, cells.zones[:, 0], write, interval, cells.pool)
    return p_meet_deadline(
        work,
        deadline_hours=np.maximum(hours, 0.0),
        work_log_sd=candidates.sigma[base],
        steady_hours=steady,
        later_hours=candidates.later_hours(base),
        needed=needed,
        **arguments,
    )
