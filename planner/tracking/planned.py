"""What a plan promised, in the words of a run: steps, seconds per step, interruptions, prices, limits."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path

import numpy as np

from planner.errors import InputError
from planner.normal import Z80
from planner.plan.file import load_plan, moment_of
from planner.plan.ids import AT_WORK, TimePartId
from planner.plan.model import Plan, PlanLine
from planner.plan.profile import assumed, linked
from planner.records import record

_RECORDED_SD, _UNRECORDED_SD = (
    0.35,
    0.88,
)  # of the log rate, as in planner/data/assumptions.csv, for plans without them
# of an interruption where a plan expects none: restart and half a checkpoint interval, assumed
_SETBACK_HOURS = 0.5


@record(frozen=True)
class Planned:
    """A plan as far as a run can be compared with it.

    Attributes:
        plan: the saved plan.
        steps: in all (where the plan counts none: units of work); units, unit: tokens or samples in all.
        step_s, step_log_sd: predicted seconds per step, and the standard deviation of their logarithm.
        overhead_ratio: evaluation and checkpoints over the steps themselves.
        beside_ratio, run_log_sd: what runs take beside their steps, its checkpoints included, over the steps, and the
            spread of whole runs over what their steps say, of the logarithm; 0 in plans that do not count it.
        final_hours: export at the end.
        lead_hours: from the start to the first step: data, capacity, provisioning, image, warm-up.
        start, deadline: moments.
        confidence_ratio: with what probability the deadline must hold, None where it is not stated.
        budget_usd: None without one.
        rate_per_hour, rate_sd: interruptions per hour in use, and the spread of its logarithm.
        setback_hours, paid_setback_ratio: mean hours that an interruption costs, and the share of them that is paid.
        usd_per_hour, usd_low, usd_high: of all nodes in use, and its 80 % interval.
        fallback_usd_per_hour, fallback_hours, had_ratio, link_ratio: on-demand that takes over: price, hours until it
            is there, how often it comes, and how far it is scarce when spot is; None without one.
        other_usd: storage and transfer, all of the run.
        nodes: instances.
        network_ratio: share of communication in the predicted step, None where it is unknown.
        checkpoint_hours: interval of checkpoints.
    """

    plan: Plan
    steps: float
    units: float
    unit: str
    step_s: float
    step_log_sd: float
    overhead_ratio: float
    beside_ratio: float
    run_log_sd: float
    final_hours: float
    lead_hours: float
    start: datetime
    deadline: datetime | None
    confidence_ratio: float | None
    budget_usd: float | None
    rate_per_hour: float
    rate_sd: float
    setback_hours: float
    paid_setback_ratio: float
    usd_per_hour: float
    usd_low: float
    usd_high: float
    fallback_usd_per_hour: float | None
    fallback_hours: float
    had_ratio: float
    link_ratio: float
    other_usd: float
    nodes: int
    network_ratio: float | None
    checkpoint_hours: float

    @property
    def pace_s(self) -> float:
        """Seconds per step that the plan's hours come to, all that comes between steps included."""
        return self.step_s * (1.0 + self.overhead_ratio + self.beside_ratio)


def load_planned(path: Path) -> Planned:
    """Read a saved plan that a run can be tracked against.

    Raises:
        InputError: no plan, or one of another kind.
    """
    return planned_of(load_plan(path), str(path))


def planned_of(plan: Plan, place: str) -> Planned:
    """A plan in the words of a run.

    Args:
        plan: of one job.
        place: named in errors.

    Raises:
        InputError: there is no plan to follow, or it has no speed.
    """
    if plan.status == "infeasible" or not plan.lines:
        raise InputError(f"{place}: an infeasible answer: there is no plan to follow")
    if plan.kind == "fleet":
        raise InputError(
            f"{place}: the workers of a fleet run independently: track the log of one with "
            "`planner diagnose LOG`"
        )
    speed, hours = plan.performance, {part.id: part.hours for part in plan.timeline}
    work = hours.get(TimePartId.TRAINING_STEPS, 0.0)
    if speed is None or not speed.throughput_per_s > 0 or not work > 0:
        raise InputError(
            f"{place}: has no predicted speed or no hours of steps: save it with `planner optimize ... -o json`"
        )
    units = plan.goal.units if plan.goal is not None and plan.goal.units > 0 else 0.0
    units = units or speed.throughput_per_s * work * 3600.0
    step_s = speed.step_time_s or 1.0 / speed.throughput_per_s
    spread = speed.throughput_high_per_s / max(speed.throughput_low_per_s, 1e-300)
    rate, rate_sd, setback, paid = _interruptions(plan, math.fsum(hours.get(part, 0.0) for part in AT_WORK))
    usd, low, high = _prices(_first_lines(plan))
    fallback = next((x for x in plan.lines if x.purchase_option == "on_demand"), None)
    falls_back = plan.launch is not None and plan.launch.strategy == "spot_with_fallback"
    launch, goal = plan.launch, plan.goal
    return Planned(
        plan, work * 3600.0 / step_s, units, speed.unit, step_s,
        max(math.log(spread) / (2.0 * Z80), 0.01) if spread >= 1.0 else 0.15,
        *_between_steps(hours, work),
        assumed(plan, "whole_run_log_sd", 0.0), hours.get(TimePartId.FINAL_EXPORT, 0.0),
        _lead_hours(plan), moment_of(plan.start), None if plan.deadline is None else moment_of(plan.deadline),
        None if goal is None else goal.deadline_confidence_ratio,
        None if goal is None or goal.budget_usd is None else float(goal.budget_usd),
        rate, rate_sd, setback, paid, usd, low, high,
        _line_usd(fallback) if fallback is not None and falls_back else None,
        0.0 if launch is None else launch.on_demand_acquire_s / 3600.0,
        1.0 if launch is None or launch.p_on_demand_had_ratio is None else launch.p_on_demand_had_ratio, linked(plan),
        _other_usd(plan), _nodes(plan), _network_ratio(plan),
        1.0 if launch is None else max(launch.checkpoints.interval_hours, 1e-3),
    )  # fmt: skip


