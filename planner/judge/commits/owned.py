"""Owned commitments that end within the horizon: how much of them is used, and what is bought or planned there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.judge.commits.figures import CommitMemory, Purchase
from planner.judge.findings import Printed

if TYPE_CHECKING:
    from planner.inputs.commit_schema import Owned
    from planner.judge.commits.prices import Plan


def expiring(memory: CommitMemory, purchases: Sequence[Purchase], apart: bool) -> list[dict[str, Any]]:
    """What an answer says of them; `apart`: whether it tells what is bought now from what is planned for later."""
    question = memory.loaded.question
    end = question.start + timedelta(days=365 * memory.years)
    rows = [
        _owned(memory, commitment, purchases, apart)
        for commitment in question.commitments
        if commitment.expires < end
    ]
    return sorted(rows, key=lambda row: str(row["expires"]))


def _owned(memory: CommitMemory, owned: Owned, purchases: Sequence[Purchase], apart: bool) -> dict[str, Any]:
    question = memory.loaded.question
    names = [pool.name for pool in question.pools]
    used, then = None, owned.expires + timedelta(days=1)
    if owned.pool is None:
        mine = [
            purchase
            for purchase in purchases
            if purchase.plan is not None and _provider(memory, purchase) == owned.provider
        ]
        unit, serves = "USD/h", f"{owned.provider} plan"
    else:
        pool = names.index(owned.pool)
        mine = [purchase for purchase in purchases if purchase.pool == pool]
        unit, serves, ratio = question.pools[pool].unit, owned.pool, _used_ratio(memory, pool)
        used = None if ratio is None else Printed(ratio, 6, 1e-6)
    return {
        "option": owned.purchase_option, "serves": serves, "unit": unit, "expires": owned.expires.isoformat(),
        "units": _usd(float(owned.instances or owned.usd_per_hour or 0.0)),
        "days_left": (owned.expires - question.start).days + 1, "used_ratio": used,
        "renewed_units": _usd(sum(purchase.units for purchase in mine if not apart or purchase.first == 0)),
        **({"later_units": _usd(sum(purchase.units for purchase in mine if purchase.begins == then))} if apart else {}),
    }  # fmt: skip


def _provider(memory: CommitMemory, one: Purchase) -> str:
    plan: Plan = next(plan for plan in memory.plans if plan.term is one.term)
    return plan.provider


def _used_ratio(memory: CommitMemory, pool: int) -> float | None:
    """Share of the owned units of a pool that is used while they last."""
    used = total = 0.0
    for block in memory.blocks(1.0):
        time = block.weight * memory.futures.probability[block.future]
        used += float(time @ np.minimum(block.demand[:, pool], block.owned[:, pool]))
        total += float(time @ block.owned[:, pool])
    return used / total if total else None


def _usd(value: float) -> Printed:
    return Printed(value, 6, 1e-8 * abs(value) + 1e-6)
