"""What a check of a saved answer or certificate came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from planner.records import record


@record(frozen=True)
class Verdict:
    """What a check found: `faults`, what was `checked`, what is `left_out` with the reason; `nothing` to check."""

    faults: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    summary: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    nothing: str = ""
