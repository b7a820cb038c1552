"""Accelerators and their links as arrays: peaks for the wanted precision, memory, link speeds.

Unknown is never zero: a missing peak, an inference-only chip or an unknown network link gives a reason, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.rows import pick
from catalogs.tables.table import Bools, Coded, Floats, Ints, Table
from planner.performance.constants import Constants, load_software
from planner.performance.inference.chips import serving_columns
from planner.performance.kernels import has_native, has_native_experts
from planner.performance.spec import TrainingSpec
from planner.performance.work import PRECISION_GROUP
from planner.records import record

_PEAKS = {
    "fp32": ("fp32_tflops",),
    "tf32": ("tf32_tflops",),
    "fp16": ("fp16_tflops",),
    "bf16": ("bf16_tflops",),
    "fp8": ("fp8_tflops",),
    "fp4": ("fp4_tflops",),
}
# PCI Express x16, one direction, by generation (PCI-SIG encoding rates); unknown generations count as 3.
_PCIE_GB_PER_S = {3.0: 15.75, 4.0: 31.5, 5.0: 63.0, 6.0: 121.0}
# Software whose graphs the host launches; programs of XLA and its kin run without it.
_PYTORCH = frozenset({"cuda", "rocm"})
_MEMORY_SIZE = r"-\d+gb"
_CONSUMER = r"(rtx|gtx)[1-5]0[5-9]0"
_FAST_LINKS = frozenset({"nvswitch", "nvlink", "neuronlink", "xgmi", "ici"})
RDMA_KINDS = frozenset({"efa", "infiniband", "roce", "erdma", "gpudirect", "ici"})


@record(frozen=True)
class Devices:
    """One row per hardware type; rates per accelerator, SI units (FLOP/s, bytes/s), memory in GiB.

    Attributes:
        count: accelerators per node (fractional cards count as one slower device).
        gemm_peak: dense peak for the precision of weights; `attn_peak` for attention (never fp8 or fp4).
        achievable: share of the peak that a large matmul reaches (measured, else by generation); `attn_achievable`
            that of attention and of the output layer, which have no part in 8 or 4 bit.
        filtering: FLOPs of 3 x 3 taps at stride 1 per FLOP that is computed for them (minimal filtering), at least 1.
        pcie: 1 where accelerators of a node talk over PCI Express; `pcie_rate` bytes/s of its slot, one direction.
        domain: accelerators that this link joins: those of the node, or of the rack where it spans nodes (NVL72).
        intra_rate: one-direction bytes/s per accelerator inside a domain; `node_rate` bytes/s of the node's network.
        serve_peak: FLOP/s at the precision of generation; `serve_compute`, `serve_bandwidth` and `serve_step` what a
            chip reaches of an engine's shares and fixed times (`planner.performance.inference.chips`); `serve_unpack`
            what it takes longer where it has no arithmetic for the weights' format; `step_tokens` what a step of it may
            read of prompts beside answers.
        multiplier: learned time factor per (accelerator family, precision, stack), 1 where nothing is known.
        alone: time factor of one accelerator that trains by itself, 1 where that was not measured.
        native: 1 where attention runs in a kernel written for the accelerator's generation; `native_experts` where the
            products of experts do.
        host_pace: time that the host takes to launch a kernel, relative to x86 servers of the Ampere generation.
        spread: extra log-width of the interval where measurements are thin.
        measured: the accelerator's number in the table of measured layouts, 0 where it has none.
    """

    count: Floats
    domain: Floats
    memory_gib: Floats
    host_gib: Floats
    vcpus: Floats
    gemm_peak: Floats
    attn_peak: Floats
    achievable: Floats
    attn_achievable: Floats
    filtering: Floats
    memory_rate: Floats
    intra_rate: Floats
    pcie: Floats
    pcie_rate: Floats
    node_rate: Floats
    rdma: Floats
    serve_peak: Floats
    serve_compute: Floats
    serve_bandwidth: Floats
    serve_step: Floats
    serve_unpack: Floats
    step_tokens: Floats
    multiplier: Floats
    alone: Floats
    native: Floats
    native_experts: Floats
    host_pace: Floats
    spread: Floats
    measured: Floats
    reason: npt.NDArray[np.object_]

    def take(self, index: Ints) -> Devices:
        """Return rows `index`."""
        picked: dict[str, Any] = {
            name: pick(getattr(self, name), index) for name in self.__dataclass_fields__
        }
        return Devices(**picked)


def build_devices(hardware: Table, training: TrainingSpec, kind: str, constants: Constants) -> Devices:
    """Read hardware rows for one training precision and stack.

    Args:
        hardware: columns as in the `estimate_shapes` contract.
        training: precision, stack class and whether fp16 may stand in for bf16.
        kind: `transformer`, `cnn`, `vit` or `diffusion`: which learned multiplier applies.
        constants: the model's constants.
    """
    given_count = hardware.number("accelerator_count")
    fraction = np.minimum(given_count, 1.0)
    count = np.maximum(np.floor(given_count + 1e-9), 1.0)
    gemm, attn = _peaks(hardware, training)
    group = PRECISION_GROUP[training.precision]
    share = _achievable(hardware, training, constants)
    pcie_rate = _pcie_rate(hardware.number("pcie_gen"))
    intra, on_pcie = _intra_rate(hardware, pcie_rate, constants)
    network = hardware.number("internode_gbps")
    rdma = by_text(hardware, "rdma", lambda word: word.lower() in RDMA_KINDS)
    devices = Devices(
        count=count,
        domain=_domain(hardware, count),
        memory_gib=hardware.number("accelerator_memory_gib"),
        host_gib=hardware.number("memory_gib"),
        vcpus=hardware.number("vcpus"),
        gemm_peak=gemm * fraction,
        attn_peak=attn * fraction,
        achievable=share * _small_share(hardware, training, constants) * _clock(hardware, kind, constants),
        attn_achievable=share,
        filtering=_filtering(hardware, training, constants),
        memory_rate=hardware.number("memory_gb_per_s") * 1e9 * fraction,
        intra_rate=intra,
        pcie=on_pcie,
        pcie_rate=pcie_rate * 1e9,
        node_rate=network * 1e9 / 8.0,
        rdma=rdma,
        **serving_columns(hardware, training.tuning, constants),
        multiplier=_multiplier(hardware, f"multiplier.{kind}.{{}}.{group}.{training.stack}", constants),
        alone=_alone(hardware, training, kind, constants),
        native=has_native(hardware, training),
        native_experts=has_native_experts(hardware, training),
        host_pace=_host_pace(hardware, constants),
        spread=_spread(hardware, kind, constants),
        measured=_measured(hardware),
        reason=np.full(hardware.n_rows, "", dtype=object),
    )
    devices.reason[:] = _reasons(hardware, devices, trains=training.tuning.requests is None)
    return devices


def _domain(hardware: Table, count: Floats) -> Floats:
    """Accelerators on one link: what the hardware states, at least the node's; tables of old runs state none."""
    if "link_domain_accelerators" not in hardware:
        return count
    return np.fmax(hardware.number("link_domain_accelerators"), count)


