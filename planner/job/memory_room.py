"""With which sureness of fitting a job would run, where every admitted cluster runs out of memory too likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.constraints.facts import Memory
from planner.candidates.sizes import hardware_of_offer
from planner.job.batch import best_with
from planner.performance.constants import load_constants
from planner.plan.relaxation import Change, Relaxation, relaxation_of

if TYPE_CHECKING:
    from catalogs.tables.table import Ints
    from planner.candidates.engine import CandidateSearch

LEAST = 0.5  # a layout that runs out of memory more likely than not is no remedy


def other_confidence(search: CandidateSearch) -> tuple[Relaxation, ...]:
    """A `training.memory.confidence` below the one asked with a plan, and that plan.

    Of the greatest, a middle one and the least the first that has a plan; empty where none has.

    Args:
        search: candidates, none of which fits.
    """
    asked = search.candidates.context.asked
    training = asked.workload.training
    if training is None or asked.workload.kind != "training":
        return ()
    sure = _sureness(search)
    if not sure:
        return ()
    from planner.inputs.training_schema import TrainingMemory  # pydantic: only where memory keeps all away

    memory = training.memory or TrainingMemory()
    for confidence in dict.fromkeys((*sure[:1], *sure[len(sure) // 2 :][:1], *sure[-1:])):
        changed = training.model_copy(update={"memory": memory.model_copy(update={"confidence": confidence})})
        best = best_with(search, changed)
        if best is not None:
            asked_for = memory.confidence or 1.0 - load_constants()["memory.oom_limit"]
            current, needed = f"training.memory.confidence {asked_for:g}", f"{confidence:g}"
            change = Change(Memory.id, current, needed, asked_for, confidence)
            return (relaxation_of((change,), best, Memory.words),)
    return ()


def short_of_memory(search: CandidateSearch) -> Ints:
    """Rows of shapes of admitted clusters that memory alone keeps from running; empty where an admitted one fits.

    Args:
        search: candidates, none of which fits.
    """
    context, shapes = search.candidates.context, search.candidates.shapes
    limits, hardware = context.asked.workload.constraints, context.market.offer_set.hardware
    admitted = distinct_values(hardware_of_offer(context.market)[search.offer_bits == 0])
    count = hardware["accelerator_count"][shapes["hardware_row"].astype(np.int64)]
    own = np.isin(shapes["hardware_row"], admitted) & (shapes["nodes"] <= limits.max_nodes)
    own &= shapes["nodes"] * count <= (np.inf if limits.max_accelerators is None else limits.max_accelerators)
    if (own & np.asarray(shapes["fits"], dtype=np.bool_)).any():
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(own & shapes.is_in("reason", Memory.reasons))


def _sureness(search: CandidateSearch) -> list[float]:
    """How certainly the most frugal layout of each admitted cluster fits, the surest first; empty where one fits."""
    probability = search.candidates.shapes["oom_probability"][short_of_memory(search)]
    fits = np.floor(100.0 * (1.0 - probability)) / 100.0
    return distinct_values(fits[fits >= LEAST])[::-1].tolist()  # type: ignore[no-any-return]
