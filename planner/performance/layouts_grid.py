"""Enumeration of parallel layouts within stated bounds, for all cluster sizes of one node size at once.

Bounds (transformers; other models vary data parallelism, micro-batch and ZeRO only):

- tp: divisors of the heads that are compatible with the key-value heads, inside a node a divisor of its accelerators,
  across nodes a multiple of them up to `MAX_TENSOR_ACROSS`; powers of 2 where the heads are not stated;
- pp: every depth whose longest stage is at most `MAX_STAGE_WASTE` of the mean one;
- cp: powers of 2 up to `MAX_CONTEXT` that divide the sequence and leave `MIN_CONTEXT_TOKENS` tokens per accelerator;
- dp: the rest; it divides the global batch; ep: divisors of the experts that divide dp x cp, also across nodes;
- micro-batch: divisors of a replica's batch (of one update, where a step has several), up to a token cap;
- interleaving: 1 to `MAX_INTERLEAVE` virtual stages of at least one layer where the stack has it (tuned);
- ZeRO: 0 (one replica), 1, 2 (without a pipeline) and 3.

Left out because they are never better: ZeRO-0 with several replicas (ZeRO-1 moves the same bytes, holds less), ZeRO-2
under a pipeline (gradients stay whole between micro-batches: the same as ZeRO-1), tensor without sequence parallelism
(same bytes, more activations). Offload is not searched: its speed is not modelled.
Pinned parts replace the bounds of their axis. Quantised frozen weights keep tp = pp = 1
(`planner.performance.post_training.quantized`), networks beside the model (`planner.performance.parts`) pp = cp = 1.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from catalogs.tables.table import Bools, Ints, distinct
from planner.performance.layouts import MAX_INTERLEAVE, Layouts
from planner.performance.post_training.quantized import searched_pin, splits_experts_and_tokens
from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec
from planner.records import record

MAX_TOKENS = 65536
MAX_SAMPLES = 4096
MAX_TABLE_SAMPLES = 131072  # recommenders: their dense networks are small
MAX_TENSOR = 128
MAX_TENSOR_ACROSS = 16
MAX_CONTEXT = 32
MIN_CONTEXT_TOKENS = 2048
MAX_STAGE_WASTE = 1.15
MAX_STAGES = 1024  # more layers than any published model has


@record(frozen=True)
class Bounds:
    """What the enumeration may vary for one job; 0 heads: not stated.

    Attributes:
        update_batch: samples of one optimizer update, which replicas and micro-batches divide.
        updates: of a step: more than 1 where a step of reinforcement learning updates several times.
        beside: expert parallelism may go with context parallelism.
    """

    update_batch: int
    updates: int
    sequence: int
    layers: int
    heads: int
    kv_heads: int
    experts: int
    sampled: bool
    interleaves: bool
    pin: LayoutPin
    most_samples: int = MAX_SAMPLES
    beside: bool = True


@record(frozen=True, eq=False)
class Grid:
    """Layouts of some node sizes and node counts, sorted by both, then by tp, pp, cp and the rest.

    Attributes:
        layout: the layouts, without device rows and recompute levels; shape `(n_layouts,)`.
        at: each layout's position in the list of node counts.
        start: first layout of each node size, and the number of layouts, shape `(n_sizes + 1,)`.
        heads: first layout of each (node size, node count) that has any.
        shards: whether some (tp, pp, cp) divides the cluster, shape `(n_sizes, n_nodes)`; `listed`: and the batch.
        kind: each layout's position among the distinct (tp, cp, ep, micro-batch); `first`: a layout of each kind.
        family: rises with every new (node size, node count, tp, pp).
    """

    layout: Layouts
    at: Ints
    start: Ints
    heads: Ints
    shards: Bools
    listed: Bools
    kind: Ints
    first: Ints
    family: Ints


def build_bounds(model: ModelSpec, training: TrainingSpec, sampled: bool) -> Bounds:
    """Bounds of one job."""
    heads = model.heads or 0
    pin = searched_pin(training)
    if model.parts:
        pin = replace(pin, pipeline_parallel=1, context_parallel=1)
    return Bounds(
        training.update_batch, training.global_batch // max(training.update_batch, 1), training.sequence_length,
        int(model.layers or 1), heads, model.kv_heads or heads, int(model.experts or 1), sampled,
        training.stack == "tuned", pin, MAX_SAMPLES if model.tables is None else MAX_TABLE_SAMPLES,
        splits_experts_and_tokens(training),
    )  # fmt: skip


def divisors(number: int, most: int) -> list[int]:
    """Divisors up to `most`, ascending, in time of at most `most` and the root of the number."""
    small = [d for d in range(1, min(math.isqrt(number), most) + 1) if number % d == 0]
    return sorted(d for d in {*small, *(number // d for d in small)} if d <= most)


def powers(limit: int) -> list[int]:
    """Powers of 2 up to `limit`, at least 1."""
    return [1 << k for k in range(max(limit, 1).bit_length())]


def stages(layers: int) -> list[int]:
    """Pipeline depths whose longest stage has at most `MAX_STAGE_WASTE` times the mean number of layers."""
    deepest = min(layers, MAX_STAGES)
    return [p for p in range(1, deepest + 1) if -(-layers // p) * p <= MAX_STAGE_WASTE * layers]


def tensor_degrees(bounds: Bounds) -> list[int]:
    """Tensor-parallel degrees that the heads allow; the node size is checked by the grid."""
    if bounds.pin.tensor_parallel:
        return [bounds.pin.tensor_parallel]
    if bounds.sampled:
        return [1]
    if not bounds.heads:
        return powers(MAX_TENSOR)
    kv = bounds.kv_heads
    return [
        t
        for t in range(1, min(bounds.heads, MAX_TENSOR) + 1)
        if bounds.heads % t == 0 and (kv % t == 0 or t % kv == 0)
    ]


def pipeline_degrees(bounds: Bounds) -> list[int]:
    """Pipeline depths within bounds."""
    if bounds.pin.pipeline_parallel:
        return [bounds.pin.pipeline_parallel]
    return [1] if bounds.sampled else stages(bounds.layers)


def context_degrees(bounds: Bounds) -> list[int]:
    """Context-parallel degrees within bounds."""
    if bounds.pin.context_parallel:
        return [bounds.pin.context_parallel]
    degrees = [1] if bounds.sampled else powers(min(MAX_CONTEXT, bounds.sequence // MIN_CONTEXT_TOKENS))
    return [degree for degree in degrees if bounds.sequence % degree == 0]


def _micro_batches(bounds: Bounds) -> Ints:
    """Micro-batches to try: what divides the batch of an update, up to the cap."""
    if bounds.pin.micro_batch:
        return np.asarray([bounds.pin.micro_batch])
    cap = bounds.most_samples if bounds.sampled else max(1, MAX_TOKENS // max(1, bounds.sequence))
    return np.asarray(divisors(bounds.update_batch, cap))


def shard_axes(bounds: Bounds) -> Ints:
    """All (tp, pp, cp) within bounds, shape `(n_shards, 3)`, whatever the cluster."""
    axes = np.meshgrid(
        tensor_degrees(bounds), pipeline_degrees(bounds), context_degrees(bounds), indexing="ij"
    )
    return np.stack([np.asarray(axis, dtype=np.int64).ravel() for axis in axes], axis=1)


def fits_node(tp: Ints, count: Ints | int, pinned: bool) -> Bools:
    """Tensor groups that fill nodes evenly; a pinned degree may span nodes in any way."""
    inside, across = count % tp == 0, (tp % count == 0) & (tp <= MAX_TENSOR_ACROSS)
    return np.asarray(inside | across | pinned, dtype=np.bool_)


@lru_cache(maxsize=8)
def grid(counts: tuple[int, ...], nodes: tuple[int, ...], bounds: Bounds) -> Grid:
    """All valid layouts of clusters of `nodes` machines with `counts` accelerators each."""
    axes = shard_axes(bounds)
    count, machines = (axis.ravel() for axis in np.meshgrid(counts, nodes, indexing="ij"))
    devices, size = count * machines, axes.prod(axis=1)
    fits = devices[:, None] % size[None, :] == 0
    fits &= fits_node(axes[None, :, 0], count[:, None], bounds.pin.tensor_parallel is not None)
    cluster, shard = np.nonzero(fits)
    dp = devices[cluster] // size[shard]
    divides = bounds.update_batch % dp == 0
    cluster, shard, dp, micro, number = _with_batches(bounds, cluster[divides], shard[divides], dp[divides])
    tp, pp, cp = axes[shard].T
    columns = _with_options(bounds, cluster, tp, pp, cp, dp, micro, number)
    cluster, tp, pp, cp, ep, dp, zero, micro, number, virtual = columns
    on = bounds.pin.sequence_parallel
    sequence = (tp > 1) & (True if on is None else on)
    zeros = np.zeros(len(cluster), dtype=np.int64)
    named = (machines[cluster], tp, pp, cp, ep, dp, zero, micro, number, virtual, sequence, zeros)
    layouts = Layouts(zeros, *(column.astype(np.float64) for column in named))
    shape = len(counts), len(nodes)
    sizes = np.bincount(cluster, minlength=len(count))
    ends = np.cumsum(sizes)
    new = np.zeros(len(cluster), dtype=np.int64)
    for column in (cluster, tp, pp):
        new[1:] |= column[1:] != column[:-1]
    return Grid(
        layouts, cluster % len(nodes), np.append(0, ends[len(nodes) - 1 :: len(nodes)]), (ends - sizes)[sizes > 0],
        fits.any(axis=1).reshape(shape), (sizes > 0).reshape(shape), *_kinds(tp, cp, ep, micro), np.cumsum(new),
    )  # fmt: skip


def _kinds(*columns: Ints) -> tuple[Ints, Ints]:
    """Number the distinct rows of some columns: each row's number, and the first row of each number."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    _, first, kind = distinct(code)
    return kind, first


