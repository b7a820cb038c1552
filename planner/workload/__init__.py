"""The workload: what must be trained, read from YAML, checked, completed. Imports pydantic and yaml only."""

from __future__ import annotations

from planner.workload.faults import Fault, Source
from planner.workload.load import LoadedWorkload, load_workload, parse_workload
from planner.workload.presets import Preset, find_preset, load_presets
from planner.workload.resolve import (
    Assumed,
    ResolvedModel,
    ResolvedTimes,
    ResolvedTraining,
    resolve_model,
    resolve_times,
    resolve_training,
)
from planner.workload.schema import Workload
from planner.workload.tasks import TaskVariant, expand_task

__all__ = [
    "Assumed",
    "Fault",
    "LoadedWorkload",
    "Preset",
    "ResolvedModel",
    "ResolvedTimes",
    "ResolvedTraining",
    "Source",
    "TaskVariant",
    "Workload",
    "expand_task",
    "find_preset",
    "load_presets",
    "load_workload",
    "parse_workload",
    "resolve_model",
    "resolve_times",
    "resolve_training",
]
