"""How much batch inference writes."""

from __future__ import annotations

from planner.performance.spec import TrainingSpec

TOKEN_BYTES = 4.0  # text of a token
ITEM_BYTES = 4096.0  # assumption: labels or an embedding of 2,048 half-precision numbers


def answer_bytes(training: TrainingSpec) -> float:
    """Bytes that one answered request leaves."""
    made = training.tuning.requests or training.tuning.rollouts
    if made is None or made.answers is None:
        return ITEM_BYTES
    return TOKEN_BYTES * made.answers.mean
