"""What a question needs of a job's candidates beside the best one: up to which value, of which places.

Ways to run in turn are thousands per size, and each takes microseconds to work out. So those are left out whose bare
work at the price of spot is dearer than anything the question could use; what it could use is said here, as a ceiling
per offer. A candidate below its ceiling is never left out, so a question may rely on its set being whole up to there.
"""

from __future__ import annotations

import math
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.footprint import operational_kg
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked
    from planner.candidates.model import Candidates
    from planner.market.model import Market


# A candidate's bare work at the price of spot is counted at 0.999 of it, so sets are whole a little above what was
# asked for: up to the ceiling times this.
COVERED_RATIO = 1.0005


class Scope(Enum):
    """Candidates that a question needs in any case."""

    BEST = "best"  # the best one
    LISTED = "listed"  # also the decisions listed beside it, and the best of every provider
    SHOWN = "shown"  # the same, but spot in several zones only where it could be the best
    PLACES = "places"  # the best of every region
    CARBON_FRONT = "carbon_front"  # all that no other beats in cost and emissions


@record(frozen=True)
class Wanted:
    """What is needed.

    Attributes:
        scope: needed in any case.
        up_to: every candidate of at most this value (USD; hours or kgCO2e for those objectives) is needed too.
        below: nothing dearer than this is needed: a candidate of this value is known.
        one_region: only ways to run whose offers are all in one region.
        one_offer: only ways that buy one offer, as a worker of a fleet does. Workers share capacity and quotas, so spot
            at no discount stays: on-demand may not be enough for all of them.
        counted: the answer says how many candidates there are; else sets of zones are left out by their least cost.
        in_parts: clusters bought in parts, too.
        of_shapes: nothing dearer than this is needed of each row of the shapes, shape `(n_shapes,)`; None: no matter.
    """

    scope: Scope = Scope.LISTED
    up_to: float = -np.inf
    below: float = np.inf
    one_region: bool = False
    one_offer: bool = False
    counted: bool = True
    in_parts: bool = True
    of_shapes: Floats | None = field(default=None, compare=False)

    def within(self, candidates: Candidates, at: Ints, limit: Floats) -> Floats:
        """Value above which each of `at` is of no use; `limit`: of each offer."""
        of_offer: Floats = limit[candidates.offer[at]]
        if self.of_shapes is None:
            return of_offer
        return np.asarray(np.minimum(of_offer, self.of_shapes[candidates.shape[at]]), dtype=np.float64)


def value_of(candidates: Candidates) -> Floats:
    """What candidates are compared by: expected cost, hours or emissions, by the objective; infinity: unknown."""
    objective = candidates.context.asked.workload.preferences.objective
    if objective == "carbon":
        kg = operational_kg(candidates)
        return np.asarray(np.where(np.isnan(kg), np.inf, kg), dtype=np.float64)
    value: Floats = candidates.cost_usd if objective == "cost" else candidates.hours
    return value


def ceilings(
    candidates: Candidates, wanted: Wanted, *, of_sets: bool = False, more: Sequence[Mapping[str, Any]] = ()
) -> Floats:
    """Value above which a candidate of each offer is of no use to the question, shape `(n_offers,)`.

    Args:
        candidates: candidates known so far; the best of them bound what is of use.
        wanted: what the question needs.
        of_sets: asked for sets of zones that begin with the offer: thousands, so of no provider for its own sake.
        more: columns of further candidates known, for the objectives cost and time.
    """
    context = candidates.context
    feasible = np.flatnonzero(candidates.bits == 0)
    rows, value = candidates.offer[feasible], value_of(candidates)[feasible]
    if more:
        name = {"cost": "cost_usd", "time": "hours"}[context.asked.workload.preferences.objective]
        passed = [columns["bits"] == 0 for columns in more]
        rows = np.concatenate([rows, *(one["offer"][at] for one, at in zip(more, passed, strict=True))])
        value = np.concatenate([value, *(one[name][at] for one, at in zip(more, passed, strict=True))])
    n_offers = context.market.offer_set.offers.n_rows
    if wanted.scope is Scope.BEST or (of_sets and wanted.scope is Scope.SHOWN):
        limit = np.full(n_offers, float(value.min(initial=np.inf)))
    elif wanted.scope is Scope.PLACES:
        limit = _least(context.market.region_of_offer, rows, value)
    else:
        limit = np.full(n_offers, _shown(context.asked, context.market, rows, value))
        if not of_sets:
            limit = np.maximum(limit, _least(context.market.provider_of_offer, rows, value))
    return np.asarray(np.minimum(np.maximum(limit, wanted.up_to), wanted.below), dtype=np.float64)


def _least(group_of_offer: Ints, rows: Ints, value: Floats) -> Floats:
    """The least value in each offer's group, infinity where there is none, shape `(n_offers,)`."""
    least = np.full(int(group_of_offer.max(initial=0)) + 1, np.inf)
    np.minimum.at(least, group_of_offer[rows], value)
    return np.asarray(least[group_of_offer], dtype=np.float64)


def _shown(asked: Asked, market: Market, rows: Ints, value: Floats) -> float:
    """Value up to which decisions are listed: each further accelerator is one, so that of the last one at most."""
    count = asked.workload.preferences.max_results + 1
    accelerators = market.accelerator_of_offer[rows]
    least = np.full(int(accelerators.max(initial=0)) + 1, np.inf)
    if count > len(least):  # all are listed
        return math.inf
    np.minimum.at(least, accelerators, value)
    return float(np.sort(least)[:count][-1])
