"""The MILP twin of the exact enumeration: the same question through formulation, `Milp` and a backend."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.deadline import leaves_out_fallbacks
from planner.candidates.decisions import count_near_ties
from planner.candidates.model import MIXED
from planner.errors import PlannerError, TimeLimitError
from planner.plan.model import Proof
from solvers.search.pareto import pareto_front

if TYPE_CHECKING:
    from planner.asked.options import Options
    from planner.candidates.choose import Choice
    from planner.candidates.engine import CandidateSearch
    from planner.job.model import SingleInput, SingleResult


def agreed_by_milp(
    search: CandidateSearch, choice: Choice, options: Options, proof: Proof, begin: float
) -> Proof:
    """Let a MILP choose among the candidates that no other beats in both cost and hours, and hold it to the choice.

    Args:
        search: all candidates.
        choice: the enumeration's choice.
        options: backend and time limit.
        proof: the enumeration's.
        begin: `time.perf_counter()` at the start of the search.

    Raises:
        PlannerError: the two disagree: a fault, never a plan.
    """
    from planner.job.model import SingleInput

    candidates = search.candidates
    feasible = np.flatnonzero(candidates.bits == 0)
    front = feasible[pareto_front(candidates.cost_usd[feasible], candidates.hours[feasible])]
    by_cost = candidates.context.asked.workload.preferences.objective == "cost"
    value = candidates.cost_usd if by_cost else candidates.hours
    job = SingleInput(tuple(front.tolist()), value[front], candidates.hours[front])
    result = _solved(job, float(value[choice.winner]), options)
    names = {"scipy": "scipy.optimize.milp"}
    return replace(
        proof,
        method="exact enumeration and a MILP, which agree",
        solver=f"numpy and {names.get(result.solver, result.solver)}",
        seconds=time.perf_counter() - begin,
        note=f"{proof.note}; the MILP chose among the {len(front):,} candidates that none beats in cost and hours",
    )


def choose_by_milp(search: CandidateSearch, choice: Choice, options: Options, begin: float) -> Proof:
    """Solve the single job as a MILP over its feasible candidates and hold it against the enumeration.

    Args:
        search: all candidates.
        choice: the enumeration's choice.
        options: backend and time limit.
        begin: `time.perf_counter()` at the start of the search.

    Raises:
        PlannerError: the two disagree: a fault, never a plan.
    """
    context = search.candidates.context
    from planner.job.model import SingleInput

    candidates = search.candidates
    feasible = np.flatnonzero(candidates.bits == 0)
    cost = candidates.cost_usd if context.asked.workload.preferences.objective == "cost" else candidates.hours
    # what runs in turn is one candidate with its own cost, as what is bought with one offer
    single = feasible[candidates.kind[feasible] != MIXED]
    mix = None
    if candidates.mixes is not None:
        from planner.job.milp_mix import mix_input

        mix = mix_input(candidates)
    job = SingleInput(tuple(single.tolist()), cost[single], candidates.hours[single], mix=mix)
    result = _solved(job, float(cost[choice.winner]), options)
    return Proof(
        method="MILP, equal to the exact enumeration",
        status="optimal",
        solver=result.solver,
        objective_usd=Decimal(repr(result.objective_usd)),
        bound_usd=Decimal(repr(result.bound_usd)),
        gap_ratio=max(0.0, result.gap),
        candidates=len(candidates.all_bits()),
        offers=context.market.offer_set.offers.n_rows,
        shapes=candidates.shapes.n_rows,
        seconds=time.perf_counter() - begin,
        near_ties=count_near_ties(candidates),
        fallback_left_out=leaves_out_fallbacks(context.asked.workload, context.dates.deadline_hours),
    )


def _solved(job: SingleInput, best: float, options: Options) -> SingleResult:
    """The answer of a MILP, which must be the enumeration's, of value `best`.

    Raises:
        BackendError: the backend asked for is unknown or absent.
        PlannerError: the two disagree: a fault, never a plan.
        TimeLimitError: the solver had no time for a proof.
    """
    from planner.job.model import solve_single
    from solvers.problem.options import SolveOptions
    from solvers.problem.solution import Status

    # the proof names the solver: the one that every installation has, unless another is asked for
    backend = "scipy" if options.backend == "auto" else options.backend
    result = solve_single(job, SolveOptions(time_limit_s=options.time_limit_s, backend=backend))
    agrees = result.key is not None and abs(result.objective_usd - best) <= 1e-9 * max(1.0, abs(best))
    dearer = result.status is Status.FEASIBLE and result.objective_usd > best
    if not agrees and (dearer or result.status is Status.NO_SOLUTION):
        raise TimeLimitError(
            f"the MILP did not end within {options.time_limit_s:g} s; raise --time-limit (`--solver enumerate` needs "
            "none and is exact)"
        )
    if not agrees:
        raise PlannerError(
            f"the MILP ({result.solver}: {result.status}) found {result.objective_usd}, the enumeration {best}: "
            "a solver fault, please report it; `--solver enumerate` gives the exact answer"
        )
    return result
