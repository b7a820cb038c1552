"""What a measurement before the purchase is worth: 100 steps on few nodes, against the interval that it narrows.

One measured run of one's own takes the mean error of predicted speed from 17.8 % to 9.9 % (docs/calibration.md, any row
as the measurement), so that the interval of the speed keeps 0.56 of its width; the spread of whole runs over what their
steps say stays. Figures of the plan alone: nothing is searched.
"""

from __future__ import annotations

import math
from typing import Any

from planner.normal import Z80
from planner.plan.ids import TimePartId
from planner.records import record
from planner.render.presentable import Presentable

STEPS = 100
PROFILE_FIELDS = ("profile_cost_usd", "profile_narrows_usd")
KEPT_RATIO = 9.9 / 17.8
# Not worth a line: a speed known this well, or a measurement that costs more than a fifth of what it brings.
LEAST_HALF_WIDTH, LEAST_RETURN = 0.1, 5.0
_BEFORE_STEPS = (TimePartId.IMAGE_PULL, TimePartId.WARM_UP)


@record(frozen=True)
class Profiling:
    """A measurement that is worth making.

    Attributes:
        nodes: that the parallel layout needs at least, with their share of the batch; where memory is sharded over all
            nodes the model may not fit there.
        cost_usd: of starting them and of the steps.
        narrows_usd: by how much the 80 % interval of the cost becomes narrower.
    """

    nodes: int
    cost_usd: float
    narrows_usd: float


def profiling(plan: Any) -> Profiling | None:
    """The measurement, None where it is not worth it or not a training job's."""
    speed = plan.performance
    if plan.kind != "training" or speed is None or speed.step_time_s is None or not plan.lines:
        return None
    line, layout = plan.lines[0], plan.lines[0].layout
    mid, low, high = speed.throughput_per_s, speed.throughput_low_per_s, speed.throughput_high_per_s
    if layout is None or not low > 0 or (high - low) / (2.0 * mid) < LEAST_HALF_WIDTH:
        return None
    gang = layout.tensor_parallel * layout.pipeline_parallel * layout.context_parallel
    nodes = max(1, math.ceil(gang / max(line.accelerators_per_node, 1.0)))
    start = math.fsum(part.hours for part in plan.timeline if part.id in _BEFORE_STEPS)
    hours = start + STEPS * speed.step_time_s / 3600.0
    cost = nodes * hours * float(line.price_per_hour * line.usd_per_currency)
    compute = math.fsum(
        float(c.amount_usd) for plan_line in plan.lines for c in plan_line.costs if c.kind == "compute"
    )
    wide = compute * (mid / low - mid / high)
    narrows = min(wide * _narrower_ratio(math.log(high / low) / 2.0, _of_runs(plan)), _spread_usd(plan))
    return Profiling(nodes, cost, narrows) if narrows >= LEAST_RETURN * cost else None


def _narrower_ratio(speed: float, runs: float) -> float:
    """By how much a measurement narrows an interval, over the width that the speed alone gives it.

    Args:
        speed: half-width of the interval of the speed, in the logarithm.
        runs: that of whole runs over what their steps say.
    """
    return (math.hypot(speed, runs) - math.hypot(KEPT_RATIO * speed, runs)) / speed


def _of_runs(plan: Any) -> float:
    """Half-width of the 80 % interval of whole runs over what their steps say, in the logarithm; 0 in older plans."""
    return Z80 * assumed(plan, "whole_run_log_sd", 0.0)


def assumed(plan: Any, key: str, default: float) -> float:
    """The figure `key` that a plan rests on, in its own unit; `default` where it names none above 0.

    Args:
        plan: an answer or a saved plan.
        key: of planner/data/assumptions.csv.
        default: for plans of before the figure was counted.
    """
    text = next((item.value for item in plan.assumptions if item.key == key), None)
    try:
        value = default if text is None else float(text)
    except ValueError:
        return default
    return value if math.isfinite(value) and value > 0 else default


def work_log_sd(plan: Any) -> float:
    """Standard deviation of the logarithm of the hours of the whole run; of a plan without a speed that of runs alone.

    Args:
        plan: an answer or a saved plan.
    """
    speed, of_runs = plan.performance, assumed(plan, "whole_run_log_sd", 0.0)
    if speed is None or not 0.0 < speed.throughput_low_per_s <= speed.throughput_high_per_s:
        return of_runs
    return math.hypot(
        math.log(speed.throughput_high_per_s / speed.throughput_low_per_s) / (2.0 * Z80), of_runs
    )


def linked(plan: Any) -> float:
    """How far on-demand is scarce when spot is (docs/spot/launch.md), 0..1: 0 in plans that do not say it."""
    spot = {(line.provider, line.region) for line in plan.lines if line.purchase_option == "spot"}
    later = {(line.provider, line.region) for line in plan.lines if line.purchase_option == "on_demand"}
    level = "zone" if not later or spot & later else "region"
    return assumed(plan, f"spot_{level}_correlation_ratio", 0.0)


def _spread_usd(plan: Any) -> float:
    """Twice what the 90th percentile lies above the expected cost: about 0 where a whole term is owed anyway."""
    return math.inf if plan.risk is None else 2.0 * float(plan.risk.worst_cost_usd - plan.total_usd)


class Profiled(Presentable):
    """What a plan says of a measurement before the purchase."""

    @property
    def profile_cost_usd(self) -> float | None:
        """What 100 steps on the fewest nodes of the layout cost; None where they are not worth it."""
        measurement = profiling(self)
        return None if measurement is None else measurement.cost_usd

    @property
    def profile_narrows_usd(self) -> float | None:
        """By how much these steps narrow the 80 % interval of the cost."""
        measurement = profiling(self)
        return None if measurement is None else measurement.narrows_usd
