"""The deadline, on average and with the confidence asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint, round_up
from planner.candidates.model import SINGLE

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Workload

_NEAREST = 64  # candidates whose deadline is worked out first


class Deadline(Constraint):
    """Done in time on average."""

    id = "deadline"
    words = "expected finish after the deadline"
    short = "after the deadline"
    paths = (
        "constraints.deadline",
        "constraints.waited",
        "constraints.waiting",
        "constraints.waiting_records",
    )
    unit = "hours"
    is_measured = True
    needs_deadline = True
    moves_too = ("confidence",)

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates expected to end later."""
        return (
            None
            if case.deadline_hours is None
            else np.asarray(candidates.hours > candidates.deadline_hours(), dtype=np.bool_)
        )

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Hours needed, by rising expected hours until none that follows can need less."""
        at = at[np.argsort(candidates.hours[at], kind="stable")]
        needed = np.empty(0)
        while len(needed) < len(at) and candidates.hours[at[len(needed)]] < needed.min(initial=np.inf):
            some = at[len(needed) : max(2 * len(needed), _NEAREST)]
            needed = np.concatenate([needed, hours_needed(case, candidates, some)])
        return at[: len(needed)], needed

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Hours given and needed."""
        needed = float(hours_needed(case, candidates, np.asarray([at]))[0])
        return f"{case.deadline_hours:,.1f} h", f"{round_up(needed):,.1f} h"


class Unrecorded(Constraint):
    """Spot alone by a deadline where nobody recorded how spot comes and goes.

    A published band or a prior is a month's share over a region: enough to expect a cost, not to promise an end. A
    worker of a fleet is spot alone: nothing else takes its place.
    """

    id = "unrecorded"
    words = (
        "spot alone by a deadline, without recorded availability of the machine family"
        " (possible with an on-demand fall-back; `spot.fallback: none` allows it)"
    )
    short = "spot alone without recorded availability"
    is_fact = True
    needs_deadline = True
    is_of_any_deadline = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Single offers of spot that rest on a table alone."""
        return None if case.deadline_hours is None else without_record(case.workload, candidates)


class Confidence(Constraint):
    """Done in time with the probability asked; judged only of candidates that pass all else."""

    id = "confidence"
    words = "meets the deadline on average, not with deadline_confidence (checked if all other filters pass)"
    short = "too unsure to meet the deadline"
    paths = ("constraints.deadline_confidence",)
    unit = "probability"
    is_measured = True
    needs_deadline = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates that are not sure enough; writes the probabilities into `candidates.p_meet`."""
        at = np.flatnonzero(candidates.bits == 0)
        if case.deadline_hours is None or not len(at):
            return None
        unsure = np.zeros(len(candidates.bits), dtype=np.bool_)
        unsure[at] = too_unsure(case, candidates, at)
        return unsure

    def unsure(self, case: Case, candidates: Candidates, at: Ints) -> Bools | None:
        """By the same chance."""
        if case.deadline_hours is None:
            return None
        return np.asarray(case.chance(candidates, at) < case.limits.deadline_confidence, dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """The surest is nearest."""
        return at, -candidates.p_meet[at]

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Probability asked and reached; of a candidate that another limit removes too it was not worked out before."""
        reached = float(case.chance(candidates, np.asarray([at]))[0])
        return f"{case.limits.deadline_confidence:g}", confidence_kept(reached)


def confidence_kept(reached: float) -> str:
    """The confidence to ask for where a deadline is met with probability `reached`: rounded down."""
    return f"{np.floor(reached * 1000) / 1000:g}"


def too_unsure(case: Case, candidates: Candidates, at: Ints) -> Bools:
    """Which candidates meet the deadline with less than the confidence asked; writes `candidates.p_meet` of them."""
    candidates.p_meet[at] = case.chance(candidates, at)
    return np.asarray(candidates.p_meet[at] < case.limits.deadline_confidence - 1e-9, dtype=np.bool_)


def without_record(workload: Workload, candidates: Candidates) -> Bools | None:
    """Single offers of spot that no deadline admits for lack of a record; None where none is needed."""
    if not needs_record(workload):
        return None
    context, removed = candidates.context, np.zeros(len(candidates.bits), dtype=np.bool_)
    at = np.flatnonzero((candidates.kind == SINGLE) & context.market.is_spot[candidates.offer])
    removed[at] = ~context.gang_risk(candidates.offer[at], candidates.nodes[at]).recorded
    return removed


def needs_record(workload: Workload) -> bool:
    """Whether spot alone by a deadline must rest on records: not where the user leaves no fall-back."""
    limits = workload.constraints
    admitted = limits.purchase_options is None or "on_demand" in limits.purchase_options
    falls_back = admitted and "on_demand" not in limits.exclude_purchase_options
    return falls_back and workload.spot.fallback != "none"


def leaves_out_fallbacks(workload: Workload, deadline_hours: float | None) -> bool:
    """Whether ways to run on spot that the user admits are not compared, as they need a last moment and there is none.

    Args:
        workload: the question.
        deadline_hours: from the start; None without one.
    """
    limits, wish = workload.constraints, workload.spot
    admitted = limits.purchase_options is None or "spot" in limits.purchase_options
    several = wish.zones == "any" and workload.kind != "fleet"  # a worker of a fleet is in one zone
    wished = wish.fallback != "none" or several
    return deadline_hours is None and admitted and "spot" not in limits.exclude_purchase_options and wished


def hours_needed(case: Case, candidates: Candidates, at: Ints) -> Floats:
    """Hours from the start within which candidates end with the confidence asked."""
    return np.maximum(case.finish(candidates, at, case.limits.deadline_confidence), candidates.hours[at])
