"""What a saved plan says of spot: work, places, prices, deadline, restart. Reads any plan that runs on spot as one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from planner.errors import InputError
from planner.market.starts import usually_had
from planner.plan.file import load_plan, moment_of
from planner.plan.ids import RUN_WORK, TimePartId
from planner.plan.launch import SpotHazards, SpotRecords
from planner.plan.model import Plan, PlanLine
from planner.plan.profile import linked, work_log_sd
from planner.records import record
from planner.render.numbers import number
from planner.spot.pools import RECORDED

_GB_PER_GIB = 1.073741824
_IN_TURN = ("spot", "spot_with_fallback")
_SAVE_ANEW = "save it again with `planner optimize ... -o json --out FILE`"
_FEW = 1e-3  # expected interruptions below which their mean loss says nothing
_REMEDY = "set constraints.purchase_options: [spot] in the workload and plan again"
_RESTART_S = 720.0  # as in planner/data/assumptions.csv, for plans that do not say


@record(frozen=True)
class Capacity:
    """How the plan expects all nodes together to come and go in a place, by which evidence; tables that it holds."""

    mean_up_hours: float
    mean_wait_hours: float
    evidence: str
    records: SpotRecords | None = None
    hazards: SpotHazards | None = None

    @property
    def recorded(self) -> bool:
        """Whether a bundled record is the evidence, which says something of this place alone."""
        return self.evidence.startswith(f"{RECORDED}: ")


@record(frozen=True)
class Place:
    """Where the plan takes spot; `zone` is empty where no price depends on it, `usd_per_hour` is of all nodes.

    `capacity` is None where the plan does not say.
    """

    region: str
    zone: str
    usd_per_hour: float
    capacity: Capacity | None = None


@record(frozen=True)
class SpotPlan:
    """The spot lines of a plan, in the words of a spot job.

    Attributes:
        name: of the workload.
        provider, instance_type: of all lines.
        places: where spot is taken, the plan's first choice first.
        nodes: instances that run together.
        on_demand_usd_per_hour: of all nodes, None where the plan does not say.
        work_hours: undisturbed hours: steps, evaluation, checkpoints, export.
        restart_hours: paid hours without progress per interruption: restart and repeated work.
        start, deadline: aware moments; no deadline is None.
        steps: optimizer steps in all, None where unknown.
        on_demand_acquire_hours: from asking for on-demand to having it.
        checkpoint_gb: size of one checkpoint, None where unknown.
        hashes: sha256 of the price snapshots, per provider.
        workload_sha256: of the workload file.
        accelerators_per_node: of one instance.
        on_demand_had_ratio: probability that on-demand comes when it is asked for: the plan's, else as the bundled
            table of waits has it.
        scarce_together_ratio: how far on-demand is scarce when spot is (docs/spot/launch.md).
        spot_late_ratio: probability that spot alone is too late, None where the plan does not say.
        work_log_sd: spread of the hours of the whole run, of the logarithm.
        staging_hours: from the start until the data are where the cluster starts.
    """

    name: str
    provider: str
    instance_type: str
    places: tuple[Place, ...]
    nodes: int
    on_demand_usd_per_hour: float | None
    work_hours: float
    restart_hours: float
    start: datetime
    deadline: datetime | None
    steps: int | None
    on_demand_acquire_hours: float
    checkpoint_gb: float | None
    hashes: Mapping[str, str]
    egress_usd: float = 0.0
    workload_sha256: str = ""
    accelerators_per_node: float = 0.0
    on_demand_had_ratio: float = 1.0
    scarce_together_ratio: float = 0.0
    spot_late_ratio: float | None = None
    work_log_sd: float = 0.0
    staging_hours: float = 0.0

    @property
    def region(self) -> str:
        """Region of the plan's first choice."""
        return self.places[0].region

    @property
    def spot_usd_per_hour(self) -> float:
        """Price of the plan's first choice, all nodes."""
        return self.places[0].usd_per_hour

    @property
    def deadline_hours(self) -> float:
        """Hours from the start to the deadline; infinite without one."""
        return math.inf if self.deadline is None else (self.deadline - self.start) / timedelta(hours=1)

    def due_earlier(self, hours: float) -> SpotPlan:
        """The plan with its deadline moved forward; without one as it is.

        Raises:
            InputError: nothing is left between the start and such a deadline.
        """
        if self.deadline is None:
            return self
        whole = (self.deadline - self.start) / timedelta(hours=1)
        if hours >= whole > 0.0:
            raise InputError(
                f"--margin: {number(hours)} h leave nothing of the {number(whole)} h from start to deadline"
            )
        return replace(self, deadline=self.deadline - timedelta(hours=hours))


def load_spot_plan(path: Path) -> SpotPlan:
    """Read the spot lines of a saved plan.

    Raises:
        InputError: not a plan, or one that does not run on spot as one cluster.
    """
    return spot_plan(load_plan(path), str(path))


