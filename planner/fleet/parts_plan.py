"""From a fleet in two parts to the `Plan`: spot and what it falls back on, and on-demand beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import moment_after
from planner.fleet.carbon import carbon_of
from planner.fleet.fallback_launch import launch_of_fallback
from planner.fleet.fallback_mix import workers_on_each
from planner.fleet.fallback_plan import proof_of_fallback
from planner.fleet.parts import MOST_DIVISIONS
from planner.fleet.plan import interruptions_of, one_offer_choice, performance_of, plan_of, savings_of
from planner.fleet.spread import spread_of
from planner.fleet.stored_plan import storage_of
from planner.fleet.workers import Workers
from planner.market.pricing import total_usd
from planner.plan.model import Risk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from planner.fleet.alone import Alone
    from planner.fleet.mix import Mix
    from planner.fleet.parts import CheapestParts, Parts
    from planner.fleet.rounds import Outcome, Round
    from planner.plan.carbon import Carbon
    from planner.plan.launch import Launch
    from planner.plan.model import Performance, Plan, PlanLine


BASIS = (
    "some workers change to on-demand at the last moment at which their share of the work meets the deadline, the "
    "others are on on-demand; P: at least, whatever ties the luck of both"
)
METHOD = (
    "MILP over whole workers and their hours; fleets of one spot offer with its fall-back beside on-demand of one "
    "offer compared"
)
COMPARED = (
    "beside a fall-back, on-demand of one offer is compared, in every division of the runs or, of more than "
    f"{MOST_DIVISIONS}, in {MOST_DIVISIONS} evenly spread ones"
)
NOTE = (
    "hours are summed over workers; the finish is that of the last of them; no worker takes runs of the other part, "
    "and P10 and P90 of the cost are sums of both parts"
)


def plan_in_parts(
    asked: Round, cheapest_parts: CheapestParts, alone: Alone, single: Alone | None, mean: Outcome | None
) -> Plan:
    """Build the plan.

    Args:
        asked: the question about all runs.
        cheapest_parts: of the fleets in two parts.
        alone: fleets of each offer alone, of which the baseline is one.
        single: the cheapest sure one of these, a choice beside the plan.
        mean: the cheapest mix without fall-backs at spot's mean, whose bound holds for mixes; None: there is none.
    """
    parts = cheapest_parts.parts
    assert parts is not None
    search, (falling, firm), lines = asked.found, parts.mixes, parts.lines()
    total, last = total_usd([cost for line in lines for cost in line.costs]), parts.last
    savings, on_demand = savings_of(search, alone, total, last.period, asked.ask)
    launch = _launch(asked, parts, lines, total)
    stored = storage_of(search.candidates, falling, lines[:1])
    stored += tuple(replace(one, line=2) for one in storage_of(search.candidates, firm, lines[2:]))
    plan = plan_of(
        search, last, lines, total=total, risk=_risk(parts, launch), savings=savings,
        proof=proof_of_fallback(asked, total, mean, cheapest_parts.unjudged_usd, METHOD, COMPARED), launch=launch,
        others=(*one_offer_choice(search, last.period, single, total), *on_demand), carbon=_carbon(parts),
        storage=stored,
    )  # fmt: skip
    return replace(plan, performance=_performance(parts))


def _launch(asked: Round, parts: Parts, lines: Sequence[PlanLine], total: Decimal) -> Launch:
    """That of the workers that fall back, with what the others add: sums, of hours until the end the later."""
    falling, firm = parts.mixes
    usd = [total_usd(line.costs) for line in lines]
    own = launch_of_fallback(parts.asked, falling, parts.chances, usd[0] + usd[1])
    beside = spread_of(asked.found, firm, usd[2])
    high, low = max(own.p90_hours, beside.p90_hours), max(own.p10_hours, beside.p10_hours)
    dates = asked.found.context.dates
    runs = [round(mix.work / asked.found.context.asked.job.total_units) for mix in parts.mixes]
    paid = firm.hours * firm.workers.paid_ratio + firm.workers.fixed_hours
    return replace(
        own, strategy="fallback_in_fleet", p_meet_deadline=parts.meet, p_meet_spot_only_ratio=None,
        expected_cost_usd=total, cost_p10_usd=round(own.cost_p10_usd + beside.p10_usd, 2),
        cost_p90_usd=round(own.cost_p90_usd + beside.p90_usd, 2), expected_hours=parts.last.period, p10_hours=low,
        p90_hours=high, finish_p10=moment_after(dates, low), finish_p90=moment_after(dates, high),
        on_demand_hours=own.on_demand_hours + float((firm.count * paid).sum()), first_wait_hours=0.0,
        why=(f"{runs[0]} of {sum(runs)} runs are on spot with a fall-back: the cheapest division compared",),
        notes=(own.notes[0], NOTE),
    )  # fmt: skip


def _risk(parts: Parts, launch: Launch) -> Risk:
    interruptions, lost_hours = interruptions_of(parts.asked.found, parts.mixes[1])
    return Risk(
        p_meet_deadline=parts.meet,
        expected_interruptions=launch.expected_interruptions + interruptions,
        expected_lost_hours=launch.lost_hours + lost_hours, expected_hours=launch.expected_hours,
        worst_hours=launch.p90_hours, expected_cost_usd=launch.expected_cost_usd, worst_cost_usd=launch.cost_p90_usd,
        basis=BASIS,
    )  # fmt: skip


def _performance(parts: Parts) -> Performance:
    """The speed of both in the mean of the plan's hours."""
    search, period = parts.asked.found, parts.last.period
    first, second = (performance_of(search, mix) for mix in parts.mixes)
    of_first, of_second = (mix.period / period for mix in parts.mixes)
    low, middle, high = (
        getattr(first, name) * of_first + getattr(second, name) * of_second
        for name in ("throughput_low_per_s", "throughput_per_s", "throughput_high_per_s")
    )
    return replace(first, throughput_low_per_s=low, throughput_per_s=middle, throughput_high_per_s=high)


def _carbon(parts: Parts) -> Carbon:
    """Energy and emissions of all three lines."""
    falling, firm = parts.mixes
    both: Mix = workers_on_each(falling)
    every = replace(
        both, workers=Workers.joined([both.workers, firm.workers]), count=np.concatenate([both.count, firm.count]),
        hours=np.concatenate([both.hours, firm.hours]),
    )  # fmt: skip
    return carbon_of(parts.asked.found.candidates, every, in_order=True)
