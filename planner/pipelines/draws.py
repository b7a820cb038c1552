"""What the candidates of a pipeline draw on the quotas that its tasks declare: one account serves all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.market.quota import GPU, INSTANCES, VCPU, Machine, machine_names
from planner.pipelines.shared import SharedQuota

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Table
    from catalogs.tariffs import Tariffs
    from planner.candidates.plan_parts.bought import Bought, BoughtPart
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.schema import QuotaLimit
    from planner.pipelines.way import Way

Kind = tuple[str, str, str, str]


def declared_limits(loaded: LoadedPipeline) -> list[QuotaLimit]:
    """Quotas that workloads declare, which tasks share."""
    given = [one.workload.constraints.quota for one in loaded.workloads if one is not None]
    return [limit for own in given for limit in own]


def shared_quotas(
    ways: Sequence[Way], limits: Sequence[QuotaLimit], types: Table, tariffs: Tariffs
) -> tuple[SharedQuota, ...]:
    """Every declared quota in every region where candidates of two tasks draw on it.

    Args:
        ways: the candidates; one that was sized elsewhere draws on nothing.
        limits: quotas that any task declares.
        types: instance types of the catalog.
        tariffs: quota rules.
    """
    if not limits:
        return ()
    parts = {_kind(part): part for way in ways if way.bought for part in way.bought.parts}
    machines = {kind: _machine(part, types, tariffs) for kind, part in parts.items()}
    out = []
    for limit in dict.fromkeys(limits):
        drawing = {kind for kind, one in machines.items() if one is not None and one.draws_on(limit)}
        for place in sorted({kind[:2] for kind in drawing}):
            units = np.array([
                0.0 if way.bought is None else _drawn(way.bought, limit, place, machines) for way in ways
            ])  # fmt: skip
            if len({way.task for way, own in zip(ways, units.tolist(), strict=True) if own > 0}) > 1:
                out.append(SharedQuota(f"{'/'.join(place)} {limit.quota}", float(limit.limit), units))
    return tuple(out)


def _kind(part: BoughtPart) -> Kind:
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
    bought: Bought, limit: QuotaLimit, place: tuple[str, str], machines: dict[Kind, Machine | None]
) -> float:
    """What a task draws on a quota in one region: the most of parts in turn, the sum of parts side by side."""
    each = []
    for part in bought.parts:
        machine = machines[_kind(part)]
        if (part.provider, part.region) == place and machine is not None and machine.draws_on(limit):
            each.append(machine.draw_on(limit) * part.nodes)
    return max(each, default=0.0) if bought.in_turn else sum(each)
