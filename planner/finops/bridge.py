"""Why cost changed between two months: price, volume, mix, new, retired and the rest, exactly.

Mid-point (symmetric) decomposition of e = q p for every thing i that was bought in both months:

    volume_i = (q1 - q0) (p0 + p1) / 2        price_i = (p1 - p0) (q0 + q1) / 2

Both add up to e1 - e0 without a remainder. Inside a group whose quantities share a unit the volume effect splits into
pure volume, (Q1 - Q0) times the mean of the group's two average prices, and mix, what is left of the sum of volume_i.
Of a SKU that both months use, a pricing category that only one has, as where use moves from on-demand to a commitment,
is neither new nor retired: volume_i is its whole change.
The engine works out the effects of each thing (`planner/finops/things/queries/things.sql`): there may be millions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record

# Effects that are this many times the cost itself say nothing of it (a unit was changed, or what was paid became
# free), and two numbers so large cannot add up to a small one exactly.
ABSURD = 1e5
EFFECTS = ("price", "volume", "mix", "new", "retired", "other")


@record(frozen=True)
class Bridge:
    """The change of cost and its parts, money in one currency.

    Attributes:
        before, after: cost of the two months.
        price, volume, mix, new, retired: see the module; other: refunds, credits, corrections of closed months,
            and fees without a quantity.
    """

    before: float
    after: float
    price: float
    volume: float
    mix: float
    new: float
    retired: float
    other: float

    @property
    def change(self) -> float:
        """Cost after minus cost before."""
        return self.after - self.before

    @property
    def steps(self) -> tuple[tuple[str, float], ...]:
        """The effects, in the order of `EFFECTS`."""
        return tuple((name, getattr(self, name)) for name in EFFECTS)


def sum_bridge(groups: Mapping[str, Floats]) -> Bridge:
    """Add up the effects of groups and split volume from mix.

    Args:
        groups: columns of `planner/finops/things/queries/changes.sql`, each (n,): sums of money and quantities over the
            things of a group, whose quantities share a unit.
    """
    total = {name: math.fsum(values) for name, values in groups.items()}
    volume = math.fsum(_pure_volume(groups))
    return Bridge(
        before=total["cost_before"],
        after=total["cost_after"],
        price=total["price"],
        volume=volume,
        mix=total["volume"] - volume,
        new=total["new_cost"],
        retired=total["retired_cost"],
        other=total["other_cost"],
    )


def _pure_volume(groups: Mapping[str, Floats]) -> Floats:
    """Return each group's pure volume; where it would be absurd, all of its volume effects: then there is no mix."""
    before, after = groups["both_quantity_before"], groups["both_quantity"]
    both = (before > 0) & (after > 0)
    price0, price1 = (
        np.divide(cost, quantity, out=np.zeros_like(cost), where=both)
        for cost, quantity in ((groups["both_cost_before"], before), (groups["both_cost"], after))
    )
    pure = (after - before) * (price0 + price1) / 2
    volume: Floats = np.where(np.abs(pure) <= ABSURD * groups["both_known"], pure, groups["volume"])
    return volume
