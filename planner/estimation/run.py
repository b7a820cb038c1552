"""The whole run on one cluster: work, hours and accelerator-hours, with what stops and checkpoints take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from planner.estimation.values import Interval, RunTotals
from planner.normal import Z80
from planner.performance.constants import load_constants
from planner.performance.goodput import TYPICAL, estimate_goodput, load_site
from planner.performance.phases import flops_per_step

if TYPE_CHECKING:
    from planner.asked.job import Job
    from planner.performance.constants import Constants

HOURS = 3600.0


def run_totals(
    job: Job, row: dict[str, Any], accelerators: int, constants: Constants | None = None
) -> RunTotals:
    """Totals of one run of a job.

    The published runs took longer than the steps of published benchmarks (`run.speed_ratio`): data, clocks, networks
    and weeks of tuning that benchmarks leave out. The interval joins that of the step, of the goodput, and of that
    ratio from run to run.

    Args:
        job: the work.
        row: the row of `estimate_shapes` that fits.
        accelerators: in the cluster.
        constants: the model's constants, the bundled ones by default.
    """
    c = constants or load_constants()
    step = float(row["step_time_s"])
    step_hours = job.total_steps * step / HOURS * c["run.speed_ratio"]
    goodput = estimate_goodput(accelerators, step_hours)
    hours = step_hours / goodput.ratio + load_site(TYPICAL).startup_hours
    wide = [math.log(row["step_time_high_s"] / step), c["run.spread"], Z80 * job.stop_log_sd]
    longer = math.hypot(*wide, math.log(goodput.ratio / goodput.low))
    shorter = math.hypot(*wide, math.log(goodput.high / goodput.ratio))
    wall = Interval(hours, hours / math.exp(shorter), hours * math.exp(longer))
    return RunTotals(
        flops=flops_per_step(job.model, job.training) * job.total_steps,
        accelerators=accelerators,
        step_hours=step_hours,
        wall_hours=wall,
        goodput=Interval(goodput.ratio, goodput.low, goodput.high),
        stops=goodput.stops,
        checkpoint_interval_hours=goodput.interval_hours,
        stops_early=job.stop_log_sd > 0.0,
    )
