"""The workload: what must be trained, read from YAML, checked, completed. Imports pydantic and yaml only.

The names below are imported when they are first used, so that a module of this package can be imported without
pydantic and yaml.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.inputs.faults import Fault, Source
    from planner.inputs.load import LoadedWorkload, load_workload, parse_workload
    from planner.inputs.presets import Preset, find_preset, load_presets
    from planner.inputs.resolve import resolve_model, resolve_times, resolve_training
    from planner.inputs.resolved import Assumed, ResolvedModel, ResolvedTimes, ResolvedTraining
    from planner.inputs.schema import Workload
    from planner.inputs.tasks import TaskVariant, expand_task

__all__ = [
    "Assumed", "Fault", "LoadedWorkload", "Preset", "ResolvedModel", "ResolvedTimes", "ResolvedTraining", "Source",
    "TaskVariant", "Workload", "expand_task", "find_preset", "load_presets", "load_workload", "parse_workload",
    "resolve_model", "resolve_times", "resolve_training",
]  # fmt: skip

_HOMES = {
    "faults": ("Fault", "Source"),
    "load": ("LoadedWorkload", "load_workload", "parse_workload"),
    "presets": ("Preset", "find_preset", "load_presets"),
    "resolve": ("resolve_model", "resolve_times", "resolve_training"),
    "resolved": ("Assumed", "ResolvedModel", "ResolvedTimes", "ResolvedTraining"),
    "schema": ("Workload",),
    "tasks": ("TaskVariant", "expand_task"),
}


def __getattr__(name: str) -> Any:
    """Import and return a public name."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
