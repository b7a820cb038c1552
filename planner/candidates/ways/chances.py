"""Chances of what runs in turn, one meaning for all that is stated or asked for.

All are calibrated (`planner.spot.meet`) and averaged over the error of the predicted work. With the room A to the
deadline, c hours from asking for on-demand to progress on it, and work that takes T hours on spot where it would take G
on on-demand (both grow with the error of the prediction):

    alone  = P(T <= A)                                spot alone is in time
    needed = 1 - P(T <= A - c - (G - floor))          on-demand is asked for: at the last moment spot is not done
    meet   = P(G <= A - c) (1 - both)                 at least `alone`
    both   = p l + r (min(p, l) - p l)                on-demand does not come within c, and spot alone is too late

p = 1 - had is the chance that on-demand does not come within c, l = 1 - alone / P(G <= A - c) that spot is too late
though the speed is not, and r how far the two markets are one: when spot is scarce, so is on-demand. No record of
on-demand is public, so that it counts as one more zone of its region does (docs/spot/launch.md). c leaves the wait for
on-demand more than its mean (`planner.candidates.starts.allotted_level`). As c and G - floor (machine failures) are
never negative, needed >= 1 - alone. Where on-demand does not come in time, the job goes on on spot: it is then in time
as often as spot alone is.
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
from planner.spot.zones import scarce_together

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
        needed = np.minimum(least_alone(confidence, frames.surely, had, link_of(candidates, few)), confidence)
        alone = spot_chance(candidates, few, frames.room, None, needed)
        enough[open_] = np.maximum(alone, at_least(candidates, few, frames, alone)) >= confidence
    return enough


def at_least(candidates: Candidates, cells: Cells, frame: Frame, alone: Floats | float) -> Floats:
    """Probability to be in time by on-demand, or by spot where that does not come; `alone` without a fall-back."""
    had = fallback_had(candidates, cells.on_demand, candidates.nodes[cells.base])
    return in_time_by_either(frame.surely, alone, had, link_of(candidates, cells))


def in_time_by_either(surely: Floats, alone: Floats | float, had: Floats, link: Floats | float) -> Floats:
    """Probability to be in time with on-demand, where spot alone is too late and on-demand comes.

    Args:
        surely: that on-demand is in time where it comes, shape `(n,)`.
        alone: that spot alone is in time, shape `(n,)`.
        had: that on-demand comes, shape `(n,)`.
        link: how far both markets are one, 0..1 (`link_of`).
    """
    late, never = np.clip(1.0 - alone / np.maximum(surely, 1e-300), 0.0, 1.0), 1.0 - had
    return np.asarray(surely * (1.0 - scarce_together(never, late, link)), dtype=np.float64)


def least_alone(confidence: float, surely: Floats, had: Floats, link: Floats) -> Floats:
    """The chance of spot alone from which on `in_time_by_either` reaches `confidence`; 1 where none does."""
    never, both = 1.0 - had, np.maximum(1.0 - confidence / np.maximum(surely, 1e-300), -1.0)
    # slopes of `both` up to a chance of being late of `never`, and on
    steep, flat = never + link * had, never * (1.0 - link)
    beyond = never + (both - never * steep) / np.maximum(flat, 1e-300)
    late = np.where(both <= never * steep, both / np.maximum(steep, 1e-300), beyond)
    return np.asarray(np.where(both < 0.0, 1.0, surely * (1.0 - np.clip(late, 0.0, 1.0))), dtype=np.float64)


def link_of(candidates: Candidates, cells: Cells) -> Floats:
    """How far on-demand is scarce when spot is: as one more zone is, of its region or of another, shape `(n,)`."""
    assume, place = candidates.context.asked.assumptions, candidates.context.market.region_of_offer
    here = ((place[cells.zones] == place[cells.on_demand][:, None]) & (cells.zones >= 0)).any(axis=1)
    return np.where(here, assume.spot_zone_correlation_ratio, assume.spot_region_correlation_ratio)


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
