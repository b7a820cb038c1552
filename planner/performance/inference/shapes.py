"""Batch inference on clusters: the best replica per (hardware type, node count), as the table of `estimate_shapes`.

A step answers `global_batch` requests, spread evenly over replicas that share nothing; each replica is one group of
tensor-parallel accelerators inside a node. Models that do not generate are timed by the share of the peak that their
class was measured to reach; convolutional networks and vision transformers, which memory limits, also by what they
move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from catalogs.tables.table import Bools, Coded, Floats, Ints, Table
from planner.performance.constants import Constants, load_constants
from planner.performance.device import Devices, build_devices
from planner.performance.inference.beyond import prompt_ratio
from planner.performance.inference.cases import GIB, build_cases, efficiency, rate_spread
from planner.performance.inference.chips import stored_bytes
from planner.performance.inference.rates import (
    MEMORY_SHARE,
    all_bytes,
    held_bytes,
    prefill_s,
    room,
    round_s,
    sequences,
    step_s,
)
from planner.performance.inference.rollouts import tail_s
from planner.performance.kernels import score_ratio
from planner.performance.memory_risk import usable_gib
from planner.performance.post_training.spec import Requests
from planner.performance.spec import COMPONENTS, ModelSpec, TrainingSpec, answer_bytes
from planner.performance.step import node_loading_s
from planner.performance.work import layer_params
from planner.performance.work_sampled import sampled_activations
from planner.records import record

# Least room for keys and values beside the weights: sequences of mean length.
LEAST_SEQUENCES = 4.0


@record(frozen=True, eq=False)
class Replica:
    """The best replica on each device row; rates in samples/s of the whole node, 0 where none fits.

    Attributes:
        per_node: samples per second of a node; `tp`: accelerators of a replica.
        need_gib: weights, keys and values per accelerator; `least_gib`: of the smallest choice that was tried.
        reading: share of the time that goes to prompts; `waiting`: to loading of what is read.
    """

    per_node: Floats
    tp: Floats
    need_gib: Floats
    least_gib: Floats
    reading: Floats
    waiting: Floats | float = 0.0


def estimate_requests(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    node_counts: Sequence[int],
    max_accelerators: int | None,
    constants: Constants | None,
) -> Table:
    """Estimate batch inference; arguments and columns are those of `planner.performance.search.estimate_shapes`."""
    c = constants or load_constants()
    requests = training.tuning.requests
    assert requests is not None
    devices = build_devices(hardware, training, model.family.value, c)
    counts = np.asarray(list(node_counts), dtype=np.int64)
    device = np.repeat(np.arange(hardware.n_rows, dtype=np.int64), len(counts))
    nodes = np.tile(counts, hardware.n_rows)
    if requests.answers is None:
        items = _items(model, training, requests, devices, c)
        return replica_table(model, training, devices, items, device, nodes, max_accelerators, c)
    each = devices.take(device)
    table = _to_the_last(model, requests, _generating(model, requests, devices, c), each, device, nodes, c)
    own = np.arange(len(device), dtype=np.int64)
    return replica_table(model, training, each, table, own, nodes, max_accelerators, c).with_columns(
        hardware_row=device
    )


def _generating(model: ModelSpec, requests: Requests, devices: Devices, c: Constants) -> Replica:
    """Replicas of a model that writes answers: every tensor-parallel degree that divides a node is tried."""
    assert requests.prompts is not None and requests.answers is not None
    engine, size = requests.engine, devices.count.shape
    none, endless = np.zeros(size), np.full(size, np.inf)
    best = Replica(none, np.ones(size), endless, endless, none)
    degrees = (engine.tensor_parallel,) if engine.tensor_parallel else (1, 2, 4, 8, 16)
    prompts = 0.0 if requests.shared_prefix else 1.0  # those that begin alike are read once
    for degree in degrees:
        tp = np.full(size, float(degree))
        case = build_cases(
            model, engine, devices, prompt=requests.prompts.mean, answer=requests.answers.mean,
            running=np.full(size, np.inf), tp=tp, c=c,
        )  # fmt: skip
        able = efficiency(engine, devices, c)
        running = sequences(case, able)
        whole = round_s(case, able, running, prompts)
        rate, read = running / whole, 1.0 - round_s(case, able, running, 0.0) / whole
        each = held_bytes(case)
        need = (all_bytes(case) + running * each) / tp / GIB
        divides = devices.count % tp == 0
        fits = divides & (room(case) >= LEAST_SEQUENCES)
        held = all_bytes(case) + LEAST_SEQUENCES * each
        least = np.where(divides, held / tp / MEMORY_SHARE / GIB, np.inf)
        node = np.where(fits, rate * devices.count / tp, 0.0)
        wins = np.nan_to_num(node) > best.per_node
        best = Replica(
            np.where(wins, node, best.per_node),
            np.where(wins, tp, best.tp),
            np.where(wins, need, best.need_gib),
            np.minimum(best.least_gib, least),
            np.where(wins, read, best.reading),
        )
    return best


def _to_the_last(
    model: ModelSpec,
    requests: Requests,
    best: Replica,
    devices: Devices,
    row: Ints,
    nodes: Ints,
    c: Constants,
) -> Replica:
    """The replicas of `best` at the rate of a whole run: at its end few requests are left, and the longest alone.

    A long run is as fast as its steady state.

    Args:
        model: what answers.
        requests: lengths, engine, how many in all.
        best: by device.
        devices: one row per cluster; `row` is its device, and `nodes` its nodes.
        row: see `devices`.
        nodes: see `devices`.
        c: constants.
    """
    rows = Replica(
        best.per_node[row], best.tp[row], best.need_gib[row], best.least_gib[row], best.reading[row]
    )
    if requests.count is None:
        return rows
    assert requests.prompts is not None and requests.answers is not None
    prompt, answer = requests.prompts.mean, requests.answers.mean
    case = build_cases(
        model, requests.engine, devices, prompt=prompt, answer=answer,
        running=np.full(len(row), np.inf), tp=rows.tp, c=c,
    )  # fmt: skip
    able = efficiency(requests.engine, devices, c)
    share = np.maximum(requests.count * rows.tp / (nodes * devices.count), 1.0)
    most, prompts = sequences(case, able), 0.0 if requests.shared_prefix else 1.0
    live = np.minimum(most, share)
    wave = answer * step_s(case, able, live, np.full(len(row), prompt + 0.5 * answer))
    # the first prompts are read while nothing is answered yet
    beginning = prompts * live * prefill_s(case, able) + wave
    # what the last requests take beyond the time that as many take in the steady state
    ending = tail_s(case, able, live, prompt, requests.answers, min(requests.count, 1024)) - wave
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = requests.count / (rows.per_node * nodes)
        others = steady - round_s(case, able, live, prompts)
        steady = beginning + np.where(share > most, others, 0.0)  # fewer than run at once are one round
        whole = np.where(rows.per_node > 0, requests.count / ((steady + ending) * nodes), 0.0)
    return replace(rows, per_node=np.nan_to_num(whole))


def _items(
    model: ModelSpec, training: TrainingSpec, requests: Requests, devices: Devices, c: Constants
) -> Replica:
    """One replica per accelerator that runs forward only."""
    seconds = _item_s(model, _item_flops(model, training, requests), requests, devices, c)
    rate = 1.0 / seconds
    weights = stored_bytes(model, requests.engine) / GIB
    size = devices.count.shape
    need = np.full(size, weights + c["items.work_gib"])
    fits = need <= usable_gib(devices.memory_gib, devices.memory_rate, c)
    node = np.where(fits, np.nan_to_num(rate) * devices.count, 0.0)
    decoded = training.decode_samples_per_s_per_core or 0.0
    loading = node * node_loading_s(1.0, training.bytes_per_sample or 0.0, decoded, devices, c)
    slower = np.maximum(loading, 1.0)  # data are read while the accelerators work
    waiting = 1.0 - 1.0 / slower
    return Replica(node / slower, np.ones(size), need, need, 1.0 - waiting, waiting)


def _item_s(model: ModelSpec, flops: float, requests: Requests, devices: Devices, c: Constants) -> Floats:
    """Seconds of one item on one accelerator.

    Vision models take arithmetic and, one after the other, the reading and writing of their activations, in 8 bit where
    that was measured of the class and the chip computes in it; what was measured of a class (or of a model that writes,
    `rate_ratio`) as a share of the peak is taken so.
    """
    kind = "encoder" if model.family.value == "transformer" else model.family.value
    if f"items.passes.{kind}" not in c.values or requests.rate_ratio != 1.0:
        share = c[f"items.ratio.{kind}"] * requests.rate_ratio
        whole: Floats = flops / (devices.serve_peak * devices.serve_compute * share)
        return whole
    peak = _peak_of_items(model, requests, devices, c)
    eight = (peak > 1.01 * devices.gemm_peak) & (f"items.eight_bit_passes.{kind}" in c.values)
    bytes_each = np.where(
        eight, c.get(f"items.eight_bit_passes.{kind}", 0.0), 2.0 * c[f"items.passes.{kind}"]
    )
    moved = bytes_each * sampled_activations(model, flops)
    result: Floats = flops / (peak * devices.serve_compute * c["items.compute_ratio"]) + moved / (
        devices.memory_rate * devices.serve_bandwidth
    )
    return result


def _peak_of_items(model: ModelSpec, requests: Requests, devices: Devices, c: Constants) -> Floats:
    """FLOP/s at which items are computed: int8 of networks that were measured in it has its own."""
    measured = f"items.eight_bit_passes.{model.family.value}" in c.values
    if requests.answers is not None or requests.engine.precision != "int8" or not measured:
        return devices.serve_peak
    return c["items.int8_peak_ratio"] * devices.serve_peak


def _item_flops(model: ModelSpec, training: TrainingSpec, requests: Requests) -> float:
    """FLOPs of one item, all its forward passes together; tables of a vocabulary are looked up, not multiplied."""
    if model.forward_flops_per_sample:
        return float(model.forward_flops_per_sample) * requests.passes
    length = requests.prompts.mean if requests.prompts is not None else float(training.sequence_length)
    pairs = 2.0 if model.architecture == "decoder" else 4.0  # a decoder's token sees those before it
    wide = pairs * float(model.layers or 1) * float(model.hidden or 1) * length * score_ratio(model, length)
    _, active, _ = layer_params(model)
    head = (model.predicted_share or 0.0) * float(model.vocab or 0) * float(model.hidden or 1)
    return length * (2.0 * (float(model.layers or 1) * active + head) + wide) * requests.passes


def _sample_flops(model: ModelSpec, training: TrainingSpec) -> float:
    """FLOPs of one item, or of a request and its answer; of the answer alone where prompts are in the cache."""
    requests, lengths = training.tuning.requests, training.tuning.lengths
    if requests is not None and requests.answers is None:
        return _item_flops(model, training, requests)
    tokens = 1.0 if lengths is None else lengths.mean
    if requests is not None and requests.answers is not None and requests.shared_prefix:
        tokens = requests.answers.mean  # prompts are not read
    return 2.0 * float(model.active_params or model.params) * tokens


def _spread(training: TrainingSpec, devices: Devices, c: Constants) -> Floats:
    """Half width in log of the 80 % interval of the rate."""
    work = training.tuning.generates
    assert work is not None
    base = None if work.answers is not None else c["items.spread"]
    return rate_spread(work.engine, devices, c, base, prompt_ratio(work))


def replica_table(
    model: ModelSpec,
    training: TrainingSpec,
    devices: Devices,
    replica: Replica,
    device: Ints,
    nodes: Ints,
    max_accelerators: int | None,
    c: Constants,
) -> Table:
    """Rows by device and node count; what cannot run has its reason, zeros and NaN.

    A pool of rollouts takes at least `paced_s` for a step.
    """
    available = usable_gib(devices.memory_gib, devices.memory_rate, c)[device]
    accelerators = nodes * devices.count[device]
    words = [str(word) for word in devices.reason[device]]
    slow = ~(replica.per_node[device] > 0)
    for at in range(len(words)):
        if not words[at] and max_accelerators and accelerators[at] > max_accelerators:
            words[at] = "too_many_accelerators"
        elif not words[at] and slow[at]:
            words[at] = "out_of_memory"
    fits = np.asarray([not word for word in words])
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(fits, training.global_batch / (replica.per_node[device] * nodes), np.nan)
    spread = np.exp(_spread(training, devices, c))[device]
    parts = dict.fromkeys(COMPONENTS, np.where(fits, 0.0, np.nan))
    waiting = np.broadcast_to(replica.waiting, replica.reading.shape)[device]
    parts["compute_s"] = total * replica.reading[device]
    parts["data_loading_s"] = total * waiting
    parts["generation_s"] = total * (1.0 - replica.reading[device] - waiting)
    whole = np.where(fits, 1, 0)
    tp = replica.tp[device].astype(np.int64) * whole
    degrees = {
        "pp": whole,
        "cp": whole,
        "ep": whole,
        "interleave": whole,
        "micro_batch": whole,
        "grad_accum": whole,
    }
    flops = _sample_flops(model, training) * training.global_batch
    requests = training.tuning.requests
    peak = devices.serve_peak if requests is None else _peak_of_items(model, requests, devices, c)
    columns: dict[str, Any] = {
        "hardware_row": device, "nodes": nodes, "fits": fits, "reason": Coded.encode(words),
        "tp": tp, **degrees, "dp": np.where(fits, accelerators // np.maximum(tp, 1), 0).astype(np.int64),
        "zero_stage": 0 * whole, "sequence_parallel": np.zeros(len(whole), dtype=np.bool_),
        "recompute": Coded(np.zeros(len(whole), dtype=np.int32), ("none", "selective", "full")),
        "step_time_s": total, "step_time_low_s": total / spread, "step_time_high_s": total * spread,
        "samples_per_s": training.global_batch / total,
        "mfu": flops / (total * accelerators * peak[device]),
        "memory_needed_gib": np.where(fits, replica.need_gib[device], _known(replica.least_gib)[device]),
        "memory_available_gib": available, "oom_probability": np.where(fits, 0.0, 1.0),
        "host_memory_needed_gib": c["memory.host.system_gib"] + devices.count[device] * c["memory.host.process_gib"],
        "limited_by": Coded.encode(_limits(replica.reading[device], waiting, fits)), **parts,
        "checkpoint_gib": np.full(len(whole), _unsaved_gib(training)),
    }  # fmt: skip
    return Table(columns, length=len(device))


def _known(least_gib: Floats) -> Floats:
    """Least memory of any choice, NaN where none divides the node."""
    return np.where(np.isfinite(least_gib), least_gib, np.nan)


def _unsaved_gib(training: TrainingSpec) -> float:
    """Answers of a step, written out when it ends: what an interruption loses, and a new start reads."""
    return training.global_batch * answer_bytes(training) / GIB


def _limits(reading: Floats, waiting: Floats, fits: Bools) -> list[str]:
    words = np.where(waiting > 0.0, "data_loading", np.where(reading > 0.5, "compute", "generation"))
    return [str(word) for word in np.where(fits, words, "")]