def accelerator_family(accelerator: str) -> str:
    """The id without its memory size: `a100-80gb-sxm` and `a100-40gb-sxm` are the family `a100-sxm`."""
    return re.sub(_MEMORY_SIZE, "", accelerator)


def by_text(hardware: Table, name: str, figure: Callable[[str], float]) -> Floats:
    """`figure` of what column `name` says of each row, worked out once per text, shape `(n_rows,)`."""
    column = hardware.column(name)
    if not isinstance(column, Coded):
        column = Coded.encode(str(value) for value in column)
    texts = (*column.values, "")  # code -1: the empty text
    used = np.zeros(len(texts), dtype=np.bool_)
    used[column.codes] = True  # few rows may be left of many texts
    figures = np.full(len(texts), np.nan)
    for at in np.flatnonzero(used).tolist():
        figures[at] = figure(texts[at])
    return figures[column.codes]


def _multiplier(hardware: Table, pattern: str, constants: Constants) -> Floats:
    """Learned time factor of each row: its accelerator family's, else its generation's, else 1."""
    generation = _by_generation(constants, hardware, pattern, 1.0)
    if "accelerator" not in hardware:
        return generation
    family = _by_family(constants, hardware, pattern)
    return np.where(np.isnan(family), generation, family)


def _alone(hardware: Table, training: TrainingSpec, kind: str, constants: Constants) -> Floats:
    """What an accelerator gains that trains by itself: classes of PyTorch, measured with transformers."""
    gain = constants.get(f"alone.ratio.{training.stack}", 1.0) if kind == "transformer" else 1.0
    return by_text(hardware, "vendor", lambda word: gain if load_software().get(word) in _PYTORCH else 1.0)


