"""Plan what to train on: the cheapest feasible cluster for a workload, with proof.

    import planner

    plan = planner.optimize("workload.yaml")
    print(plan)

The functions are in `planner.api` and documented in docs/api.md; each is imported when it is first used, so that
`import planner` costs nothing.
"""

from __future__ import annotations

from planner.asked import early

if early.is_program():
    early.guard()

import importlib
from typing import TYPE_CHECKING, Any

from planner.version import __version__

if TYPE_CHECKING:
    from planner.api.bills import forecast, review
    from planner.api.files import budget, commit, schedule, serve
    from planner.api.plans import calibrate, estimate, frontier, load, optimize, pipeline, pools, portfolio
    from planner.api.questions import compare, diff, diff_days, explain, size, tco, validate, whatif
    from planner.api.tracking import diagnose, track
    from planner.asked.options import Options
    from planner.errors import PlannerError
    from planner.plan.model import Plan


_HOMES = {
    **dict.fromkeys(
        ("calibrate", "estimate", "frontier", "load", "optimize", "pipeline", "pools", "portfolio"),
        "planner.api.plans",
    ),
    **dict.fromkeys(
        ("compare", "diff", "diff_days", "explain", "size", "tco", "validate", "whatif"),
        "planner.api.questions",
    ),
    **dict.fromkeys(("forecast", "review"), "planner.api.bills"),
    **dict.fromkeys(("budget", "commit", "schedule", "serve"), "planner.api.files"),
    **dict.fromkeys(("diagnose", "track"), "planner.api.tracking"),
    "Options": "planner.asked.options",
    "Plan": "planner.plan.model",
    "PlannerError": "planner.errors",
}
__all__ = [
    "Options",
    "Plan",
    "PlannerError",
    "__version__",
    "budget",
    "calibrate",
    "commit",
    "compare",
    "diagnose",
    "diff",
    "diff_days",
    "estimate",
    "explain",
    "forecast",
    "frontier",
    "load",
    "optimize",
    "pipeline",
    "pools",
    "portfolio",
    "review",
    "schedule",
    "serve",
    "size",
    "tco",
    "track",
    "validate",
    "whatif",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(__all__)
