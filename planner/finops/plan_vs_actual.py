"""What a run was planned to cost and what it was billed, and which part of the difference has which cause.

The machines of a run cost nodes x price x hours, where hours are work and work lost to interruptions. The difference of
two such products is split by the Shapley value (each factor's change in all orders, averaged), so that it adds up
exactly and does not depend on an order (Shorrocks 2013, doi:10.1007/s10888-011-9214-z). For factors n, p, h:

    effect of n = (n1 - n0) ((p0 h0 + p1 h1) / 3 + (p0 h1 + p1 h0) / 6)

and the effect of h goes to work and lost hours as their changes go into h's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from planner.errors import InputError
from planner.plan.file import load_plan
from planner.plan.ids import STORAGE, TimePartId
from planner.plan.model import CostLine, Plan
from planner.plan.words import machines_of
from planner.records import record


@record(frozen=True)
class PlannedRun:
    """A plan as far as a bill can be compared with it.

    Attributes:
        run_id: value of the tag on the run's machines; path: the plan's file.
        instance_types, purchase_options: of all lines, sorted.
        regions: of all lines, in the plan's order.
        nodes, hours: machines in use together and billed hours of each (the mean, where lines differ). Lines that are
            used one after another add up their hours, not their machines.
        elapsed_hours: from the first machine to the end, waiting included.
        lost_hours: of these, hours that interruptions are expected to cost.
        price_usd: per machine and hour.
        total_usd: everything the plan counts, machines, storage and transfer.
        storage_usd: of these, what keeps data, checkpoints and the disks of machines, and reads them.
        unit, throughput_per_s: predicted speed; step_hours: hours of training steps.
    """

    run_id: str
    path: str
    workload: str
    provider: str
    regions: tuple[str, ...]
    instance_types: tuple[str, ...]
    purchase_options: tuple[str, ...]
    nodes: float
    hours: float
    lost_hours: float
    price_usd: float
    total_usd: float
    unit: str
    throughput_per_s: float | None
    step_hours: float | None
    elapsed_hours: float
    storage_usd: float = 0.0

    @property
    def machine_usd(self) -> float:
        """Nodes x hours x price."""
        return self.nodes * self.hours * self.price_usd

    def due_after(self, elapsed_hours: float) -> PlannedRun:
        """What of the plan should be done so long after its first machine started; the whole plan at its end."""
        share = min(1.0, max(elapsed_hours, 0.0) / self.elapsed_hours)
        return replace(
            self,
            hours=self.hours * share,
            lost_hours=self.lost_hours * share,
            total_usd=self.total_usd * share,
            storage_usd=self.storage_usd * share,
        )


@record(frozen=True)
class ActualRun:
    """A run as billed; `lost_hours` None where nobody measured them; money in the bill's currency.

    `storage_cost`: charges of the FOCUS service category Storage.
    """

    nodes: float
    hours: float
    lost_hours: float | None
    machine_cost: float
    total_cost: float
    storage_cost: float = 0.0

    @property
    def price(self) -> float:
        """Paid per machine and hour."""
        return self.machine_cost / (self.nodes * self.hours)


@record(frozen=True)
class Difference:
    """Billed less planned, split; the parts sum to `total`.

    Attributes:
        price: dearer or cheaper machine hours.
        duration: more or less hours of work (of all hours, where lost hours are not known).
        nodes: more or fewer machines at a time.
        interruption: more or less work lost; None where not known.
        storage: dearer or cheaper storage: what was billed for it less what the plan counts.
        other: transfer and all else that is neither machine nor storage.
    """

    total: float
    price: float
    duration: float
    nodes: float
    interruption: float | None
    storage: float
    other: float


def load_plans(paths: Iterable[Path]) -> tuple[PlannedRun, ...]:
    """Read plans that `planner optimize -o json` saved; those that found nothing are left out.

    Raises:
        InputError: a file cannot be read or is not a plan, or two plans share a run id.
    """
    found: dict[str, PlannedRun] = {}
    for path in paths:
        run = planned_run(load_plan(path), str(path))
        if run is None:
            continue
        if run.run_id in found:
            raise InputError(
                f"{path}: has the run id {run.run_id} of {found[run.run_id].path}: keep one file per run"
            )
        found[run.run_id] = run
    return tuple(found.values())


def planned_run(plan: Plan, path: str) -> PlannedRun | None:
    """What a plan promises, None of one without lines.

    Raises:
        InputError: no hours are billed.
    """
    if not plan.lines:
        return None
    lines = plan.lines
    in_turn = plan.launch is not None and plan.launch.in_turn
    nodes = float(
        max(line.nodes for line in lines) if in_turn else sum(one.nodes for one in machines_of(plan))
    )
    node_hours = math.fsum(line.nodes * float(line.billed_hours) for line in lines)
    machine = math.fsum(
        line.nodes * float(line.billed_hours) * float(line.price_per_hour) * float(line.usd_per_currency)
        for line in lines
    )
    if not node_hours > 0:
        raise InputError(
            f"{path}: lines: no hours are billed, so no bill compares with it; leave the file out"
        )
    speed = plan.performance
    steps = [part.hours for part in plan.timeline if part.id == TimePartId.TRAINING_STEPS]
    hours = node_hours / nodes
    lost = 0.0 if plan.risk is None else plan.risk.expected_lost_hours
    return PlannedRun(
        plan.run_id, path, plan.workload, lines[0].provider, tuple(dict.fromkeys(line.region for line in lines)),
        tuple(sorted({line.instance_type for line in lines})), tuple(sorted({line.purchase_option for line in lines})),
        nodes, hours, min(lost, hours), machine / node_hours, float(plan.total_usd),
        "" if speed is None else speed.unit, None if speed is None else speed.throughput_per_s,
        math.fsum(steps) if steps else None, max(hours, plan.hours - (plan.starts_in_hours or 0.0)),
        storage_usd(cost for line in lines for cost in line.costs),
    )  # fmt: skip


def storage_usd(costs: Iterable[CostLine]) -> float:
    """What cost lines of storage sum to, USD."""
    return math.fsum(float(cost.amount_usd) for cost in costs if cost.id in STORAGE)


def split_difference(plan: PlannedRun, actual: ActualRun) -> Difference:
    """Split billed less planned; see the module.

    Args:
        plan: the plan, in the bill's currency.
        actual: what was billed; at least one machine and some hours.
    """
    known = actual.lost_hours is not None
    lost0, lost1 = (plan.lost_hours, float(actual.lost_hours or 0.0)) if known else (0.0, 0.0)
    n, p, h = _product_effects(
        (plan.nodes, plan.price_usd, plan.hours), (actual.nodes, actual.price, actual.hours)
    )
    share = h / (actual.hours - plan.hours) if actual.hours != plan.hours else _slope(plan, actual)
    interruption = (lost1 - lost0) * share
    machines = actual.machine_cost - plan.machine_usd
    total = actual.total_cost - plan.total_usd
    storage = actual.storage_cost - plan.storage_usd
    lost = interruption if known else None
    return Difference(total, p, h - interruption, n, lost, storage, total - machines - storage)


def _slope(plan: PlannedRun, actual: ActualRun) -> float:
    """Cost of one more hour where both ran as long: the mean of nodes x price over all orders."""
    n0, n1, p0, p1 = plan.nodes, actual.nodes, plan.price_usd, actual.price
    return (n0 * p0 + n1 * p1) / 3 + (n0 * p1 + n1 * p0) / 6


def _product_effects(
    before: tuple[float, float, float], after: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Shapley effects of three factors on their product."""
    out = []
    for i in range(3):
        (b0, c0), (b1, c1) = (tuple(v for j, v in enumerate(side) if j != i) for side in (before, after))
        mean = (b0 * c0 + b1 * c1) / 3 + (b0 * c1 + b1 * c0) / 6
        out.append((after[i] - before[i]) * mean)
    return out[0], out[1], out[2]


