"""The one view of a saved plan that targets read: what to start, where, in which order, and how it is laid out."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from planner.export.names import RUN_TAG
from planner.plan.layout import Layout
from planner.plan.run import Run
from planner.records import record

Way = Literal["one", "in_turn", "together", "workers"]


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
    has several, batch and length are those of the phase that takes longest, which the layout is of, or of `phase`, and
    `step_time_s` is seconds of a step of `phase`, where the plan states it; else steps take the mean of the whole run.
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
    step_time_s: float | None = None


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
    time. Pools are in the plan's order.

    `parts`: of a fleet, each with runs of its own; of one, `begin`: its first run, `count`: how many, `of`: the whole.
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

    @property
    def step_time_s(self) -> float | None:
        """Expected seconds of a step of what is started: of its phase, else the mean of the run."""
        return self.training.step_time_s or self.limits.step_time_s

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
