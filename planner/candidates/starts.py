"""How long clusters wait for their capacity, and how often it comes.

A cluster bought in several parts starts when the last of its steady parts is there; each is taken to wait as if the
whole cluster were asked of it, and all to be as lucky as each other. Spot waits as its records say, in the course of
the work. Whoever falls back on on-demand leaves it so much time that half of the chance of being late that the
workload allows is left to its wait.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import IN_TURN, MIXED, SINGLE
from planner.candidates.timing import staging_hours
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.market.starts import Spread, Starts


def parts_wait_hours(starts: Starts, offer: Ints, nodes: Ints) -> Floats:
    """Hours until the last part is there.

    Args:
        starts: waits of the offers.
        offer: purchases, -1 none, shape `(n, k)`.
        nodes: instances of the whole cluster, shape `(n,)`.
    """
    each = np.where(offer >= 0, starts.hours(offer, nodes[:, None]), 0.0)
    return np.asarray(each.max(axis=1), dtype=np.float64)


def wait_hours(candidates: Candidates, at: int) -> float:
    """Hours that candidate `at` waits for what is not spot before it starts."""
    starts, one = candidates.context.starts, np.asarray([at])
    if candidates.kind[at] == IN_TURN:
        return 0.0
    if candidates.kind[at] == MIXED and candidates.mixes is not None:
        return float(
            parts_wait_hours(starts, candidates.mixes.offer[candidates.detail[one]], candidates.nodes[one])[0]
        )
    return float(starts.hours(candidates.offer[one], candidates.nodes[one])[0])


def chance_had(candidates: Candidates, at: Ints) -> Floats:
    """Probability that capacity comes, shape `(len(at),)`; of clusters in turn their own chance holds it already."""
    starts, had = candidates.context.starts, np.ones(len(at))
    single = candidates.kind[at] == SINGLE
    had[single] = starts.had(candidates.offer[at[single]], candidates.nodes[at[single]])
    mixed = np.flatnonzero(candidates.kind[at] == MIXED)
    if len(mixed) and candidates.mixes is not None:
        offer, nodes = candidates.mixes.offer[candidates.detail[at[mixed]]], candidates.nodes[at[mixed]]
        had[mixed] = np.where(offer >= 0, starts.had(offer, nodes[:, None]), 1.0).min(axis=1)
    return had


def fallback_hours(starts: Starts, on_demand: Ints, nodes: Ints) -> Floats:
    """Mean hours from asking for the fall-back to having it, 0 without one; `on_demand`: offers, -1 none."""
    return np.where(on_demand >= 0, starts.hours(on_demand, nodes), 0.0)


def allotted_level(confidence: float) -> float:
    """Probability with which a fall-back that comes does so within the hours left to it."""
    return (1.0 + confidence) / 2.0


def allotted_hours(candidates: Candidates, on_demand: Ints, nodes: Ints) -> Floats:
    """Hours before the last moment at which the fall-back is asked for, 0 without one; `on_demand`: offers, -1 none."""
    level = allotted_level(candidates.context.asked.workload.constraints.deadline_confidence)
    return np.where(on_demand >= 0, candidates.context.starts.at_level(on_demand, nodes, level), 0.0)


def fallback_had(candidates: Candidates, on_demand: Ints, nodes: Ints) -> Floats:
    """Probability that the fall-back comes within the hours left to it, 0 without one."""
    starts = candidates.context.starts
    level = allotted_level(candidates.context.asked.workload.constraints.deadline_confidence)
    in_time = np.where(starts.has_spread(on_demand), level, 1.0)
    return np.where(on_demand >= 0, starts.had(on_demand, nodes) * in_time, 0.0)


@record(frozen=True, eq=False)
class Waits:
    """Hours from the start of candidates until their clusters are there, arrays of shape `(n,)` unless said.

    Attributes:
        before: whatever the wait; least: for the data, whatever the wait; offer: purchases that are waited for, -1
            none, shape `(n, k)`; nodes: of the whole cluster.
        has_spread: whether the wait may be longer or shorter than its mean.
    """

    starts: Starts
    before: Floats
    least: Floats
    offer: Ints
    nodes: Ints
    has_spread: Bools

    def take(self, at: Ints) -> Waits:
        """Some of them."""
        return Waits(
            self.starts, self.before[at], self.least[at], self.offer[at], self.nodes[at], self.has_spread[at]
        )

    def kinds(self) -> tuple[Floats, ...]:
        """Columns that are equal where the waits after `before` are distributed alike, each of shape `(n,)`."""
        alone = [self.starts.kinds(rows, self.nodes) for rows in self.offer.T]
        return self.least, *(column for columns in alone for column in columns)

    def within(self, hours: Floats) -> Floats:
        """Probability that all is there `hours` after `before`, given that it comes; shape `(n, ...)` like `hours`."""
        rows, spread, least = self._by_hours(hours.ndim - 1)
        each = np.where(rows, spread.within(hours[:, None]), 1.0).min(axis=1)
        return np.where(hours >= least, each, 0.0)

    def _by_hours(self, axes: int) -> tuple[Bools, Spread, Floats]:
        """What is waited for, its waits, and hours for the data, with so many axes for hours behind."""
        if axes not in self._known:
            shape = (len(self.nodes), self.offer.shape[1], *(1,) * axes)
            rows, nodes = self.offer.reshape(shape), self.nodes.reshape(len(self.nodes), 1, *shape[2:])
            least = self.least.reshape(-1, *shape[2:]) - 1e-9
            self._known[axes] = rows >= 0, self.starts.spread_of(rows, nodes), least
        return self._known[axes]

    @cached_property
    def _known(self) -> dict[int, tuple[Bools, Spread, Floats]]:
        return {}

    @cached_property
    def soonest(self) -> Floats:
        """Hours after `before` within which nothing is there yet: `at_level` of no probability."""
        return self.at_level(0.0)

    def at_level(self, level: float | Floats) -> Floats:
        """Hours after `before` within which all is there with probability `level`, given that it comes."""
        level = np.broadcast_to(np.asarray(level, dtype=np.float64), len(self.nodes))[:, None]
        each = self.starts.at_level(self.offer, self.nodes[:, None], level)
        last = np.where(self.offer >= 0, each, 0.0).max(axis=1)
        return np.asarray(np.maximum(last, self.least), dtype=np.float64)


def waits_of(candidates: Candidates, at: Ints) -> Waits:
    """The waits of candidates `at`; clusters in turn wait in the course of the work."""
    context, starts, nodes = candidates.context, candidates.context.starts, candidates.nodes[at]
    offer = candidates.offer[at][:, None]
    if candidates.mixes is not None and (candidates.kind[at] == MIXED).any():
        mixed = candidates.kind[at] == MIXED
        parts = candidates.mixes.offer[np.where(mixed, candidates.detail[at], 0)]
        single = np.concatenate([offer, np.full((len(at), parts.shape[1] - 1), -1)], axis=1)
        offer = np.where(mixed[:, None], parts, single)
    offer = np.where((candidates.kind[at] == IN_TURN)[:, None], -1, offer)
    least = staging_hours(context.market.offer_set, context.asked.job, context.asked.assumptions)
    least = least[candidates.offer[at]]
    mean = parts_wait_hours(starts, offer, nodes)
    spread = np.asarray(((offer >= 0) & starts.has_spread(offer)).any(axis=1), dtype=np.bool_)
    return Waits(starts, candidates.waiting_hours[at] - np.maximum(least, mean), least, offer, nodes, spread)
