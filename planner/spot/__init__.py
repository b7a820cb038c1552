"""Spot risk: interruptions, lost work, waits, and the chance to meet a deadline."""

from __future__ import annotations

from planner.spot.checkpoint import checkpoint_overhead_ratio, useful_ratio, young_interval_hours
from planner.spot.renewal import SpotOutcome, p_meet_deadline, spot_outcome

__all__ = [
    "SpotOutcome",
    "checkpoint_overhead_ratio",
    "p_meet_deadline",
    "spot_outcome",
    "useful_ratio",
    "young_interval_hours",
]
