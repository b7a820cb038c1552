"""Parts of a plan: what was asked for, how often it comes again, and what is started on its machines."""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal

from planner.records import record


@record(frozen=True)
class Run:
    """What `planner export` starts; empty where the workload does not say it. Secrets are names, never values.

    `data_location` is where the training set lies (provider/region), `data`, `checkpoints` and `outputs` are addresses
    or mounted paths. `runs` are independent of each other, each on `nodes_per_run` instances (None: all of the plan).
    """

    image: str = ""
    command: str = ""
    setup: str = ""
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    data: str = ""
    data_location: str = ""
    checkpoints: str = ""
    outputs: str = ""
    team: str = ""
    runs: int = 1
    nodes_per_run: int | None = None
    tags: dict[str, str] = field(default_factory=dict)


@record(frozen=True)
class Goal:
    """What was asked for: `units` of work (tokens or samples) in all, how surely in time, and for how much at most."""

    units: float
    unit: str
    deadline_confidence_ratio: float | None
    budget_usd: Decimal | None


@record(frozen=True)
class Recurring:
    """A run that comes again: `times` in all, each `every_hours` after the start of the one before."""

    every_hours: float
    times: int
