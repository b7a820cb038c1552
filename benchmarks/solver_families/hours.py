"""Fleets whose workers may stop early (the form `planner optimize` asks): whole workers, continuous hours."""

from __future__ import annotations

import math

from benchmarks.solver_families import fleet
from benchmarks.solver_families.base import Figure, in_child

NAME = "hours"
GOALS = (
    "2,000 offers: 1e-3 in <= 2.5 CPU s",
    "7,000 offers: 1e-4 proven in <= 10 CPU s, a plan within 5 % in <= 1 CPU s",
    "100,000 offers: plan and bound within 10 s + 10 %",
)
CASES = (
    (200, 1e-4, 60.0, math.inf),
    (2_000, 1e-3, 60.0, 2.5),
    (7_000, 1e-4, 60.0, 10.0),
    (100_000, 1e-3, 10.0, math.inf),
)


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure every size."""
    cases = CASES[:1] if quick else CASES
    return [in_child(fleet.measure, size, seed, *case, name=NAME) for size, *case in cases]
