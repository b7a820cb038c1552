"""The whole run on one cluster: work, hours and accelerator-hours, with what stops and checkpoints take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from planner.estimation.values import Interval, RunTotals
from planner.normal import Z80
from planner.performance.goodput import TYPICAL, estimate_goodput, load_site
from planner.performance.phases import flops_per_step

if TYPE_CHECKING:
    from planner.asked.assumptions import Assumptions
    from planner.asked.job import Job

HOURS = 3600.0


def run_totals(job: Job, row: dict[str, Any], accelerators: int, assume: Assumptions) -> RunTotals:
    """Totals of one run of a job.

    Its work is the steps, evaluation and what published runs took beside them, as in plans (`Assumptions.work_ratio`);
    stops and checkpoints come on top. The interval joins that of the step, of the goodput, and of whole runs over what
    their steps say.

    Args:
        job: the work.
        row: the row of `estimate_shapes` that fits.
        accelerators: in the cluster.
        assume: assumptions in force.
    """
    step = float(row["step_time_s"])
    step_hours = job.total_steps * step / HOURS
    work_hours = step_hours * assume.work_ratio
    goodput = estimate_goodput(accelerators, work_hours)
    startup = load_site(TYPICAL).startup_hours
    hours = work_hours / goodput.kept_ratio + startup
    wide = [
        math.log(row["step_time_high_s"] / step),
        *(Z80 * sd for sd in (assume.whole_run_log_sd, job.stop_log_sd)),
    ]
    longer = math.hypot(*wide, math.log(goodput.kept_ratio / goodput.low_ratio))
    shorter = math.hypot(*wide, math.log(goodput.high_ratio / goodput.kept_ratio))
    wall = Interval(hours, hours / math.exp(shorter), hours * math.exp(longer))
    return RunTotals(
        flops=flops_per_step(job.model, job.training) * job.total_steps,
        accelerators=accelerators,
        step_hours=step_hours,
        evaluation_hours=step_hours * assume.evaluation_share_ratio,
        beside_hours=step_hours * assume.beside_steps_ratio,
        stop_hours=hours - startup - work_hours,
        startup_hours=startup,
        wall_hours=wall,
        goodput=Interval(
            *(
                min(step_hours / hours * kept / goodput.kept_ratio, 1.0)
                for kept in (goodput.kept_ratio, goodput.low_ratio, goodput.high_ratio)
            )
        ),
        stops=goodput.stops,
        checkpoint_interval_hours=goodput.interval_hours,
        stops_early=job.stop_log_sd > 0.0,
    )
