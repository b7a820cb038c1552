"""Spot risk: interruptions, lost work, waits, and the chance to meet a deadline."""

from __future__ import annotations

from planner.risk.checkpoint import checkpoint_overhead_ratio, useful_ratio, young_interval_hours
from planner.risk.renewal import SpotOutcome, p_meet_deadline, spot_outcome

__all__ = [
    "SpotOutcome",
    "checkpoint_overhead_ratio",
    "p_meet_deadline",
    "spot_outcome",
    "useful_ratio",
    "young_interval_hours",
]
