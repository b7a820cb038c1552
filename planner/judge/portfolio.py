"""The answer of `planner portfolio`: every job as a plan of its own, what all draw on shared limits, sums and proof."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from planner.judge import frame
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near, Printed, Timestamp
from planner.judge.portfolio_jobs import PortfolioMemory
from planner.judge.portfolio_limits import check_limits, limit_rows, windows_of
from planner.judge.portfolio_parts import MICRO_USD, Run, Windows
from planner.judge.robust import risk_of

if TYPE_CHECKING:
    from planner.judge.document import Node

_STATED_PROOF = (
    "gap_asked_ratio", "mode", "solver", "about", "candidates", "in_model", "removed", "interrupted", "stages",
    "seconds", "message",
)  # fmt: skip
_CLOSED = 1e-3  # gap up to which no lighter set is said to exist
_PLANNED, _LATE, _LEFT_OUT = "planned", "late", "left out"


def check(findings: Findings, memory: PortfolioMemory) -> None:
    """Compare a portfolio's plan with what is recomputed."""
    answer, loaded = findings.answer, memory.loaded
    created = answer["created_at"].moment()
    windows, follows = windows_of(findings, memory, created)
    jobs, runs, late_by = jobs_of(findings, memory, answer, windows, follows=follows)
    if jobs is None:
        findings.saw(answer)
        return
    relaxed = not answer["relaxation"].is_null
    late = [node for node in answer["jobs"] if node["status"].value == _LATE]
    for node in [] if relaxed else late:
        findings.fault(node["status"].path, "late, though everything fits")
    raised = check_limits(findings, memory, answer, runs, windows, relaxed=relaxed)
    totals = _totals(answer, memory)
    sure = [item.workload.constraints.deadline_confidence for item in loaded.workloads if item is not None]
    findings.expect(
        answer,
        {
            "kind": "portfolio", "name": loaded.portfolio.name, "sha256": loaded.sha256, "currency": "USD",
            "created_at": created.isoformat(timespec="minutes"), "start": Timestamp(memory.origin(created)),
            "deadline_confidence": min(sure, default=None),
            "catalog": sources(memory), "schema_version": 1, "planner_version": STATED,
            "status": "infeasible" if relaxed else answer["proof"]["status"].value, "jobs": jobs,
            "windows": windows.wanted, "limits": limit_rows(answer), "totals": totals,
            "proof": _proof(answer["proof"], answer["totals"]["counted_usd"].money()),
            "relaxation": _relaxation(answer, memory, raised, late_by) if relaxed else None,
            "filters": _filters(memory), "notes": STATED, "seconds": STATED,
            **risk_of(findings, answer, loaded.portfolio.risk, answer["totals"]["counted_usd"].money()),
        },
    )  # fmt: skip
    _budget(findings, memory)


def jobs_of(
    findings: Findings, memory: PortfolioMemory, plan: Node, windows: Windows, *, follows: bool
) -> tuple[list[dict[str, Any]] | None, list[Run], dict[str, float]]:
    """What each job of a plan must say, what jobs draw when, how late each is; None where these are other jobs."""
    created = findings.answer["created_at"].moment()
    names, listed = [node["job"].text() for node in plan["jobs"]], [name for name, _ in memory.copies]
    if names != listed:
        findings.fault(plan["jobs"].path, "not every job of the portfolio once, in its order")
        return None, [], {}
    jobs: list[dict[str, Any]] = []
    runs: list[Run] = []
    late_by: dict[str, float] = {}
    for (_, entry), node in zip(memory.copies, plan["jobs"], strict=True):
        job = memory.loaded.jobs[entry]
        if node["status"].text() == _LEFT_OUT:
            may = job.value_usd is not None and not job.must_run
            findings.require(may, node.path, "left out, though it must run")
            lost = Near(Fraction(job.value_usd or 0), slack=MICRO_USD)
            jobs.append({"job": STATED, "status": STATED, "cost_usd": 0.0, "counted_usd": lost})
            findings.saw(node["job"], node["status"])
            continue
        expected, run = memory.job(findings, entry, node, created, windows, follows=follows)
        jobs.append(expected)
        runs.append(run)
        if run.late_hours is not None:
            late_by[node["job"].text()] = run.late_hours
    return jobs, runs, late_by


def sources(memory: PortfolioMemory) -> list[dict[str, Any]]:
    """The snapshots used."""
    if memory.catalog is None:
        return []
    rows = frame.catalog_sources(memory.catalog)
    return [{name: value for name, value in row.items() if name != "offers"} for row in rows]


def _totals(answer: Node, memory: PortfolioMemory) -> dict[str, Any]:
    """Sums over the jobs, and how many there are of each status."""
    jobs = list(answer["jobs"])
    states = [node["status"].text() for node in jobs]
    budget = memory.loaded.portfolio.budget_usd
    return {
        "cost_usd": Near(sum(node["cost_usd"].money() for node in jobs), 0.0, MICRO_USD / 2),
        "cost_p10_usd": STATED, "cost_p90_usd": STATED,
        "counted_usd": Near(sum(node["counted_usd"].money() for node in jobs), 0.0, MICRO_USD / 2),
        "budget_usd": None if budget is None else Near(Fraction(budget)), "jobs": len(jobs),
        "planned": states.count(_PLANNED), "late": states.count(_LATE), "left_out": states.count(_LEFT_OUT),
    }  # fmt: skip


