"""The answer of `planner frontier`: each point a candidate that is recomputed at its own deadline."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from planner.judge import frame
from planner.judge.bench import NotRecomputedError
from planner.judge.findings import STATED, Exactly, Findings, Near, NotRecomputed, Timestamp
from planner.judge.limits import purchase_faults
from planner.judge.single import obligations

if TYPE_CHECKING:
    from planner.inputs.schema import Workload
    from planner.judge.bench import Bench
    from planner.judge.document import Node
    from planner.judge.memory import Memory

NAMES = (
    "provider", "region", "zone", "instance_type", "accelerator", "accelerators", "nodes", "purchase_option",
    "option_variant", "price_as_of", "flags", "parts",
)  # fmt: skip


def check(findings: Findings, workload: Workload, sha256: str, memory: Memory) -> None:
    """Compare a frontier with what is recomputed: no limit but the workload's others, each point at its deadline."""
    answer = findings.answer
    created = answer["created_at"].moment()
    chosen = next((variant.workload for variant in memory.variants(workload) if variant.chosen), workload)
    bench = memory.bench(chosen, created)
    expected: dict[str, Any] = {
        **dict.fromkeys(("candidates", "deadlines_asked", "searched", "planner_version"), STATED),
        "workload": workload.name, "workload_sha256": sha256, "start": Timestamp(bench.start),
        "created_at": created.isoformat(timespec="minutes"), "schema_version": 1,
        "deadline_confidence": Near(chosen.constraints.deadline_confidence),
        "catalog": frame.catalog_sources(memory.catalog),
    }  # fmt: skip
    points = [
        _point(findings, bench, memory.by_deadline(chosen, created, deadline_of(node)), node)
        for node in answer["points"]
    ]
    findings.expect(answer, expected | {"points": points})
    _order(findings, bench, answer["points"])


def _point(findings: Findings, own: Bench, bench: Bench, node: Node) -> dict[str, Any]:
    buys, in_turn = frame.purchases(bench.goods, node)
    try:
        summary, candidate = frame.summary(bench, node, None)
        for text in purchase_faults(bench, buys, in_turn=in_turn, by_deadline=True):
            findings.fault(node["parts"].path, text)
    except NotRecomputedError as error:
        return _unread(bench, node, NotRecomputed(str(error)))
    limit, budget = own.deadline_hours, own.workload.constraints.budget_usd
    deadline = node["deadline_hours"].number()
    within = None if own.deadline is None else deadline <= limit
    paid = (
        None
        if budget is None
        else sum(usd for usd, _, _ in obligations(bench, candidate)) <= Fraction(budget)
    )
    is_wished = node["wished"].value is True and deadline != limit
    wished = STATED if is_wished else deadline == limit
    return {name: summary[name] for name in NAMES} | {
        "deadline_hours": Exactly(node["deadline_hours"].money()), "expected_hours": summary["hours"],
        "cost_usd": summary["cost_usd"], "within_deadline": within, "within_budget": paid, "wished": wished,
        "p_meet_deadline": None if candidate.p_meet is None else Near(candidate.p_meet, 1e-4, 1e-6),
    }  # fmt: skip


def _unread(bench: Bench, node: Node, why: NotRecomputed) -> dict[str, Any]:
    """A point that rests on records which are not read again: what it buys is checked, hours and cost are not."""
    buys, in_turn = frame.purchases(bench.goods, node)
    summary = frame.named(buys, in_turn=in_turn)
    left = ("expected_hours", "cost_usd", "within_deadline", "within_budget", "p_meet_deadline")
    return {name: summary[name] for name in NAMES} | dict.fromkeys(left, why) | {
        "deadline_hours": Exactly(node["deadline_hours"].money()), "wished": STATED,
    }  # fmt: skip


def _order(findings: Findings, bench: Bench, points: Node) -> None:
    """Deadlines rise, costs fall save where a deadline was wished for, and each deadline is kept surely enough."""
    before: tuple[float, Fraction] | None = None
    confidence = bench.workload.constraints.deadline_confidence
    for node in points:
        hours, cost = node["deadline_hours"].number(), node["cost_usd"].money()
        if before is not None:
            findings.require(hours > before[0], node.path, "deadlines do not rise")
            cheaper = cost < before[1] or (
                node["wished"].flag() and cost <= before[1] * (1 + Fraction(1, 1000))
            )
            findings.require(cheaper, node.path, "no cheaper than the point before it")
        before = hours, cost
        chance = node["p_meet_deadline"]
        findings.require(
            not chance.is_null and chance.number() >= confidence - 1e-6, chance.path, f"below {confidence}"
        )
        findings.require(
            node["expected_hours"].number() <= hours * (1 + 1e-9), node.path, "later than its deadline"
        )


def deadline_of(node: Node) -> timedelta:
    """The deadline of a point as a length of time."""
    hours = node["deadline_hours"].number()
    if not 0 < hours <= 1e6:
        node["deadline_hours"].fail("hours above 0 and at most 1e6")
    return timedelta(hours=hours)
