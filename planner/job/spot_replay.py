"""`planner optimize --replays N`: the chosen plan replayed on futures drawn from hazards by age.

The plan's own figures come from the renewal model, so that all candidates are judged alike and at once. This is the
second opinion on the one that was chosen: `planner.spot.launch` with the policy that `planner advise` follows.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.running import steady_hours
from planner.candidates.ways.course import GB_PER_GIB
from planner.candidates.ways.transfers import moved_curve, usd_per_gb
from planner.plan.ids import CostId
from planner.plan.launch import Launch, Replay
from planner.plan.model import Plan
from planner.plan.profile import linked, work_log_sd
from planner.spot.pools import as_wide

if TYPE_CHECKING:
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates, Part
    from planner.spot.hazards import HazardModel, HazardTable
    from planner.spot.launch import OnDemandLuck
    from planner.spot.policy.job import SpotJob, SpotZone

_TICK_HOURS, _MOST_TICKS = 0.1, 1500
# Costs that a replay counts itself: machines in use, and what their moves carry.
_REPLAYED = (CostId.COMPUTE, CostId.CHECKPOINT_TRANSFER)


def replay_of(candidates: Candidates, at: int, plan: Plan, futures: int) -> Replay | None:
    """Replay candidate `at`, None where there is no spot, no deadline, or spot beside other instances.

    Args:
        candidates: all candidates.
        at: the chosen one.
        plan: its plan.
        futures: how many to draw.
    """
    context = candidates.context
    launch = plan.launch
    if (
        launch is None
        or context.dates.deadline_hours is None
        or launch.strategy not in ("spot", "spot_with_fallback")
    ):
        return None
    from planner.spot.hazards import load_hazards
    from planner.spot.launch import forecast_launch

    model = context.spot.hazards or load_hazards()
    parts = candidates.parts(at)
    spot = [part for part in parts if context.market.is_spot[part.row]]
    job = spot_job(candidates, at, spot, [part for part in parts if part not in spot])
    tables = {
        zone.name: _table(context, model, part, zone) for zone, part in zip(job.zones, spot, strict=True)
    }
    policy = "survival" if launch.strategy == "spot_with_fallback" else "spot_only"
    launch_forecast = forecast_launch(
        job,
        model,
        policy,
        futures=futures,
        tables=tables,
        on_demand=_luck(plan, launch),
        work_log_sd=work_log_sd(plan),
    )
    fixed, first = float(candidates.fixed_hours[at]), job.zones[0].usd_per_hour
    moved = (cost for line in plan.lines for cost in line.costs)
    beside = sum((c.amount_usd for c in moved if c.id not in _REPLAYED), Decimal(0))
    more = float(beside) + (fixed - job.restart_hours) * first
    wait = float(candidates.waiting_hours[at]) + fixed - job.restart_hours
    return Replay(
        policy=policy,
        futures=futures,
        expected_cost_usd=_usd(launch_forecast.cost_usd + more),
        cost_p10_usd=_usd(launch_forecast.cost_usd_p10 + more),
        cost_p90_usd=_usd(launch_forecast.cost_usd_p90 + more),
        p10_hours=launch_forecast.finish_hours_p10 + wait,
        p90_hours=launch_forecast.finish_hours_p90 + wait,
        p_meet_deadline=launch_forecast.p_meet_ratio,
        p_meet_spot_only_ratio=launch_forecast.p_meet_spot_only_ratio,
        expected_interruptions=launch_forecast.interruptions,
        spot_hours=launch_forecast.spot_hours,
        on_demand_hours=launch_forecast.on_demand_hours,
    )


def _luck(plan: Plan, launch: Launch) -> OnDemandLuck:
    """How surely the plan's fall-back comes."""
    from planner.spot.launch import OnDemandLuck

    alone = launch.p_meet_spot_only_ratio
    if launch.p_on_demand_had_ratio is None or alone is None:
        return OnDemandLuck()
    return OnDemandLuck(launch.p_on_demand_had_ratio, linked(plan), 1.0 - alone)


def spot_job(candidates: Candidates, at: int, spot: list[Part], steady: list[Part]) -> SpotJob:
    """Candidate `at` in the words of a policy; its first start is a restart like any other."""
    context = candidates.context
    from planner.candidates.plan_parts.launch import acquire_hours
    from planner.spot.policy.job import SpotJob, SpotZone

    one, offers = np.asarray([at]), context.market.offer_set.offers
    write, interval = float(candidates.write_hours[at]), float(candidates.interval_hours[at])
    notice = float(context.spot.figures.notice_hours[spot[0].row])
    repeated = notice if notice >= write else (interval + write) / 2.0
    restart = float(context.asked.restart_hours(candidates.write_hours[one])[0]) + repeated
    assert context.dates.deadline_hours is not None
    room = (
        context.dates.deadline_hours
        - float(candidates.waiting_hours[at] + candidates.fixed_hours[at])
        + restart
    )
    offer_set = context.market.offer_set
    count = len(offer_set.usd_per_hour)
    usd = offer_set.usd_during(np.arange(count), np.full(count, candidates.hours[at]))
    types, kind_of = context.market.offer_set.types, context.market.offer_set.type_of_offer
    zones = tuple(
        SpotZone(
            str(offers["zone"][part.row]) or str(offers["region"][part.row]), str(offers["region"][part.row]),
            str(offers["instance_type"][part.row]), float(usd[part.row]) * part.nodes,
            str(offers["provider"][part.row]), part.nodes,
            accelerators=round(float(types["accelerator_count"][kind_of[part.row]])),
        )
        for part in spot
    )  # fmt: skip
    egress = 0.0
    if len({zone.region for zone in zones}) > 1:
        curve, _ = moved_curve(context.market, [part.row for part in spot])
        egress = usd_per_gb(curve) * context.asked.job.checkpoint_gib * GB_PER_GIB
    work = steady_hours(
        context.asked,
        candidates.nodes[one],
        candidates.work_hours[one],
        np.asarray([write]),
        np.asarray([interval]),
    )
    return SpotJob(
        work_hours=float(work[0]), deadline_hours=room, restart_hours=restart,
        on_demand_usd_per_hour=sum(float(usd[part.row]) * part.nodes for part in steady) or zones[0].usd_per_hour,
        zones=zones, egress_usd=egress, on_demand_acquire_hours=acquire_hours(candidates, at),
        tick_hours=max(_TICK_HOURS, room / _MOST_TICKS),
    )  # fmt: skip


def _table(context: Context, model: HazardModel, part: Part, zone: SpotZone) -> HazardTable:
    """Hazards by age from the same evidence as the plan's: a record, else the tariff table's figures."""
    from planner.spot.hazards_evidence import table_from_prior

    table = model.table_for(zone)
    prior = context.spot.figures.priors[int(context.spot.figures.prior_of_offer[part.row])]
    recorded = prior.basis == "measured" or context.spot.hazards is not None
    if recorded and table.of_family:
        return table
    hazard_table = table_from_prior(prior, part.nodes, model.hint_for(zone))
    return as_wide(hazard_table, context.asked.assumptions.spot_unrecorded_frailty_sd)


def _usd(value: float) -> Decimal:
    return Decimal(repr(round(value, 2)))
