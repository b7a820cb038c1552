"""From a fleet that falls back to the `Plan`: a line of spot and one of on-demand, each worker on one at a time."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.carbon import carbon_of
from planner.fleet.fallback import FALLBACKS_COMPARED, NOT_JUDGED
from planner.fleet.fallback_launch import launch_of_fallback
from planner.fleet.fallback_mix import lines_of_fallback, mix_of_fallback, workers_on_each
from planner.fleet.fallback_search import chances_of_fleet
from planner.fleet.fallback_why import reasons
from planner.fleet.plan import one_offer_choice, plan_of, savings_of
from planner.fleet.stored_plan import storage_of
from planner.market.pricing import total_usd
from planner.plan.model import Proof, Risk

if TYPE_CHECKING:
    from planner.fleet.alone import Alone
    from planner.fleet.fallback_mix import FallbackMix
    from planner.fleet.fallback_search import Cheapest
    from planner.fleet.rounds import Outcome, Round
    from planner.plan.launch import Launch
    from planner.plan.model import Plan

BASIS = (
    "each worker changes to on-demand at the last moment at which its share of the work meets the deadline"
)
METHOD = (
    "MILP over whole workers and their hours; numbers of workers of each offer with its fall-back compared"
)


def fallback_plan(
    asked: Round, cheapest_fleet: Cheapest, alone: Alone, single: Alone | None, mean: Outcome | None
) -> Plan:
    """Build the plan.

    Args:
        asked: the question.
        cheapest_fleet: of those with a fall-back.
        alone: fleets of each offer alone, of which the baseline is one.
        single: the cheapest sure one of these, a choice beside the plan.
        mean: the cheapest mix without fall-backs at spot's mean, whose bound holds for all of these; None: no worker
            without one has time for any work.
    """
    one = cheapest_fleet.fleet
    assert one is not None
    search, mix = asked.found, mix_of_fallback(asked, one)
    lines = lines_of_fallback(search, mix)
    total = total_usd([cost for line in lines for cost in line.costs])
    launch = launch_of_fallback(asked, mix, chances_of_fleet(asked, one), total)
    savings, on_demand = savings_of(search, alone, total, mix.period, asked.ask)
    launch = replace(launch, why=reasons(asked, one, launch, alone, next(iter(on_demand), None)))
    return plan_of(
        search, mix, lines, total=total, risk=_risk(mix, launch), savings=savings,
        proof=proof_of_fallback(asked, total, mean, cheapest_fleet.unjudged_usd, METHOD, FALLBACKS_COMPARED),
        launch=launch, others=(*one_offer_choice(search, mix.period, single, total), *on_demand),
        carbon=carbon_of(search.candidates, workers_on_each(mix), in_order=True),
        storage=storage_of(search.candidates, mix, lines[:1]),
    )  # fmt: skip


def _risk(mix: FallbackMix, launch: Launch) -> Risk:
    return Risk(
        p_meet_deadline=launch.p_meet_deadline, expected_interruptions=launch.expected_interruptions,
        expected_lost_hours=launch.lost_hours, expected_hours=mix.period, worst_hours=launch.p90_hours,
        expected_cost_usd=launch.expected_cost_usd, worst_cost_usd=launch.cost_p90_usd, basis=BASIS,
    )  # fmt: skip


def proof_of_fallback(
    asked: Round, total: Decimal, mean: Outcome | None, unjudged_usd: float, method: str, compared: str
) -> Proof:
    """The bound is that of mixes without a fall-back, or the fleet itself, the cheapest of those that have one.

    Args:
        asked: the question.
        total: cost of the fleet.
        mean: the cheapest mix without fall-backs at spot's mean.
        unjudged_usd: what fleets with one cost at least whose chance was not worked out; they may be likely enough.
        method: how the fleet was found.
        compared: which fleets the bound holds for.
    """
    context, candidates = asked.found.context, asked.found.candidates
    proven = None if mean is None else mean.first[1]
    bound = total if np.isinf(unjudged_usd) else min(Decimal(repr(unjudged_usd)), total)
    if proven is not None and proven.has_plan and np.isfinite(proven.bound_usd):
        bound = min(Decimal(repr(proven.bound_usd)), bound)
    gap = float((total - bound) / total) if total else 0.0
    return Proof(
        method=method,
        status="optimal" if gap <= asked.options.gap * (1 + 1e-6) else "feasible",
        solver="enumeration" if proven is None else proven.solver,
        objective_usd=total,
        bound_usd=bound,
        gap_ratio=gap,
        candidates=len(candidates.all_bits()),
        offers=context.market.offer_set.offers.n_rows,
        shapes=candidates.shapes.n_rows,
        seconds=asked.clock.spent_s,
        note=compared if np.isinf(unjudged_usd) else f"{compared}; {NOT_JUDGED}",
        gap_exact_ratio=None,
        gap_asked_ratio=asked.options.gap,
    )
