"""What a saved plan says of spot: work, places, prices, deadline, restart. Reads any plan that runs on spot as one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.plan.file import load_plan
from planner.records import record

Line = Mapping[str, Any]
WORK_PARTS = ("training steps", "evaluation", "checkpoints", "final export")
_CHECKPOINT = re.compile(r"([0-9][0-9,.]*) GiB every")
_GB_PER_GIB = 1.073741824
_IN_TURN = ("spot", "spot_with_fallback")
_REMEDY = "set constraints.purchase_options: [spot] in the workload and plan again"
_RESTART_S = 720.0  # as in planner/data/assumptions.csv, for plans that do not say


@record(frozen=True)
class Place:
    """Where the plan takes spot; `zone` is empty where no price depends on it, `usd_per_hour` is of all nodes."""

    region: str
    zone: str
    usd_per_hour: float


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
        """The plan with its deadline moved forward; without one as it is."""
        return (
            self if self.deadline is None else replace(self, deadline=self.deadline - timedelta(hours=hours))
        )


def load_spot_plan(path: Path) -> SpotPlan:
    """Read the spot lines of a saved plan.

    Raises:
        InputError: not a plan, or one that does not run on spot as one cluster.
    """
    return spot_plan(load_plan(path), str(path))


def spot_plan(made: Mapping[str, Any], place: str) -> SpotPlan:
    """The spot lines of a plan's values.

    Args:
        made: the plan as JSON values.
        place: named in errors.

    Raises:
        InputError: as `load_spot_plan`.
    """
    spot, steady = _lines(made, place)
    try:
        return _read(made, spot, steady)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise InputError(
            f"{place}: a plan, but not one this version wrote ({type(error).__name__}: {error}); "
            "save it again with `planner optimize ... -o json --out FILE`"
        ) from error


def _lines(made: Mapping[str, Any], place: str) -> tuple[list[Line], Line | None]:
    """The lines on spot, of which one runs at a time, and the on-demand line that takes over, if the plan names it.

    Raises:
        InputError: nothing is on spot, or its machines do not run together.
    """
    lines = [line for line in made.get("lines") or () if isinstance(line, Mapping)]
    spot = [line for line in lines if line.get("purchase_option") == "spot"]
    rest = [line for line in lines if line.get("purchase_option") != "spot"]
    if made.get("status") == "infeasible" and not lines:
        raise InputError(f"{place}: an infeasible answer: there is no plan to follow")
    if not spot:
        bought = ", ".join(sorted({str(line.get("purchase_option")) for line in lines})) or "nothing"
        raise InputError(
            f"{place}: no line of this plan is on spot (it buys {bought}), so there is nothing to decide: start it and "
            f"let it run; to plan for spot {_REMEDY}"
        )
    if made.get("kind") == "fleet":
        raise InputError(
            f"{place}: the workers of a fleet run one by one: a lost one loses its own task only, so replace it where "
            "the plan says; `planner advise` is for jobs that run as one cluster"
        )
    in_turn = str((made.get("launch") or {}).get("strategy", "")) in _IN_TURN or len(lines) == 1
    alike = len({(line.get("provider"), line.get("instance_type"), line.get("nodes")) for line in lines}) == 1
    if not in_turn or not alike or any(line.get("purchase_option") != "on_demand" for line in rest):
        raise InputError(
            f"{place}: the plan buys one cluster in {len(lines)} parts that run side by side; `planner advise` follows "
            f"plans whose nodes are all on spot: {_REMEDY}"
        )
    return spot, rest[0] if rest else None


def _read(made: Mapping[str, Any], spot: list[Line], steady: Line | None) -> SpotPlan:
    parts = {str(part["name"]): part for part in made["timeline"]}
    assumed = {str(item["key"]): item["value"] for item in made.get("assumptions") or ()}
    launch = made.get("launch") or {}
    line, deadline = spot[0], made.get("deadline")
    acquire_s = launch.get("on_demand_acquire_s", assumed.get("on_demand_acquire_s", 0.0))
    return SpotPlan(
        name=str(made["workload"]),
        provider=str(line["provider"]),
        instance_type=str(line["instance_type"]),
        places=tuple(Place(str(one["region"]), str(one.get("zone") or ""), _hourly(one)) for one in spot),
        nodes=int(line["nodes"]),
        on_demand_usd_per_hour=None if steady is None else _hourly(steady),
        work_hours=_positive(sum(float(parts[name]["hours"]) for name in WORK_PARTS if name in parts)),
        restart_hours=_restart_hours(made, float(assumed.get("restart_time_s", _RESTART_S)) / 3600.0),
        start=_moment(made["start"]),
        deadline=None if deadline is None else _moment(deadline),
        steps=_steps(made, parts),
        on_demand_acquire_hours=float(acquire_s) / 3600.0,
        checkpoint_gb=_checkpoint_gb(launch, parts),
        hashes={str(source["provider"]): str(source["sha256"]) for source in made["catalog"]},
    )


def _hourly(line: Line) -> float:
    """USD per hour of all nodes."""
    return _positive(line["price_per_hour"]) * _positive(line["usd_per_currency"]) * int(line["nodes"])


def _positive(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{value!r} is not a number above 0")
    return number


def _moment(text: Any) -> datetime:
    moment = datetime.fromisoformat(str(text))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _restart_hours(made: Mapping[str, Any], restart_hours: float) -> float:
    """Restart and repeated work per interruption: what the plan expects to lose over how often it is interrupted."""
    risk = made.get("risk") or {}
    times, lost = (
        float(risk.get("expected_interruptions") or 0.0),
        float(risk.get("expected_lost_hours") or 0.0),
    )
    return lost / times if times > 1e-3 and 0 < lost / times < math.inf else restart_hours


def _steps(made: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> int | None:
    step_s = (made.get("performance") or {}).get("step_time_s")
    if not step_s or "training steps" not in parts:
        return None
    return round(float(parts["training steps"]["hours"]) * 3600.0 / float(step_s))


def _checkpoint_gb(launch: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> float | None:
    size_gib = (launch.get("checkpoints") or {}).get("size_gib")
    if size_gib is not None:
        return float(size_gib) * _GB_PER_GIB
    found = _CHECKPOINT.search(str(parts.get("checkpoints", {}).get("note", "")))
    return float(found[1].replace(",", "")) * _GB_PER_GIB if found else None
