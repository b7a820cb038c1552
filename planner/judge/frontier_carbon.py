"""The answer of `planner frontier --against carbon`: each point recomputed at the workload's limits."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from planner.judge import carbon, frame
from planner.judge.bench import NotRecomputedError
from planner.judge.findings import STATED, Findings, Near, NotRecomputed, Timestamp
from planner.judge.frontier import NAMES
from planner.judge.limits import purchase_faults
from planner.judge.single import obligations

if TYPE_CHECKING:
    from planner.inputs.schema import Workload
    from planner.judge.bench import Bench
    from planner.judge.document import Node
    from planner.judge.memory import Memory

_SLIP = Fraction(1, 10**9)


def check(findings: Findings, workload: Workload, sha256: str, memory: Memory) -> None:
    """Compare a frontier with what is recomputed: every limit holds but that on emissions."""
    answer = findings.answer
    created = answer["created_at"].moment()
    chosen = next((variant.workload for variant in memory.variants(workload) if variant.chosen), workload)
    bench = memory.bench(chosen, created)
    limit = chosen.constraints.max_kgco2e
    expected: dict[str, Any] = {
        **dict.fromkeys(("candidates", "unknown_candidates", "searched", "planner_version"), STATED),
        "against": "carbon", "workload": workload.name, "workload_sha256": sha256, "start": Timestamp(bench.start),
        "created_at": created.isoformat(timespec="minutes"), "schema_version": 1,
        "limit_kgco2e": None if limit is None else Near(limit), "catalog": frame.catalog_sources(memory.catalog),
    }  # fmt: skip
    points = [_point(findings, bench, node) for node in answer["points"]]
    findings.expect(answer, expected | {"points": points})
    _order(findings, bench, answer["points"])


def _point(findings: Findings, bench: Bench, node: Node) -> dict[str, Any]:
    figures = (
        "expected_hours",
        "cost_usd",
        "energy_kwh",
        "operational_kgco2e",
        "within_limit",
        "p_meet_deadline",
    )
    buys, in_turn = frame.purchases(bench.goods, node)
    try:
        summary, candidate = frame.summary(bench, node, None)
        for text in purchase_faults(bench, buys, in_turn=in_turn, by_deadline=bench.deadline is not None):
            findings.fault(node["parts"].path, text)
    except NotRecomputedError as error:
        described = frame.named(buys, in_turn=in_turn)
        return {name: described[name] for name in NAMES} | dict.fromkeys(figures, NotRecomputed(str(error)))
    kg, limit = carbon.emitted(bench, candidate), bench.workload.constraints.max_kgco2e
    findings.require(kg is not None, node.path, "a point of unknown emissions")
    budget = bench.workload.constraints.budget_usd
    paid = sum((usd for usd, _, _ in obligations(bench, candidate)), Fraction(0))
    findings.require(budget is None or paid <= Fraction(budget), node.path, "above the budget")
    within = None if limit is None or kg is None else node["operational_kgco2e"].number() <= limit
    return {name: summary[name] for name in NAMES} | {
        "expected_hours": summary["hours"], "cost_usd": summary["cost_usd"], "within_limit": within,
        "energy_kwh": summary["energy_kwh"].wanted, "operational_kgco2e": summary["operational_kgco2e"].wanted,
        "p_meet_deadline": None if candidate.p_meet is None else Near(candidate.p_meet, 1e-4, 1e-6),
    }  # fmt: skip


def _order(findings: Findings, bench: Bench, points: Node) -> None:
    """Emissions rise and costs fall from point to point, and each meets the deadline with the confidence asked."""
    before: tuple[Fraction, Fraction] | None = None
    confidence = bench.workload.constraints.deadline_confidence
    for node in points:
        kg, cost = node["operational_kgco2e"].money(), node["cost_usd"].money()
        if before is not None:
            findings.require(kg > before[0] * (1 - _SLIP), node.path, "emissions do not rise")
            findings.require(cost < before[1], node.path, "no cheaper than the point before it")
        before = kg, cost
        chance = node["p_meet_deadline"]
        if bench.deadline is not None:
            sure = not chance.is_null and chance.number() >= confidence - 1e-6
            findings.require(sure, chance.path, f"below {confidence}")
            late = node["expected_hours"].number() > bench.deadline_hours * (1 + 1e-9)
            findings.require(not late, node.path, "later than the deadline")
