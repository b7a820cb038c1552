"""The alerts of the exported rules: what each looks at, and what it says to do."""

from __future__ import annotations

from planner.export.view import Launch
from planner.records import record
from planner.tracking.thresholds import thresholds


@record(frozen=True)
class Alert:
    """An alert: the threshold it takes its bound from, the series it looks at and what it says."""

    name: str
    threshold: str
    series: str
    compare: str
    summary: str
    remedy: str


ALERTS = (
    Alert("TrainingGpuBusyLow", "gpu_busy_min", "run:gpu_active:avg5m", "<",
          "GPUs are busy {{ $value | humanizePercentage }} of the time",
          "Run `planner diagnose` on the log: loader, network or checkpoints hold the GPUs up."),
    Alert("TrainingGpusIdle", "gpu_idle_max", "run:gpu_idle:ratio", ">",
          "{{ $value | humanizePercentage }} of the GPUs are idle",
          "Look for a rank that hangs or nodes that are paid without work; stop the run, or restart it."),
    Alert("TrainingGpuMemoryNearFull", "memory_used_max", "run:gpu_memory_used:max", ">",
          "the fullest GPU uses {{ $value | humanizePercentage }} of its memory",
          "Lower the micro-batch or recompute more before the run fails: `planner estimate` says what fits."),
    Alert("TrainingLoaderSlow", "loader_share_max", "run:loader:ratio", ">",
          "{{ $value | humanizePercentage }} of the step waits for data",
          "More loader workers, data nearer to the nodes, or decoding ahead of the run."),
    Alert("TrainingSpendAbovePlan", "spend_rate_max", "run:spend_usd_per_hour:estimated", ">",
          "the run costs ${{ $value | humanize }} an hour, more than planned",
          "The run is on its fall-back, or holds more nodes than planned: `planner track --replan` weighs what to do."),
    Alert("TrainingFinishAfterDeadline", "finish_after_deadline_max", "run:late_hours:estimated", ">",
          "at this speed the run ends {{ $value | humanize }} h after its deadline",
          "`planner track --replan` weighs more nodes, another type and on-demand."),
    Alert("TrainingStalled", "progress_stalled_max", "training_step", "changes",
          "no step has finished for a while", "A hang or a lost node: look at the log of rank 0, then requeue."),
)  # fmt: skip


def stalled_minutes(launch: Launch) -> int:
    """Minutes without a step that are a hang: the threshold's, or ten steps where these take longer."""
    step = launch.step_time_s or 0.0
    return max(round(thresholds()["progress_stalled_max"].for_minutes), round(10 * step / 60))
