"""Probabilities of candidates on spot with or without a fall-back, defined once for all answers and constraints.

All are calibrated (`planner.spot.meet`) and averaged over the error of the predicted work. With A hours to the
deadline, c hours from the request for on-demand to progress on it, and work that takes T hours on spot and G hours on
on-demand (both scale with the error of the prediction):

    alone  = P(T <= A)                                spot alone is in time
    needed = 1 - P(T <= A - c - (G - floor))          spot is not done at the last moment: on-demand is requested
    meet   = P(G <= A - c) (1 - both)                 at least `alone`
    both   = p l + r (min(p, l) - p l)                on-demand does not come within c, and spot alone is too late

p = 1 - had is the probability that on-demand does not come within c, l = 1 - alone / P(G <= A - c) that spot is too
late although the speed suffices, and r the correlation of the two markets: when spot is scarce, so is on-demand. No
record of on-demand is public, so it counts like one more zone of its region (docs/spot/launch.md). c allows for more
than the mean wait for on-demand (`planner.candidates.starts.allotted_level`). As c and G - floor (machine failures) are
never negative, needed >= 1 - alone. If on-demand does not come in time, the job continues on spot, and is in time as
often as spot alone is.
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
    """The probabilities defined above, 0..1, of shape `(n,)`; `needed` is 0 without a fall-back."""

    meet: Floats
    alone: Floats
    needed: Floats


def chances_of(candidates: Candidates, at: Ints) -> Chances:
    """The probabilities of candidates `at`, all of kind `IN_TURN`, by the deadline of their run."""
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
    """Mask of cells that meet the deadline with `confidence`.

    For most of them the fall-back alone suffices; the distribution on spot is evaluated only for the others.
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
    """Probability of being in time with on-demand, or with spot if that does not come; `alone` without a fall-back."""
    had = fallback_had(candidates, cells.on_demand, candidates.nodes[cells.base])
    return in_time_by_either(frame.surely, alone, had, link_of(candidates, cells))


def in_time_by_either(surely: Floats, alone: Floats | float, had: Floats, link: Floats | float) -> Floats:
    """Probability of being in time with a fall-back (`meet` above).

    Args:
        surely: probability that on-demand is in time if it comes, shape `(n,)`.
        alone: probability that spot alone is in time, shape `(n,)`.
        had: probability that on-demand comes, shape `(n,)`.
        link: correlation of both markets, 0..1 (`link_of`).
    """
    late, never = np.clip(1.0 - alone / np.maximum(surely, 1e-300), 0.0, 1.0), 1.0 - had
    return np.asarray(surely * (1.0 - scarce_together(never, late, link)), dtype=np.float64)


def least_alone(confidence: float, surely: Floats, had: Floats, link: Floats) -> Floats:
    """Least probability of spot alone at which `in_time_by_either` reaches `confidence`; 1 where none does."""
    never, both = 1.0 - had, np.maximum(1.0 - confidence / np.maximum(surely, 1e-300), -1.0)
    # slopes of `both` up to a chance of being late of `never`, and on
    steep, flat = never + link * had, never * (1.0 - link)
    beyond = never + (both - never * steep) / np.maximum(flat, 1e-300)
    late = np.where(both <= never * steep, both / np.maximum(steep, 1e-300), beyond)
    return np.asarray(np.where(both < 0.0, 1.0, surely * (1.0 - np.clip(late, 0.0, 1.0))), dtype=np.float64)


def link_of(candidates: Candidates, cells: Cells) -> Floats:
    """Correlation of on-demand with spot scarcity: that of one more zone, in its region or another; shape `(n,)`."""
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
