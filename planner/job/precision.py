"""In which other precision a job would run, where admitted accelerators cannot compute in the one asked.

bf16 is the default, and cards before Ampere do not have it: whoever names a T4 or a V100 means fp16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.constraints.facts import Precision
from planner.candidates.sizes import hardware_of_offer
from planner.job.batch import best_with
from planner.plan.relaxation import Change, Relaxation, relaxation_of

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch

# What stands in for each: the nearest in range and memory first.
_OTHERS = {"bf16": ("fp16",), "fp8": ("bf16", "fp16"), "fp4": ("fp8", "bf16"), "tf32": ("fp32",)}


def other_precision(search: CandidateSearch) -> tuple[Relaxation, ...]:
    """The nearest `training.precision` with a plan; empty where no admitted machine lacks the one asked, or none helps.

    Args:
        search: candidates, none of which fits.
    """
    context, shapes = search.candidates.context, search.candidates.shapes
    training = context.asked.workload.training
    if training is None or context.asked.workload.kind != "training":
        return ()
    admitted = distinct_values(hardware_of_offer(context.market)[search.offer_bits == 0])
    lacks = np.isin(shapes["hardware_row"], admitted) & shapes.is_in("reason", Precision.reasons)
    asked = context.asked.job.training.precision
    for other in _OTHERS.get(asked, ()) if lacks.any() else ():
        best = best_with(search, training.model_copy(update={"precision": other}))
        if best is not None:
            change = Change(Precision.id, f"training.precision {asked}", other)
            return (relaxation_of((change,), best, Precision.words),)
    return ()