@record(frozen=True)
class Measurement:
    """A run's measured speed, as `planner calibrate` reads it."""

    run_id: str
    workload: str
    value_per_s: float
    unit: str
    instance_type: str
    nodes: int
    whole_work: bool

    @property
    def command(self) -> str:
        """The command that makes use of it."""
        return (
            f"planner calibrate {self.workload or 'WORKLOAD'}.yaml --measured '{self.value_per_s:.6g} {self.unit}/s' "
            f"--instance-type {self.instance_type} --nodes {self.nodes}"
        )

    @property
    def csv(self) -> str:
        """A log of one step, a format of `planner calibrate`."""
        return f"step,{self.unit}_per_s\n1,{self.value_per_s:.9g}\n"


def measure(plan: PlannedRun, actual: ActualRun, units: float | None = None) -> Measurement | None:
    """The run's speed while it trained, None where it is unknown.

    Hours of training steps are the billed hours less lost ones and less what the plan needs besides (start, data,
    evaluation, what runs spend beside their steps, checkpoints). Without `units` the run is taken to have done the
    plan's whole work.

    Args:
        plan: the plan.
        actual: the bill.
        units: tokens (samples) done, where the utilisation file tells them.
    """
    if (
        plan.throughput_per_s is None
        or not plan.step_hours
        or (actual.lost_hours is None and plan.lost_hours)
    ):
        return None
    if len(plan.instance_types) > 1:
        return None
    besides = max(0.0, plan.hours - plan.lost_hours - plan.step_hours)
    hours = actual.hours - (actual.lost_hours or 0.0) - besides
    done = units or plan.throughput_per_s * 3600 * plan.step_hours
    if hours <= 0 or plan.unit not in ("tokens", "samples"):
        return None
    return Measurement(
        plan.run_id, plan.workload, done / (hours * 3600), plan.unit, plan.instance_types[0], round(actual.nodes),
        units is None,
    )  # fmt: skip