def _measured(hardware: Table) -> Floats:
    if "accelerator" not in hardware:
        return np.zeros(hardware.n_rows)
    from planner.performance.measured_layouts import accelerator_codes  # shapes that are kept need none

    codes = accelerator_codes()
    return np.asarray([codes.get(str(name), 0.0) for name in hardware["accelerator"]], dtype=np.float64)


def _host_pace(hardware: Table, constants: Constants) -> Floats:
    """Launch time of each row's host: of accelerators that come with one, else of the generation, else 1."""
    pace = _by_generation(constants, hardware, "floor.host.{}", 1.0)
    if "accelerator" not in hardware:
        return pace
    own = _by_family(constants, hardware, "floor.host.{}")
    return np.where(np.isnan(own), pace, own)


def _by_generation(constants: Constants, hardware: Table, pattern: str, default: float) -> Floats:
    return by_text(hardware, "generation", lambda word: constants.get(pattern.format(word), default))


def _by_family(constants: Constants, hardware: Table, pattern: str) -> Floats:
    """Constants of accelerator families, NaN where there is none."""
    return by_text(
        hardware,
        "accelerator",
        lambda word: constants.get(pattern.format(accelerator_family(word)), np.nan),
    )


def _spread(hardware: Table, kind: str, constants: Constants) -> Floats:
    """Extra log-width by accelerator family or generation; full where the memory is outside of what was measured."""
    rate = hardware.number("memory_gb_per_s")
    unknown = constants["thin.default"]
    spread = _by_generation(constants, hardware, f"thin.{kind}.{{}}", unknown)
    if "accelerator" in hardware:
        own = _by_family(constants, hardware, f"thin.{kind}.{{}}")
        # A family that was never measured is less sure than its generation.
        spread = np.where(np.isnan(own), np.hypot(spread, constants["thin.family"]), own)
    low = _by_generation(constants, hardware, f"thin.{kind}.{{}}.slowest_gb_per_s", np.inf)
    high = _by_generation(constants, hardware, f"thin.{kind}.{{}}.fastest_gb_per_s", 0.0)
    spread = np.where((rate < 0.9 * low) | (rate > 1.1 * high), np.maximum(spread, unknown), spread)
    link = np.where(hardware.is_in("intra_node", ("unknown", "")), constants["interval.unknown_link"], 0.0)
    result: Floats = np.hypot(spread, link)
    return result


def _peaks(hardware: Table, training: TrainingSpec) -> tuple[Floats, Floats]:
    """Dense peaks in FLOP/s: weights in the wanted precision, attention in 16 bit where weights have 8 or 4."""
    gemm = hardware.number(_PEAKS[training.precision][0]) * 1e12
    half = _half_peak(hardware)
    if training.precision == "bf16" and training.allow_fp16_fallback:
        gemm = np.where(np.isnan(gemm), hardware.number("fp16_tflops") * 1e12, gemm)
    small = PRECISION_GROUP[training.precision] == "fp8"
    attn = np.where(np.isnan(half), gemm, half) if small else gemm
    return gemm, attn


def _clock(hardware: Table, kind: str, constants: Constants) -> Floats | float:
    """What consumer cards clock above the speed that their peak is stated for; vision models were measured on them."""
    if kind == "transformer" or "accelerator" not in hardware:
        return 1.0
    boost = constants.get("vision.clock_ratio", 1.0)
    return by_text(hardware, "accelerator", lambda word: boost if re.match(_CONSUMER, word) else 1.0)


