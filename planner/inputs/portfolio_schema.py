"""The portfolio, version 1: many jobs that share quotas, owned capacity and one budget.

A job is a workload (a file, or inline), or a list of candidates that were sized elsewhere. Attribute names are the
YAML keys; see `planner.inputs.schema` for the conventions.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from planner.inputs.fields import (
    Bool,
    Cost,
    Deadline,
    Duration,
    Hours,
    Moment,
    Money,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveHours,
    PositiveInt,
    Ratio,
    Size,
    Text,
)
from planner.inputs.purchase_options import PurchaseOption
from planner.inputs.risk_schema import RiskAversion
from planner.inputs.schema import OwnedCommitment, QuotaLimit, Workload
from planner.inputs.section import Section

_NO_TIME = re.compile(
    r"0+(?:\.0*)?\s*(?:w|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)?", re.IGNORECASE
)


def _from_the_start(value: Any) -> Any:
    """`0h` is known from the start, as without the key."""
    return None if isinstance(value, str | int | float) and _NO_TIME.fullmatch(str(value).strip()) else value


class Window(Section):
    """A period with separate quotas; it lasts until the next one starts, and the last one indefinitely."""

    name: Text = Field(description="Name, as quotas use it.")
    start: Moment = Field(description="When it starts.")


class SharedQuota(QuotaLimit):
    """A limit on what all jobs together use at once."""

    purchase_option: PurchaseOption | None = Field(
        None, description="Purchase option; absent: any it covers."
    )
    window: Text | None = Field(None, description="Name of a window; absent: in each window.")


class SharedCommitment(OwnedCommitment):
    """Machines or a commitment that all jobs share, up to its nodes."""

    busy_nodes: NonNegativeInt = Field(0, description="Nodes carried over: taken by work that runs already.")
    busy_until: Moment | None = Field(None, description="When that work ends; absent: never.")
    usd_per_node_hour: Money | None = Field(
        None, description="Cost of an instance per hour, used or not; only a rolling plan counts it."
    )


class SizedCandidate(Section):
    """One way to run a job, sized and timed elsewhere."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field(description="Region.")
    instance_type: Text = Field(description="Instance type.")
    family: Text = Field("", description="Quota name, code or instance family that it counts against.")
    purchase_option: PurchaseOption = Field("on_demand", description="How it is bought.")
    nodes: PositiveInt = Field(description="Instances.")
    hours: PositiveHours = Field(description="Elapsed hours from start to end.")
    cost_usd: Cost | None = Field(
        None, description="Whole cost without data transfer; 0: nothing more than is already paid."
    )
    usd_per_hour: Cost | None = Field(None, description="Or: price per instance and hour; 0 as above.")
    quota_units: PositiveInt | None = Field(None, description="Draw on the quota; default: nodes.")


class JobData(Section):
    """Location of a job's data: transfer from there is part of each candidate's cost."""

    location: Text = Field(description="provider/region.")
    size: Size = Field(description="Size of the data.")


class PortfolioJob(Section):
    """One job, or `count` equal ones; exactly one of workload, inline and candidates (which may be in a CSV)."""

    name: Text = Field(description="Name, unique.")
    workload: Text | None = Field(None, description="Workload file, relative to this file.")
    inline: Workload | None = Field(None, description="The workload itself.")
    candidates: tuple[SizedCandidate, ...] = Field((), description="Ways to run it, sized elsewhere.")
    count: PositiveInt = Field(1, description="Equal jobs of this kind.")
    must_run: Bool | None = Field(None, description="Default: true without value_usd, else false.")
    value_usd: Money | None = Field(None, description="Value of the job: it is not planned if it costs more.")
    delay_usd_per_hour: NonNegativeFloat = Field(0.0, description="Cost of each hour until its end.")
    earliest_start: Moment | None = Field(None, description="Before that it does not start.")
    deadline: Deadline | None = Field(None, description="Time from the portfolio's start, or a date.")
    data: JobData | None = Field(None, description="Data of a job with sized candidates.")
    submitted: Annotated[Deadline | None, BeforeValidator(_from_the_start)] = Field(
        None,
        description="Rolling: when it becomes known, a time from the portfolio's start or a date; default then.",
    )
    team: Text | None = Field(None, description="Rolling: the team whose limits it counts against.")
    priority: NonNegativeInt = Field(
        0, description="Rolling: a waiting job may preempt those of lower priority on owned instances."
    )
    checkpoint_hours: PositiveHours = Field(
        1.0,
        description="Rolling: hours between checkpoints; a preempted job loses its work since the last one.",
    )
    restart_hours: Hours = Field(
        0.25, description="Rolling: hours until a preempted job that runs again works."
    )


class RelaxationWeights(Section):
    """Prices of relaxing limits, if not everything fits: the lowest total is sought."""

    usd_per_quota_unit: PositiveFloat = Field(10.0, description="A unit (vCPU, GPU) more of a quota.")
    usd_per_owned_node: PositiveFloat = Field(1_000.0, description="A node more of a commitment.")
    usd_per_hour_late: PositiveFloat = Field(100.0, description="An hour after a job's deadline.")
    usd_per_usd_over_budget: PositiveFloat = Field(1.0, description="A dollar over the budget.")


class Team(Section):
    """Limits of one team on owned capacity and quotas at once; only a rolling plan uses teams."""

    share: Ratio = Field(
        1.0, description="Part of each commitment's instances that its jobs may hold at once."
    )
    quota: tuple[SharedQuota, ...] = Field((), description="Account limits of the team alone.")


class Rolling(Section):
    """A plan that is repeated at intervals, each time with the jobs known by then."""

    every: Duration = Field(description="Time from one plan to the next.")
    hours_margin: NonNegativeFloat = Field(
        0.0,
        description="A job with sized candidates counts as in time with its hours longer by this ratio; workloads have"
        " their deadline_confidence.",
    )


class Portfolio(Section):
    """Many jobs that share limits."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["portfolio"] = Field(description="Kind of file.")
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Free text.")
    start: Moment | None = Field(None, description="When the first job may start; default now.")
    windows: tuple[Window, ...] = Field((), description="Time windows, in order; the first covers the start.")
    starts: Literal["earliest", "windows"] = Field(
        "earliest", description="Start each job at once, or also at the start of any later window."
    )
    budget_usd: Money | None = Field(None, description="Maximum US dollars for all jobs.")
    quota: tuple[SharedQuota, ...] = Field((), description="Account limits shared by all jobs.")
    commitments: tuple[SharedCommitment, ...] = Field((), description="Owned machines and commitments.")
    jobs: tuple[PortfolioJob, ...] = Field((), description="The jobs.")
    jobs_csv: Text | None = Field(
        None, description="More jobs: a CSV file with columns named as a job's keys."
    )
    candidates_csv: Text | None = Field(
        None, description="Sized candidates: a CSV file, column `job` and those of a candidate."
    )
    teams: dict[str, Team] = Field({}, description="Limits of teams, by their names.")
    rolling: Rolling | None = Field(
        None, description="Plan repeatedly as jobs arrive; without it, all jobs are known from the start."
    )
    risk: RiskAversion | None = Field(
        None, description="Also choose by the worst outcomes; without it, only by expected cost."
    )
    relaxation: RelaxationWeights = Field(
        RelaxationWeights.model_construct(), description="Weights used when not everything fits."
    )
