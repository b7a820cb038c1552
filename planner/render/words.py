"""Phrases that several sections share: a place, an offer, a cluster, an option."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from planner.render.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable

DERIVED_MARK = "~"
_ZONES = re.compile(r" in \d+ zones")
_OWN = {"already_owned": "already paid", "marginal": "running costs", "full": "with its purchase"}
_OWN_VARIANT = re.compile(rf"\(({'|'.join(_OWN)})\)")
_LONG_CONTEXT = 8192  # tokens; what fine-tuning seldom fills
_DERIVED_BASES = frozenset({"derived"})


def place(provider: str, region: str, zone: str) -> str:
    """Return `aws/us-east-1 use1-az4`, or `gcp/us-central1-a` where the zone's name holds the region's."""
    if region and zone.startswith(region):
        return f"{provider}/{zone}"
    text = f"{provider}/{region}" if region else provider
    return f"{text} {zone}" if zone else text


def option(purchase_option: str, option_variant: str) -> str:
    """Return `reserved_1y (standard.no_upfront)`; the variant only where there is one, own machines in words.

    A label of several ways to buy (`1 reserved_1y (already_owned) + 2 on_demand`) is put in words alike.
    """
    text = f"{purchase_option} ({option_variant})" if option_variant else purchase_option
    return _OWN_VARIANT.sub(lambda variant: f"({_OWN[variant[1]]})", text)


def without_zones(bought: str) -> str:
    """Return `spot, else on_demand` for `spot in 3 zones, else on_demand`: how many zones is a detail."""
    return _ZONES.sub("", bought)


def cluster(nodes: int, instance_type: str) -> str:
    """Return `4 x p4d.24xlarge`."""
    return f"{nodes:,} x {instance_type}"


def devices(count: float, accelerator: str) -> str:
    """Return `32 x a100-40gb-sxm`; an empty text for machines without accelerators."""
    return f"{number(count, 6)} x {accelerator}" if accelerator and count else ""


def is_derived(basis: str, flags: tuple[str, ...] = ()) -> bool:
    """Tell whether a price was computed from others instead of being published."""
    return basis in _DERIVED_BASES or "derived" in flags


class AssumedValue(Protocol):
    """A value that a plan or an estimate rests on, and whether the user gave it (`origin`)."""

    @property
    def key(self) -> str:
        """Return its place in the workload."""

    @property
    def value(self) -> str:
        """Return it as text."""

    @property
    def origin(self) -> str:
        """Return `default` where nobody gave it."""


def assumed_sizes(items: Iterable[AssumedValue]) -> list[str]:
    """Name sizes of samples that nobody stated and that of most jobs are far from true.

    These are long contexts, which fine-tuning seldom fills, any context by which an amount in steps or samples becomes
    one in tokens, samples that count as whole sequences, pieces of sound, of a model that makes images resolution and
    steps, of an encoder-decoder that it writes nothing, and weights in fewer bits than 16.
    """
    words, listed = [], list(items)
    counted = any(item.key == "data.tokens" and item.origin == "derived" for item in listed)
    in_sequences = any(item.key == "training.tokens" and item.origin == "derived" for item in listed)
    for item in listed:
        if item.origin != "default":
            continue
        if item.key == "training.sequence_length" and counted:
            words.append(f"samples of {int(item.value):,} tokens assumed (data.tokens)")
        elif item.key == "training.sequence_length" and (in_sequences or int(item.value) >= _LONG_CONTEXT):
            words.append(f"sequences of {int(item.value):,} tokens assumed (training.sequence_length)")
        elif item.key == "training.lengths":
            words.append(f"samples of {int(item.value):,} tokens each assumed (training.lengths)")
        elif item.key == "model.sample":
            words.append(f"samples of {item.value} (model.preset)")
        elif item.key == "model.image_size":
            words.append(f"images of {item.value} px assumed (model.image_size)")
        elif item.key == "inference.denoising_steps":
            words.append(f"{item.value} denoising steps an item assumed (inference.denoising_steps)")
        elif item.key == "training.precision" and item.value != "bf16":
            words.append(f"{item.value} assumed on machines without bf16 (training.precision)")
        elif item.key == "inference.precision":
            words.append(f"weights in {item.value} assumed, as released (inference.precision)")
        elif item.key == "inference.passes":
            words.append("one pass over each input assumed: what an encoder-decoder writes is not counted")
    return words


def share(part: Decimal, whole: Decimal) -> float | None:
    """Return part / whole, None where there is no whole."""
    return float(part / whole) if whole and whole.is_finite() and part.is_finite() else None


def join_some(items: tuple[str, ...] | list[str], limit: int, more: str = "with -v") -> str:
    """Join items with semicolons; say how many were left out."""
    text = "; ".join(items[:limit])
    return text if len(items) <= limit else f"{text}; and {len(items) - limit:,} more {more}".rstrip()
