"""What the tasks of a pipeline draw on declared quotas at the same time, moment by moment, from the answer's parts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from math import inf, isnan
from typing import TYPE_CHECKING, NamedTuple

from planner.judge.portfolio_parts import quota_names

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.inputs.schema import QuotaLimit
    from planner.judge.document import Node
    from planner.judge.findings import Findings

_HOURS = 1e-6
_AMOUNTS = (("vCPU", "vcpus"), ("GPU", "accelerator_count"))


class Drawn(NamedTuple):
    """What one task draws on a quota in a region while it runs."""

    task: str
    begin: float
    end: float
    units: float


def check_shared(findings: Findings, stages: list[Node], limits: list[QuotaLimit], types: Table) -> None:
    """Tasks that run at the same time keep every declared quota together.

    Args:
        findings: the answer and its faults.
        stages: its tasks.
        limits: quotas that any workload declares.
        types: instance types of the catalog.
    """
    for limit in dict.fromkeys(limits):
        regions = {part["region"].text() for node in stages for part in node["parts"]}
        for region in sorted(region for region in regions if fnmatchcase(region, limit.region)):
            drawn = [_drawn(node, limit, region, types) for node in stages]
            for use in drawn:
                active = [
                    other for other in drawn
                    if other.units > 0 and other.begin <= use.begin + _HOURS and other.end > use.begin + _HOURS
                ]  # fmt: skip
                units = sum(other.units for other in active)
                if use.units > 0 and len(active) > 1 and units > limit.limit * (1 + 1e-9):
                    who = ", ".join(other.task for other in active)
                    place = f"{limit.provider}/{region} {limit.quota}"
                    findings.fault("tasks", f"{who} draw {units:g} at once on {place}, limit {limit.limit:g}")
                    break


def _drawn(node: Node, limit: QuotaLimit, region: str, types: Table) -> Drawn:
    """Parts in turn: the most of them; side by side: their sum."""
    each = [units_of(part, limit, types) for part in node["parts"] if part["region"].text() == region]
    units = max(each, default=0.0) if node["in_turn"].flag() else sum(each)
    return Drawn(node["task"].text(), node["start_hours"].number(), node["end_hours"].number(), units)


def units_of(part: Node, limit: QuotaLimit, types: Table) -> float:
    """What a part of an answer draws on a quota, infinity where that is unknown."""
    from catalogs.tariffs import load_tariffs

    provider, option = part["provider"].text(), part["purchase_option"].text()
    if provider != limit.provider:
        return 0.0
    rows = types.take(
        types.equals("provider", provider) & types.equals("instance_type", part["instance_type"].text())
    )
    if not rows.n_rows:  # a machine of the user's own
        return 0.0
    names = quota_names(load_tariffs(), provider, str(rows["family"][0]), str(rows["accelerator"][0]), option)
    if limit.quota not in names:
        return 0.0
    amounts = {"instances": 1.0} | {unit: float(rows[column][0]) for unit, column in _AMOUNTS}
    amount = amounts.get(limit.unit or names[limit.quota], inf)
    return part["nodes"].count() * (inf if isnan(amount) else amount)
