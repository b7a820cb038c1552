"""The one view of a saved plan that targets read: what to start, where, in which order, and how it is laid out."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from catalogs.tables.accelerators import load_accelerators
from planner.errors import InputError
from planner.export.names import RUN_TAG
from planner.export.parts import in_two_parts
from planner.inputs.presets import find_preset
from planner.inputs.resolved import PHASES, phases_noted
from planner.plan.ids import AT_WORK, TimePartId
from planner.plan.layout import Layout
from planner.plan.model import Plan, PlanLine
from planner.plan.run import Run
from planner.records import record

Way = Literal["one", "in_turn", "together", "workers"]
_SAVED_AGAIN = "save the plan again: planner optimize WORKLOAD -o json --out PLAN.json"
_SECONDS_PER_HOUR = 3600.0


@record(frozen=True)
class Pool:
    """Instances of one offer: a line of the plan.

    Attributes:
        provider, region, zone: as the plan names them; `zone` is empty where the price does not depend on it.
        instance_type, family: the provider's names.
        nodes: instances in all.
        accelerator, vendor, generation: the planner's id of the accelerator, and its row in the catalog.
        gpus: accelerators of one instance.
        vcpus: of one instance; None: unknown.
        option: how it is bought: on_demand, spot, reserved_1y, capacity_block, owned, ...
        variant: payment, class or duration of the option.
        price_per_hour, currency, usd_per_currency: of one instance, to expect when the run starts.
        price_as_of, price_basis: day and kind of the price.
        hours: billed per instance.
        cost_usd: of the line, storage and transfer included.
        spot_hours: expected on spot there; None for other ways to buy.
        quota_name: what the account must allow.
        share: its part of the throughput of all pools.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    family: str
    nodes: int
    accelerator: str
    vendor: str
    generation: str
    gpus: int
    vcpus: int | None
    option: str
    variant: str
    price_per_hour: Decimal
    currency: str
    usd_per_currency: Decimal
    price_as_of: str
    price_basis: str
    hours: float
    cost_usd: Decimal
    spot_hours: float | None
    quota_name: str
    share: float = 1.0

    @property
    def is_spot(self) -> bool:
        """Whether the provider may take it back."""
        return self.option == "spot"

    @property
    def usd_per_hour(self) -> Decimal:
        """Price of one instance in US dollars per hour."""
        return self.price_per_hour * self.usd_per_currency

    @property
    def place(self) -> str:
        """`aws/us-east-1/use1-az6`, without a zone where there is none."""
        return "/".join(part for part in (self.provider, self.region, self.zone) if part)


@record(frozen=True)
class Training:
    """What is trained: empty text and None where the plan does not say it.

    `global_batch` is samples of one step, `sequence_length` tokens of a sample, `units` tokens or samples (`unit`) of
    all runs, `steps` steps of one run. `updates` is optimizer updates of a step: several where it learns from rollouts.
    `methods` are its objective and its adapters by the workload's words, empty where it trains all weights on text.
    `layers` are those of a preset; None: unknown. `phases` are steps, samples and tokens of each phase; of a run that
    has several, batch and length are those of the phase that takes longest, which the layout is of, or of `phase`.
    """

    model: str
    precision: str
    optimizer: str
    global_batch: int | None
    sequence_length: int | None
    unit: str
    units: float | None
    steps: int | None
    updates: int = 1
    methods: tuple[str, ...] = ()
    layers: int | None = None
    phases: tuple[tuple[int, ...], ...] = ()
    phase: int | None = None


@record(frozen=True)
class Checkpoints:
    """How often the run saves: seconds of work between checkpoints, what one holds and takes, the warning of spot.

    `work_ratio` is the work that checkpoints keep over its steps: evaluation and what runs take beside their steps pass
    between two checkpoints too.
    """

    interval_s: float | None
    size_gib: float | None
    write_s: float | None
    notice_s: float | None
    work_ratio: float = 1.0

    def steps_between(self, step_time_s: float | None) -> float | None:
        """Steps from one checkpoint to the next; None where the interval or the step time is unknown."""
        return self.interval_s / (step_time_s * self.work_ratio) if self.interval_s and step_time_s else None


