"""From a saved plan to what it starts (`planner.export.view`)."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from catalogs.tables.accelerators import load_accelerators
from planner.errors import InputError
from planner.export.view import Checkpoints, Launch, Limits, Pool, Training, Way
from planner.inputs.presets import find_preset
from planner.inputs.resolved import PHASES, phases_noted
from planner.plan.ids import AT_WORK, TimePartId
from planner.plan.layout import Layout
from planner.plan.model import Plan, PlanLine
from planner.plan.run import Run

_SAVED_AGAIN = "save the plan again: planner optimize WORKLOAD -o json --out PLAN.json"
_SECONDS_PER_HOUR = 3600.0


def launch_of(plan: Plan, name: str = "plan") -> Launch:
    """Read what a plan starts.

    Args:
        plan: of `planner optimize`.
        name: of its file, for messages.

    Raises:
        InputError: nothing to start, or no export can describe it; names the reason and the remedy.
    """
    _can_start(plan, name)
    pools = tuple(_pool(plan, line) for line in plan.lines)
    run = plan.run or Run()
    moves = len(plan.lines) > 1 and plan.launch is not None and plan.launch.in_turn
    way = _way(plan, run, moves)
    if way != "workers" and len({pool.gpus for pool in pools}) > 1:
        raise InputError(
            f"{name}: one gang on instances with different numbers of accelerators cannot be exported"
        )
    whole = sum(pool.nodes for pool in pools) if way == "together" else pools[0].nodes
    layout = plan.lines[0].layout
    launch = Launch(
        run_id=plan.run_id, name=plan.workload, kind=plan.kind, created_at=plan.created_at,
        planner_version=plan.planner_version, way=way, pools=pools,
        nodes=(run.nodes_per_run or 1) if way == "workers" else whole, layout=layout, run=run,
        training=_training(plan, layout, run), checkpoints=_checkpoints(plan), limits=_limits(plan),
        warnings=plan.warnings, turns=moves and way == "workers",
    )  # fmt: skip
    return in_two_parts(launch) if plan.launch is not None and plan.launch.in_parts else launch


def in_two_parts(launch: Launch) -> Launch:
    """The launch with its parts: workers that take turns on its first two pools, and others on the third beside them.

    Hours stay those of the plan, until the part that ends last; the cost of a part is that of its pools.
    """
    runs, pools = launch.run.runs, launch.pools
    falling = round(runs * sum(pool.share for pool in pools[:2]))
    first, second = (
        replace(
            launch, name=f"{launch.name}-{number}", of=launch.name, pools=own, turns=len(own) > 1, begin=begin,
            count=end - begin,
            limits=replace(launch.limits, cost_usd=sum((pool.cost_usd for pool in own), Decimal(0)), cost_p90_usd=None),
        )
        for number, own, begin, end in ((1, pools[:2], 0, falling), (2, pools[2:], falling, runs))
    )  # fmt: skip
    return replace(launch, parts=(first, second))


def _can_start(plan: Plan, name: str) -> None:
    """Refuse what cannot be started.

    Raises:
        InputError: names the reason and the remedy.
    """
    if plan.status != "planned" or not plan.lines:
        raise InputError(
            f"{name}: the plan is infeasible, so there is nothing to start; `planner explain` says what to relax"
        )
    for line in plan.lines:
        if line.accelerators_per_node != int(line.accelerators_per_node):
            raise InputError(
                f"{name}: {line.instance_type} is {line.accelerators_per_node:g} of an accelerator, which "
                "no export can ask for; plan without constraints.include_fractional"
            )
    if plan.kind != "training":
        return
    if any(line.layout is None for line in plan.lines):
        raise InputError(f"{name}: the plan states no parallel layout; {_SAVED_AGAIN}")
    generates = plan.performance is not None and plan.performance.breakdown_s.get("generation", 0.0) > 0.0
    if generates and any(line.layout is not None and line.layout.updates is None for line in plan.lines):
        raise InputError(
            f"{name}: an older version saved the plan, which does not state how often a step of rollouts updates the "
            f"model; {_SAVED_AGAIN}"
        )


def _way(plan: Plan, run: Run, moves: bool) -> Way:
    if plan.kind != "training" or run.runs > 1:
        return "workers"
    return "one" if len(plan.lines) == 1 else "in_turn" if moves else "together"


def _pool(plan: Plan, line: PlanLine) -> Pool:
    table = load_accelerators()
    known = {str(key): at for at, key in enumerate(table["accelerator"])}
    at = known.get(line.accelerator)
    spot = {place.offer_id: place.spot_hours for place in (plan.launch.places if plan.launch else ())}
    return Pool(
        provider=line.provider, region=line.region, zone=line.zone, instance_type=line.instance_type,
        family=line.family, nodes=line.nodes, accelerator=line.accelerator,
        vendor="" if at is None else str(table["vendor"][at]),
        generation="" if at is None else str(table["generation"][at]),
        gpus=int(line.accelerators_per_node),
        vcpus=None if line.vcpus_per_node is None else int(line.vcpus_per_node), option=line.purchase_option,
        variant=line.option_variant, price_per_hour=line.price_per_hour, currency=line.currency,
        usd_per_currency=line.usd_per_currency, price_as_of=line.price_as_of, price_basis=line.price_basis,
        hours=float(line.billed_hours), cost_usd=line.cost_usd, spot_hours=spot.get(line.offer_id),
        share=line.throughput_per_s / max(sum(one.throughput_per_s for one in plan.lines), 1e-9),
        quota_name=line.quota.name,
    )  # fmt: skip


def _training(plan: Plan, layout: Layout | None, run: Run) -> Training:
    stated = {item.key: item.value for item in plan.assumptions}
    length = stated.get("training.sequence_length", "")
    batch = None if layout is None else layout.update_batch * (layout.updates or 1)
    tokens = int(length) if length.isdigit() else None
    phases = phases_noted(stated.get(PHASES, ""))
    if tokens is not None and phases:
        tokens = max((one for one in phases if one[1] == batch), key=math.prod, default=(tokens,))[-1]
    units = None if plan.goal is None else plan.goal.units
    per_step = (
        None if batch is None else batch * (tokens or 1 if plan.goal and plan.goal.unit == "tokens" else 1)
    )
    # of a run that may stop early the plan counts the mean; what is started is told the whole
    whole = None if units is None else units / float(stated.get("training.early_stop.mean_share") or 1.0)
    preset = find_preset(stated["model.preset"]) if "model.preset" in stated else None
    layers = None if preset is None else preset.values.get("layers")
    return Training(
        model=stated.get("model.preset", ""), precision=stated.get("training.precision", ""),
        optimizer=stated.get("training.optimizer", ""), global_batch=batch, sequence_length=tokens,
        unit="" if plan.goal is None else plan.goal.unit, units=whole,
        steps=sum(one[0] for one in phases)
        or (None if whole is None or per_step is None else max(1, round(whole / run.runs / per_step))),
        phases=phases,
        updates=1 if layout is None else layout.updates_per_step,
        methods=tuple(stated[key] for key in ("training.method", "training.objective") if key in stated),
        layers=int(layers) if layers else None,
    )  # fmt: skip


def _checkpoints(plan: Plan) -> Checkpoints:
    saved = None if plan.launch is None else plan.launch.checkpoints
    hours = plan.checkpoint_interval_hours if saved is None else saved.interval_hours
    return Checkpoints(
        None if hours is None else hours * _SECONDS_PER_HOUR, None if saved is None else saved.size_gib,
        None if saved is None else saved.write_s, None if saved is None else saved.notice_s, _work_ratio(plan),
    )  # fmt: skip


def _work_ratio(plan: Plan) -> float:
    """Hours of the work that checkpoints keep over those of its steps; 1 in plans without hours of steps."""
    hours = {part.id: part.hours for part in plan.timeline if part.id in AT_WORK}
    steps = hours.get(TimePartId.TRAINING_STEPS, 0.0)
    return math.fsum(hours.values()) / steps if steps > 0 else 1.0


def _limits(plan: Plan) -> Limits:
    speed, launch = plan.performance, plan.launch
    return Limits(
        start=plan.start, deadline=plan.deadline, hours=plan.hours,
        hours_p90=None if launch is None else launch.p90_hours, cost_usd=plan.total_usd,
        cost_p90_usd=None if launch is None else launch.cost_p90_usd,
        budget_usd=None if plan.goal is None else plan.goal.budget_usd,
        step_time_s=None if speed is None else speed.step_time_s,
        throughput_per_s=None if speed is None else speed.throughput_per_s, mfu=None if speed is None else speed.mfu,
        interruptions=0.0 if plan.risk is None else plan.risk.expected_interruptions,
    )  # fmt: skip