def _filtering(hardware: Table, training: TrainingSpec, constants: Constants) -> Floats:
    """Minimal filtering of plain 32 bit (Lavin and Gray, arXiv 1509.09308), never faster than tf32 on the same card."""
    if training.precision != "fp32":
        return np.ones(hardware.n_rows)
    rates = [
        hardware.number(f"{name}_tflops") * constants[f"gemm.achievable_{name}"] for name in ("fp32", "tf32")
    ]
    return np.maximum(np.fmin(constants["vision.minimal_filtering"], rates[1] / rates[0]), 1.0)


def has_peak(hardware: Table, training: TrainingSpec) -> Bools:
    """Rows that compute in the precision of the weights, shape `(n_rows,)`; no other can train."""
    return np.asarray(_peaks(hardware, training)[0] > 0, dtype=np.bool_)


def _half_peak(hardware: Table) -> Floats:
    peak: Floats = np.fmax(hardware.number("bf16_tflops"), hardware.number("fp16_tflops")) * 1e12
    return peak


def _achievable(hardware: Table, training: TrainingSpec, constants: Constants) -> Floats:
    """Share of the peak a large matmul reaches: measured (MAMF) in 16 bit, else typical; `_small_share` below it."""
    typical = _by_generation(constants, hardware, "gemm.achievable.{}", constants["gemm.achievable_default"])
    if training.precision in ("fp32", "tf32"):
        return np.full(hardware.n_rows, constants[f"gemm.achievable_{training.precision}"], dtype=np.float64)
    measured = hardware.number("achievable_bf16_tflops") / hardware.number("bf16_tflops")
    return np.where(np.isnan(measured), typical, measured)


def _small_share(hardware: Table, training: TrainingSpec, constants: Constants) -> Floats | float:
    """What products of weights in 8 or 4 bit reach of their peak, relative to those in 16 bit of theirs.

    Chips whose 8-bit peak is that of 16 bit (TPU v6e) multiply in 16 bit: they lose casts alone. Recipes in 4 bit keep
    some layers in 16 bit, which take their time at that peak.
    """
    if PRECISION_GROUP[training.precision] != "fp8":
        return 1.0
    faster = _peaks(hardware, training)[0] / _half_peak(hardware)
    share = np.where(faster > 1.0, constants["gemm.fp8_ratio"], 1.0)
    if training.precision == "fp4":
        kept = constants["gemm.fp4_kept_ratio"]
        share = share / (1.0 - kept + kept * faster)
    return share


def _pcie_rate(generation: Floats) -> Floats:
    rate = np.full(generation.shape, _PCIE_GB_PER_S[3.0], dtype=np.float64)
    for word, value in _PCIE_GB_PER_S.items():
        rate[generation == word] = value
    return rate


def _intra_rate(hardware: Table, pcie_rate: Floats, constants: Constants) -> tuple[Floats, Floats]:
    """One-direction bytes/s per accelerator inside a node, and 1 where the path is PCI Express."""
    stated = hardware.number("intra_node_gb_per_s") / 2.0
    link = hardware.number("link_gb_per_s") / 2.0
    fast = by_text(hardware, "intra_node", lambda word: word in _FAST_LINKS) > 0
    rate = np.where(np.isnan(stated), link, stated)
    rate = np.where(np.isnan(rate), constants["link.unstated_gb_per_s"], rate)
    rate = np.where(fast, rate, np.nan)
    pcie = np.isnan(rate)
    rate = np.where(pcie, np.fmin(np.where(np.isnan(stated), pcie_rate, stated), pcie_rate), rate)
    return rate * 1e9, pcie.astype(np.float64)


def _reasons(hardware: Table, devices: Devices, *, trains: bool) -> list[str]:
    """Why a row cannot be estimated at all, `""` when it can; chips for inference alone answer requests."""
    trainable = by_text(
        hardware, "trainable", lambda value: value.strip().lower() not in ("false", "0", "0.0", "no")
    )
    usable = np.isfinite(devices.memory_gib) & np.isfinite(devices.memory_rate) & (devices.memory_gib > 0)
    checks = (
        ((trainable > 0) | (not trains), "not_trainable"),
        (devices.gemm_peak > 0, "no_peak_for_precision"),
        (usable, "unknown_memory"),
    )
    reasons = np.full(hardware.n_rows, "", dtype=object)
    for passed, reason in reversed(checks):
        reasons[~passed] = reason
    return reasons.tolist()
