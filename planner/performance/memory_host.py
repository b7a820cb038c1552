"""What a node's host memory and local disks must hold beside the accelerators, and what offload moves over PCIe.

Offload follows ZeRO-Offload (Ren et al. 2021, arXiv 2101.06840): 32-bit states and gradients live in host memory and
the update runs there; checkpointed layer inputs may live there as well (ZeRO-Infinity, arXiv 2104.07857).
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.layouts import Layouts
from planner.performance.memory import FULL, GIB, needed_gib
from planner.performance.memory_activations import layers_in_flight, longest_tokens
from planner.performance.memory_risk import usable_gib
from planner.performance.memory_states import held_params, sharing_ranks
from planner.performance.memory_work import Footprint
from planner.performance.step import Step

HOST_PARTS = ("system_gib", "processes_gib", "loader_gib", "checkpoint_gib", "offload_gib")


def host_needs(job: Footprint, layout: Layouts, per_node: Floats, c: Constants) -> dict[str, Floats]:
    """Host memory per node by part, GiB, each of the layouts' shape.

    Args:
        job: what the job keeps.
        layout: the layouts.
        per_node: accelerators per node, one process each.
        c: constants.

    Returns:
        The operating system; one process per accelerator; loader workers with the batches they prefetch and pin; the
        node's part of a checkpoint on its way to storage; what is offloaded.
    """
    work = job.work
    workers = c["memory.host.workers_per_process"]
    batches = workers * c["memory.host.prefetched_batches"] + 1.0
    samples = batches * layout.micro_batch * work.bytes_per_sample / GIB
    weights = np.where(work.lora > 0, 0.0, job.weight_bytes)
    checkpoint = (weights + job.opt_bytes) * work.trainable_params / layout.nodes / GIB
    shape = layout.nodes.shape
    parts = {
        "system_gib": np.full(shape, c["memory.host.system_gib"]),
        "processes_gib": per_node * c["memory.host.process_gib"],
        "loader_gib": per_node * (workers * c["memory.host.worker_gib"] + samples),
        "checkpoint_gib": checkpoint,
        "offload_gib": per_node * offloaded_bytes(job, layout) / GIB,
    }
    return {name: np.broadcast_to(value, shape) for name, value in parts.items()}


def offloaded_bytes(job: Footprint, layout: Layouts) -> Floats:
    """Bytes per accelerator that live in host memory instead."""
    work = job.work
    dense, experts, ends = held_params(job, layout)
    ranks, _ = sharing_ranks(job, layout)
    held = np.where(work.lora > 0, work.trainable_params / (layout.tp * layout.pp), dense + experts)
    states = held * (job.opt_bytes + np.where(layout.zero >= 2, job.grad_bytes, 0.0))
    states = job.offload_optimizer * np.where(layout.zero >= 1, states / ranks, states)
    zero3 = layout.zero >= 3
    # Quantised layers have fewer bits, as on the accelerator.
    saved = np.where(work.dequantised > 0, job.weight_bytes - work.frozen_bytes, 0.0) * (
        dense - ends + experts
    )
    whole = (dense + experts) * job.weight_bytes - saved
    weights = job.offload_weights * np.where(zero3, whole / ranks, 0.0)
    return states + weights + _offloaded_activations(job, layout)


def _offloaded_activations(job: Footprint, layout: Layouts) -> Floats:
    if job.sampled:
        return np.zeros(layout.tp.shape)
    tokens = longest_tokens(job, layout)
    shards = np.where(layout.sequence_parallel > 0, layout.tp, 1.0)
    kept = tokens * job.input_bytes / shards * layers_in_flight(job, layout)[0]
    return np.where(layout.recompute == FULL, job.offload_activations * kept, 0.0)


def offload_traffic_s(job: Footprint, layout: Layouts, pcie_bytes_per_s: Floats) -> Floats:
    """Seconds per step that offload needs on PCIe, one direction at a time, were nothing hidden.

    Gradients go down and 16-bit weights come up once per step; offloaded activations go down and up per micro-batch.
    """
    work = job.work
    dense, experts, _ = held_params(job, layout)
    held = np.where(work.lora > 0, work.trainable_params / (layout.tp * layout.pp), dense + experts)
    own = np.where(layout.zero >= 1, held / sharing_ranks(job, layout)[0], held)
    once = job.offload_optimizer * own * (job.grad_bytes + job.weight_bytes)
    in_flight = np.minimum(layout.pp, layout.micro_batches)
    again = 2.0 * _offloaded_activations(job, layout) * layout.micro_batches / in_flight
    result: Floats = (once + again) / pcie_bytes_per_s
    return result


def with_offload(job: Footprint, devices: Devices, layout: Layouts, step: Step, c: Constants) -> Step:
    """Add what offload costs: the update in host memory, and traffic that the step does not hide.

    All processes of a node share its memory; traffic overlaps with all but `offload.exposed_ratio` of the step.
    """
    work = job.work
    states = work.trainable_params * (2.0 * job.opt_bytes + job.grad_bytes + job.weight_bytes) / layout.nodes
    replicas = np.where(layout.zero >= 1, 1.0, np.minimum(layout.dp, devices.count))
    update = job.offload_optimizer * states * replicas / (c["offload.host_gb_per_s"] * 1e9)
    moved = offload_traffic_s(job, layout, devices.pcie_rate * c["offload.pcie_ratio"])
    share = c["offload.exposed_ratio"]
    exposed = np.maximum(moved - (1.0 - share) * step.total, share * moved)
    extra = np.where(job.paged > 0, _spilled_s(job, devices, layout, c), update + exposed)
    return Step(step.total + extra, {**step.parts, "offload_s": extra})


def _spilled_s(job: Footprint, devices: Devices, layout: Layouts, c: Constants) -> Floats:
    """Paged states are updated on the accelerator; those that do not fit there come and go each step.

    The link carries both ways at once: one page leaves while the next comes.
    """
    states = offloaded_bytes(job, layout) / GIB
    room = usable_gib(devices.memory_gib, devices.memory_rate, c) - needed_gib(job, layout, c)
    spilled = np.clip(states - np.maximum(room, 0.0), 0.0, states) * GIB
    result: Floats = spilled / (devices.pcie_rate * c["offload.pcie_ratio"])
    return result
