"""Builds the document of a plan: which sections it has, in which order."""

from __future__ import annotations

from planner.plan.model import Plan
from planner.render import answer, grounds
from planner.render.document import Document


def build_document(plan: Plan, *, verbose: bool = False) -> Document:
    """Return the document that the text formats lay out.

    Args:
        plan: the answer.
        verbose: whether nothing is summarised.
    """
    if plan.status == "infeasible":
        return _infeasible(plan, verbose)
    headline, summary = answer.verdict(plan)
    blocks = [
        *grounds.warnings(plan),
        *answer.plan_lines(plan, verbose),
        *answer.costs(plan, verbose),
        *answer.timeline(plan, verbose),
        *answer.performance(plan, verbose),
        *answer.risk(plan),
        *answer.savings(plan),
        *answer.alternatives(plan),
        *answer.quotas(plan),
        *answer.cash(plan),
        *grounds.assumptions(plan, verbose),
        *grounds.filters(plan, verbose),
        *grounds.unknown(plan, verbose),
        *grounds.excluded(plan),
        *grounds.sources(plan),
        *grounds.proof(plan, verbose),
    ]
    return Document(headline, summary, tuple(blocks), success=True)


def _infeasible(plan: Plan, verbose: bool) -> Document:
    removed = max((item.removed for item in plan.filters), default=0)
    tried = plan.proof.candidates if plan.proof is not None else removed
    headline = f"No feasible plan for {plan.workload}: none of {tried:,} candidates meets every limit"
    best = next((item for item in plan.relaxations), None)
    summary = (f"Smallest change: {best.constraint} {best.current} -> {best.needed}",) if best else ()
    blocks = [
        *grounds.warnings(plan),
        *grounds.relaxations(plan),
        *grounds.filters(plan, verbose),
        *grounds.assumptions(plan, verbose),
        *grounds.unknown(plan, verbose),
        *grounds.sources(plan),
        *grounds.proof(plan, verbose),
    ]
    return Document(headline, summary, tuple(blocks), success=False)
