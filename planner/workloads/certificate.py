"""`planner optimize --certificate`: what was proven of a plan, for `planner verify` to re-check without a solver.

A fleet's certificate is of kind `milp`: the model, the fleet as a point of it, and row duals that prove the bound in
whole micro-dollars. The model is the one tightened under the fleet's own cost, so the bound holds for every fleet that
is no dearer. A single job's is of kind `enumeration`: the cost of every candidate that fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.model import MIXED, SINGLE
from planner.errors import InfeasibleError, InputError
from planner.plan.certificates import VERSION

if TYPE_CHECKING:
    from catalogs.tables.table import Ints
    from planner.candidates.model import Candidates
    from planner.fleet.question import FleetInput
    from planner.fleet.search import FleetResult
    from planner.plan.model import Plan
    from planner.workloads.answer import Answer

MILLIONTH = 1_000_000


def certify(answer: Answer) -> dict[str, Any]:
    """Return the certificate of an answer, JSON-able.

    Raises:
        InfeasibleError: the answer has no plan, so there is nothing to certify.
        InputError: it has no proof that can be written down.
    """
    plan = answer.plan
    if plan.status != "planned" or plan.proof is None:
        raise InfeasibleError(
            "--certificate: there is no plan to certify; the answer itself names what to relax"
        )
    proven = answer.proven
    if proven is None and answer.found is None:
        raise InputError(
            "--certificate: the workers of this fleet fall back on on-demand, and such fleets are compared one by one, "
            "which no certificate proves; leave --certificate out, or plan without: --set spot.fallback=none"
        )
    content = _enumeration(answer) if proven is None else _fleet(plan, *proven)
    return {**content, "workload_sha256": plan.workload_sha256, "plan_total_usd": str(plan.total_usd)}


def _fleet(plan: Plan, question: FleetInput, result: FleetResult) -> dict[str, Any]:
    from planner.fleet.solve import proof_of
    from solvers.search.bounds import build_dual_certificate, in_millionths

    problem, duals, point = proof_of(question, result)
    certificate = build_dual_certificate(
        in_millionths(problem), duals * MILLIONTH, point, unit="micro_usd", tolerance=1e-6
    )
    solver_gap = None if plan.proof is None else plan.proof.gap_ratio
    return {**certificate, "gap_solver_ratio": solver_gap}


def _enumeration(answer: Answer) -> dict[str, Any]:
    from planner.candidates.choose import choose
    from planner.candidates.wanted import value_of

    context, found = answer.context, answer.found
    assert found is not None
    candidates, objective = found.candidates, context.asked.workload.preferences.objective
    choice = choose(candidates, objective)
    assert choice is not None
    feasible = np.flatnonzero(candidates.bits == 0)
    value = value_of(candidates)
    # rounded down: what the certificate proves is never above what a plan comes to
    scaled = np.floor(value[feasible] * MILLIONTH).astype(np.int64)
    best = int(np.floor(value[choice.winner] * MILLIONTH))
    return {
        "certificate_version": VERSION,
        "kind": "enumeration",
        "unit": {"cost": "micro_usd", "time": "micro_hours", "carbon": "micro_kgco2e"}[objective],
        "objective": best,
        "bound": int(scaled.min()),
        "gap_ratio": max(0.0, (best - int(scaled.min())) / best) if best else 0.0,
        "chosen": int(np.searchsorted(feasible, choice.winner)),
        "offers": _names(candidates, feasible),
        "nodes": candidates.nodes[feasible].tolist(),
        "values": scaled.tolist(),
    }


def _names(candidates: Candidates, at: Ints) -> list[str]:
    """The offer of each candidate; all parts with their instances where it is bought in several."""
    context = candidates.context
    ids = {row: context.market.offer_set.offer_id(row) for row in np.unique(candidates.offer[at]).tolist()}
    names = [ids[row] for row in candidates.offer[at].tolist()]
    for number in np.flatnonzero(candidates.kind[at] != SINGLE).tolist():
        parts = candidates.parts(int(at[number]))
        joint = " + " if candidates.kind[at[number]] == MIXED else " else "
        names[number] = joint.join(
            f"{part.nodes} x {context.market.offer_set.offer_id(part.row)}" for part in parts
        )
    return names