def _with_batches(bounds: Bounds, at: Ints, shard: Ints, dp: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Pair every layout with the micro-batches that divide its replica's batch."""
    batches, replica = _micro_batches(bounds), bounds.update_batch // dp
    row, which = np.nonzero(replica[:, None] % batches[None, :] == 0)
    micro = batches[which]
    return at[row], shard[row], dp[row], micro, replica[row] // micro * bounds.updates


def _with_options(
    bounds: Bounds, at: Ints, tp: Ints, pp: Ints, cp: Ints, dp: Ints, micro: Ints, number: Ints
) -> list[Ints]:
    """Add expert parallelism, ZeRO stage and interleaving to every layout."""
    pin, ranks = bounds.pin, dp * cp
    eps = [pin.expert_parallel] if pin.expert_parallel else divisors(bounds.experts, bounds.experts)
    zeros = [0, 1, 2, 3] if pin.zero_stage is None else [pin.zero_stage]
    deepest = int(MAX_INTERLEAVE) if bounds.interleaves else 1
    virtuals = [pin.interleave] if pin.interleave else list(range(1, deepest + 1))
    axes = np.meshgrid(eps, zeros, virtuals, indexing="ij")
    ep, zero, virtual = (np.asarray(axis, dtype=np.int64).ravel() for axis in axes)
    # Pinned experts may also be spread over tensor ranks (Megatron-LM's expert tensor parallelism of 1).
    spread = ranks * tp if pin.expert_parallel else ranks
    ok = (spread[:, None] % ep == 0) & (bounds.beside | (ep == 1) | (cp == 1)[:, None])
    if pin.zero_stage is None:
        alone, flat = (ranks == 1)[:, None], (pp == 1)[:, None]
        ok &= np.where(alone, zero == 0, (zero == 1) | (zero == 3) | (flat & (zero == 2)))
    # Interleaved stages take turns in groups of pp micro-batches (Megatron-LM SC'21).
    turns = (number // bounds.updates % pp == 0) | (pin.interleave is not None)
    deep = (virtual * pp[:, None] <= bounds.layers) & turns[:, None] & (pp > 1)[:, None]
    ok &= (virtual == 1) | deep
    row, option = np.nonzero(ok)
    return [
        at[row], tp[row], pp[row], cp[row], ep[option], dp[row], zero[option], micro[row], number[row],
        virtual[option],
    ]  # fmt: skip
