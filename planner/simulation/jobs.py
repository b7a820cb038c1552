"""The jobs of a simulation: from a plan, from flags, or the product of a sweep's lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.advice.question import on_grid
from planner.records import record
from planner.render import numbers

if TYPE_CHECKING:
    from planner.advice.saved_plan import Place, SpotPlan
    from planner.inputs.sweep_schema import Sweep


TICK_HOURS = 0.1  # of all traces


@record(frozen=True)
class SimJob:
    """A job to be replayed; prices are those of the traces.

    Attributes:
        name: unique within a simulation.
        work_hours, deadline_hours, restart_hours, on_demand_acquire_hours, egress_usd: as in `SpotJob`.
        instance_types: traces of these only; empty: all.
        gangs: traces of these gang sizes only; empty: all.
        on_demand_usd_per_hour, spot_usd_per_hour: of the gang, where a trace has no price.
        provider, region: what generated traces are drawn for.
        places: where the plan takes spot, the first choice first; generated zones lie there in turn.
        on_demand_had_ratio: probability that on-demand comes within `on_demand_acquire_hours`.
        scarce_together_ratio: how far it is scarce when spot is (`planner.spot.zones`), 0 to 1.
        spot_late_ratio: how often the plan expects spot alone to be too late; None: as often as on the traces.
        work_log_sd: spread of the hours of work, of the logarithm; `work_hours` is the median.
        beside: what is said of the other workers of its fleet, with which policies have nothing to do.
    """

    name: str
    work_hours: float
    deadline_hours: float
    restart_hours: float
    on_demand_acquire_hours: float = 0.0
    egress_usd: float = 0.0
    instance_types: tuple[str, ...] = ()
    gangs: tuple[int, ...] = ()
    on_demand_usd_per_hour: float | None = None
    spot_usd_per_hour: float | None = None
    provider: str = ""
    region: str = ""
    places: tuple[Place, ...] = ()
    on_demand_had_ratio: float = 1.0
    scarce_together_ratio: float = 0.0
    spot_late_ratio: float | None = None
    work_log_sd: float = 0.0
    beside: str = ""

    def takes(self, instance_type: str, gang: int) -> bool:
        """Whether a trace of this type and gang is one of the job's."""
        return (not self.instance_types or instance_type in self.instance_types) and (
            not self.gangs or gang in self.gangs
        )


def with_changes(job: SimJob, changes: Mapping[str, Any]) -> SimJob:
    """The job with other values of its fields; how late it usually is on spot alone is then no longer known."""
    return replace(job, **changes, spot_late_ratio=None) if changes else job


def drawn_note(job: SimJob) -> str:
    """What is drawn for each launch beside spot; empty where nothing is."""
    drawn = []
    if job.on_demand_had_ratio < 1.0:
        drawn.append(
            f"on-demand comes within {numbers.hours(job.on_demand_acquire_hours)} h with "
            f"{numbers.percent(job.on_demand_had_ratio)}, less often when spot is scarce, and a launch without it "
            "stays on spot"
        )
    if job.work_log_sd > 0.0:
        drawn.append(f"hours of work spread by {numbers.percent(job.work_log_sd)} (1 sd)")
    if not drawn:
        return ""
    return (
        f"{job.name}: as in its plan, {'; '.join(drawn)}. How many are late on a few traces is not the plan's chance, "
        "which covers good and bad weeks and is corrected by recorded days"
    )


def sweep_jobs(sweep: Sweep) -> Iterator[SimJob]:
    """Every combination of the lists, named by its figures."""
    for work in sweep.work_hours:
        for ratio in sweep.deadline_ratio:
            for restart in sweep.restart_hours:
                yield SimJob(
                    name=f"{work:g} h x{ratio:g} restart {restart:g} h",
                    work_hours=work,
                    deadline_hours=work * ratio,
                    restart_hours=restart,
                    on_demand_acquire_hours=sweep.on_demand_acquire_hours,
                    egress_usd=sweep.egress_usd,
                    instance_types=sweep.instance_types,
                    gangs=sweep.gangs,
                )


def plan_job(plan: SpotPlan, *, any_trace: bool) -> SimJob:
    """The job of a plan, on traces of its type and gang or on any.

    On traces of other types only ratios mean something, so the traces' own prices are kept.
    """
    return SimJob(
        name=plan.name,
        work_hours=plan.work_hours,
        deadline_hours=plan.deadline_hours - plan.staging_hours,
        restart_hours=on_grid(plan.restart_hours, TICK_HOURS),
        on_demand_acquire_hours=on_grid(plan.on_demand_acquire_hours, TICK_HOURS),
        egress_usd=plan.egress_usd,
        instance_types=() if any_trace else (plan.instance_type,),
        gangs=() if any_trace else (plan.nodes,),
        on_demand_usd_per_hour=None if any_trace else plan.on_demand_usd_per_hour,
        spot_usd_per_hour=None if any_trace else plan.spot_usd_per_hour,
        provider=plan.provider,
        region=plan.region,
        places=() if any_trace else plan.places,
        on_demand_had_ratio=plan.on_demand_had_ratio,
        scarce_together_ratio=plan.scarce_together_ratio,
        spot_late_ratio=None if any_trace else plan.spot_late_ratio,
        work_log_sd=plan.work_log_sd,
    )
