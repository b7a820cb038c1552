"""The user's limits as filters on timed and priced candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.running import meet_probability
from planner.market.quota import draws_on
from planner.plan.filters import mark

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.context import Context
    from planner.candidates.model import Candidates

    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]
    IntArray = npt.NDArray[np.int64]


def mark_limits(context: Context, candidates: Candidates) -> None:
    """Set the bits of capacity-independent limits: throughput, memory, term, quota, budget, deadline, confidence."""
    limits = context.workload.constraints
    bits, rows = candidates.bits, candidates.offer
    alone = context.workload.kind == "training"  # a fleet meets these with all its workers together
    if limits.min_throughput is not None and alone:
        mark(bits, "throughput", throughput_floor(context) > units_per_s(context, candidates))
    if limits.min_total_memory_gib is not None and alone:
        per_node = (
            context.offer_set.types["accelerator_memory_gib"] * context.offer_set.types["accelerator_count"]
        )
        total = per_node[context.offer_set.type_of_offer[rows]] * candidates.nodes
        mark(bits, "min_memory", total < limits.min_total_memory_gib)
    mark(bits, "term", candidates.paid_hours > longest_hours(context, rows))
    mark(bits, "term", ~np.isfinite(candidates.cost_usd))
    if candidates.mixes is None:  # mixes are made within the quotas
        _mark_quota(context, candidates)
    if limits.budget_usd is not None:
        mark(bits, "budget", candidates.cash_usd > float(limits.budget_usd))
    mark_deadline(context, candidates)


def longest_hours(context: Context, rows: IntArray) -> FloatArray:
    """Longest use of offers in hours, infinity where nothing ends it."""
    longest = np.asarray([_longest(rule) for rule in context.offer_set.rules])
    return np.asarray(longest[context.offer_set.rule_of_offer[rows]], dtype=np.float64)


def _longest(rule: object) -> float:
    """Longest use in hours: the run limit of an option that ends, infinity for terms that renew."""
    from catalogs.tariffs import OptionRule

    assert isinstance(rule, OptionRule)
    if rule.whole_term or rule.max_term_hours is None:
        return np.inf
    return rule.max_term_hours


def units_per_s(context: Context, candidates: Candidates) -> FloatArray:
    """Predicted tokens or samples per second of each candidate."""
    step = np.asarray(candidates.shapes["step_time_s"], dtype=np.float64)[candidates.shape]
    return context.job.units_per_step / step


def throughput_floor(context: Context) -> float:
    """`constraints.min_throughput` in the job's own unit per second."""
    floor = context.workload.constraints.min_throughput
    assert floor is not None
    tokens = context.job.unit == "tokens"
    length = context.job.training.sequence_length
    if floor.tokens_per_s is not None:
        return floor.tokens_per_s if tokens else floor.tokens_per_s / length
    assert floor.samples_per_s is not None
    return floor.samples_per_s * length if tokens else floor.samples_per_s


def _mark_quota(context: Context, candidates: Candidates) -> None:
    for limit, units in draws_on(context.workload.constraints.quota, context.offer_set, context.tariffs):
        mark(candidates.bits, "quota", units[candidates.offer] * candidates.nodes > limit)


def mark_deadline(context: Context, candidates: Candidates) -> None:
    """Set the bits of what ends too late or is too unsure to end in time; nothing where there is no deadline."""
    deadline = context.deadline_hours
    if deadline is None:
        return
    bits = candidates.bits
    mark(bits, "deadline", candidates.hours > deadline)
    at = np.flatnonzero(bits == 0)
    if not len(at):
        return
    candidates.p_meet[at] = meet_probability(
        context, *candidates.gang(at), candidates.sigma[at], candidates.write_hours[at],
        candidates.interval_hours[at],
        deadline - candidates.waiting_hours[at] - candidates.fixed_hours[at],
    )  # fmt: skip
    unsure = np.zeros(len(bits), dtype=np.bool_)
    unsure[at] = candidates.p_meet[at] < context.workload.constraints.deadline_confidence - 1e-9
    mark(bits, "confidence", unsure)