def _proof(node: Node, objective: Fraction) -> dict[str, Any]:
    """Bounds are proven by the certificate; that they are not above the plan, their gaps and the status follow."""
    gaps: dict[str, Any] = {}
    least = inf
    for which in ("exact", "solver"):
        bound, gap = node[f"bound_{which}_usd"], node[f"gap_{which}_ratio"]
        if bound.is_null:
            # without a solver's claim its gap is not known
            gaps |= {bound.path.rpartition(".")[2]: None, gap.path.rpartition(".")[2]: None}
            continue
        slack = 0 if which == "exact" else abs(objective) / 10**6
        amount = min(bound.money(), objective + slack)
        ratio = max(0.0, float((objective - amount) / objective)) if objective else 0.0
        least = min(least, ratio)
        gaps |= {f"bound_{which}_usd": Exactly(amount), f"gap_{which}_ratio": Near(ratio, 1e-6, 1e-15)}
    gap_asked = node["gap_asked_ratio"].number()
    return dict.fromkeys(_STATED_PROOF, STATED) | gaps | {
        "objective_usd": Near(objective, 0.0, MICRO_USD / 2),
        "status": "optimal" if least <= gap_asked * (1 + 1e-6) + 1e-9 else "feasible",
    }  # fmt: skip


def _relaxation(
    answer: Node, memory: PortfolioMemory, raised: dict[int, int], late_by: dict[str, float]
) -> dict[str, Any]:
    """What gives way: the limits that are raised, the jobs that are late, the budget; weighed by the file's prices."""
    relaxation, weights = answer["relaxation"], memory.loaded.portfolio.relaxation
    rows, weighted = [], 0.0
    for at, more in raised.items():
        row = answer["limits"][at]
        each = weights.usd_per_quota_unit if row["kind"].value == "quota" else weights.usd_per_owned_node
        weighted += each * more
        now = row["available"].count()
        rows.append(
            {
                **{name: row[name].value for name in ("limit", "window", "unit")},
                "now": now,
                "needed": now + more,
            }
        )
    # another plan than that which the amounts are of may be shown: a job may be less late in it
    allowed = {node["job"].text(): node["late_hours"].number() for node in relaxation["deadlines"]}
    order = [name for name, _ in memory.copies if name in allowed]
    exact = {name for name in order if -1e-3 <= allowed[name] - late_by.get(name, inf) <= 0.0101}
    hours = sum(late_by[name] if name in exact else allowed[name] for name in order)
    weighted += hours * weights.usd_per_hour_late
    over: Any = None
    budget = memory.loaded.portfolio.budget_usd
    if not relaxation["budget"].is_null and budget is not None:
        needed = relaxation["budget"]["needed_usd"].money()
        weighted += float(needed - Fraction(budget)) * weights.usd_per_usd_over_budget
        over = {"now_usd": Near(Fraction(budget)), "needed_usd": Exactly(max(needed, Fraction(budget)))}
    sized = {name for name, entry in memory.copies if memory.loaded.workloads[entry] is None}
    slack = (
        0.01 * weights.usd_per_hour_late * len([name for name in order if name not in exact & sized]) + 1e-6
    )
    total = relaxation["weighted_usd"].money()
    bound = relaxation["bound_usd"]
    low = None if bound.is_null else min(bound.money(), total)
    least = inf if low is None else float((total - low) / total) if total else 0.0
    return {
        "limits": rows, "budget": over, "least": least <= _CLOSED * (1 + 1e-6) + 1e-9, "least_of": IfStated(STATED),
        "deadlines": [
            {"job": name, "late_hours": Printed(_enough(late_by[name]) if name in exact else allowed[name], 2, 1e-3)}
            for name in order
        ],
        "weighted_usd": Near(weighted, 1e-6, slack),
        "bound_usd": None if low is None else Exactly(low),
        "gap_ratio": None if low is None else Near(least, 1e-6, 1e-12),
    }  # fmt: skip


def _enough(late_hours: float) -> float:
    """Hours rounded up to two decimals."""
    return ceil(late_hours * 100 - 1e-6) / 100


def _filters(memory: PortfolioMemory) -> list[dict[str, Any]]:
    """Counts of the search, by entry of the file."""
    counts = dict.fromkeys(("candidates", "passed", "removed"), STATED)
    return [{"job": job.name, "copies": job.count, **counts} for job in memory.loaded.jobs]


def _budget(findings: Findings, memory: PortfolioMemory) -> None:
    """The plan costs no more than the budget, raised by what gives way; late jobs are those that may be."""
    answer, budget = findings.answer, memory.loaded.portfolio.budget_usd
    relaxation = answer["relaxation"]
    if budget is not None:
        most = Fraction(budget)
        if not relaxation.is_null and not relaxation["budget"].is_null:
            most = relaxation["budget"]["needed_usd"].money()
        spent = answer["totals"]["cost_usd"].money()
        findings.require(
            spent <= most + Fraction(1, 10**6), "totals.cost_usd", f"above the budget {float(most):.2f}"
        )
    if relaxation.is_null:
        return
    allowed = {node["job"].text(): node["late_hours"].number() for node in relaxation["deadlines"]}
    for node in answer["jobs"]:
        if node["status"].value == _LATE:
            late = node["late_hours"].number()
            in_time = late <= allowed.get(node["job"].text(), 0.0) + 0.01
            findings.require(in_time, node["late_hours"].path, "later than what gives way allows")