@record(frozen=True)
class Limits:
    """What was asked, and what the plan expects: moments as ISO text, money in US dollars, times in hours.

    `interruptions` are expected in the whole run.
    """

    start: str
    deadline: str | None
    hours: float
    hours_p90: float | None
    cost_usd: Decimal
    cost_p90_usd: Decimal | None
    budget_usd: Decimal | None
    step_time_s: float | None
    throughput_per_s: float | None
    mfu: float | None
    interruptions: float = 0.0


@record(frozen=True)
class Launch:
    """What a plan starts.

    `way`: `one` offer; `in_turn`: the whole gang on one pool at a time, tried in order; `together`: one gang on all
    pools at once; `workers`: independent runs on any pool. `turns`: independent workers that are all on one pool at a
    time. Pools are in the plan's order. `parts`: see `planner.export.parts`; of one: first run, number, whole's name.
    """

    run_id: str
    name: str
    kind: str
    created_at: str
    planner_version: str
    way: Way
    pools: tuple[Pool, ...]
    nodes: int
    layout: Layout | None
    run: Run
    training: Training
    checkpoints: Checkpoints
    limits: Limits
    warnings: tuple[str, ...]
    turns: bool = False
    parts: tuple[Launch, ...] = ()
    begin: int = 0
    count: int | None = None
    of: str = ""

    @cached_property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments as words; empty where the workload gives none."""
        return tuple(shlex.split(self.run.command))

    @property
    def first(self) -> Pool:
        """The pool that is tried first."""
        return self.pools[0]

    @property
    def gpus(self) -> int:
        """Accelerators of one instance; the same in all pools of a gang."""
        return self.first.gpus

    @property
    def world(self) -> int:
        """Accelerators of one run."""
        return self.nodes * self.gpus

    @property
    def workers(self) -> int:
        """Runs that the machines hold at once."""
        return self.instances // self.nodes if self.way == "workers" else 1

    @property
    def moves(self) -> bool:
        """Whether all that runs is on one pool at a time; the others are tried after it."""
        return self.turns or self.way == "in_turn"

    @property
    def instances(self) -> int:
        """Instances that run at once."""
        at_once = sum(part.instances for part in self.parts) or sum(pool.nodes for pool in self.pools)
        return self.first.nodes if self.moves else at_once

    def gang(self, pool: Pool) -> int:
        """Instances that must reach each other where `pool` runs: those of one run."""
        return pool.nodes if self.way in ("one", "in_turn") else self.nodes

    @property
    def tasks(self) -> int:
        """Runs here; of one run that independent workers share, its workers."""
        return (self.count or max(self.run.runs, self.workers)) if self.way == "workers" else 1

    @property
    def all_tasks(self) -> int:
        """Those of other parts included."""
        return self.run.runs if self.count else self.tasks

    @property
    def tags(self) -> dict[str, str]:
        """Tags for cost allocation, the most important first; `names.clean_tags` fits them to a target."""
        run_tags = {RUN_TAG: self.run_id, "workload": self.of or self.name, "team": self.run.team}
        return {key: value for key, value in (run_tags | dict(self.run.tags) | run_tags).items() if value}

    def only(self, *pools: Pool) -> Launch:
        """The same on some of its pools."""
        return replace(
            self, way="one" if self.way == "in_turn" and len(pools) == 1 else self.way, pools=pools
        )


def split(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that add up to `total`, as near to the shares as can be (largest remainders)."""
    whole = sum(shares) or 1.0
    exact = [total * share / whole for share in shares]
    counts = [math.floor(value) for value in exact]
    order = sorted(range(len(exact)), key=lambda at: counts[at] - exact[at])
    for at in order[: total - sum(counts)]:
        counts[at] += 1
    return counts


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
