"""What a saved plan says of its spot line: work, prices, deadline, restart. Reads any plan with one such line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.plan_file import load_plan
from planner.records import record

WORK_PARTS = ("training steps", "evaluation", "checkpoints", "final export")
_CHECKPOINT = re.compile(r"([0-9][0-9,.]*) GiB every")
_GB_PER_GIB = 1.073741824
_RESTART_S = 720.0  # as in planner/data/assumptions.csv, for plans that do not say


@record(frozen=True)
class SpotPlan:
    """The spot line of a plan, in the words of a spot job.

    Attributes:
        name: of the workload.
        provider, region, zone, instance_type: of the line; `zone` is empty where no price depends on it.
        nodes: instances that run together.
        spot_usd_per_hour: of all nodes.
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
    region: str
    zone: str
    instance_type: str
    nodes: int
    spot_usd_per_hour: float
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
    def deadline_hours(self) -> float:
        """Hours from the start to the deadline; infinite without one."""
        return math.inf if self.deadline is None else (self.deadline - self.start) / timedelta(hours=1)


def load_spot_plan(path: Path) -> SpotPlan:
    """Read the spot line of a saved plan.

    Raises:
        InputError: not a plan, or one without a spot line that runs together until a deadline.
    """
    return spot_plan(load_plan(path), str(path))


def spot_plan(made: Mapping[str, Any], place: str) -> SpotPlan:
    """The spot line of a plan's values.

    Args:
        made: the plan as JSON values.
        place: named in errors.

    Raises:
        InputError: as `load_spot_plan`.
    """
    line = _spot_line(made, place)
    try:
        return _read(made, line)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise InputError(
            f"{place}: a plan, but not one this version wrote ({type(error).__name__}: {error}); "
            "save it again with `planner optimize ... -o json --out FILE`"
        ) from error


def _spot_line(made: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """The one line of the plan on spot.

    Raises:
        InputError: there is none, or several, or its machines do not run together.
    """
    lines = [line for line in made.get("lines") or () if isinstance(line, Mapping)]
    spot = [line for line in lines if line.get("purchase_option") == "spot"]
    if made.get("status") == "infeasible" and not lines:
        raise InputError(f"{place}: an infeasible answer: there is no plan to follow")
    if not spot:
        bought = ", ".join(sorted({str(line.get("purchase_option")) for line in lines})) or "nothing"
        raise InputError(
            f"{place}: no line of this plan is on spot (it buys {bought}), so there is nothing to decide: start it and "
            "let it run; to plan for spot set constraints.purchase_options: [spot]"
        )
    if made.get("kind") == "fleet":
        raise InputError(
            f"{place}: the workers of a fleet run one by one: a lost one loses its own task only, so replace it where "
            "the plan says; `planner advise` is for jobs that run as one cluster"
        )
    if len(lines) > 1:
        raise InputError(
            f"{place}: the plan buys its cluster in {len(lines)} parts; `planner advise` follows plans whose nodes are "
            "all on spot: plan again with constraints.purchase_options: [spot]"
        )
    return spot[0]


def _read(made: Mapping[str, Any], line: Mapping[str, Any]) -> SpotPlan:
    parts = {str(part["name"]): part for part in made["timeline"]}
    assumed = {str(item["key"]): item["value"] for item in made.get("assumptions") or ()}
    nodes = int(line["nodes"])
    hourly = _positive(line["price_per_hour"]) * _positive(line["usd_per_currency"]) * nodes
    restart_s = float(str(assumed.get("restart_time_s", _RESTART_S)).replace(",", ""))
    deadline = made.get("deadline")
    return SpotPlan(
        name=str(made["workload"]),
        provider=str(line["provider"]),
        region=str(line["region"]),
        zone=str(line.get("zone") or ""),
        instance_type=str(line["instance_type"]),
        nodes=nodes,
        spot_usd_per_hour=hourly,
        on_demand_usd_per_hour=None,
        work_hours=_positive(sum(float(parts[name]["hours"]) for name in WORK_PARTS if name in parts)),
        restart_hours=_restart_hours(made, restart_s / 3600.0),
        start=_moment(made["start"]),
        deadline=None if deadline is None else _moment(deadline),
        steps=_steps(made, parts),
        on_demand_acquire_hours=float(assumed.get("on_demand_acquire_s", 0.0)) / 3600.0,
        checkpoint_gb=_checkpoint_gb(parts),
        hashes={str(source["provider"]): str(source["sha256"]) for source in made["catalog"]},
    )


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


def _checkpoint_gb(parts: Mapping[str, Mapping[str, Any]]) -> float | None:
    found = _CHECKPOINT.search(str(parts.get("checkpoints", {}).get("note", "")))
    return float(found[1].replace(",", "")) * _GB_PER_GIB if found else None
