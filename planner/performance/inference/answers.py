"""How much batch inference writes."""

from __future__ import annotations

from planner.performance.spec import TrainingSpec

TOKEN_BYTES = 4.0  # text of a token
ITEM_BYTES = 4096.0  # assumption: labels or an embedding of 2,048 half-precision numbers


def answer_bytes(training: TrainingSpec) -> float:
    """Bytes that one answered request leaves."""
    requests = training.tuning.requests
    if requests is None or requests.answers is None:
        return ITEM_BYTES
    return TOKEN_BYTES * requests.answers.mean
