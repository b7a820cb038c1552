"""Filters over candidates, each counted alone and in pairs.

A candidate carries one bit per filter that removes it; the counts follow from the bits, so no filter hides another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.table import count_distinct
from planner.plan.model import FilterCount, FilterPair
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    BitArray = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]

# Name -> what it means to the user. Order is the order of the report: what the hardware cannot do first,
# then what the user's file excludes, then the limits that a relaxation can move.
FILTERS: dict[str, str] = {
    "price_refused": "the price carries a refusing flag (`--allow-flagged` admits it)",
    "inference_only": "the accelerator cannot train",
    "unknown_peak": "no sourced peak for this accelerator: listed, never a candidate",
    "unmeasured": "no measured run of this kind of model on the vendor's software (constraints.allow_unmeasured)",
    "precision": "the accelerator has no peak for the precision asked",
    "fractional": "a fraction of an accelerator (vGPU)",
    "arm64": "arm64 host (set constraints.include_arm64)",
    "provider": "provider not in constraints.providers",
    "region": "region not in constraints.regions",
    "residency": "region outside constraints.residency",
    "purchase_option": "purchase option excluded",
    "accelerator": "accelerator excluded",
    "instance_type": "instance type excluded",
    "min_memory": "less accelerator memory than constraints ask",
    "memory": "the model does not fit in accelerator memory with any layout",
    "layout": "no parallel layout divides batch and layers at this size",
    "network": "node-to-node network unknown: one node only",
    "max_nodes": "more nodes or accelerators than constraints allow",
    "capacity": "more nodes than the offer, block or commitment holds",
    "term": "longer than the purchase option allows",
    "quota": "above a declared quota",
    "throughput": "below constraints.min_throughput",
    "deadline": "expected finish after the deadline",
    "confidence": "meets the deadline on average, not with deadline_confidence (asked of those that pass all else)",
    "no_discount": "spot at or above the on-demand price of its type and region is no discount"
    " (asked of those that pass all else)",
    "budget": "cash obligations above constraints.budget_usd",
}
BIT = {name: 1 << position for position, name in enumerate(FILTERS)}
# Filters on facts of the machine or of the price; the rest are the user's limits.
HARD = (
    "price_refused", "inference_only", "unknown_peak", "precision", "memory", "layout", "network", "capacity", "term",
    "no_discount",
)  # fmt: skip


@record(frozen=True)
class FilterReport:
    """Counts over all candidates: `counts` per filter, `pairs` for candidates that exactly two filters remove."""

    total: int
    passed: int
    counts: tuple[FilterCount, ...]
    pairs: tuple[FilterPair, ...]


def mark(bits: BitArray, name: str, removed: BoolArray) -> None:
    """Set the bit of filter `name` in `bits` (in place) where `removed` is true."""
    np.bitwise_or(bits, np.int64(BIT[name]), out=bits, where=removed)


def count_filters(bits: BitArray, *, max_pairs: int = 8) -> FilterReport:
    """Count what each filter removes.

    Args:
        bits: one word per candidate, shape `(n_candidates,)`; 0 means the candidate passes.
        max_pairs: the largest pairs to report.
    """
    words, sizes = count_distinct(bits)
    alone = dict(zip(words.tolist(), sizes.tolist(), strict=True))
    counts = []
    for name, description in FILTERS.items():
        removed = int(sizes[(words & BIT[name]) != 0].sum())
        if removed:
            counts.append(FilterCount(name, description, removed, alone.get(BIT[name], 0)))
    names = {bit: name for name, bit in BIT.items()}
    pairs = []
    for word, size in alone.items():
        lowest = word & -word
        rest = word ^ lowest
        if word and rest and rest & (rest - 1) == 0:
            pairs.append(FilterPair(names[lowest], names[rest], size))
    pairs.sort(key=lambda pair: (-pair.removed, pair.first, pair.second))
    return FilterReport(len(bits), alone.get(0, 0), tuple(counts), tuple(pairs[:max_pairs]))