def spot_plan(plan: Plan, place: str) -> SpotPlan:
    """The spot lines of a plan.

    Args:
        plan: any plan.
        place: named in errors.

    Raises:
        InputError: as `load_spot_plan`.
    """
    spot, steady = _lines(plan, place)
    hours = {part.id: part.hours for part in plan.timeline}
    assumed = _Assumed(plan, place)
    launch = plan.launch
    acquire_s = assumed.seconds("on_demand_acquire_s", 0.0) if launch is None else launch.on_demand_acquire_s
    work_hours = math.fsum(hours.get(part, 0.0) for part in RUN_WORK)  # a set: any order, one sum
    if not work_hours > 0:
        raise InputError(
            f"{place}: timeline: has no hours of work, so there is nothing to decide: {_SAVE_ANEW}"
        )
    return SpotPlan(
        name=plan.workload,
        provider=spot[0].provider,
        instance_type=spot[0].instance_type,
        places=tuple(
            Place(line.region, line.zone, _hourly(plan, line, place), _capacity(plan, line)) for line in spot
        ),
        nodes=spot[0].nodes,
        on_demand_usd_per_hour=None if steady is None else _hourly(plan, steady, place),
        work_hours=work_hours,
        restart_hours=_restart_hours(
            plan,
            (
                assumed.seconds("restart_time_s", _RESTART_S)
                if launch is None or launch.checkpoints.restart_s is None
                else launch.checkpoints.restart_s
            )
            / 3600.0,
        ),
        start=moment_of(plan.start),
        deadline=None if plan.deadline is None else moment_of(plan.deadline),
        steps=_steps(plan, hours.get(TimePartId.TRAINING_STEPS)),
        on_demand_acquire_hours=acquire_s / 3600.0,
        checkpoint_gb=None if launch is None else launch.checkpoints.size_gib * _GB_PER_GIB,
        hashes={source.provider: source.sha256 for source in plan.catalog},
        workload_sha256=plan.workload_sha256,
        accelerators_per_node=spot[0].accelerators_per_node,
        on_demand_had_ratio=_on_demand_had(plan, spot[0]),
        scarce_together_ratio=linked(plan),
        spot_late_ratio=_spot_late(plan),
        work_log_sd=work_log_sd(plan),
        staging_hours=hours.get(TimePartId.DATA_STAGING, 0.0),
    )


def _lines(plan: Plan, place: str) -> tuple[list[PlanLine], PlanLine | None]:
    """The lines on spot, of which one runs at a time, and the on-demand line that takes over, if the plan names it.

    Raises:
        InputError: nothing is on spot, or its machines do not run together.
    """
    lines = plan.lines
    spot = [line for line in lines if line.purchase_option == "spot"]
    rest = [line for line in lines if line.purchase_option != "spot"]
    if plan.status == "infeasible":
        raise InputError(f"{place}: an infeasible answer: there is no plan to follow")
    if not spot:
        bought = ", ".join(sorted({line.purchase_option for line in lines}))
        raise InputError(
            f"{place}: no line of this plan is on spot (it buys {bought}), so there is nothing to decide: start it and "
            f"let it run; to plan for spot {_REMEDY}"
        )
    if plan.kind == "fleet":
        raise InputError(
            f"{place}: the workers of a fleet run one by one: a lost one loses its own task only, so replace it where "
            "the plan says; `planner advise` is for jobs that run as one cluster, such as the share of a worker that "
            "falls back, planned as kind: training with its machines and its runs as one"
        )
    in_turn = len(lines) == 1 or (plan.launch is not None and plan.launch.strategy in _IN_TURN)
    alike = len({(line.provider, line.instance_type, line.nodes) for line in lines}) == 1
    if not in_turn or not alike or any(line.purchase_option != "on_demand" for line in rest):
        raise InputError(
            f"{place}: the plan buys one cluster in {len(lines)} parts that run side by side; `planner advise` follows "
            f"plans whose nodes are all on spot: {_REMEDY}"
        )
    return spot, rest[0] if rest else None


def _hourly(plan: Plan, line: PlanLine, place: str) -> float:
    """USD per hour of all nodes.

    Raises:
        InputError: the line costs nothing.
    """
    usd = float(line.price_per_hour) * float(line.usd_per_currency) * line.nodes
    if not usd > 0:
        at = plan.lines.index(line)
        raise InputError(
            f"{place}: lines[{at}].price_per_hour: must be more than 0 to decide by: {_SAVE_ANEW}"
        )
    return usd


def _on_demand_had(plan: Plan, line: PlanLine) -> float:
    """Probability that all nodes come on-demand: what the plan states, else the bundled table's for its machines."""
    stated = None if plan.launch is None else plan.launch.p_on_demand_had_ratio
    if stated is not None:
        return stated
    return usually_had(line.provider, "on_demand", line.accelerator, line.nodes * line.accelerators_per_node)


def _spot_late(plan: Plan) -> float | None:
    alone = None if plan.launch is None else plan.launch.p_meet_spot_only_ratio
    return None if alone is None else 1.0 - alone


def _capacity(plan: Plan, line: PlanLine) -> Capacity | None:
    """What the plan says of the line's capacity."""
    places = () if plan.launch is None else plan.launch.places
    found = (place for place in places if place.offer_id == line.offer_id)
    return next(
        (
            Capacity(place.mean_up_hours, place.mean_wait_hours, place.evidence, place.records, place.hazards)
            for place in found
        ),
        None,
    )


class _Assumed:
    """Assumptions of a plan by key."""

    def __init__(self, plan: Plan, place: str) -> None:
        self._found = {item.key: (at, item.value) for at, item in enumerate(plan.assumptions)}
        self._place = place

    def seconds(self, key: str, default: float) -> float:
        """A time in seconds.

        Raises:
            InputError: it is not a number of 0 or more.
        """
        if key not in self._found:
            return default
        at, text = self._found[key]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            path = f"assumptions[{at}].value"
            raise InputError(f"{self._place}: {path}: {key} must be seconds, got {text!r}: {_SAVE_ANEW}")
        return value


def _restart_hours(plan: Plan, restart_hours: float) -> float:
    """Restart and repeated work per interruption: what the plan expects to lose over how often it is interrupted."""
    if plan.risk is None or plan.risk.expected_interruptions <= _FEW:
        return restart_hours
    return plan.risk.expected_lost_hours / plan.risk.expected_interruptions or restart_hours


def _steps(plan: Plan, hours: float | None) -> int | None:
    step_s = None if plan.performance is None else plan.performance.step_time_s
    return round(hours * 3600.0 / step_s) if hours and step_s else None
