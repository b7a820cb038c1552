"""The words of a policy: the job, what is seen at a tick, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol

from catalogs.tables.table import Bools
from planner.records import record

Mode = Literal["idle", "spot", "on_demand"]


@record(frozen=True)
class SpotZone:
    """One place where spot may be asked for.

    Attributes:
        name: unique within the job.
        region: where a checkpoint written there lies.
        instance_type, provider, gang: what is asked for there (gang: instances needed together).
        usd_per_hour: price of the whole gang, at launch.
        pool: key of the recorded pool its hazards are looked up by, or empty (instance type, zone and gang decide).
        accelerators: of one instance; 0 where not known.
    """

    name: str
    region: str
    instance_type: str
    usd_per_hour: float
    provider: str = ""
    gang: int = 1
    pool: str = ""
    accelerators: int = 0


@record(frozen=True, eq=False)
class SpotJob:
    """A job with a deadline.

    Attributes:
        work_hours: hours of undisturbed work, checkpoints included.
        deadline_hours: hours from launch to the deadline.
        restart_hours: paid hours without progress after every start (boot, load, work lost since the checkpoint).
        on_demand_usd_per_hour: price of the whole gang on-demand.
        on_demand_acquire_hours: how long on-demand may take to be obtained.
        egress_usd: price of moving the checkpoint to another region.
        tick_hours: time between decisions.
        utc_hour: hour of the day at launch, 0..24.
        zones: where spot may be asked for; at least one.
        history: per zone name, whether it was up at each tick before launch, oldest first; may be empty.
    """

    work_hours: float
    deadline_hours: float
    restart_hours: float
    on_demand_usd_per_hour: float
    zones: tuple[SpotZone, ...]
    egress_usd: float = 0.0
    on_demand_acquire_hours: float = 0.0
    tick_hours: float = 0.1
    utc_hour: float = 0.0
    history: Mapping[str, Bools] = field(default_factory=dict)


@record(frozen=True)
class ZoneState:
    """A zone as seen now: `since_hours` counts the present up or down spell, the present tick included."""

    name: str
    available: bool
    usd_per_hour: float
    since_hours: float


@record(frozen=True)
class JobState:
    """What is known at a tick.

    Attributes:
        elapsed_hours: since launch.
        done_hours: work done and kept.
        mode, zone: what runs (zone: only on spot).
        restart_left_hours: paid hours until work goes on.
        checkpoint_region: where the last checkpoint lies; None before the first start.
        zones: in the job's order.
    """

    elapsed_hours: float
    done_hours: float
    mode: Mode
    zone: str | None
    restart_left_hours: float
    checkpoint_region: str | None
    zones: tuple[ZoneState, ...]


@record(frozen=True)
class Action:
    """What to do in the coming tick; `zone` is set only for spot."""

    mode: Mode
    zone: str | None = None


class Policy(Protocol):
    """Decides tick by tick; made for one job, may keep what it computed, never keeps what it saw."""

    def decide(self, state: JobState) -> Action:
        """What to do in the coming tick."""
        ...
