"""Prices quantities; the only module that does.

Quantities (instance-hours, GiB-months, GB moved) are computed once as float64 arrays, rounded to `QUANTUM`; the
solver's objective multiplies them by float prices, the plan multiplies the same rounded quantities by the catalog's
decimal prices. Objective and plan therefore agree to float rounding (1e-9 relative and better).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Protocol

import numpy as np

from planner.plan.ids import CostId
from planner.plan.model import CostLine
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats


HOURS_PER_MONTH = 730.0  # the cloud providers' billing month for GiB-month prices
QUANTUM = 9  # decimals kept in a quantity
_AMOUNT_QUANTUM = Decimal("1e-12")


class BillingRule(Protocol):
    """The part of a purchase-option rule that billing needs (implemented by `catalogs.tariffs.OptionRule`)."""

    @property
    def billing_granularity_s(self) -> float | None: ...  # noqa: D102
    @property
    def minimum_charge_s(self) -> float | None: ...  # noqa: D102
    @property
    def block_hours(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def whole_term(self) -> bool: ...  # noqa: D102


def billed_hours(rule: BillingRule, used_hours: Floats, term_hours: Floats) -> Floats:
    """Hours billed per instance for `used_hours` of use, by the rule of the purchase option.

    Per-second or per-hour granularity rounds up; a minimum charge applies; a whole term is billed in full (and again
    when the use is longer than one term); blocks are billed at the shortest allowed length that holds the use.

    Args:
        rule: billing granularity, minimum, blocks and whole-term rule.
        used_hours: shape `(n,)`.
        term_hours: the offer's own term, shape `(n,)`; NaN where it has none.

    Returns:
        Billed hours, shape `(n,)`; infinity where no block is long enough or a whole term is unknown.
    """
    if rule.whole_term:
        terms = np.ceil(np.maximum(used_hours, 1e-9) / term_hours)
        return np.where(np.isnan(term_hours), np.inf, terms * term_hours)
    if len(rule.block_hours):
        blocks = np.asarray(sorted(rule.block_hours), dtype=np.float64)
        at = np.searchsorted(blocks, used_hours)
        return np.append(blocks, np.inf)[at]
    granularity_hours = (rule.billing_granularity_s or 1.0) / 3600.0
    # 1e-9 keeps an exact number of hours from being rounded up by float noise
    hours = np.ceil(used_hours / granularity_hours - 1e-9) * granularity_hours
    least = (rule.minimum_charge_s or 0.0) / 3600.0
    return np.asarray(np.round(np.maximum(hours, least), QUANTUM), dtype=np.float64)


def exact(quantity: float) -> Decimal:
    """Return a float quantity as the Decimal of its `QUANTUM`-rounded value."""
    return Decimal(repr(round(float(quantity), QUANTUM)))


@record(frozen=True)
class PriceTag:
    """A unit price with its provenance, as carried onto cost lines."""

    unit_price: Decimal
    currency: str
    usd_per_currency: Decimal
    basis: str
    source: str
    as_of: str
    flags: tuple[str, ...] = ()


# The kinds that reports group cost lines by.
KIND_OF = {
    CostId.COMPUTE: "compute", CostId.AFTER_END: "after_end", CostId.UPFRONT: "upfront",
    CostId.SYSTEM_DISK: "system_disk",
    CostId.DATASET_STORAGE: "data_storage", CostId.CHECKPOINT_STORAGE: "checkpoint_storage",
    CostId.DATASET_READS: "data_storage", CostId.DATASET_VOLUMES: "data_storage",
    CostId.DATASET_FILE_SYSTEM: "data_storage", CostId.DATASET_PACKING: "data_storage",
    CostId.DATASET_TRANSFER: "data_transfer", CostId.DATASET_STREAM: "data_transfer",
    CostId.CHECKPOINT_TRANSFER: "data_transfer", CostId.MODEL_EXPORT: "data_transfer",
}  # fmt: skip


def price_line(cost_id: CostId, label: str, quantity: float | Decimal, unit: str, tag: PriceTag) -> CostLine:
    """Price one quantity exactly; the amount is kept to 1e-12 USD."""
    amount_of = quantity if isinstance(quantity, Decimal) else exact(quantity)
    with localcontext() as context:
        context.prec = 60
        amount = (amount_of * tag.unit_price * tag.usd_per_currency).quantize(_AMOUNT_QUANTUM)
    return CostLine(
        id=cost_id,
        kind=KIND_OF[cost_id],
        label=label,
        quantity=amount_of,
        unit=unit,
        unit_price=tag.unit_price,
        currency=tag.currency,
        usd_per_currency=tag.usd_per_currency,
        amount_usd=amount,
        basis=tag.basis,
        source=tag.source,
        as_of=tag.as_of,
        flags=tag.flags,
    )


def total_usd(lines: Sequence[CostLine]) -> Decimal:
    """Sum of the lines, exactly."""
    with localcontext() as context:
        context.prec = 60
        return sum((line.amount_usd for line in lines), Decimal(0))


def price_age_days(as_of: str, today: date) -> int | None:
    """Age of a price in days; a month counts from its first day, None for an unreadable date."""
    parts = as_of.split("-")
    try:
        year, month, day = (
            int(parts[0]),
            int(parts[1]) if len(parts) > 1 else 1,
            int(parts[2]) if len(parts) > 2 else 1,
        )
        return (today - date(year, month, day)).days
    except ValueError:
        return None
