"""What to simulate: jobs from workloads, a sweep or flags; zone groups from recorded or generated traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError
from planner.inputs.settings import with_settings, work_setting
from planner.market.pricing import total_usd
from planner.render import numbers
from planner.simulation.jobs import TICK_HOURS, SimJob, plan_job, sweep_jobs
from planner.spot.policy.job import SpotZone

if TYPE_CHECKING:
    from planner.advice.saved_plan import SpotPlan
    from planner.inputs.load import LoadedWorkload
    from planner.plan.model import Plan
    from planner.spot.hazards import HazardModel, HazardTable
    from planner.spot.trace import ZoneTrace

LEAST_HOURS = 336.0  # two weeks, as long as the recorded traces
DEADLINES_LONG = 4.0  # so that starts differ


def workload_jobs(paths: Sequence[Path], *, any_trace: bool) -> Iterator[SimJob]:
    """Plan each workload and take its best candidate on spot.

    Raises:
        InputError: a workload is wrong, has no deadline, or has no plan on spot.
    """
    for path in paths:
        plan, beside = spot_plan_of(path)
        if plan.deadline is None:
            raise InputError(
                f"{path}: needs constraints.deadline: without one waiting for spot never costs anything"
            )
        yield replace(plan_job(plan, any_trace=any_trace), beside=beside)


def spot_plan_of(path: Path) -> tuple[SpotPlan, str]:
    """The plan of a workload if that is on spot, else the one with spot as the only way to buy; what is beside it.

    Of the latter the deadline's confidence is not asked: with on-demand as the way out, spot alone need not be certain.
    Of a fleet that falls back it is the plan of one of its workers.

    Raises:
        InputError: the workload is wrong, nothing on spot fits it, or no policy decides for the workers of its fleet.
    """
    from planner.advice.prices import with_prices
    from planner.advice.saved_plan import spot_plan
    from planner.asked.options import Options, utc_now
    from planner.inputs.load import load_workload
    from planner.workloads.answer import optimize

    loaded, options = load_workload(path, cache=False), Options(utc_now())
    answer, beside = optimize(loaded, options), ""
    if answer.plan.kind == "fleet":
        beside = _beside(answer.plan)
        loaded = _worker_of(loaded, answer.plan)
        answer = optimize(loaded, options)
    if _is_on_spot(answer.plan):
        return with_prices(spot_plan(answer.plan, str(path)))[0], beside
    limits = loaded.workload.constraints.model_copy(
        update={"purchase_options": ("spot",), "exclude_purchase_options": (), "deadline_confidence": 0.01}
    )
    spot_only = loaded.workload.model_copy(update={"constraints": limits})
    answer = optimize(replace(loaded, workload=spot_only), options)
    if not answer.plan.lines:
        raise InputError(
            f"{path}: nothing on spot fits this workload; `planner explain {path}` shows which limits exclude it"
        )
    return with_prices(spot_plan(answer.plan, str(path)))[0], beside


def _beside(plan: Plan) -> str:
    """What the workers of a fleet that are on on-demand from the start add under every policy; empty without any."""
    if plan.launch is None or not plan.launch.in_parts:
        return ""
    share = float(total_usd(plan.lines[-1].costs) / plan.total_usd)
    return f"the other part of its fleet is on-demand whatever the policy, {numbers.percent(share, 0)} of the cost"


def _worker_of(loaded: LoadedWorkload, plan: Plan) -> LoadedWorkload:
    """The worker with the most runs of those of a fleet that fall back, which is a job with the work of these runs.

    Raises:
        InputError: the workers of the plan do not change from spot to on-demand.
    """
    workload, line = loaded.workload, next((one for one in plan.lines if one.purchase_option == "spot"), None)
    fleet, launch = workload.fleet, plan.launch
    strategies = ("spot_with_fallback", "fallback_in_fleet")
    if line is None or fleet is None or launch is None or launch.strategy not in strategies:
        raise InputError(
            f"{loaded.path}: policies decide when a worker changes from spot to on-demand, and no worker of this "
            "fleet's plan does: give the hours of one worker as --work-hours"
        )
    workers = max(line.nodes // fleet.nodes_per_run, 1)
    speed = [one.throughput_per_s for one in plan.lines]  # the first two are spot and what it falls back on
    falling = round(fleet.runs * sum(speed[:2]) / sum(speed))
    runs = -(-falling // workers) if fleet.runs > 1 else 1 / workers  # the work of one run divides freely
    work = work_setting(workload, runs * (fleet.mean_share or 1.0))
    assert work is not None
    return with_settings(loaded, [
        "kind=training", "fleet=null", f"name={workload.name}, a worker with {runs:.3g} of {fleet.runs:,} runs", work,
        f"constraints.max_nodes={fleet.nodes_per_run}", "constraints.budget_usd=null",
        f"constraints.regions=[{line.provider}/{line.region}]",
        f"constraints.instance_types={{allow: [{line.instance_type}]}}", "spot.zones=single",
    ])  # fmt: skip


def _is_on_spot(plan: Plan) -> bool:
    """Whether one cluster runs on spot, with or without on-demand to fall back on."""
    strategies = ("spot", "spot_with_fallback")
    return plan.kind != "fleet" and plan.launch is not None and plan.launch.strategy in strategies


def sweep_and_workload_jobs(path: Path, *, any_trace: bool) -> tuple[str, list[SimJob]]:
    """Name and jobs of a sweep file."""
    from planner.inputs.sweep_load import load_sweep

    loaded = load_sweep(path)
    if loaded.sweep.days or loaded.sweep.scenarios:
        raise InputError(f"{path}: has days or scenarios, which are planned by: planner sweep {path}")
    return loaded.sweep.name, [
        *sweep_jobs(loaded.sweep),
        *workload_jobs(loaded.workloads, any_trace=any_trace),
    ]


def named_apart(jobs: Sequence[SimJob]) -> list[SimJob]:
    """The jobs, with a number behind names that occur twice."""
    seen: dict[str, int] = {}
    out = []
    for job in jobs:
        seen[job.name] = seen.get(job.name, 0) + 1
        out.append(job if seen[job.name] == 1 else replace(job, name=f"{job.name} ({seen[job.name]})"))
    return out


def generated(
    jobs: Sequence[SimJob], n: int, model: HazardModel, spot_ratio: float, seed: int, *, own: bool
) -> tuple[list[ZoneTrace], HazardModel, tuple[str, ...]]:
    """Traces of `n` zones for each kind of machine that the jobs ask for, in the plan's places in turn.

    Args:
        jobs: what will be replayed on them.
        n: zones.
        model: hazards.
        spot_ratio: spot over on-demand, for jobs without prices.
        seed: of the draws.
        own: whether evidence of the user's own is in the model, which then stands above the plan's figures.

    Returns:
        The traces, the model with the hazards that they were drawn from, and a note on the record behind each kind.
    """
    from planner.advice.hazards import planned_table
    from planner.advice.saved_plan import Place
    from planner.spot.generate import generate_traces

    hours = max(LEAST_HOURS, DEADLINES_LONG * max(job.deadline_hours for job in jobs))
    kinds = dict.fromkeys(
        (
            job.provider,
            job.region or "generated-",
            kind,
            gang,
            job.spot_usd_per_hour,
            job.on_demand_usd_per_hour,
            job.places,
        )
        for job in jobs
        for kind in job.instance_types or ("",)
        for gang in job.gangs or (1,)
    )
    traces: list[ZoneTrace] = []
    known: dict[str, HazardTable] = {}
    notes = []
    for number, (provider, region, kind, gang, spot_usd, on_demand_usd, planned) in enumerate(kinds):
        price = on_demand_usd or 1.0
        places = planned or (Place(region, "", spot_usd or spot_ratio * price),)
        zones = []
        for at in range(number * n, (number + 1) * n):  # no name twice, as hazards are found by names
            place = places[at % len(places)]
            zone = SpotZone(
                f"{place.region}{_letters(at)}", place.region, kind, place.usd_per_hour, provider, gang
            )
            table = place.capacity and planned_table(place.capacity, zone, lambda: model, own=own)
            known[zone.name] = table or model.table_for(zone)
            zones.append(zone)
        tables = {zone.name: known[zone.name] for zone in zones}
        zone_traces = generate_traces(
            zones, tables, hours, seed=seed + number, tick_hours=TICK_HOURS, on_demand_usd_per_hour=price
        )
        traces += [replace(trace, source="generated") for trace in zone_traces]
        sources = ", ".join(sorted({table.source for table in tables.values()}))
        notes.append(
            f"{n} zones of {kind or 'any type'} x{gang} generated, {hours:.0f} h each, from: {sources}"
        )
    return traces, model.with_tables(known), tuple(notes)


def priced(
    traces: Sequence[ZoneTrace], jobs: Sequence[SimJob], spot_ratio: float
) -> tuple[list[ZoneTrace], tuple[str, ...]]:
    """Traces with a spot price where neither they nor the jobs have one, as most public ones: then only ratios count.

    Args:
        traces: as recorded.
        jobs: what will be replayed on them; a job with prices of its own brings them along.
        spot_ratio: spot over on-demand.

    Returns:
        The traces, and a note where prices were assumed.
    """
    if any(job.on_demand_usd_per_hour is not None for job in jobs):
        return list(traces), ()
    bare = [not np.isfinite(trace.spot_usd_per_hour).any() for trace in traces]
    if not any(bare):
        return list(traces), ()
    out = []
    for trace, without in zip(traces, bare, strict=True):
        listed = trace.on_demand_usd_per_hour or 1.0
        usd = np.full(len(trace.up), spot_ratio * listed)
        out.append(replace(trace, spot_usd_per_hour=usd, on_demand_usd_per_hour=listed) if without else trace)
    note = f"{sum(bare)} of {len(bare)} traces have no spot price: taken as {spot_ratio:g} of on-demand (--spot-ratio)"
    return out, (note,)


def _letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text
