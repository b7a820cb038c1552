"""What the filters left of a job's candidates, in words."""

from __future__ import annotations

from dataclasses import dataclass

from planner.candidates.constraints.registry import CONSTRAINTS

SHARED_LIMIT = "shared_limit"  # no constraint of one job


def reason(name: str) -> str:
    """A filter as a sentence about a job says it, else its name."""
    if name == SHARED_LIMIT:
        return "exceeds a shared limit on its own"
    return next((item.short for item in CONSTRAINTS if item.id == name and item.short), name)


@dataclass(frozen=True)
class JobReport:
    """What the filters left of one job's candidates, before any solver.

    Attributes:
        name: the job.
        copies: equal jobs of this kind.
        total: candidates looked at.
        passed: candidates that meet the job's own limits.
        removed: (why, how many), most first; a candidate may be counted under several reasons.
    """

    name: str
    copies: int
    total: int
    passed: int
    removed: tuple[tuple[str, int], ...]

    def sentence(self) -> str:
        """One line for people."""
        why = ", ".join(f"{count:,} {reason(name)}" for name, count in self.removed[:4])
        return f"{self.name}: {self.passed:,} of {self.total:,} candidates" + (f": {why}" if why else "")
