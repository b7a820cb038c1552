"""Names of the columns of a progress log, and the units they are read in."""

from __future__ import annotations

from planner.calibration.logs.look import STEP, TIME

TOKENS = ("tokens", "tokens_done", "tokens_seen", "consumed_tokens", "total_tokens")
SAMPLES = ("samples", "samples_done", "consumed_samples")
NODES = ("nodes", "num_nodes", "instances")
HOST = ("host", "hostname", "node", "rank")

# Figures beside progress: what each is, by the names it may have.
MEASURES: dict[str, tuple[str, ...]] = {
    "step_s": ("step_seconds", "step_time_s", "step_time", "seconds_per_step"),
    "loader_s": ("loader_seconds", "loader_s", "data_seconds", "data_time", "data_loading_seconds"),
    "checkpoint_s": ("checkpoint_seconds", "checkpoint_s", "checkpoint", "save_seconds"),
    "network_s": ("network_seconds", "network_s", "comm_seconds", "network", "communication_seconds"),
    "gpu_busy": ("gpu_busy", "gpu_util", "gpu_utilization", "gpu_utilisation", "gpu_active"),
    "cpu_busy": ("cpu_busy", "cpu_util", "cpu_utilization", "cpu_utilisation"),
    "memory_used": ("gpu_memory_used", "memory_used", "gpu_memory_ratio"),
    "clock_mhz": ("sm_clock_mhz", "gpu_clock_mhz", "sm_clock", "clock_mhz"),
    "throttled": ("throttled", "throttled_ratio", "throttle"),
}
# Shares of 1; a column with values above this is taken as percent.
RATIOS = frozenset(("gpu_busy", "cpu_busy", "memory_used", "throttled"))
PERCENT_ABOVE = 1.5
MEANING = {
    "step_s": "seconds per step", "loader_s": "seconds per step that steps wait for data",
    "checkpoint_s": "seconds of the row that steps wait for a checkpoint",
    "network_s": "seconds per step of communication that nothing hides",
    "gpu_busy": "share of time that GPUs work, 0 to 1 or percent", "cpu_busy": "share of the cores in use",
    "memory_used": "share of the GPU memory in use", "clock_mhz": "clock of the GPUs, MHz",
    "throttled": "share of time that GPUs are slowed for heat or power",
}  # fmt: skip


def known_as(name: str) -> str | None:
    """What a column is: `step`, `time`, `tokens`, `samples`, `nodes`, `host`, a key of `MEASURES`, or None."""
    wanted = name.strip().strip('"').lower()
    kinds = {
        "step": STEP, "time": TIME, "tokens": TOKENS, "samples": SAMPLES, "nodes": NODES, "host": HOST, **MEASURES,
    }  # fmt: skip
    return next((kind for kind, names in kinds.items() if wanted in names), None)
