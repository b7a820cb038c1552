"""The pipeline, version 1: tasks that feed each other data, planned together under one deadline.

A task is a workload (a file) or a list of candidates that were sized elsewhere. Attribute names are the YAML keys; see
`planner.inputs.schema` for the conventions.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.inputs.fields import Deadline, Moment, Money, Size, Text
from planner.inputs.portfolio_schema import SizedCandidate
from planner.inputs.risk_schema import RiskAversion
from planner.inputs.section import Section


class Read(Section):
    """Data that a task reads from an earlier one; moved if the two run in different regions."""

    task: Text = Field(description="Name of the task whose output is read.")
    size: Size = Field(description="Size of the data read.")


class PipelineTask(Section):
    """One task; exactly one of workload and candidates."""

    name: Text = Field(description="Name, unique.")
    workload: Text | None = Field(None, description="Workload file, relative to this file.")
    candidates: tuple[SizedCandidate, ...] = Field((), description="Ways to run it, sized elsewhere.")
    reads: tuple[Read, ...] = Field((), description="Outputs of earlier tasks that it needs.")


class Pipeline(Section):
    """Tasks that feed each other."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["pipeline"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Free text.")
    start: Moment | None = Field(None, description="When the first task may start; default now.")
    deadline: Deadline | None = Field(
        None, description="When all must be done: a time from the start, or a date."
    )
    budget_usd: Money | None = Field(None, description="Maximum US dollars for all tasks and transfers.")
    risk: RiskAversion | None = Field(
        None, description="Also choose by the worst outcomes; without it, only by expected cost."
    )
    tasks: tuple[PipelineTask, ...] = Field(min_length=1, description="The tasks, in any order.")
