"""Command-line flags that replace a value of the workload file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.inputs.load import LoadedWorkload


def override(
    loaded: LoadedWorkload, *, max_results: int | None = None, objective: str | None = None,
    allow_flagged: bool = False, allow_derived: bool = False, spot_evidence: Sequence[Path] = (),
) -> LoadedWorkload:  # fmt: skip
    """Return the workload with flags of the command line put over it; what is None or False stays the file's."""
    workload = loaded.workload
    wishes: dict[str, Any] = {"max_results": max_results, "objective": objective}
    preferences = workload.preferences.model_copy(update={k: v for k, v in wishes.items() if v is not None})
    flags = {"allow_flagged": allow_flagged, "allow_derived": allow_derived}
    limits = workload.constraints.model_copy(update={k: True for k, v in flags.items() if v})
    changes = {"preferences": preferences, "constraints": limits}
    if spot_evidence:  # beside the file's own; a path of the command line is relative to where it is typed
        files = (*workload.spot.evidence, *(str(path.resolve()) for path in spot_evidence))
        changes["spot"] = workload.spot.model_copy(update={"evidence": files})
    return replace(loaded, workload=workload.model_copy(update=changes))
