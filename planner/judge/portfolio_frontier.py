"""The answer of `planner portfolio --frontier`: every point a plan of all jobs within its budget, and its delay."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

from planner.judge.findings import STATED, Exactly, Findings, Near, Timestamp
from planner.judge.portfolio import jobs_of, sources
from planner.judge.portfolio_limits import check_limits, limit_rows, windows_of
from planner.judge.portfolio_parts import MICRO_USD

if TYPE_CHECKING:
    from planner.judge.document import Node
    from planner.judge.portfolio_jobs import PortfolioMemory
    from planner.judge.portfolio_parts import Windows

_GAP = 2e-3  # to which each point is solved


def check(findings: Findings, memory: PortfolioMemory) -> None:
    """Compare a frontier of a portfolio with what is recomputed."""
    answer, loaded = findings.answer, memory.loaded
    created = answer["created_at"].moment()
    windows, follows = windows_of(findings, memory, created)
    findings.require(not follows, "windows", "jobs of a frontier start as early as they can")
    weighted = any(job.delay_usd_per_hour > 0 for job in loaded.jobs)
    findings.expect(
        answer,
        {
            "schema_version": 1, "planner_version": STATED, "kind": "portfolio_frontier",
            "name": loaded.portfolio.name, "sha256": loaded.sha256, "currency": "USD",
            "created_at": created.isoformat(timespec="minutes"), "start": Timestamp(memory.origin(created)),
            "catalog": sources(memory), "windows": windows.wanted,
            "delay_unit": "USD of delay" if weighted else "job-hours",
            "points": [_point(findings, memory, node, windows) for node in answer["points"]],
        },
    )  # fmt: skip
    _order(findings, answer["points"])


def _point(findings: Findings, memory: PortfolioMemory, node: Node, windows: Windows) -> dict[str, Any]:
    jobs, runs, _ = jobs_of(findings, memory, node, windows, follows=False)
    if jobs is None:
        findings.saw(node)
        return dict.fromkeys(node.keys(), STATED)
    check_limits(findings, memory, node, runs, windows, relaxed=False)
    for job in node["jobs"]:
        findings.require(job["status"].value != "late", job["status"].path, "late in a plan of a frontier")
    cost = sum((job["cost_usd"].money() for job in node["jobs"]), Fraction(0))
    delay, hours = _delay(memory, node)
    budget, bound = node["budget_usd"].money(), node["delay_bound"].money()
    findings.require(
        cost <= budget + Fraction(1, 10**6), node["cost_usd"].path, "above the budget of the point"
    )
    exact = node["delay_bound_exact"].money()
    shown = node["delay"].money()
    gap = _gap(shown, bound)
    return {
        "budget_usd": Exactly(budget), "cost_usd": Near(cost, 0.0, MICRO_USD / 2),
        "delay": Near(delay, 1e-9, MICRO_USD * len(jobs)), "mean_hours": Near(hours / max(len(jobs), 1)),
        # bounds are the solver's: not above the plan, and the better of the two is the one shown
        "delay_bound": Exactly(min(bound, _most(delay))), "delay_bound_exact": Exactly(min(exact, bound)),
        "gap_ratio": Near(gap, 1e-6, 1e-9), "gap_exact_ratio": Near(_gap(shown, exact), 1e-6, 1e-9),
        "status": "optimal" if gap <= _GAP * (1 + 1e-6) + 1e-9 else "feasible",
        "jobs": jobs, "limits": limit_rows(node),
    }  # fmt: skip


def _delay(memory: PortfolioMemory, node: Node) -> tuple[Fraction, float]:
    """What the jobs' ends count, at their price of delay or one an hour, and the sum of these hours."""
    delay, hours = Fraction(0), 0.0
    for (_, entry), job in zip(memory.copies, node["jobs"], strict=True):
        if "end_hours" in job:  # a job that is left out has none
            end = job["end_hours"].number()
            weight = memory.loaded.jobs[entry].delay_usd_per_hour
            delay += Fraction(end) * Fraction(weight if weight > 0 else 1.0)
            hours += end
    return delay, hours


def _most(delay: Fraction) -> Fraction:
    return delay * (1 + Fraction(1, 10**9)) + Fraction(1, 10**5)


def _gap(delay: Fraction, bound: Fraction) -> float:
    if delay <= bound:
        return 0.0
    return float((delay - bound) / delay) if delay else inf


def _order(findings: Findings, points: Node) -> None:
    """Budgets rise along a parabola from the least to the most, and more money never buys a later end."""
    rows = list(points)
    budgets = [node["budget_usd"].money() for node in rows]
    for at, node in enumerate(rows):
        share = Fraction(at, max(len(rows) - 1, 1)) ** 2
        expected = budgets[0] + (budgets[-1] - budgets[0]) * share
        in_line = abs(budgets[at] - expected) <= Fraction(1, 10**6)
        findings.require(in_line, node["budget_usd"].path, "not in line with the other budgets")
        later = at and node["delay"].money() > rows[at - 1]["delay"].money()
        findings.require(not later, node["delay"].path, "more delay than at the budget before it")
    if rows:
        first, last = rows[0]["cost_usd"].money(), budgets[-1]
        findings.require(first <= budgets[0] <= last, "points", "budgets do not rise from the least cost")
