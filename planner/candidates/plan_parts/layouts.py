"""Parallel layouts of a chosen candidate: that of the run, and those of its phases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.plan.layout import Layout

if TYPE_CHECKING:
    from planner.candidates.model import Candidates


def layout_of(candidates: Candidates, at: int) -> Layout:
    """The layout of candidate `at`; of a run in phases that of the phase that takes longest."""
    return _layout(candidates, candidates.shapes.row(int(candidates.shape[at])))


def phases_of(candidates: Candidates, at: int) -> dict[str, Any]:
    """Fields of a plan on the phases of the run of candidate `at`, in their order; empty where it has none.

    `phase_layouts` is left out where all share one. Measured runs correct the steps of all phases as their mean.
    """
    job, offers = candidates.context.asked.job, candidates.context.market.offer_set
    if not job.training.phases:
        return {}
    from planner.performance.phases import phase_jobs
    from planner.performance.search import estimate_shapes

    row = int(offers.hardware_of_type[offers.type_of_offer[candidates.offer[at]]])
    hardware, nodes = offers.hardware.take(np.asarray([row])), (int(candidates.nodes[at]),)
    each = [estimate_shapes(*phase, hardware, nodes).row(0) for phase in phase_jobs(job.model, job.training)]
    layouts = tuple(_layout(candidates, shape) for shape in each)
    times = [float(shape["step_time_s"]) for shape in each]
    mean = sum(phase.step_share * time for phase, time in zip(job.training.phases, times, strict=True))
    corrected = float(candidates.shapes["step_time_s"][candidates.shape[at]]) / mean
    return {
        "phase_layouts": layouts if len(set(layouts)) > 1 else None,
        "phase_step_times_s": tuple(time * corrected for time in times),
    }


def _layout(candidates: Candidates, shape: dict[str, Any]) -> Layout:
    updates, passes = candidates.context.asked.job.training.updates_and_passes or (None, None)
    return Layout(
        tensor_parallel=shape["tp"], pipeline_parallel=shape["pp"], context_parallel=shape["cp"],
        data_parallel=shape["dp"], zero_stage=shape["zero_stage"], micro_batch=shape["micro_batch"],
        grad_accumulation=shape["grad_accum"] // (updates or 1), recompute=shape["recompute"],
        expert_parallel=shape["ep"], interleave=shape["interleave"],
        sequence_parallel=bool(shape["sequence_parallel"]), updates=updates, passes=passes,
    )  # fmt: skip