def _between_steps(hours: dict[TimePartId, float], steps: float) -> tuple[float, float]:
    """What comes between steps over the steps: evaluation and checkpoints, and what runs take beside both."""
    beside = hours.get(TimePartId.BESIDE_STEPS, 0.0)
    counted = steps + hours.get(TimePartId.EVALUATION, 0.0)
    saved = 1.0 + hours.get(TimePartId.CHECKPOINTS, 0.0) / (counted + beside)
    return counted * saved / steps - 1.0, beside * saved / steps


def _lead_hours(plan: Plan) -> float:
    """Hours from the start to the first step."""
    usual = (TimePartId.IMAGE_PULL, TimePartId.DATA_TO_NODES, TimePartId.WARM_UP)
    inside = math.fsum(part.hours for part in plan.timeline if part.id in usual)
    return (plan.starts_in_hours or 0.0) + inside


def _nodes(plan: Plan) -> int:
    in_turn = plan.launch is not None and plan.launch.in_turn
    return max(x.nodes for x in plan.lines) if in_turn else sum(x.nodes for x in plan.lines)


def _first_lines(plan: Plan) -> list[tuple[float, PlanLine]]:
    """Lines that the run is on before any fall-back, with the share of time that each is used."""
    in_turn = plan.launch is not None and plan.launch.in_turn
    if not in_turn:
        return [(1.0, line) for line in plan.lines]
    spot = [line for line in plan.lines if line.purchase_option == "spot"] or list(plan.lines)
    hours = math.fsum(float(line.billed_hours) for line in spot)
    return [(float(line.billed_hours) / hours if hours else 1.0 / len(spot), line) for line in spot]


def _line_usd(line: PlanLine) -> float:
    return line.nodes * float(line.price_per_hour) * float(line.usd_per_currency)


def _prices(lines: list[tuple[float, PlanLine]]) -> tuple[float, float, float]:
    """USD per hour of the cluster in use, and the ends of its 80 % interval."""
    usd = math.fsum(share * _line_usd(line) for share, line in lines)
    ends = []
    for name in ("price_p10_per_hour", "price_p90_per_hour"):
        parts = [
            (share * _line_usd(line), getattr(line, name), float(line.price_per_hour))
            for share, line in lines
        ]
        ends.append(
            math.fsum(
                part * (float(end) / price if end is not None and price else 1.0)
                for part, end, price in parts
            )
        )
    return usd, min(ends[0], usd), max(ends[1], usd)


def _interruptions(plan: Plan, work: float) -> tuple[float, float, float, float]:
    """Rate per hour in use, spread of its logarithm, mean setback in hours and the share of it that is paid."""
    if plan.risk is None or plan.risk.expected_interruptions <= 0:
        return 1e-6, _RECORDED_SD, _SETBACK_HOURS, 1.0
    count, launch = plan.risk.expected_interruptions, plan.launch
    if launch is None:
        lost = plan.risk.expected_lost_hours / count
        return count / max(work, 1e-9), _RECORDED_SD, max(lost, 1e-3), 1.0
    used = max(launch.spot_hours, 1e-9)
    waited = max(launch.waiting_hours - launch.first_wait_hours, 0.0)
    setback = max((waited + launch.lost_hours) / count, 1e-3)
    recorded = all(place.observed_ratio is not None for place in launch.places) and bool(launch.places)
    key = "spot_frailty_sd" if recorded else "spot_unrecorded_frailty_sd"
    sd = assumed(plan, key, _RECORDED_SD if recorded else _UNRECORDED_SD)
    return count / used, sd, setback, min(launch.lost_hours / count / setback, 1.0)


def _other_usd(plan: Plan) -> float:
    return math.fsum(
        float(cost.amount_usd) for line in plan.lines for cost in line.costs if cost.kind not in ("compute",)
    )


def _network_ratio(plan: Plan) -> float | None:
    parts = {} if plan.performance is None else plan.performance.breakdown_s
    whole = math.fsum(value for value in parts.values() if np.isfinite(value))
    if not whole > 0:
        return None
    return (
        math.fsum(parts.get(name, 0.0) for name in ("dp_comm", "tp_comm", "pp_comm", "ep_comm", "cp_comm"))
        / whole
    )
