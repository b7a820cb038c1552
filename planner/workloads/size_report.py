"""A size as a report: the machines, what the run needs beside what they have, and the rules of thumb."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.plan.plain import plain
from planner.render.model import Answer, Column, Section, Value, facts, table_section, versioned
from planner.render.numbers import hours, number, usd

if TYPE_CHECKING:
    from planner.workloads.size import Judged, Size

_NAMES = {
    "accelerators": "accelerators", "vcpus": "vCPUs", "ram_gb": "RAM, GB", "disk_gb": "disk, GB",
    "read_gb_per_s": "read, GB/s", "network_gbps": "network, Gb/s", "device_memory_gb": "GB per accelerator",
}  # fmt: skip
_FLAT = (
    "rule_id", "quantity", "rule_low", "rule_high", "model", "verdict", "rule_cost_usd", "model_cost_usd", "source",
)  # fmt: skip


def size_report(found: Size) -> Answer:
    """Build the answer."""
    outcome = found.outcome
    rows = [
        {
            "rule_id": one.rule.rule_id, "quantity": one.rule.quantity, "rule_low": one.low, "rule_high": one.high,
            "model": one.model, "verdict": one.rule.verdict,
            "rule_cost_usd": None if one.cost is None else one.cost.total_usd, "model_cost_usd": outcome.total_usd,
            "source": one.rule.source,
        }
        for one in found.rules
    ]  # fmt: skip
    values = {
        "goal": found.goal, "data_gb": found.data_gb, "outcome": plain(outcome), "accelerator": found.accelerator,
        "nodes": found.nodes, "needs": plain(found.needs), "machines_have": dict(found.has), "workload": found.workload,
        "rules": [{**plain(one.rule), **row} for one, row in zip(found.rules, rows, strict=True)],
    }  # fmt: skip
    sections = [] if found.needs is None else [_needs(found), *_rules(found), *_refuted(found)]
    if outcome.needs:
        sections.append(Section("relax", "What would bring a plan", outcome.needs))
    sections.append(Section("workload", "Workload", tuple(found.workload.splitlines()), detail=True))
    title = f"No machines for {found.goal} with {number(found.data_gb)} GB within these limits"
    if outcome.total_usd is not None and outcome.hours is not None:
        title = f"{outcome.choice}: {usd(outcome.total_usd)}, {hours(outcome.hours)} h"
    summary = (
        "The model and its training are assumed from the goal, so confidence is low: name them in the workload as soon "
        "as you know them. Data size storage and loading; accelerators follow from the model and the deadline.",
    )
    return Answer(
        f"Size for {found.goal}, {number(found.data_gb)} GB", title, summary, tuple(sections), versioned(values), _FLAT,
        rows, success=outcome.total_usd is not None,
    )  # fmt: skip


def _needs(found: Size) -> Section:
    needs, has = found.needs, found.has
    assert needs is not None

    def beside(need: float, key: str, unit: str) -> str:
        have = has[key]
        said = f"; the machines have {number(have)} {unit}" if have else "; not stated of the machines"
        return f"{number(need)} {unit}{said}" + (" - too few" if 0 < have < need else "")

    memory = needs.device_memory_gib
    count = number(needs.accelerators, 6)
    network = "not needed: one node"
    if needs.network_gbps:
        network = f"{number(needs.network_gbps)} Gb/s a node, as planned with"
    return facts(
        "needs", "What the run needs",
        [
            ("tier", "tier", needs.tier, "text", f"{needs.tier}, by the volume of data"),
            ("accelerators", "accelerators", needs.accelerators, "count", f"{count} x {found.accelerator}"),
            ("device_memory_gib", "device memory", memory, "gib", ""),
            ("vcpus", "vCPUs", needs.vcpus, "count",
             f"{beside(needs.vcpus, 'vcpus', 'vCPUs')} ({needs.workers_per_accelerator} loader workers each)"),
            ("ram_gb", "RAM", needs.ram_gb, "gb", beside(needs.ram_gb, "ram_gb", "GB")),
            ("disk_gb", "NVMe or disk", needs.disk_gb, "gb", beside(needs.disk_gb, "disk_gb", "GB local")),
            ("read_gb_per_s", "read", needs.read_gb_per_s, "number", f"{number(needs.read_gb_per_s)} GB/s in all"),
            ("network_gbps", "network", needs.network_gbps, "number", network),
            ("storage", "storage", needs.storage, "text", needs.storage),
        ],
    )  # fmt: skip


def _rules(found: Size) -> list[Section]:
    columns = (
        Column("rule", "rule", "text"), Column("of", "of", "text"), Column("says", "it says", "text"),
        Column("model", "model", "three"), Column("cost", "its cost", "text"), Column("verdict", "verdict", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (one.rule.rule_id, _NAMES[one.rule.quantity], _range(one), one.model, _cost(one), one.rule.verdict)
        for one in found.rules
    ]
    notes = (
        "model: what this run needs; its cost: of the cheapest plan on at most so many A100; the plan above costs "
        f"{usd(found.outcome.total_usd)}",
    )
    return [table_section("rules", "Rules of thumb beside the model", columns, rows, notes)] if rows else []


def _range(one: Judged) -> str:
    low = number(one.low)
    return (
        f"at least {low}"
        if one.high is None
        else low
        if one.high == one.low
        else f"{low} to {number(one.high)}"
    )


def _cost(one: Judged) -> str:
    if one.cost is None:
        return ""
    return "no plan" if one.cost.total_usd is None else usd(one.cost.total_usd)


def _refuted(found: Size) -> list[Section]:
    """Why the contradicted rules above do not hold."""
    lines = tuple(
        f"{one.rule.rule_id} ({one.rule.rule}): {one.rule.against}. Instead: {one.rule.instead}"
        for one in found.rules if one.rule.verdict == "contradicted" and one.rule.against and one.differs
    )  # fmt: skip
    return [Section("refuted", "Rules that do not hold", lines, warning=True)] if lines else []
