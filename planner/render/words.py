"""Phrases that several sections share: a place, an offer, a cluster, an option."""

from __future__ import annotations

from decimal import Decimal

from planner.plan.model import Layout, PlanLine, Summary
from planner.render.numbers import number, price

DERIVED_MARK = "~"
_DERIVED_BASES = frozenset({"derived"})
OBJECTIVES = {"cost": "Cheapest", "time": "Fastest"}
COST_KINDS = {
    "compute": "compute",
    "upfront": "upfront payment",
    "system_disk": "system disk",
    "data_storage": "data storage",
    "checkpoint_storage": "checkpoint storage",
    "data_transfer": "data transfer",
    "interruption": "interruptions (expected)",
}


def place(provider: str, region: str, zone: str) -> str:
    """Return `aws/us-east-1 use1-az4`, or `gcp/us-central1-a` where the zone's name holds the region's."""
    if region and zone.startswith(region):
        return f"{provider}/{zone}"
    text = f"{provider}/{region}" if region else provider
    return f"{text} {zone}" if zone else text


def option(purchase_option: str, option_variant: str) -> str:
    """Return `reserved_1y (standard.no_upfront)`; the variant only where there is one."""
    return f"{purchase_option} ({option_variant})" if option_variant else purchase_option


def cluster(nodes: int, instance_type: str) -> str:
    """Return `4 x p4d.24xlarge`."""
    return f"{nodes:,} x {instance_type}"


def layout_words(layout: Layout) -> str:
    """Return a parallel layout in words; what is 1 by default is left out."""
    parts = [f"tensor {layout.tensor_parallel}", f"pipeline {layout.pipeline_parallel}"]
    if layout.context_parallel > 1:
        parts.append(f"context {layout.context_parallel}")
    if layout.expert_parallel > 1:
        parts.append(f"expert {layout.expert_parallel}")
    if layout.interleave > 1:
        parts.append(f"{layout.interleave} virtual stages each")
    parts += [f"data {layout.data_parallel}", f"ZeRO stage {layout.zero_stage}"]
    parts.append(f"micro-batch {layout.micro_batch} x {layout.grad_accumulation} accumulated")
    return ", ".join([*parts, f"recompute {layout.recompute}"])


def devices(count: float, accelerator: str) -> str:
    """Return `32 x a100-40gb-sxm`; an empty text for machines without accelerators."""
    return f"{number(count, 6)} x {accelerator}" if accelerator and count else ""


def summary(item: Summary) -> str:
    """Name a candidate: cluster, accelerators, option and place."""
    inside = devices(item.accelerators, item.accelerator)
    machines = cluster(item.nodes, item.instance_type) + (f" ({inside})" if inside else "")
    where = place(item.provider, item.region, item.zone)
    return f"{machines}, {option(item.purchase_option, item.option_variant)}, {where}"


def is_derived(basis: str, flags: tuple[str, ...] = ()) -> bool:
    """Tell whether a price was computed from others instead of being published."""
    return basis in _DERIVED_BASES or "derived" in flags


def marked_price(line: PlanLine) -> str:
    """Return the price of a node-hour, marked where it is derived."""
    mark = DERIVED_MARK if is_derived(line.price_basis, line.flags) else ""
    return mark + price(line.price_per_hour, line.currency)


def cost_kind(kind: str) -> str:
    """Return a cost kind in words."""
    return COST_KINDS.get(kind, kind.replace("_", " "))


def share(part: Decimal, whole: Decimal) -> float | None:
    """Return part / whole, None where there is no whole."""
    return float(part / whole) if whole and whole.is_finite() and part.is_finite() else None


def join_some(items: tuple[str, ...] | list[str], limit: int, more: str = "with -v") -> str:
    """Join items with semicolons; say how many were left out."""
    text = "; ".join(items[:limit])
    return text if len(items) <= limit else f"{text}; and {len(items) - limit:,} more {more}".rstrip()
