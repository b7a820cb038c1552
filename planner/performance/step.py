"""From micro-batches to optimizer steps: pipeline, collectives, optimizer, data loading.

Step = m x slowest stage + other stages / v + exposed synchronisation + optimizer + fixed (1F1B and interleaved
schedules: Megatron-LM SC'21, arXiv 2104.04473), stretched where data loading is slower.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalogs.tables.rows import pick
from catalogs.tables.table import Bools, Floats, Ints
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.layouts import Layouts, expert_shards
from planner.performance.links import Links, all_reduce_s, send_s
from planner.performance.micro import Micro
from planner.performance.spec import COMPONENTS
from planner.performance.work import Work
from planner.records import record

# What each optimizer update of a step pays again; the rest grows with passes over the samples.
_PER_UPDATE = frozenset(("dp_comm_s", "optimizer_s", "bubble_s", "fixed_s"))


@record(frozen=True)
class Step:
    """Seconds per optimizer step, a row a layout, split by cause (`COMPONENTS`); the parts sum to `total`."""

    total: Floats
    parts: dict[str, Floats]

    @property
    def _spread(self) -> dict[str, Floats]:
        """The parts in the shape of the total; one may be one number for all."""
        shape = self.total.shape
        return {
            name: part if np.shape(part) == shape else np.broadcast_to(part, shape)
            for name, part in self.parts.items()
        }

    def take(self, index: Ints) -> Step:
        """Some of the steps."""
        parts = {name: pick(part, index) for name, part in self._spread.items()}
        return Step(pick(self.total, index), parts)

    @staticmethod
    def join(steps: Sequence[Step]) -> Step:
        """Steps one after another, of the same parts."""
        if len(steps) == 1:
            return steps[0]
        parts = {name: np.concatenate([step._spread[name] for step in steps]) for name in steps[0].parts}
        return Step(np.concatenate([step.total for step in steps]), parts)


def _sync_s(
    work: Work, devices: Devices, layout: Layouts, micro: Micro, links: Links, stack: str, c: Constants
) -> Floats:
    """Gradient and weight traffic over data-parallel ranks that computation does not hide, s per step.

    Ranks of one expert group hold different experts: what an expert shares, it shares with the r / e ranks that hold
    it too, which lie in other nodes as soon as the group fills the node (Megatron-LM's expert data parallelism).
    """
    ranks = layout.dp * layout.cp
    room = np.maximum(np.floor(devices.domain / layout.tp), 1.0)
    inside = np.minimum(ranks, room)
    apart = np.minimum(layout.ep, ranks)
    copies = np.maximum(ranks / apart, 1.0)
    near = np.clip(np.floor(inside / apart), 1.0, copies)

    def shared_s(dense: Floats, experts: Floats, passes: float = 2.0) -> Floats:
        time = all_reduce_s(dense, ranks, inside, devices.count, links, passes)
        if not work.expert_params.any():
            return time
        return time + np.where(
            experts > 0.0, all_reduce_s(experts, copies, near, devices.count, links, passes), 0.0
        )

    stage_layers = np.ceil(work.layers / layout.pp)
    dense = (work.layer_params - work.expert_params) / layout.tp
    experts = work.expert_params / expert_shards(layout)
    ends = work.embed_params / layout.tp / np.minimum(layout.pp, 2.0)
    adapters = work.trainable_params / (layout.tp * layout.pp)
    trained = np.where(work.lora > 0, adapters, stage_layers * dense + ends)
    trained_experts = np.where(work.lora > 0, 0.0, stage_layers * experts)
    once = shared_s(trained * work.sync_bytes, trained_experts * work.sync_bytes)
    # FSDP gathers the weights twice and scatters the gradients once per micro-batch; a frozen model is only gathered.
    passes = 1.0 + work.backward * np.where(work.lora > 0, 1.0, 2.0)
    layer_params = dense + experts
    whole = all_reduce_s(layer_params * work.element_bytes, ranks, inside, devices.count, links, 1.0)
    # Frozen weights in 4 or 8 bits are sharded and gathered as they are packed, the tables in 16 bit.
    packed = np.where(work.dequantised > 0, work.frozen_bytes, work.element_bytes)
    gather = shared_s(dense * packed, experts * packed, 1.0)
    # Under a pipeline the stage stays gathered for the whole step.
    rounds = np.where(layout.pp > 1, 1.0, layout.micro_batches)
    sharded = rounds * passes * (stage_layers * gather + ends / np.maximum(layer_params, 1.0) * whole)
    stage_forward = stage_layers * micro.forward
    stage_backward = stage_layers * micro.backward
    # ZeRO-2 keeps only its share of the gradients: it scatters them per micro-batch and gathers the weights once.
    scatters = np.where((layout.zero == 2) & (layout.pp == 1), layout.micro_batches, 1.0)
    once = once * (scatters + 1.0) / 2.0
    full = layout.zero >= 3
    time = np.where(ranks > 1, np.where(full, sharded, once), 0.0)
    window = np.where(full, rounds * (stage_forward + stage_backward), scatters * stage_backward)
    hidden = c.of_stack("dp.overlap_ratio", stack) * window
    # The first weights and the last gradients have nothing to hide behind.
    share = np.where(devices.domain > devices.count, c["dp.exposed_ratio.rack"], c["dp.exposed_ratio"])
    exposed: Floats = np.maximum(time - hidden, share * time)
    return exposed


def _optimizer_s(work: Work, devices: Devices, layout: Layouts, stack: str, c: Constants) -> Floats:
    """Reading and writing states, gradients and weights, sharded from ZeRO-1 on, and its launches per layer."""
    ranks = np.where(layout.zero >= 1, layout.dp * layout.cp, 1.0)
    share = work.trainable_params / (layout.tp * layout.pp * ranks)
    moved = share * (2.0 * work.opt_bytes + work.grad_bytes + work.weight_bytes)
    learns = np.where(work.trainable_params > 0, 1.0, 0.0)
    launches = learns * c.of_stack("optimizer.layer_s", stack) * np.ceil(work.layers / layout.pp)
    result: Floats = moved / (devices.memory_rate * c.of_stack("optimizer.bandwidth_ratio", stack)) + launches
    return result


def loading_s(work: Work, devices: Devices, layout: Layouts, c: Constants) -> Floats:
    """Time to read and decode one global batch: storage, network and CPU cores work at the same time, s."""
    return node_loading_s(
        work.global_batch / layout.nodes, work.bytes_per_sample, work.decode_rate, devices, c
    )


def node_loading_s(
    samples: Floats | float,
    bytes_each: Floats | float,
    decode_rate: Floats | float,
    devices: Devices,
    c: Constants,
) -> Floats:
    """Time in which a node reads and decodes samples, s.

    Args:
        samples: how many.
        bytes_each: stored bytes of a sample.
        decode_rate: samples/s of a core; 0 where it is not known or nothing is to be decoded.
        devices: device rows.
        c: constants.
    """
    storage = c["data.storage_gb_per_s"] * 1e9
    rate = np.fmin(storage, devices.node_rate * c["data.network_ratio"])
    read = samples * bytes_each / rate
    cores = np.where(np.isnan(devices.vcpus), 0.0, devices.vcpus) * c["data.cores_per_vcpu"]
    known = (np.asarray(decode_rate) > 0) & (cores > 0)
    decode = np.where(known, samples / np.maximum(decode_rate * cores, 1e-9), 0.0)
    result: Floats = np.maximum(read, decode)
    return result


def step_time(
    work: Work,
    devices: Devices,
    links: Links,
    layout: Layouts,
    micro: Micro,
    comm: Floats,
    stack: str,
    c: Constants,
) -> Step:
    """Time of one optimizer step; all arguments have (or broadcast to) the shape of `layout`."""
    m, pp = layout.micro_batches, layout.pp
    stage_layers = np.ceil(work.layers / pp)
    full, selective = layout.recompute >= 2, layout.recompute == 1
    partly = np.where(work.materialised > 0, micro.attention, c["recompute.selective_ratio"] * micro.forward)
    again = work.backward * np.where(full, micro.forward, np.where(selective, partly, 0.0))
    layer = micro.forward + micro.backward + again
    saved = _spared(work, layout, layer, micro.head)
    stage = stage_layers * layer + micro.head - saved
    volume = micro.tokens * work.hidden * work.element_bytes / layout.tp
    crosses = (layout.nodes > 1) & (layout.tp * layout.cp * layout.dp * 2.0 > devices.domain)
    send = np.where(pp > 1, 2.0 * send_s(volume, crosses.astype(np.float64), devices.count, links), 0.0)
    send = send * layout.interleave * c["pp.exposed_ratio"]
    exposed = _sync_s(work, devices, layout, micro, links, stack, c)
    stage_comm = stage_layers * (1.0 + work.backward * np.where(full, 2.0, 1.0)) * comm
    busy = _busy(work, micro, stage_layers, full, again) - saved
    bound = np.clip(stage - stage_comm - busy, 0.0, stage - stage_comm)
    others = (work.layers - stage_layers) * layer + saved
    waiting = c["straggler.per_doubling"] * np.log2(layout.nodes) * m * stage
    parts = {
        "compute_s": m * (stage - stage_comm - bound),
        "memory_bound_s": m * bound,
        "tp_comm_s": m * stage_comm,
        "pp_comm_s": m * send,
        "bubble_s": (others + (pp - 1.0) * send) / layout.interleave * c["pp.bubble_ratio"],
        "dp_comm_s": exposed + waiting,
        "optimizer_s": _optimizer_s(work, devices, layout, stack, c),
        "fixed_s": np.broadcast_to(c.of_stack("fixed.step_s", stack), m.shape),
    }
    if (work.updates != 1.0).any() or (work.epochs != 1.0).any():
        each = {name: work.updates if name in _PER_UPDATE else work.epochs for name in parts}
        parts = {name: part * each[name] for name, part in parts.items()}
    further = (work.forward_passes > 0) | (work.learners > 1) | (work.evaluated > 0) | (work.pair_width > 0)
    if further.any():
        parts = _with_passes(work, layout, micro, parts)
    return _finish(work, devices, layout, parts, c)


def _spared(work: Work, layout: Layouts, layer: Floats, head: Floats) -> Floats:
    """What the slowest stage does not take of a layer and the output layer, s per micro-batch.

    Only the last stage has the output layer, so the others wait for it once per micro-batch, unless it has a layer
    less than they: where layers do not divide evenly, trainers give the ends of a pipeline fewer (Megatron-LM's
    `account_for_loss_in_pipeline_split`).
    """
    uneven = np.ceil(work.layers / layout.pp) * layout.pp > work.layers
    return np.where(uneven, np.minimum(layer, head), 0.0)


def _with_passes(work: Work, layout: Layouts, micro: Micro, parts: dict[str, Floats]) -> dict[str, Floats]:
    """Add the passes of other models, of a second learner, of a contrastive loss and of evaluation."""
    m = layout.micro_batches
    # Reference, teacher or old policy run forward once over every sample; a second learner repeats all of a step.
    stage_layers = np.ceil(work.layers / layout.pp)
    head = micro.head / (1.0 + 2.0 * work.backward)
    forward = m * (stage_layers * micro.forward + head - _spared(work, layout, micro.forward, head))
    again = sum((parts[name] for name in parts if name != "fixed_s"), np.zeros(m.shape))
    others = work.forward_passes * forward + (work.learners - 1.0) * again
    # A contrastive loss needs the embeddings of the whole batch: where it takes several micro-batches, a first forward
    # pass makes them (Gao et al. 2021, arXiv 2101.06983).
    cached = (work.pair_width > 0) & (work.backward > 0) & (m > 1)
    compute = parts["compute_s"] + np.where(cached, forward, 0.0)
    return {
        **parts, "compute_s": compute, "other_models_s": others, "evaluation_s": work.evaluated * forward,
    }  # fmt: skip


def _busy(work: Work, micro: Micro, stage_layers: Floats, full: Bools, again: Floats) -> Floats:
    """Matmul and attention time of a stage per micro-batch; what is left is memory traffic and launches, s."""
    attention = (1.0 + work.backward * np.where(work.materialised > 0, 2.0, 2.5)) * micro.attention
    core = micro.gemm + micro.gemm_backward + attention
    repeated = work.backward * np.where(
        full, micro.gemm + micro.attention, np.minimum(again, micro.attention)
    )
    result: Floats = stage_layers * (core + repeated) + micro.head
    return result


def learned_ratio(work: Work, devices: Devices, nodes: Floats) -> Floats:
    """Factor on the whole step that no equation gives: of the machine, of adapters, of an accelerator alone.

    Ranks of one job wait for the slowest, and their collectives take bandwidth and cores from the kernels beside them,
    whatever their volume: one accelerator alone does neither.
    """
    alone = np.where(nodes * devices.count == 1.0, devices.alone, 1.0)
    result: Floats = devices.multiplier * work.adapter_ratio * alone
    return result


def _finish(work: Work, devices: Devices, layout: Layouts, parts: dict[str, Floats], c: Constants) -> Step:
    """Apply the learned factors, clip at the roofline, add data loading beyond the step; missing parts are 0."""
    learned = learned_ratio(work, devices, layout.nodes)
    parts = {name: part * learned for name, part in parts.items()}
    total: Floats = sum(parts.values(), np.zeros(layout.nodes.shape))
    accelerators = layout.nodes * devices.count
    ideal = (
        work.flops_per_sample
        * work.global_batch
        / (accelerators * np.maximum(devices.gemm_peak, devices.attn_peak))
    )
    short = np.maximum(ideal - total, 0.0)
    parts["compute_s"] = parts["compute_s"] + short
    total = total + short
    loading = np.maximum(loading_s(work, devices, layout, c) - total, 0.0)
    nothing = np.zeros(total.shape)
    missing = [name for name in COMPONENTS if name not in parts and name != "data_loading_s"]
    return Step(total + loading, {**parts, **dict.fromkeys(missing, nothing), "data_loading_s": loading})
