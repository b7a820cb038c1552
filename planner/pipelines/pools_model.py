"""The answer of `planner pools`: two pools that share a step, and the best single clusters beside them."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from planner.candidates.plan_parts.bought import Bought
from planner.candidates.plan_parts.spread import Spread, together
from planner.plan.model import CatalogSource
from planner.records import record
from planner.render.presentable import Presentable

PoolName = Literal["trainer", "rollouts"]
POOL_NAMES: tuple[PoolName, PoolName] = ("trainer", "rollouts")


@record(frozen=True)
class Pool:
    """One pool of a pair.

    Attributes:
        name: trainer or rollouts; bought: its purchase with cost lines; nodes, accelerators: of it.
        own_step_s: time of a step at its own pace; `paced_s`: the step that it shares, the other's outages included.
        stretch: elapsed over work hours, for interruptions; `hours`: expected elapsed hours.
        tensor_parallel, data_parallel: its layout; `pipeline_parallel` of the trainer.
        sure_ratio: hours kept with the confidence asked, over expected hours; None for a pool with a deadline.
        deadline_hours: of the pool at the predicted speed, where the pair is bought by its deadline
            (`pools_by_deadline`).
        price_as_of: date of its oldest price; `spread`: interval of its cost.
    """

    name: PoolName
    bought: Bought
    accelerator: str
    nodes: int
    accelerators: float
    own_step_s: float
    paced_s: float
    stretch: float
    hours: float
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    cost_usd: Decimal
    sure_ratio: float | None
    deadline_hours: float | None
    price_as_of: str
    spread: Spread


@record(frozen=True)
class Colocated:
    """The best plan with one cluster that trains and generates by turns."""

    how: str
    provider: str
    region: str
    instance_type: str
    nodes: int
    hours: float
    cost_usd: Decimal


@record(frozen=True)
class OneChip:
    """The best pair of pools of one type of accelerator: what published systems of several types compare with."""

    accelerator: str
    train_accelerators: float
    generate_accelerators: float
    hours: float
    cost_usd: Decimal


@record(frozen=True)
class Pools(Presentable):
    """The answer: two pools beside the best single clusters.

    Attributes:
        steps, steps_off_policy: of the run, and how far generation may run ahead.
        pools: trainer and rollouts; empty where no pair meets the limits.
        step_s, train_s, generate_s, refit_s: of the pair; `logprob_s` and `update_s` split the trainer's part.
        moved_gb, moved_usd: weights between regions, over all steps.
        hours, sure_hours: expected, and kept with `confidence`; a pair with pools' own deadlines is planned to end by
            `sure_hours`.
        horizon_hours: by when a pair with pools' own deadlines is planned to end at the latest where the workload gives
            no deadline; None with one.
        bound_usd: no pair compared costs less.
        pairs: how many were compared.
        colocated: best single cluster of all ways to buy; `same_ways`: on demand or spot, where the pools are so.
        divided: best single cluster that is divided between both, where the workload says `placement: disaggregated`.
        one_chip: best pair whose pools have the same type of accelerator, the pair itself where it has.
        beside_steps_ratio: what hours have beside the steps by default, over these; 0 where the workload says it.
    """

    REPORT = "planner.pipelines.pools_report:pools_report"
    __repr__ = Presentable.__repr__

    workload: str
    workload_sha256: str
    created_at: str
    start: str
    confidence: float
    steps: float
    steps_off_policy: int
    deadline_hours: float | None
    horizon_hours: float | None
    budget_usd: Decimal | None
    pools: tuple[Pool, ...]
    step_s: float
    train_s: float
    logprob_s: float
    update_s: float
    generate_s: float
    refit_s: float
    moved_gb: float
    moved_usd: Decimal
    hours: float
    sure_hours: float
    cost_usd: Decimal
    bound_usd: Decimal
    pairs: int
    colocated: Colocated | None
    same_ways: Colocated | None
    divided: Colocated | None
    one_chip: OneChip | None
    reason: str
    sources: tuple[CatalogSource, ...]
    beside_steps_ratio: float = 0.0

    @property
    def between_usd(self) -> tuple[Decimal, Decimal]:
        """P10 and P90 of the cost, should both pools err alike."""
        return together([pool.spread for pool in self.pools], self.moved_usd)
