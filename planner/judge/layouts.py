"""The parallel layout of a plan, and those of the phases of a run, as the performance model has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.judge.findings import IfStated, Near
from planner.performance.phases import phase_jobs
from planner.performance.search import estimate_shapes

if TYPE_CHECKING:
    from planner.judge.bench import Bench, Candidate

LAYOUT = {
    "tensor_parallel": "tp", "pipeline_parallel": "pp", "context_parallel": "cp", "data_parallel": "dp",
    "zero_stage": "zero_stage", "micro_batch": "micro_batch", "grad_accumulation": "grad_accum",
    "recompute": "recompute", "expert_parallel": "ep", "interleave": "interleave",
    "sequence_parallel": "sequence_parallel",
}  # fmt: skip


def layout(bench: Bench, shape: dict[str, Any]) -> dict[str, Any]:
    """The layout predicted to be the fastest; an update of a step of rollouts has its share of the micro-batches."""
    out = {name: shape[key] for name, key in LAYOUT.items()}
    whole: dict[str, Any] = {
        name: bool(v) if name == "sequence_parallel" else v if isinstance(v, str) else int(v)
        for name, v in out.items()
    }
    rollouts = bench.workload.training and bench.workload.training.rollouts
    if not rollouts:
        return whole
    batch = whole["data_parallel"] * whole["micro_batch"] * whole["grad_accumulation"]
    updates = batch // (rollouts.update_batch or batch)
    each = whole["grad_accumulation"] // updates
    return {**whole, "grad_accumulation": each, "updates": updates, "passes": rollouts.epochs}


def phases(bench: Bench, candidate: Candidate, ratio: float) -> dict[str, Any]:
    """The layout of each phase and its step time to within `ratio`, in turn.

    Answers leave layouts out where there is but one, both where there are no phases.
    """
    work, hardware = bench.work, candidate.parts[0].offer.hardware
    shapes = [
        estimate_shapes(*job, hardware, (candidate.nodes,)).row(0)
        for job in phase_jobs(work.model, work.training)
    ]
    each = [layout(bench, shape) for shape in shapes]
    return {
        "phase_layouts": IfStated(each if any(one != each[0] for one in each) else None),
        "phase_step_times_s": IfStated(
            [Near(float(shape["step_time_s"]), ratio) for shape in shapes] or None
        ),
    }
