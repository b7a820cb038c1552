"""When the workers of a fleet are there, with the spread of the wait for their machines.

All workers that are not spot are as lucky as each other: at a level u of luck, evenly spread over 0..1, those of a
line wait the quantile u / had of their wait, and never come where u is above `had`, the chance that they come at all.
Spot waits in the course of its work. A line is planned for so few hours that it is in time by itself with the
confidence asked:

    had times the mean over u of Phi(ln((deadline - wait(u) - fixed) / need) / sigma) >= confidence

by the quadrature with which the chance of the whole fleet is worked out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.starts import chance_had, waits_of
from planner.candidates.ways.fallback import unit_quadrature
from planner.normal.arrays import normal_cdf_by_table

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats
    from planner.candidates.model import Candidates
    from planner.fleet.workers import Workers


Levels = tuple[tuple[float, "Floats"], ...]
POINTS = 12  # of the luck between two chances to come at all
_HALVINGS = 20
_SPAN = 3.0  # logarithms of hours that are searched below the longest
_SLACK = 1e-5  # of the chance, more than the table of the normal distribution is off
_CERTAIN = 1e-9  # log error of a speed below which it has none


def levels_of(candidates: Candidates, workers: Workers) -> Levels:
    """Weight of each level of luck and the hours before each worker's work begins, infinite where it never comes.

    Empty where all come for certain after a certain wait.
    """
    waits, had = waits_of(candidates, workers.at), chance_had(candidates, workers.at)
    if not waits.has_spread.any() and (had >= 1.0).all():
        return ()
    out, low = [], 0.0
    for high in sorted({*had.tolist(), 1.0}):
        there = had >= high
        nodes, weights = unit_quadrature(POINTS if (waits.has_spread & there).any() else 1)
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            luck = low + (high - low) * node
            begin = waits.before + waits.at_level(np.where(there, luck / had, 0.0)) + workers.fixed_hours
            out.append((weight * (high - low), np.where(there, begin, np.inf)))
        low = high
    return tuple(out)


def in_time(candidates: Candidates, workers: Workers) -> Workers:
    """Workers with the hours that leave time for their waits, 0 where they are never sure enough."""
    deadline = candidates.context.dates.deadline_hours
    waits, had = waits_of(candidates, workers.at), chance_had(candidates, workers.at)
    own = np.flatnonzero(waits.has_spread | (had < 1.0))
    if deadline is None or not len(own):
        return workers
    nodes, weights = unit_quadrature(POINTS)
    before = (waits.before + workers.fixed_hours)[own]
    waits = waits.take(own)
    room = np.stack([deadline - before - waits.at_level(node) for node in nodes.tolist()])
    longest, sigma = workers.hours_limit[own], candidates.sigma[workers.at[own]]
    times = np.log(np.maximum(room, 1e-300) / longest)
    confidence = candidates.context.asked.workload.constraints.deadline_confidence
    wanted = min(confidence + _SLACK, (1.0 + confidence) / 2.0)

    def sure(shorter: Floats) -> Bools:
        """Whether hours shorter by a logarithm are in time."""
        over = times + shorter
        chance = np.where(
            sigma < _CERTAIN,
            np.where(over >= 0, 1.0, 0.0),
            normal_cdf_by_table(over / np.maximum(sigma, _CERTAIN)),
        )
        return np.asarray(had[own] * (weights @ chance) >= wanted, dtype=np.bool_)

    low, high = np.zeros(len(own)), np.full(len(own), _SPAN)
    at_once, ever = sure(low), sure(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        enough = sure(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    hours = workers.hours_limit.copy()
    hours[own] = np.where(at_once, longest, np.where(ever, longest * np.exp(-high), 0.0))
    return replace(workers, hours_limit=hours, best_hours=np.minimum(workers.best_hours, hours))
