"""A size as a report: the machines, what the run needs beside what they have, and the rules of thumb."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.plan.front_scale import chance_words
from planner.plan.plain import plain
from planner.render.model import Answer, Column, Section, Value, facts, table_section, versioned
from planner.render.numbers import hours, number
from planner.render.precision import dollars, known_places
from planner.render.screen import Row, Screen, on_screen
from planner.render.units import three
from planner.workloads.size_needs import ASSUMED_THREADS, CLIENT_GB_PER_S, SHARED_STORE_FROM_GB
from planner.workloads.size_rules import load_facts

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.workloads.size import Judged, Size
    from planner.workloads.size_alternatives import Alternative

_LARGE = 1e15
_HOURS = Column("hours", "hours at work", "quantity")

_NAMES = {
    "accelerators": "accelerators", "cores": "CPU cores", "ram_gb": "GB of RAM", "disk_gb": "GB of disk",
    "read_gb_per_s": "GB/s read", "network_gbps": "Gb/s of network", "device_memory_gb": "GB per accelerator",
    "nodes": "nodes", "loading_ratio": "of the step for loading", "workers": "loader workers each",
}  # fmt: skip
NEXT = ("size --data SIZE --goal GOAL --write workload.yaml", "optimize workload.yaml")
_OTHER_RUN = "is for another amount of data or another goal"
_FLAT = (
    "rule_id", "quantity", "rule_low", "rule_high", "model", "verdict", "rule_cost_usd", "model_cost_usd", "source",
)  # fmt: skip


def size_report(size: Size, *, details: Collection[str] = (), written: str = "") -> Answer:
    """Build the answer.

    Args:
        size: the size.
        details: keys of sections to show in place of the screen, or `all`.
        written: the file that the workload is written to, if any; what to do next is about it.
    """
    outcome = size.outcome
    rows = [
        {
            "rule_id": one.rule.rule_id, "quantity": one.rule.quantity, "rule_low": one.low, "rule_high": one.high,
            "model": one.model, "verdict": one.rule.verdict,
            "rule_cost_usd": None if one.cost is None else one.cost.total_usd, "model_cost_usd": outcome.total_usd,
            "source": one.rule.source,
        }
        for one in (*size.rules, *size.published)
    ]  # fmt: skip
    judged = (*size.rules, *size.published)
    values = {
        "goal": size.goal, "data_gb": size.data_gb, "outcome": plain(outcome), "accelerator": size.accelerator,
        "nodes": size.nodes, "needs": plain(size.needs), "machines_have": dict(size.has), "workload": size.workload,
        "rules": [{**plain(one.rule), **row} for one, row in zip(judged, rows, strict=True)],
        "rules_undetermined": [{**plain(rule), "reason": rule.reason or _OTHER_RUN} for rule in size.undetermined],
        "work_hours": size.work_hours, "beside": [plain(one) for one in size.beside],
    }  # fmt: skip
    sections = [] if size.needs is None else [
        _needs(size), *_rules(size), *_refuted(size), _published(size), _undetermined(size), _beside(size),
    ]  # fmt: skip
    if outcome.needs:
        sections.append(Section("relax", "What would make a plan possible", outcome.needs))
    sections.append(Section("workload", "Workload", tuple(size.workload.splitlines()), detail=True))
    title = f"No machines for {size.goal} with {number(size.data_gb)} GB within these limits"
    if outcome.total_usd is not None and outcome.hours is not None:
        title = f"{outcome.choice}: {outcome.usd_words}, done in {hours(outcome.hours)} h"
    summary = (
        "The model and its training are assumed from the goal, so confidence is low: name them in the workload as soon "
        "as you know them. Data size storage and loading; accelerators follow from the model and the deadline.",
    )
    whole = Answer(
        f"Size for {size.goal}, {number(size.data_gb)} GB", title, summary, tuple(sections), versioned(values), _FLAT,
        rows, success=outcome.total_usd is not None,
    )  # fmt: skip
    screen = _nothing(size, title) if size.needs is None else _screen(size)
    if written:
        screen = replace(
            screen, following=(f"optimize {shlex.quote(written)}", f"explain {shlex.quote(written)}")
        )
    return on_screen(whole, screen, details)


def _nothing(size: Size, title: str) -> Screen:
    rows: list[Row] = [("plan", "plan", "none", "text", title)]
    rows += [
        (f"relax_{at}", "" if at else "instead", text, "text", text)
        for at, text in enumerate(size.outcome.needs)
    ]
    asked = f"{size.goal}: {number(size.data_gb)} GB of data, low confidence: model and training are assumed"
    return Screen(asked, rows, None, (), "", NEXT[:1])


def _screen(size: Size) -> Screen:
    """What fits on a screen."""
    needs, outcome = size.needs, size.outcome
    assert needs is not None and outcome.total_usd is not None and outcome.hours is not None
    machines = f"{outcome.choice} ({number(needs.accelerators, 6)} x {size.accelerator})"
    cost = f"{outcome.usd_words} expected, done {outcome.done_words}"
    if outcome.p_meet_deadline is not None:
        cost += f", in time with {chance_words(outcome.p_meet_deadline, is_bound=outcome.bounds_chance)}"
    per = f"{number(needs.device_memory_gib)} GiB of each accelerator, " if needs.device_memory_gib else ""
    host = (
        f"{per}{number(needs.vcpus)} vCPUs, {number(needs.ram_gb)} GB RAM, {number(needs.disk_gb)} GB disk, "
    )
    host += f"{_rate(needs.read_gb_per_s)} read"
    rows: list[Row] = [
        ("plan", "plan", machines, "text", machines), ("cost", "cost", outcome.total_usd, "usd", cost),
        ("needs", "needs", host, "text", host), ("storage", "storage", needs.storage, "text", needs.storage),
        *_large(size),
    ]  # fmt: skip
    notes = ["low confidence: model and training are assumed from the goal; name them in the workload"]
    if refuted := len(_contradicted(size)):
        what = "published rules of thumb do" if refuted > 1 else "published rule of thumb does"
        notes.append(f"{refuted} {what} not hold for this run: --details refuted shows why")
    evaluated, left = len(size.rules) + len(size.published), len(size.undetermined)
    proof = (
        f"{evaluated} of {evaluated + left} published rules evaluated, {left} cannot be applied to this run."
    )
    asked = (
        f"{size.goal}: {number(size.data_gb)} GB of data ({needs.tier} as data sets go), {size.nodes} node"
    )
    asked += "s" if size.nodes > 1 else ""
    return Screen(asked, rows, _seats(size), notes, proof, NEXT, "Before you rely on it")


def _rate(gb_per_s: float) -> str:
    """A rate in the unit that has no noughts before its digits."""
    return f"{number(gb_per_s)} GB/s" if gb_per_s >= 0.1 else f"{number(gb_per_s * 1e3)} MB/s"


def _large(size: Size) -> list[Row]:
    """From 1 TB on: what several nodes and a parallel file system would be for."""
    needs = size.needs
    if needs is None or size.data_gb < SHARED_STORE_FROM_GB:
        return []
    reads = number(needs.read_gb_per_s)
    one = f"one node reads up to {number(CLIENT_GB_PER_S)} GB/s from object storage, this run {reads}"
    text = f"more nodes follow from compute and deadline, not from {number(size.data_gb)} GB; {one}; "
    text += (
        "a parallel file system pays once several nodes read more than that together"
        if needs.read_gb_per_s <= CLIENT_GB_PER_S * max(size.nodes, 1)
        else "so a parallel file system (managed Lustre, size it by MB/s per TiB) or shards on local NVMe"
    )
    return [("several_nodes", "above 1 TB", text, "text", text)]


def _seats(size: Size) -> Section:
    """The plan beside a workstation, a notebook service and CPUs, in a few words."""
    took = size.work_hours
    rows: list[tuple[Value, ...]] = [("this plan", _span(took, took), size.outcome.usd_words, "yes")]
    rows += [(one.name, _span(one.hours_low, one.hours_high), _paid(one), one.fits) for one in size.beside]
    columns = (
        Column("place", "on", "text"), _HOURS, Column("cost", "to pay", "quantity"),
        Column("fits", "memory fits", "text"),
    )  # fmt: skip
    notes = ("no waits, starts or stops; other rows at the plan's MFU; sources of prices: --details beside",)
    return table_section("seats", "Compared with a workstation and CPUs", columns, rows, notes)


def _beside(size: Size) -> Section:
    columns = (
        Column("place", "on", "text"), _HOURS, Column("cost", "to pay", "quantity"),
        Column("fits", "memory fits", "text"), Column("said", "price", "text"), Column("as_of", "of", "date"),
        Column("source", "source", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            one.name,
            _span(one.hours_low, one.hours_high),
            _paid(one),
            one.fits,
            one.said,
            one.as_of,
            one.source,
        )
        for one in size.beside
    ]
    notes = (
        "at the plan's share of the peak, no waits, starts or stops; a smaller micro-batch or offload may fit where "
        "the plan's does not",
    )
    return table_section("beside", "Compared with a workstation and CPUs", columns, rows, notes, detail=True)


def _span(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "unknown"
    return three(low) if low == high else f"{three(low)} to {three(high)}"


def _paid(one: Alternative) -> str:
    if one.usd_low is None or one.usd_high is None:
        return "unknown"
    ends = [dollars(end, min(known_places(end, 0.0), 0)) for end in (one.usd_low, one.usd_high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _published(size: Size) -> Section:
    columns = (
        Column("rule", "rule", "text"), Column("says", "it says", "text"), Column("fact", "published", "three"),
        Column("of", "of", "text"), Column("verdict", "verdict", "text"),
    )  # fmt: skip
    facts_of = load_facts()
    rows: list[tuple[Value, ...]] = [
        (one.rule.rule_id, _range(one), one.model, f"{facts_of[one.rule.quantity].words}, "
         f"{facts_of[one.rule.quantity].unit}", one.rule.verdict)
        for one in size.published
    ]  # fmt: skip
    notes = ("they hold or not whatever the run; the source of each is in -o json",)
    return table_section(
        "published", "Rules on what is measured or listed", columns, rows, notes, detail=True
    )


def _undetermined(size: Size) -> Section:
    lines = tuple(f"{rule.rule_id} ({rule.rule}): {rule.reason or _OTHER_RUN}" for rule in size.undetermined)
    return Section("undetermined", "Rules that cannot be applied here", lines, detail=True)


def _needs(size: Size) -> Section:
    needs, has = size.needs, size.has
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
            ("accelerators", "accelerators", needs.accelerators, "count", f"{count} x {size.accelerator}"),
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


def _rules(size: Size) -> list[Section]:
    columns = (
        Column("rule", "rule", "text"), Column("of", "of", "text"), Column("says", "it says", "text"),
        Column("model", "model", "three"), Column("cost", "its cost", "text"), Column("verdict", "verdict", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (one.rule.rule_id, _NAMES[one.rule.quantity], _range(one), one.model, _cost(one), one.rule.verdict)
        for one in size.rules
    ]
    notes = (
        "model: what this run needs; its cost: of the cheapest plan that keeps a rule on A100 or memory (others change "
        "no plan); the plan itself costs "
        f"{size.outcome.usd_words}",
        *((_cores(size),) if any(one.rule.quantity == "cores" for one in size.rules) else ()),
    )
    return (
        [table_section("rules", "Rules of thumb compared with the model", columns, rows, notes)]
        if rows
        else []
    )


def _cores(size: Size) -> str:
    """How the vCPUs of the run count as cores, which rules ask for."""
    assert size.needs is not None
    threads = size.has["threads_per_core"]
    counted = f"{threads or ASSUMED_THREADS:g} to a core"
    why = "" if threads else ", assumed: how many threads a core of these machines has is not known"
    return f"CPU cores: {number(size.needs.vcpus)} vCPUs, {counted}{why}"


def _range(one: Judged) -> str:
    low = number(one.low) if one.low < _LARGE else f"{one.low:.3g}"
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
    return "no plan" if one.cost.total_usd is None else one.cost.usd_words


def _contradicted(size: Size) -> list[Judged]:
    """Contradicted rules that ask for something else than this run needs."""
    return [one for one in size.rules if one.rule.verdict == "contradicted" and one.differs]


def _refuted(size: Size) -> list[Section]:
    """Why the contradicted rules above do not hold."""
    lines = tuple(
        f"{one.rule.rule_id} ({one.rule.rule}): {_range(one)} {_NAMES[one.rule.quantity]}, {number(one.model)} needed; "
        f"{one.rule.against}. Instead: {one.rule.instead}"
        for one in _contradicted(size)
    )
    return [Section("refuted", "Rules that do not hold", lines, warning=True)] if lines else []
