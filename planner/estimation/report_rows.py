"""The machine and the flat form of an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.estimation.report_inference import answered_values
from planner.estimation.report_prices import PRICE_COLUMNS, flat_prices, price_values
from planner.plan.plain import plain

if TYPE_CHECKING:
    from planner.estimation.values import Estimate

COLUMNS = (
    "workload", "provider", "instance_type", "accelerator", "nodes", "accelerators", "fits", "reason",
    "throughput_per_s", "throughput_low_per_s", "throughput_high_per_s", "throughput_per_accelerator_per_s", "unit",
    "step_time_s", "step_time_low_s", "step_time_high_s", "mfu_ratio", "hfu_ratio", "limited_by", "memory_needed_gib",
    "memory_usable_gib", "oom_ratio", "tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel",
    "expert_parallel", "interleave", "sequence_parallel", "zero_stage", "micro_batch", "grad_accumulation",
    "updates", "passes", "recompute", "precision", "stack", "learned_factor", "calibration", "total_flops",
    "wall_hours", "accelerator_hours", "accelerator_hours_low", "accelerator_hours_high", "goodput_ratio", "doubts",
    *PRICE_COLUMNS,
)  # fmt: skip


def values_of(item: Estimate) -> dict[str, Any]:
    """The machine form of one estimate."""
    speed, step = item.throughput_per_s, item.step_s
    return {
        "provider": item.machine.provider,
        "instance_type": item.machine.instance_type,
        "accelerator": item.machine.accelerator,
        "nodes": item.nodes,
        "accelerators": item.accelerators,
        "fits": not item.reason,
        "reason": item.reason or None,
        "unit": item.unit,
        "throughput_per_s": speed and speed.value,
        "throughput_low_per_s": speed and speed.low,
        "throughput_high_per_s": speed and speed.high,
        "throughput_per_accelerator_per_s": speed and speed.value / item.accelerators,
        "step_time_s": step and step.value,
        "step_time_low_s": step and step.low,
        "step_time_high_s": step and step.high,
        "mfu_ratio": item.mfu,
        "hfu_ratio": item.hfu,
        "breakdown_s": dict(item.breakdown_s) or None,
        "limited_by": item.limited_by or None,
        "layout": None if item.layout is None else plain(item.layout),
        **_run_values(item),
        **answered_values(item.answered),
        **price_values(item),
        **_machine_values(item),
        "precision": item.precision,
        "stack": item.stack,
        "learned_factor": item.learned_factor,
        "calibration": item.calibration or None,
        "doubts": list(item.doubts),
        **_instead_values(item),
    }


def _run_values(item: Estimate) -> dict[str, Any]:
    """The whole run."""
    run = item.run
    if run is None:
        return {"run": None}
    total, wall = run.accelerator_hours, run.wall_hours
    return {
        "run": {
            "total_flops": run.flops,
            "step_hours": run.step_hours,
            "evaluation_hours": run.evaluation_hours,
            "beside_steps_hours": run.beside_hours,
            "checkpoints_and_interruptions_hours": run.stop_hours,
            "startup_hours": run.startup_hours,
            "wall_hours": wall.value,
            "wall_hours_low": wall.low,
            "wall_hours_high": wall.high,
            "accelerator_hours": total.value,
            "accelerator_hours_low": total.low,
            "accelerator_hours_high": total.high,
            "goodput_ratio": run.goodput.value,
            "goodput_low_ratio": run.goodput.low,
            "goodput_high_ratio": run.goodput.high,
            "stops": run.stops,
            "checkpoint_interval_hours": run.checkpoint_interval_hours,
        }
    }


def _machine_values(item: Estimate) -> dict[str, Any]:
    """What the run asks of accelerators, disks and host."""
    return {
        "memory": {
            "needed_gib": item.memory.needed_gib,
            "usable_gib": item.memory.usable_gib,
            "allowed_gib": item.memory.allowed_gib,
            "free_gib": item.memory.free_gib,
            "parts_gib": dict(item.memory.parts) or None,
            "oom_ratio": item.memory.oom_ratio,
        },
        "data_loading": None if item.loading is None else {
            "seconds_per_step_s": item.loading.seconds,
            "share_ratio": item.loading.share_ratio,
            "busy_ratio": item.loading.busy_ratio,
            "passes": item.loading.passes,
        },
        "host": {
            "checkpoint_per_node_gib": item.host.checkpoint_gib,
            "memory_gib": item.host.memory_gib,
            "memory_needed_gib": item.host.needed_gib,
            "local_nvme_gib": item.host.nvme_gib,
            "staged_data_gib": item.host.data_gib,
        },
    }  # fmt: skip


def _instead_values(item: Estimate) -> dict[str, Any]:
    """Other layouts, and what would fit where this does not."""
    return {
        "other_layouts": [] if item.others is None else [
            {
                "layout": other.words,
                "step_time_over_best_ratio": other.over_best_ratio,
                "memory_gib": other.memory_gib,
                "loses_s": dict(other.loses),
            }
            for other in item.others.others
        ],
        "nearest_fit": None if item.remedy is None else {
            "nodes": item.remedy.nodes,
            "released": list(item.remedy.dropped),
            "throughput_per_s": item.remedy.throughput_per_s,
            "layout": plain(item.remedy.layout),
        },
    }  # fmt: skip


def row_of(name: str, item: Estimate) -> dict[str, Any]:
    """The flat form of one estimate, under `COLUMNS`."""
    values = values_of(item)
    flat = {**values, **(values["layout"] or {}), "workload": name, "fits": "yes" if values["fits"] else "no"}
    memory = values["memory"]
    flat |= {"memory_needed_gib": memory["needed_gib"], "memory_usable_gib": memory["usable_gib"]}
    flat["oom_ratio"] = memory["oom_ratio"]
    flat |= values["run"] or {}
    if item.answered is not None:
        hours, count = item.answered.hours, item.accelerators
        flat |= {"wall_hours": hours.value, "accelerator_hours": hours.value * count}
        flat |= {"accelerator_hours_low": hours.low * count, "accelerator_hours_high": hours.high * count}
    flat["doubts"] = "; ".join(values["doubts"])
    flat |= flat_prices(item)
    return {name: flat.get(name) for name in COLUMNS}


# What the largest part of the step means and what would change it.
LIMITS = {
    "compute": "matrix products and attention: a faster chip or a lower precision would help",
    "memory_bound": "memory bandwidth and kernel launches: a leaner software stack or larger micro-batches would help",
    "tp_comm": "traffic inside layers (tensor, context, expert parallel): a faster link, or splitting less, would help",
    "pp_comm": "traffic between pipeline stages: a faster network, or fewer stages, would help",
    "bubble": "idle pipeline stages: more micro-batches, or fewer stages, would help",
    "dp_comm": "gradient traffic and stragglers: a faster network, a larger batch or fewer nodes would help",
    "optimizer": "the optimizer step: sharding it (ZeRO-1 and up), or a larger batch, would help",
    "data_loading": "data loading: faster storage, more CPU cores or pre-decoded data would help",
    "other_models": "log-probabilities, frozen networks: what does not change can be computed beforehand",
    "generation": "generating responses: memory bandwidth and the longest responses; a faster engine would help",
    "evaluation": "evaluation in the run: fewer samples, or rarer evaluation, would help",
    "refit": "new weights on their way to the engines: a faster link would help",
    "offload": "states in host memory: more accelerators, or fewer states (8 bit, adapters), would help",
    "fixed": "fixed time per step: a larger batch per accelerator would help",
}
PARTS = {
    "compute": "matrix products, attention",
    "memory_bound": "memory-bound, launches",
    "tp_comm": "tensor, context, expert parallel",
    "pp_comm": "pipeline transfers",
    "bubble": "pipeline bubble",
    "dp_comm": "gradients, stragglers",
    "optimizer": "optimizer",
    "data_loading": "waiting for data",
    "other_models": "log-probabilities, frozen networks",
    "offload": "offload",
    "generation": "generation of responses",
    "refit": "weights to the engine",
    "evaluation": "evaluation",
    "fixed": "fixed",
}
