"""What sized candidates of portfolios and pipelines must say of their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from planner.inputs.commit_schema import CommitOption
from planner.inputs.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.inputs.portfolio_schema import SizedCandidate

PAID_ALREADY = frozenset({"owned", *get_args(CommitOption)})  # there are as many as were bought
ONE_PRICE = "needs either cost_usd or usd_per_hour"
NO_PRICE = "a price of 0 is none: only what is paid already (owned, reserved, ...) costs nothing more"


def cost_faults(path: tuple[str | int, ...], candidates: Sequence[SizedCandidate]) -> Iterator[Fault]:
    """Yield a fault per candidate at `path` without one price, or with a price of 0 for what is not paid already."""
    for number, item in enumerate(candidates):
        if (item.cost_usd is None) == (item.usd_per_hour is None):
            yield Fault((*path, number), ONE_PRICE)
            continue
        field = "cost_usd" if item.cost_usd is not None else "usd_per_hour"
        if getattr(item, field) == 0 and item.purchase_option not in PAID_ALREADY:
            yield Fault((*path, number, field), NO_PRICE)
