"""The cheapest candidate of one job at many deadlines, without judging what cannot be it.

At each deadline most candidates cost more than one that keeps it, so whether they would keep it does not matter. They
are looked at by rising cost until one does; what costs more is left out, but spot whose type and size a cheaper way to
run in turn could begin with. The cheapest is the one that `planner.candidates.engine` finds; the number of candidates
is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.engine import deadline_after
from planner.candidates.limits import judge_too, mark_best, recorded
from planner.candidates.model import concat_candidates
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.build import add_turns, spot_candidates, work_floor
from planner.candidates.ways.partners import Partners, mark_no_discount

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints
    from planner.candidates.engine import Engine
    from planner.candidates.model import Candidates


_BEST = Wanted(Scope.BEST)


class BestAlone:
    """The cheapest candidate of an engine's job at any deadline; quickest where deadlines rise."""

    def __init__(self, engine: Engine) -> None:
        """Take the engine of a job that is compared by cost."""
        self._engine, market = engine, engine.context.market
        self._partners = Partners(market, engine.offer_bits)
        self._has_spot = bool((market.is_spot & (engine.offer_bits == 0)).any())
        # whether such spot is removed depends on whether on-demand is in time
        undiscounted = self._partners.undiscounted
        self._judged = undiscounted.copy()
        self._judged[self._partners.own[undiscounted]] = True
        self._coarse = engine.recorded
        self._widest: Ints = np.zeros(0, dtype=np.int64)
        self._wide: Candidates = self._coarse
        self._leaders: Ints | None = None
        self._steady: Candidates = self._coarse
        # positions of `_steady` from the cheapest on, and the type and size of each
        self._order = self._group = np.zeros(0, dtype=np.int64)

    def at_hours(self, hours: float, below: float) -> Candidates:
        """The cheapest candidate at a deadline and some beside it.

        Args:
            hours: of the deadline, from the start.
            below: a cost up to which there is a candidate; ways to run in turn that cost more are not looked for.
        """
        engine = self._engine
        deadline = deadline_after(engine.context.dates.start, hours)
        context = engine.context.with_deadline(deadline)
        candidates = self._of_leaders(engine.leaders(context, _BEST))
        candidates = replace(
            candidates, context=context, bits=candidates.bits.copy(), p_meet=candidates.p_meet.copy()
        )
        unseen = mark_best(candidates, candidates.cost_usd, self._order)
        if not self._has_spot:
            return candidates
        useful = _of_use(candidates, below, self._group)
        hidden = unseen[useful[unseen] & self._judged[candidates.offer[unseen]]]
        judge_too(candidates, hidden)
        mark_no_discount(candidates, self._partners)
        candidates = candidates.take(np.flatnonzero(useful))
        return add_turns(candidates, engine.offer_bits, replace(_BEST, below=below), self._partners)

    def _of_leaders(self, leaders: Ints) -> Candidates:
        """Candidates that do not run in turn: all at the coarse sizes, the leaders at those between."""
        if self._leaders is None or not np.array_equal(leaders, self._leaders):
            self._leaders, self._steady = leaders, self._sized(leaders)
            self._order, self._group = np.argsort(self._steady.cost_usd, kind="stable"), _groups(self._steady)
        return self._steady

    def _sized(self, leaders: Ints) -> Candidates:
        engine = self._engine
        if engine.is_scarce:
            return engine.steady(leaders, by_deadline=True)
        if not np.isin(leaders, self._widest).all():
            self._widest = leaders
            self._wide = concat_candidates([self._coarse, recorded(engine.priced(*engine.between(leaders)))])
        elif len(leaders) == 0:
            return self._coarse
        if len(leaders) == len(self._widest):
            return self._wide
        wide, kept = self._wide, np.zeros(engine.context.market.offer_set.hardware.n_rows, dtype=np.bool_)
        kept[leaders] = True
        coarse = np.arange(len(wide.bits)) < len(self._coarse.bits)
        row = wide.shapes["hardware_row"].astype(np.int64)[wide.shape]
        return wide.take(np.flatnonzero(coarse | kept[row]))


def _groups(candidates: Candidates) -> Ints:
    """Number of the type and size of each candidate."""
    kind = candidates.context.market.offer_set.type_of_offer[candidates.offer]
    return distinct(kind * candidates.shapes.n_rows + candidates.shape)[2]


def _of_use(candidates: Candidates, below: float, group: Ints) -> Bools:
    """Candidates that keep all limits, and types and sizes that a cheaper way to run may begin with."""
    useful = candidates.bits == 0
    spot = spot_candidates(candidates)
    limit = min(float(candidates.cost_usd[useful].min(initial=np.inf)), below)
    wanted = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.bool_)
    wanted[group[spot[work_floor(candidates, spot) <= limit]]] = True
    return np.asarray(useful | wanted[group], dtype=np.bool_)
