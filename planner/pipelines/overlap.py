"""Tasks that run at the same time draw on one account: the declared quotas that a plan exceeds there.

Each task keeps its workload's quotas by itself, and the choice is not bound by what tasks draw together. So the plan is
held against every quota that any task declares, at every moment a task starts, and what is exceeded is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from planner.market.quota import GPU, INSTANCES, VCPU, Machine, machine_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.table import Table
    from catalogs.tariffs import Tariffs
    from planner.candidates.plan_parts.bought import Bought, BoughtPart
    from planner.inputs.schema import QuotaLimit
    from planner.pipelines.way import Way

_HAIR = 1e-9  # hours, and relative units


class Run(NamedTuple):
    """A task as planned, hours from the pipeline's start."""

    way: Way
    start_hours: float
    end_hours: float


def exceeded_together(
    runs: Sequence[Run], limits: Sequence[QuotaLimit], types: Table, tariffs: Tariffs
) -> Iterator[str]:
    """Yield a sentence per quota and region that tasks exceed together though each keeps it.

    Args:
        runs: the plan.
        limits: quotas that any task declares.
        types: instance types of the catalog.
        tariffs: quota rules.
    """
    bought = [(run, run.way.bought) for run in runs if run.way.bought is not None]
    parts = {_key(part): part for _, one in bought for part in one.parts}
    machines = {key: _machine(part, types, tariffs) for key, part in parts.items()}
    regions = sorted({key[:2] for key in parts})
    for limit in dict.fromkeys(limits):
        for place in regions:
            draws = [(run, _drawn(one, limit, place, machines)) for run, one in bought]
            text = _worst_moment([(run, units) for run, units in draws if units > 0], limit.limit)
            if text:
                yield (
                    f"{text} on the quota {'/'.join(place)} {limit.quota}, whose limit is {limit.limit:,g}: "
                    "the choice is not bound by what tasks draw together"
                )


def _worst_moment(draws: Sequence[tuple[Run, float]], limit: float) -> str:
    """Which tasks draw most at once, if that is more than the limit though each keeps it; else nothing."""
    worst, who, when = limit * (1 + _HAIR), "", 0.0
    for moment in {run.start_hours for run, _ in draws}:
        active = [
            (run.way.task, units) for run, units in draws if run.start_hours <= moment + _HAIR < run.end_hours
        ]
        total = sum(units for _, units in active)
        if len(active) > 1 and total > worst:
            worst, who, when = total, ", ".join(task for task, _ in active), moment
    return f"{who} run at the same time ({when:,.1f} h after the start) and draw {worst:,g}" if who else ""


def _key(part: BoughtPart) -> tuple[str, str, str, str]:
    return part.provider, part.region, part.instance_type, part.purchase_option


def _machine(part: BoughtPart, types: Table, tariffs: Tariffs) -> Machine | None:
    """The instance as quotas see it; None for a machine of the user's own."""
    rows = np.flatnonzero(
        types.equals("provider", part.provider) & types.equals("instance_type", part.instance_type)
    )
    if not len(rows):
        return None
    row = int(rows[0])
    names, rule = machine_names(
        tariffs,
        part.provider,
        str(types["family"][row]),
        str(types["accelerator"][row]),
        part.purchase_option,
    )
    numbers = {
        VCPU: float(types["vcpus"][row]),
        GPU: float(types["accelerator_count"][row]),
        INSTANCES: 1.0,
    }
    amounts = {unit: amount for unit, amount in numbers.items() if np.isfinite(amount)}
    return Machine(part.provider, part.region, part.purchase_option, names, amounts, rule)


def _drawn(
    bought: Bought,
    limit: QuotaLimit,
    place: tuple[str, str],
    machines: dict[tuple[str, str, str, str], Machine | None],
) -> float:
    """What a task draws on a quota in one region: the most of parts in turn, the sum of parts side by side."""
    each = []
    for part in bought.parts:
        machine = machines[_key(part)]
        if (part.provider, part.region) == place and machine is not None and machine.draws_on(limit):
            each.append(machine.draw_on(limit) * part.nodes)
    return max(each, default=0.0) if bought.in_turn else sum(each)
