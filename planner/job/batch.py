"""Which global batch the machines can divide, where no cluster that is admitted divides the one asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.asked.job import resolve_job
from planner.candidates.choose import choose
from planner.candidates.constraints.facts import NoLayout
from planner.candidates.engine import Engine
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.sizes import hardware_of_offer
from planner.candidates.wanted import Scope, Wanted
from planner.plan.relaxation import Change, Relaxation, relaxation_of

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.training_schema import Training
    from planner.plan.brief import Summary

MOST_TRIED = 3  # each is planned anew


def other_batch(search: CandidateSearch) -> tuple[Relaxation, ...]:
    """The nearest global batch with a plan; empty where a cluster divides the one asked, or none that is tried helps.

    Args:
        search: candidates, none of which fits.
    """
    asked = search.candidates.context.asked
    training = asked.workload.training
    if training is None or asked.workload.kind != "training" or training.phases or training.rollouts:
        return ()
    for batch in _divisible(search)[:MOST_TRIED]:
        changed = training.model_copy(update={"global_batch": batch})
        best = best_with(search, changed)
        if best is not None:
            current, given = f"training.global_batch {training.global_batch}", training.global_batch
            change = Change(NoLayout.id, current, f"{batch}", given, batch)
            return (relaxation_of((change,), best, NoLayout.words),)
    return ()


def best_with(search: CandidateSearch, training: Training) -> Summary | None:
    """The best plan of the same workload with another `training` section; None where it has none."""
    return best_among(candidates_with(search, training).candidates)


def best_among(candidates: Candidates) -> Summary | None:
    """The best of the candidates that keep all limits; None where none does."""
    choice = choose(candidates, candidates.context.asked.workload.preferences.objective)
    return None if choice is None else summarize(candidates, choice.winner, None)


def candidates_with(search: CandidateSearch, training: Training) -> CandidateSearch:
    """Candidates of the same workload with another `training` section, among admitted offers; the best is one."""
    asked = search.candidates.context.asked
    workload = asked.workload.model_copy(update={"training": training})
    job = resolve_job(workload, asked.job.on)
    context = search.candidates.context.with_asked(replace(asked, workload=workload, job=job))
    fleet = workload.fleet if workload.kind == "fleet" else None
    engine = Engine(context, sizes=None if fleet is None else (fleet.nodes_per_run,), admitted_only=True)
    return engine.at(context.dates.deadline, Wanted(Scope.BEST, counted=False))


def _divisible(search: CandidateSearch) -> list[int]:
    """Multiples of admitted clusters' accelerators next to the batch, nearest first; empty where one divides it."""
    context, shapes = search.candidates.context, search.candidates.shapes
    asked, hardware = context.asked, context.market.offer_set.hardware
    admitted = distinct_values(hardware_of_offer(context.market)[search.offer_bits == 0])
    few = shapes["nodes"] <= asked.workload.constraints.max_nodes
    own = shapes.take(np.flatnonzero(np.isin(shapes["hardware_row"], admitted) & few))
    undivided = own.is_in("reason", NoLayout.reasons)
    if np.asarray(own["fits"], dtype=np.bool_).any() or not undivided.any():
        return []
    each = hardware["accelerator_count"][own["hardware_row"].astype(np.int64)]
    sizes = distinct_values(np.maximum(each * own["nodes"], 1.0)[undivided].astype(np.int64)).tolist()
    batch = asked.job.training.global_batch
    near = {size * (batch // size + more) for size in sizes for more in (0, 1)} - {0, batch}
    return sorted(near, key=lambda other: (abs(other - batch), other))
