"""Pairs of a trainer pool and a rollout pool: the cheapest by costs that are linear in hours, over all pairs.

A pool that waits for the other is paid meanwhile, so a pair never costs less than its pools each beside the fastest of
the other kind: what costs more than a known pair even so is left out, and all other pairs are worked out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.performance.inference.pool import handover_s
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalogs.tables.table import Bools, Floats, Ints


_BLOCK = 256  # trainers paired at once
_EDGES = 200  # paces at which the cheapest other pool is looked up
_ROUNDING = 1.0 - 1e-9  # times a least amount, which a sum in another order may come to
_FIRST = (300, 2000)  # of each pool, by its least cost, to find a first pair


@record(frozen=True, eq=False)
class Points:
    """Candidates of one pool, shape `(n,)` each.

    Attributes:
        at: position among the pool's candidates.
        step_s: time of a step at its own pace; `stretch`: elapsed over work hours, `held`: paid over work hours.
        before_hours: elapsed before and beside the work.
        fixed_usd, usd_per_hour: cost of the pool without work, and of an hour in use.
        sure: hours kept with the confidence asked, over expected hours.
        nodes, accelerators: of the pool; `place`: number of its region; `rate`: of a node's network, bytes/s.
        copies: replicas on a node; `chip`: number of its accelerator's type.
        uses: of each declared quota, shape `(n, k)`.
        offer: row of what is bought; `most_nodes`: machines of it that can be had at once.
    """

    at: Ints
    step_s: Floats
    stretch: Floats
    held: Floats
    before_hours: Floats
    fixed_usd: Floats
    usd_per_hour: Floats
    sure: Floats
    nodes: Ints
    accelerators: Floats
    place: Ints
    rate: Floats
    copies: Floats
    chip: Ints
    uses: Floats
    offer: Ints
    most_nodes: Floats

    def take(self, index: Ints) -> Points:
        """Rows `index`."""
        return Points(**{name: getattr(self, name)[index] for name in self.__dataclass_fields__})


@record(frozen=True, eq=False)
class Terms:
    """What two pools share.

    Attributes:
        hours_per_step_s: hours of all steps, evaluation included, per second of a step.
        ahead: generation runs ahead, so that the longer of the two sets the pace; else they add up.
        weights: bytes that each step hands over.
        moved_usd, gbps: of all steps between regions, and the rate, by number of the two places, shape `(P, P)`.
        most_nodes, most_accelerators, deadline_hours: limits of both pools together.
        quotas: limit of each declared quota, which pools of one region share, shape `(k,)`.
        one_chip: both pools have the same type of accelerator.
    """

    hours_per_step_s: float
    ahead: bool
    weights: float
    moved_usd: Floats
    gbps: Floats
    most_nodes: float
    most_accelerators: float
    deadline_hours: float
    quotas: Floats
    one_chip: bool = False


@record(frozen=True, eq=False)
class Pairs:
    """Pairs by rising cost: rows of both `Points`, cost in USD; `compared`: pairs looked at one by one."""

    trainer: Ints
    rollouts: Ints
    usd: Floats
    compared: int


def step_of(terms: Terms, train: Floats, generate: Floats, refit: Floats) -> Floats:
    """Time of a step that two pools share, s."""
    return (np.maximum(train, generate) if terms.ahead else train + generate) + refit


def find_pairs(trainers: Points, rollouts: Points, terms: Terms, count: int) -> Pairs:
    """The `count` cheapest pairs that keep the limits."""
    whole = len(trainers.at) * len(rollouts.at)
    if not whole:
        return Pairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 0)
    rows = _in_time(trainers, rollouts, terms)
    if not all(map(len, rows)):
        return Pairs(rows[0][:0], rows[1][:0], np.zeros(0), whole)
    soon = trainers.take(rows[0]), rollouts.take(rows[1])
    own, known = _least_usd(*soon, terms), np.zeros(0)
    for size in _FIRST:
        if len(known) < count:
            first = [np.argsort(usd)[:size] for usd in own]
            known = _cheapest(soon[0].take(first[0]), soon[1].take(first[1]), terms, count)[2]
    # without a limit too few pairs keep the others to say what is too dear
    limit = float(known[-1]) if len(known) >= count else np.inf
    kept = [row[usd * _ROUNDING <= limit] for row, usd in zip(rows, own, strict=True)]
    a, b, usd = _cheapest(trainers.take(kept[0]), rollouts.take(kept[1]), terms, count)
    return Pairs(kept[0][a], kept[1][b], usd, whole)


def least_refit_s(trainers: Points, rollouts: Points, terms: Terms) -> tuple[Floats, Floats]:
    """To hand over the weights of each trainer and to each of the rollouts at least: the other has the best network."""
    every = np.asarray(np.inf)
    first = handover_s(
        terms.weights, rollouts.copies.min(), np.fmin(trainers.rate, np.fmax.reduce(rollouts.rate)), every
    )
    second = handover_s(
        terms.weights, rollouts.copies, np.fmin(rollouts.rate, np.fmax.reduce(trainers.rate)), every
    )
    return first, second


def _in_time(trainers: Points, rollouts: Points, terms: Terms) -> tuple[Ints, Ints]:
    """Rows of both pools with a known network that are in time beside the best of the other kind in each respect."""
    out = []
    refits = least_refit_s(trainers, rollouts, terms)
    for own, other, refit in zip((trainers, rollouts), (rollouts, trainers), refits, strict=True):
        best = {
            name: np.fmin.reduce(getattr(other, name))
            for name in ("step_s", "stretch", "before_hours", "sure")
        }
        step = step_of(terms, own.step_s, best["step_s"], refit)
        hours = terms.hours_per_step_s * step * own.stretch * best["stretch"]
        sure = (np.maximum(own.before_hours, best["before_hours"]) + hours) * own.sure * best["sure"]
        out.append(np.flatnonzero((own.rate > 0) & (sure * _ROUNDING <= terms.deadline_hours)))
    return out[0], out[1]


def _least_usd(trainers: Points, rollouts: Points, terms: Terms) -> tuple[Floats, Floats]:
    """What any pair of a pool costs at least, each pool beside the cheapest other one at its pace.

    The other pool is taken to be never interrupted and to have the fastest network of its kind.
    """
    first, second = least_refit_s(trainers, rollouts, terms)
    least = np.minimum(first.min(keepdims=True), second.min(keepdims=True))
    out = []
    for own, other, refit in ((trainers, rollouts, first), (rollouts, trainers, second)):
        step = step_of(terms, own.step_s, other.step_s.min(), refit)
        edges = distinct_values(np.quantile(own.step_s, np.linspace(0.0, 1.0, _EDGES)))
        cheapest = np.asarray(
            [_at_pace(other, step_of(terms, edge, other.step_s, least), terms) for edge in edges]
        )
        beside = cheapest[np.searchsorted(edges, own.step_s, side="right") - 1]
        out.append(own.fixed_usd + terms.hours_per_step_s * step * own.held * own.usd_per_hour + beside)
    return out[0], out[1]


def _at_pace(points: Points, step: Floats, terms: Terms) -> float:
    """The least cost of pools with steps of `step` seconds, USD."""
    return float((points.fixed_usd + terms.hours_per_step_s * step * points.held * points.usd_per_hour).min())


def _cheapest(trainers: Points, rollouts: Points, terms: Terms, count: int) -> tuple[Ints, Ints, Floats]:
    none = np.zeros(0, dtype=np.int64)
    found: list[tuple[Ints, Ints, Floats]] = [(none, none, np.zeros(0))]
    for rows, others in _blocks(trainers, rollouts, terms):
        usd = _costs(trainers.take(rows), rollouts.take(others), terms).ravel()
        best = np.argpartition(usd, min(count, len(usd) - 1))[:count]
        best = best[np.isfinite(usd[best])]
        found.append((rows[best // len(others)], others[best % len(others)], usd[best]))
    a, b, usd = (np.concatenate([part[k] for part in found]) for k in range(3))
    order = np.lexsort((b, a, usd))[:count]
    return a[order], b[order], usd[order]


def _blocks(trainers: Points, rollouts: Points, terms: Terms) -> Iterator[tuple[Ints, Ints]]:
    """Rows of trainers with the rows of rollouts that they are paired with, some at a time."""
    groups = [(np.arange(len(trainers.at)), np.arange(len(rollouts.at)))]
    if np.isfinite(terms.moved_usd).sum() == len(terms.moved_usd):  # each in one region alone
        groups = [
            (np.flatnonzero(trainers.place == place), np.flatnonzero(rollouts.place == place))
            for place in np.intersect1d(trainers.place, rollouts.place).tolist()
        ]
    for rows, others in groups:
        if len(others):
            for begin in range(0, len(rows), _BLOCK):
                yield rows[begin : begin + _BLOCK], others


def _costs(trainers: Points, rollouts: Points, terms: Terms) -> Floats:
    """Cost of every pair, USD, infinite where a limit is broken; shape `(n_trainers, n_rollouts)`."""
    t, r = _column(trainers), rollouts
    place = t.place, r.place
    refit = handover_s(terms.weights, r.copies, np.minimum(t.rate, r.rate), terms.gbps[place])
    step = step_of(terms, t.step_s, r.step_s, refit)
    hours = terms.hours_per_step_s * step * t.stretch * r.stretch
    usd = terms.moved_usd[place] + t.fixed_usd + r.fixed_usd
    usd = usd + hours * (t.usd_per_hour * t.held / t.stretch + r.usd_per_hour * r.held / r.stretch)
    sure = (np.maximum(t.before_hours, r.before_hours) + hours) * t.sure * r.sure
    fits = (t.nodes + r.nodes <= terms.most_nodes) & (sure <= terms.deadline_hours)
    fits &= t.accelerators + r.accelerators <= terms.most_accelerators
    fits &= (t.offer != r.offer) | (t.nodes + r.nodes <= t.most_nodes)
    fits &= (t.place != r.place) | within(terms.quotas, t.uses + r.uses)
    if terms.one_chip:
        fits &= t.chip == r.chip
    return np.where(fits & np.isfinite(usd), usd, np.inf)


def within(quotas: Floats, uses: Floats) -> Bools:
    """Whether uses, shape `(..., k)`, keep the quotas."""
    return np.asarray((uses <= quotas * (1.0 + 1e-9)).all(axis=-1), dtype=np.bool_)


def _column(points: Points) -> Points:
    return Points(**{name: getattr(points, name)[:, None] for name in points.__dataclass_fields__})
